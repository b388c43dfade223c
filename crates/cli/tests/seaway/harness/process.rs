//! `seaway operator` as a process of its own, which a test may kill.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What names proxies; whoever runs the tests may have set them for something else.
const PROXIES: [&str; 6] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"];

/// A running operator; killed when dropped.
pub struct Process(Child);

impl Process {
    /// An operator on the cluster of this kubeconfig, not yet started.
    pub fn command(kubeconfig: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_seaway"));
        command
            .arg("operator")
            .arg(format!("-kubeconfig={}", kubeconfig.display()))
            .args(["-mesh-provider=gatewayapi:v1", "-port=0", "-log-level=error"])
            .stdin(Stdio::null());
        for name in PROXIES {
            command.env_remove(name);
        }
        command
    }

    /// Starts an operator that reaches the names of the cluster through this proxy.
    pub fn operator(kubeconfig: &Path, proxy: &str, flags: &[&str]) -> Self {
        let mut command = Self::command(kubeconfig);
        command.env("http_proxy", proxy).args(flags).stdout(Stdio::null());
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
