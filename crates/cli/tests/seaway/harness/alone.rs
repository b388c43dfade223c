//! Tests that need a process of their own: because they fork, or because they weigh its memory.

use std::process::{Command, Output, Stdio};

/// Set in such a process, to the name of its test.
pub const ALONE: &str = "SEAWAY_TEST_ALONE";

/// Runs a test of this binary once more, in a process that does nothing else, and answers how that ended. In that process
/// there is no answer: the test is to do its work. What it writes to stderr is seen at once.
pub fn alone(test: &str) -> Option<Output> {
    if std::env::var_os(ALONE).is_some_and(|inside| inside == test) {
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(ALONE, test);
    Some(command.stderr(Stdio::inherit()).output().unwrap())
}
