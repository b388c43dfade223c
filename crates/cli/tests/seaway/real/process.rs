//! A program that runs beside the test, with its words in a file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A running program; killed when dropped.
pub struct Program {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Starts it; what it says goes to `NAME.log` in `folder`, after what was there.
    pub fn start(name: &str, folder: &Path, command: &mut Command) -> Self {
        let log = folder.join(format!("{name}.log"));
        let file = File::options().append(true).create(true).open(&log).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        for proxy in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"] {
            command.env_remove(proxy);
        }
        let child = command.spawn().unwrap_or_else(|error| panic!("{name} did not start: {error}"));
        Self { name: name.to_owned(), child, log }
    }

    /// SIGKILL: nothing is released, nothing is finished.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Panics if it ended by itself.
    pub fn must_run(&mut self) {
        if let Some(status) = self.ended() {
            panic!("{} ended, {status}:\n{}", self.name, self.said());
        }
    }

    /// How it ended, if it did so by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// The last it said.
    pub fn said(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- {} said last:\n{}", self.name, self.said());
        }
    }
}
