//! A place of its own for a test: namespaces for network, mounts and processes.
//!
//! The test runs once more in a process that `unshare` starts there. Pod and Service addresses belong to its loopback, its
//! `resolv.conf` names the cluster's DNS, and when it ends the kernel ends everything it started.

mod ends;

use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::namespaces::{possible, prepare, unshare};
use super::parts::part;
use crate::harness::{ALONE, nothing_may_be_skipped, skip};

/// Runs `test` in a haven, with these parts at hand. Elsewhere than there it waits for that to end, or says why it cannot be.
pub fn in_haven(test: &str, parts: &[&str], scenario: impl AsyncFnOnce()) {
    if std::env::var_os(ALONE).is_some_and(|inside| inside == test) {
        prepare();
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        return runtime.worker_threads(2).enable_all().build().unwrap().block_on(scenario());
    }
    if let Err(reason) = parts.iter().try_for_each(|name| part(name).map(drop)).and_then(|()| possible()) {
        assert!(!nothing_may_be_skipped(), "{test} cannot run: {reason}");
        return skip(test, &reason);
    }
    // Here, and not by those inside: who is killed tidies nothing up.
    let folder = TempDir::new().unwrap();
    let told = once_more(test).env("TMPDIR", folder.path()).stderr(Stdio::inherit()).output().unwrap();
    let words = String::from_utf8_lossy(&told.stdout);
    // Set in, so that nobody counts its result a second time.
    let quoted = words.replace('\n', "\n  ");
    assert!(told.status.success() && words.contains("1 passed"), "{test}: {}{quoted}", told.status);
}

/// The same test in namespaces of its own.
fn once_more(test: &str) -> Command {
    let mut inside = unshare();
    inside.arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture", "--test-threads=1"]);
    inside.env(ALONE, test);
    inside
}
