//! `seaway operator` as a process of its own, which a test may kill.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running operator; killed when dropped.
pub struct Process(Child);

impl Process {
    /// Starts an operator on the cluster of this kubeconfig.
    pub fn operator(kubeconfig: &Path, flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_seaway"));
        command
            .arg("operator")
            .arg(format!("-kubeconfig={}", kubeconfig.display()))
            .args(["-mesh-provider=gatewayapi:v1", "-port=0", "-log-level=error"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// SIGKILL: nothing is released, nothing is finished.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
