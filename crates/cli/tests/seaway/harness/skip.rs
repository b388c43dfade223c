//! Tests that cannot run here, and steps of them.

use std::io::Write;

/// Whether nothing may be skipped: `SEAWAY_REAL=required`.
pub fn nothing_may_be_skipped() -> bool {
    match std::env::var("SEAWAY_REAL").unwrap_or_default().as_str() {
        "" => false,
        "required" => true,
        other => panic!("SEAWAY_REAL is {other:?}; it is \"required\" or not set"),
    }
}

/// Says that `test` cannot run, and why. `make test` counts these lines, so they go past the capture of the test runner.
pub fn skip(test: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {reason}");
}

/// Says that a step of `test` cannot run, and why. These are counted as well.
pub fn leave_out(test: &str, step: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "left out: {test}: {step}: {reason}");
}
