//! Readers who leave early (`… | head -1`): no panic, no play before empty seats, nothing left behind.

use std::process::{Command, Output, Stdio};

/// Runs a command whose reader is gone already. What it leaves in its temporary directory is an error.
fn unheard(name: &str, args: &[&str]) -> Output {
    let folder = tempfile::TempDir::new().unwrap();
    let program = folder.path().join(name);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_seaway"), &program).unwrap();
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(program);
    command.args(args).env("TMPDIR", &temporary).env_remove("RUST_LOG").stdin(Stdio::null()).stdout(writer);
    let output = command.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    let left: Vec<_> = std::fs::read_dir(&temporary).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{name} left {left:?}");
    output
}

#[test]
fn tools_end_well() {
    for (name, args) in [
        ("hey", &["-n", "1", "-c", "1", "-o", "csv", "http://127.0.0.1:1/"][..]),
        ("hey", &["-n", "1", "-c", "1", "http://127.0.0.1:1/"]),
        ("curl", &["--help"]),
        ("seaway", &["generate", "crds"]),
        ("seaway", &["generate", "man"]),
    ] {
        let output = unheard(name, args);
        assert_eq!(output.status.code(), Some(0), "{name} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_demo_stops_and_does_not_claim_success() {
    for voice in ["--plain", "--json"] {
        let output = unheard("seaway", &["demo", voice]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), said.as_ref()), (Some(141), ""));
    }
}
