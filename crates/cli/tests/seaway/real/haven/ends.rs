//! What is left of a haven: nothing, however it ends.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{ALONE, nothing_may_be_skipped, once_more, possible, skip};

/// In the environment of everything that is started in the haven.
const MARK: &str = "SEAWAY_TEST_HAVEN_MARK";
const BEGUN: &str = "the haven has begun";

/// Starts a program and panics when told to.
fn panics_when_told() {
    let mut program = Command::new("sleep").arg("3600").spawn().unwrap();
    println!("\n{BEGUN}");
    let _ = std::io::stdin().read(&mut [0]);
    assert!(program.try_wait().unwrap().is_some(), "a program is left");
}

/// Processes of this machine that carry the mark.
fn marked(mark: &str) -> usize {
    let carries = |folder: &fs::DirEntry| {
        let environment = fs::read(folder.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == format!("{MARK}={mark}").as_bytes())
    };
    fs::read_dir("/proc").unwrap().flatten().filter(carries).count()
}

fn until_nothing_is_left(mark: &str) {
    for _ in 0..600 {
        if marked(mark) == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{} processes are left", marked(mark));
}

#[test]
fn whatever_a_test_started_ends_with_it() {
    let test = "real::haven::ends::whatever_a_test_started_ends_with_it";
    if std::env::var_os(ALONE).is_some_and(|inside| inside == test) {
        return panics_when_told();
    }
    if let Err(reason) = possible() {
        assert!(!nothing_may_be_skipped(), "{test} cannot run: {reason}");
        return skip(test, &reason);
    }
    let panics: fn(&mut Child) = |haven| drop(haven.stdin.take());
    let is_killed: fn(&mut Child) = |haven| haven.kill().unwrap();
    for (how, end) in [("panics", panics), ("is killed", is_killed)] {
        let mark = format!("{}-{how}", std::process::id());
        let mut haven = once_more(test);
        haven.env(MARK, &mark).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut haven = haven.spawn().unwrap();
        let mut said = BufReader::new(haven.stdout.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap() == BEGUN), "the haven never began");
        // The haven itself, its first process, and the program.
        assert!(marked(&mark) >= 2, "nothing is seen of what runs there");
        end(&mut haven);
        assert!(!haven.wait().unwrap().success(), "it {how}");
        until_nothing_is_left(&mark);
    }
}
