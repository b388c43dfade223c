//! A place of its own for a test: namespaces for network, mounts and processes.
//!
//! The test runs once more in a process that `unshare` starts there. Pod and Service addresses belong to its loopback, its
//! `resolv.conf` names the cluster's DNS, and when it ends the kernel ends everything it started.

use std::path::Path;
use std::process::{Command, Stdio};

use super::parts::part;
use crate::harness::ALONE;

/// Runs `test` in a haven, with these parts at hand. Elsewhere than there it waits for that to end, or says why it cannot be.
pub fn in_haven(test: &str, parts: &[&str], scenario: impl AsyncFnOnce()) {
    if std::env::var_os(ALONE).is_some_and(|inside| inside == test) {
        prepare();
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        return runtime.worker_threads(2).enable_all().build().unwrap().block_on(scenario());
    }
    if let Err(reason) = parts.iter().try_for_each(|name| part(name).map(drop)).and_then(|()| possible()) {
        assert!(std::env::var("SEAWAY_REAL").as_deref() != Ok("required"), "{test} cannot run: {reason}");
        eprintln!("skipped: {test}: {reason}");
        return;
    }
    let mut inside = unshare();
    inside.arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture", "--test-threads=1"]);
    let told = inside.env(ALONE, test).stderr(Stdio::inherit()).output().unwrap();
    let words = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success() && words.contains("1 passed"), "{test}: {}\n{words}", told.status);
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command
}

fn possible() -> Result<(), String> {
    for program in ["ip", "mount"] {
        Command::new(program).arg("-V").output().map_err(|_| format!("there is no {program}"))?;
    }
    let tried = unshare().arg("true").output().map_err(|error| format!("there is no unshare: {error}"))?;
    let said = || String::from_utf8_lossy(&tried.stderr).trim().to_owned();
    if tried.status.success() { Ok(()) } else { Err(format!("this user may not make namespaces: {}", said())) }
}

/// Gives the addresses of pods and Services to this machine, and its names to the cluster's DNS.
fn prepare() {
    run("ip", &["link", "set", "lo", "up"]);
    run("ip", &["address", "add", "10.244.0.1/16", "dev", "lo"]);
    run("ip", &["address", "add", "10.96.0.1/16", "dev", "lo"]);
    let text = format!(
        "nameserver {}\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions timeout:1\n",
        seaway_drydock::berth::DNS
    );
    let file = std::env::temp_dir().join(format!("seaway-resolv-{}", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let place = std::fs::canonicalize("/etc/resolv.conf").unwrap();
    run("mount", &["--bind", &file.to_string_lossy(), &place.to_string_lossy()]);
    let _ = std::fs::remove_file(Path::new(&file));
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {said}", arguments.join(" "));
}
