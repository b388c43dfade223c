//! The ground the demo stands on: a cluster, the operator in it, and people who use the app.
//!
//! `seaway drydock` stands on the same ground. Everything ends when it is dropped.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use seaway_adapters::http::Http;
use seaway_drydock::{Cluster, Options};
use seaway_operator::{Config, Operator};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::glue::{ClusterClock, ClusterDial, LOADTESTER_IMAGE, LoadTester};
use crate::leftovers::Leftover;
use crate::loadtester::{Offer, Toolbox};
use crate::watch::cluster::RemoteClock;

/// The example's manifests, in the order they are applied.
pub const MANIFESTS: [(&str, &str); 6] = [
    ("00-namespaces.yaml", include_str!("../../../../examples/gateway-api/00-namespaces.yaml")),
    ("gateway.yaml", include_str!("../../../../examples/gateway-api/gateway.yaml")),
    ("loadtester.yaml", include_str!("../../../../examples/gateway-api/loadtester.yaml")),
    ("podinfo.yaml", include_str!("../../../../examples/gateway-api/podinfo.yaml")),
    ("metric-templates.yaml", include_str!("../../../../examples/gateway-api/metric-templates.yaml")),
    ("canary.yaml", include_str!("../../../../examples/gateway-api/canary.yaml")),
];

/// Where the operator would live in a cluster; its short names are looked up there.
const OPERATOR_NAMESPACE: &str = "flagger-system";

/// How far in the past a fast clock begins.
const HEAD_START: Duration = Duration::from_secs(12 * 60 * 60);

/// How long the operator may be away, in our own time.
const LEASE: Duration = Duration::from_secs(60);

/// A cluster with Seaway's custom resources, and perhaps the operator.
pub struct Ground {
    cluster: Cluster,
    operator: Option<Running>,
    kubeconfig: Option<Kubeconfig>,
    /// Where kubectl works unless it is told otherwise.
    namespace: String,
}

struct Running {
    stop: CancellationToken,
    /// Why it ended, once it has.
    ended: watch::Receiver<Option<String>>,
}

impl Ground {
    /// Starts a cluster whose clock runs `speed` times as fast as ours, and installs the custom resources. Commands of
    /// hooks get their tools from `binary`, the `seaway` executable.
    pub async fn start(speed: u32, binary: &Path) -> anyhow::Result<Self> {
        let toolbox = Toolbox::create(binary, Offer::OursFirst).context("cannot make a directory for hey and curl")?;
        let tester = LoadTester::new(Arc::new(toolbox));
        // A clock that runs ahead starts in the past, or kubectl would be shown times that have not come yet.
        let head_start = if speed > 1 { HEAD_START } else { Duration::ZERO };
        let mut options = Options::scaled(Timestamp::now() - head_start, speed);
        options.programs = options.programs.with(LOADTESTER_IMAGE, tester.clone());
        let cluster = Cluster::start(options).await.context("the cluster did not start")?;
        if let Some(proxy) = cluster.proxy_address() {
            tester.reach_through(proxy);
        }
        for crd in seaway_api::crds::crds() {
            let yaml = serde_json::to_string(&crd)?;
            cluster.apply(&yaml).await.context("the custom resources were not installed")?;
        }
        Ok(Self { cluster, operator: None, kubeconfig: None, namespace: "test".to_owned() })
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Applies manifests, one file after the other.
    pub async fn apply(&self, files: impl IntoIterator<Item = (&str, &str)>) -> anyhow::Result<()> {
        for (name, yaml) in files {
            self.cluster.apply(yaml).await.with_context(|| format!("{name} was not applied"))?;
        }
        Ok(())
    }

    /// Starts the operator, as it would run in the cluster.
    pub fn start_operator(&mut self) {
        let config = Config {
            mesh_provider: "gatewayapi:v1".to_owned(),
            metrics_server: "http://prometheus.istio-system:9090".to_owned(),
            port: None,
            ..Config::default()
        };
        // A busy computer may take its time, however fast the cluster's clock runs.
        let lease = LEASE.saturating_mul(self.cluster.clock().speed());
        let config = config.elect("seaway-demo", "kube-system", lease);
        let clock = Arc::new(ClusterClock::new(self.cluster.clock()));
        let names = self.cluster.names().in_namespace(OPERATOR_NAMESPACE);
        let http = Http::through(Arc::new(ClusterDial(names)));
        let operator = Operator::new(config, self.cluster.client("seaway"), clock, http);
        let stop = CancellationToken::new();
        let (sender, ended) = watch::channel(None);
        let asked = stop.clone();
        tokio::spawn(async move {
            let why = match operator.run(asked).await {
                Ok(()) => "the operator stopped".to_owned(),
                Err(error) => format!("the operator stopped: {:#}", anyhow::Error::from(error)),
            };
            sender.send_replace(Some(why));
        });
        self.operator = Some(Running { stop, ended });
    }

    /// Completes when the operator has ended by itself, which it should not. Without an operator it never completes.
    pub async fn operator_ended(&self) -> anyhow::Error {
        let Some(running) = &self.operator else { return std::future::pending().await };
        match running.ended.clone().wait_for(Option::is_some).await {
            Ok(why) => anyhow::anyhow!("{}", why.as_deref().unwrap_or_default()),
            // The task is gone without a word: it panicked.
            Err(_) => anyhow::anyhow!("the operator broke"),
        }
    }

    /// Where kubectl works unless it is told otherwise; `test`, where the examples live, if nobody says.
    pub fn work_in(&mut self, namespace: &str) {
        namespace.clone_into(&mut self.namespace);
    }

    /// Where kubectl works.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Serves the API for kubectl on `port` (0: any) and writes a kubeconfig to `path`, where nothing may be yet. The
    /// file goes when the cluster does.
    pub async fn open(&mut self, port: u16, path: &Path) -> anyhow::Result<SocketAddr> {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let address = self
            .cluster
            .serve(wanted)
            .await
            .with_context(|| format!("cannot listen on {wanted}; choose another port with --port"))?;
        let clock = self.cluster.clock();
        let clock = RemoteClock::showing(clock.now(), clock.speed());
        self.kubeconfig = Some(Kubeconfig::write(path, &kubeconfig(address, &self.namespace, &clock))?);
        Ok(address)
    }

    /// Stops the operator, gracefully, and then the cluster.
    pub async fn stop(mut self) {
        if let Some(mut running) = self.operator.take() {
            running.stop.cancel();
            // It writes what it must; should it hang, the cluster goes away beneath it.
            let _ = tokio::time::timeout(Duration::from_secs(3), running.ended.wait_for(Option::is_some)).await;
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(running) = &self.operator {
            running.stop.cancel();
        }
    }
}

/// A kubeconfig that we wrote; removed when dropped.
#[derive(Debug)]
struct Kubeconfig {
    _file: Leftover,
}

impl Kubeconfig {
    /// Writes a new file. One that exists is somebody's (`~/.kube/config`), so it is neither changed nor removed.
    fn write(path: &Path, text: &str) -> anyhow::Result<Self> {
        // The file holds no secret: the API asks nobody who they are, so every program of this machine that finds the
        // port can use the cluster, and through a hook of the load tester run commands as this user.
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let mut file = created.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => anyhow::anyhow!(
                "{} exists and is not overwritten; remove it, or name a new file with --kubeconfig",
                path.display()
            ),
            _ => anyhow::Error::new(error).context(format!("cannot write the kubeconfig {}", path.display())),
        })?;
        let ours = Self { _file: Leftover::new(path.to_owned()) };
        file.write_all(text.as_bytes()).with_context(|| format!("cannot write the kubeconfig {}", path.display()))?;
        Ok(ours)
    }
}

/// Where the kubeconfig is written when nobody says.
pub fn kubeconfig_path() -> PathBuf {
    free_place(&std::env::temp_dir())
}

/// Named after this process. In containers many have the same number, and one that was killed left its file behind: then the
/// next number that is free.
fn free_place(folder: &Path) -> PathBuf {
    let mut number = std::process::id();
    loop {
        let place = folder.join(format!("seaway-{number}.kubeconfig"));
        if place.symlink_metadata().is_err() {
            return place;
        }
        number = number.wrapping_add(1);
    }
}

/// The extension is JSON, which is YAML. `seaway watch` reads it; kubectl passes over it.
fn kubeconfig(address: SocketAddr, namespace: &str, clock: &RemoteClock) -> String {
    let clock = serde_json::to_string(&clock.extension()).unwrap_or_default();
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: drydock\n  cluster:\n    server: http://{address}\n    extensions: [{clock}]\n\
         users:\n- name: drydock\n  user: {{}}\n\
         contexts:\n- name: drydock\n  context:\n    cluster: drydock\n    user: drydock\n    namespace: {namespace}\n\
         current-context: drydock\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_names_the_cluster() {
        let text = kubeconfig(SocketAddr::from((Ipv4Addr::LOCALHOST, 6443)), "test", &RemoteClock::default());
        let config = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        let cluster = config.clusters.first().and_then(|named| named.cluster.clone()).unwrap();
        assert_eq!(cluster.server.as_deref(), Some("http://127.0.0.1:6443"));
        assert_eq!(config.current_context.as_deref(), Some("drydock"));
    }

    #[test]
    fn a_kubeconfig_that_exists_is_neither_changed_nor_removed() {
        let folder = tempfile::TempDir::new().unwrap();
        let text = "apiVersion: v1";
        let (theirs, ours) = (folder.path().join("config"), folder.path().join("drydock"));
        std::fs::write(&theirs, "mine").unwrap();
        let error = Kubeconfig::write(&theirs, text).unwrap_err().to_string();
        assert!(error.contains("exists and is not overwritten") && error.contains("--kubeconfig"), "{error}");
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "mine");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &link).unwrap();
        assert!(Kubeconfig::write(&link, text).is_err(), "a link of somebody else is not followed");
        let written = Kubeconfig::write(&ours, text).unwrap();
        assert_eq!(std::fs::read_to_string(&ours).unwrap(), text);
        drop(written);
        assert!(!ours.exists() && theirs.exists());
    }

    #[test]
    fn a_file_that_another_process_of_the_same_number_left_is_stepped_over() {
        let folder = tempfile::TempDir::new().unwrap();
        let first = free_place(folder.path());
        assert!(first.ends_with(format!("seaway-{}.kubeconfig", std::process::id())));
        std::fs::write(&first, "").unwrap();
        let second = free_place(folder.path());
        assert_ne!(second, first);
        Kubeconfig::write(&second, "").unwrap();
    }

    #[test]
    fn every_manifest_of_the_example_is_applied() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway-api");
        let mut there: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        there.sort();
        let mut ours: Vec<&str> = MANIFESTS.iter().map(|(name, _)| *name).collect();
        ours.sort_unstable();
        assert_eq!(there, ours);
    }
}
