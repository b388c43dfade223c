//! `seaway operator` as a process of its own, and what the kernel says of it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The kernel counts processor time for user space in these units on every architecture we run on.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running operator; killed when dropped.
pub struct Operator {
    child: Child,
    page: SocketAddr,
    kubeconfig: PathBuf,
}

/// What the kernel says of the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Seconds on a processor since it started.
    pub cpu: f64,
    /// Resident now, and at most since the last [`Operator::forget_peak`], in bytes.
    pub rss: u64,
    pub peak: u64,
}

impl Operator {
    /// Starts an operator, with cluster and user of a kubeconfig; everything else it asks goes to `proxy`.
    pub fn start((cluster, user): (Value, Value), proxy: SocketAddr) -> Self {
        let kubeconfig = std::env::temp_dir().join(format!("seaway-bench-{}.kubeconfig", std::process::id()));
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "bench", "cluster": cluster}],
            "users": [{"name": "bench", "user": user}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
            "current-context": "bench",
        });
        std::fs::write(&kubeconfig, text.to_string()).unwrap();
        // Nobody else takes it in the moment between.
        let page = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_seaway"));
        command
            .arg("operator")
            .arg(format!("-kubeconfig={}", kubeconfig.display()))
            .arg(format!("-port={}", page.port()))
            .args(["-mesh-provider=gatewayapi:v1", "-metrics-server=http://prometheus.monitoring:9090"])
            .arg(format!("-log-level={}", std::env::var("LOG_LEVEL").unwrap_or_else(|_| "info".to_owned())))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        match std::env::var_os("OPERATOR_LOG") {
            Some(path) => command.stderr(std::fs::File::create(path).unwrap()),
            None => command.stderr(Stdio::null()),
        };
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"] {
            command.env_remove(name);
        }
        let child = command.env("http_proxy", format!("http://{proxy}")).spawn().unwrap();
        Self { child, page, kubeconfig }
    }

    /// Ends the benchmark if the operator has ended.
    pub fn check(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "the operator ended: {ended:?}; OPERATOR_LOG=file keeps its log");
    }

    /// Waits until it leads with full caches, and returns how long that took.
    pub async fn ready(&mut self) -> Duration {
        let start = Instant::now();
        while !self.get("/readyz").await.is_some_and(|answer| answer.contains("OK (leader)")) {
            self.check();
            assert!(start.elapsed() < Duration::from_secs(300), "the operator does not become ready");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        start.elapsed()
    }

    async fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.page.port())).await.ok()?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.ok()?;
        String::from_utf8(answer).ok()
    }

    pub fn usage(&self) -> Usage {
        let pid = self.child.id();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // The name in parentheses may hold anything; fields are counted behind it.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks = |index: usize| fields[index].parse::<f64>().unwrap();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let kilobytes = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
        };
        Usage { cpu: (ticks(11) + ticks(12)) / TICKS_PER_SECOND, rss: kilobytes("VmRSS:"), peak: kilobytes("VmHWM:") }
    }

    /// From now on the peak is counted anew.
    pub fn forget_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
    }

    /// As `kubectl delete pod`: it gives its Lease back.
    pub async fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let asked = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(asked.elapsed() < Duration::from_secs(60), "the operator does not stop");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}
