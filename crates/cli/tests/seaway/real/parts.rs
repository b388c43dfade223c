//! Real programs, by name: `tools/install` knows where they come from.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where a part is; it is installed first if it must be. The error is why it cannot be had.
pub fn part(name: &str) -> Result<PathBuf, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/install");
    let output = Command::new(script).arg(name).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let last = |text: &[u8]| String::from_utf8_lossy(text).trim().lines().last().unwrap_or_default().to_owned();
    if output.status.success() { Ok(PathBuf::from(last(&output.stdout))) } else { Err(last(&output.stderr)) }
}

/// The same, where it was seen to be there.
pub fn installed(name: &str) -> PathBuf {
    part(name).unwrap_or_else(|why| panic!("{why}"))
}
