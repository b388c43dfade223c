//! Tests that cannot run here, and steps of them.

use std::io::Write;

/// Says that `test` cannot run, and why. `make test` counts these lines, so they go past the capture of the test runner.
pub fn skip(test: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {reason}");
}

/// Says that a step of `test` cannot run, and why. These are counted as well.
pub fn leave_out(test: &str, step: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "left out: {test}: {step}: {reason}");
}
