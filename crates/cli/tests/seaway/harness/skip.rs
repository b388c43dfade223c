//! Tests that cannot run here.

use std::io::Write;

/// Says that `test` cannot run, and why. `make test` counts these lines, so they go past the capture of the test runner.
pub fn skip(test: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {reason}");
}
