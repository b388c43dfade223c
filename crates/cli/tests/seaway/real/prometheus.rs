//! A real Prometheus. Debian's cannot ask Kubernetes what to scrape, so it is told in a file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kube::Client;
use seaway_drydock::names::Names;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::cluster::RealCluster;
use super::gateways::{publish_at, until_open};
use super::parts::installed;
use super::process::Program;
use crate::harness::Ground;

const HOST: u8 = 3;
const PORT: u16 = 9090;

/// A running Prometheus, which its Service `prometheus.monitoring` leads to.
pub struct Prometheus {
    targets: JoinHandle<()>,
    _program: Program,
}

impl Prometheus {
    /// Scrapes pods that ask for it, and a gateway at this address and path, every two seconds.
    pub async fn start(cluster: &RealCluster, gateway: (SocketAddr, &str)) -> Self {
        let client: Client = cluster.client();
        cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: monitoring}}").await;
        let at = publish_at(&client, HOST, "monitoring", "prometheus", &[("http", PORT)]).await;
        let folder = cluster.folder().join("prometheus");
        std::fs::create_dir(&folder).unwrap();
        let pods = folder.join("pods.json");
        let config = json!({
            "global": {"scrape_interval": "2s", "scrape_timeout": "2s"},
            "scrape_configs": [
                {"job_name": "gateway", "metrics_path": gateway.1, "static_configs": [{"targets": [gateway.0]}]},
                {"job_name": "pods", "file_sd_configs": [{"files": [pods], "refresh_interval": "5m"}]},
            ],
        });
        let file = folder.join("prometheus.yml");
        std::fs::write(&file, config.to_string()).unwrap();
        let targets = tokio::spawn(follow(cluster.berth.names().clone(), pods));
        let mut command = Command::new(installed("prometheus"));
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={at}:{PORT}"))
            .args(["--log.level=warn"]);
        let program = Program::start("prometheus", cluster.folder(), &mut command);
        until_open(at, PORT).await;
        Self { targets, _program: program }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.targets.abort();
    }
}

/// Writes down which pods are to be scraped whenever that changes; Prometheus watches the file.
async fn follow(names: Names, file: PathBuf) {
    let mut written = Value::Null;
    loop {
        let wanted = targets(&names);
        if wanted != written {
            replace(&file, &wanted.to_string());
            written = wanted;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn targets(names: &Names) -> Value {
    let asks = |pod: &seaway_drydock::names::Pod| {
        let says = |name: &str| pod.annotations.get(&format!("prometheus.io/{name}")).cloned();
        let port = says("scrape").filter(|on| on == "true" && pod.running).and(says("port"))?;
        let mut labels = json!({"namespace": pod.namespace, "pod": pod.name});
        for (name, value) in &pod.labels {
            labels[name.replace(|character: char| !character.is_alphanumeric(), "_")] = json!(value);
        }
        Some(json!({"targets": [format!("{}:{port}", pod.address)], "labels": labels}))
    };
    names.pods().iter().filter_map(|pod| asks(pod)).collect()
}

/// Nobody sees half of it.
fn replace(file: &Path, text: &str) {
    let draft = file.with_extension("draft");
    std::fs::write(&draft, text).unwrap();
    std::fs::rename(&draft, file).unwrap();
}
