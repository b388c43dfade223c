//! Pods that run: a node, a scheduler with one choice, and a kubelet whose containers are programs in this process.
//!
//! A container's image decides which [`Program`] it is; the program answers with routers, and those are served on the
//! pod's virtual address until the pod is deleted and drained. Like the controllers, the runner speaks to the cluster
//! only through a `kube::Client`, so it can be the node of a real API server. There are no volumes, no init
//! containers and no resource limits: a pod here is what answers on its ports.

mod address;
mod backoff;
mod environment;
mod image;
mod node;
pub mod podinfo;
mod probe;
mod runner;
mod server;
mod status;
mod worker;

use std::collections::BTreeMap;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::image::Image;
pub use self::node::NODE;
use crate::{Clock, Net, Seed};

/// What a container runs.
pub trait Program: Send + Sync + 'static {
    /// Starts the program in a pod and answers with the ports it listens on. Called again for every restart.
    fn launch(&self, pod: &PodContext) -> Vec<(u16, Router)>;

    /// Understands a command that a probe wants to execute in the container, as far as it is an HTTP check of the
    /// program itself. `None` is a command this program does not have; the probe then fails.
    fn check(&self, command: &[String]) -> Option<HttpCheck> {
        let _ = command;
        None
    }
}

/// A GET that must answer with a status below 400.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpCheck {
    /// Port inside the pod.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

/// What a program may know about the pod it runs in.
#[derive(Clone)]
pub struct PodContext {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// Name of the container.
    pub container: String,
    /// Virtual address of the pod.
    pub ip: IpAddr,
    /// The image as the pod spells it.
    pub image: String,
    /// The image's tag: the version of the program.
    pub tag: String,
    /// Environment of the container, with ConfigMaps, Secrets and fields resolved.
    pub env: BTreeMap<String, String>,
    /// The container's `command`, empty where the image's own is used.
    pub command: Vec<String>,
    /// The container's `args`.
    pub args: Vec<String>,
    /// Labels of the pod.
    pub labels: BTreeMap<String, String>,
    /// The cluster's clock.
    pub clock: Clock,
    /// The cluster's addresses.
    pub net: Net,
    /// A generator of this container's own.
    pub seed: Seed,
    life: Life,
}

/// The line between a program and whoever runs it.
#[derive(Clone)]
struct Life {
    exit: mpsc::UnboundedSender<i32>,
    over: CancellationToken,
}

impl PodContext {
    /// Ends the container with an exit code, as if its process had.
    pub fn exit(&self, code: i32) {
        // Nobody listens any more when the container is already gone, which is what was asked for.
        let _ = self.life.exit.send(code);
    }

    /// Runs a task that ends with the container.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let over = self.life.over.clone();
        tokio::spawn(async move {
            over.run_until_cancelled(task).await;
        });
    }
}

/// Which image runs which program.
#[derive(Clone, Default)]
pub struct Programs(BTreeMap<String, Arc<dyn Program>>);

impl Programs {
    /// The table every cluster starts with: podinfo.
    pub fn built_in() -> Self {
        Self::default().with("podinfo", podinfo::Podinfo)
    }

    /// Adds a program under an image repository. `podinfo` also stands for `ghcr.io/stefanprodan/podinfo`: a name
    /// matches repositories that end with it at a slash.
    pub fn with(mut self, repository: &str, program: impl Program) -> Self {
        self.0.insert(repository.into(), Arc::new(program));
        self
    }

    fn find(&self, image: &Image) -> Option<Arc<dyn Program>> {
        let mut rest = image.repository.as_str();
        loop {
            if let Some(program) = self.0.get(rest) {
                return Some(program.clone());
            }
            rest = rest.split_once('/')?.1;
        }
    }
}

/// How pods behave in time. All durations are simulated.
#[derive(Clone, Debug)]
pub struct PodOptions {
    /// From binding to the start of the containers: pulling and creating.
    pub start_up: Duration,
    /// How long a deleted pod goes on serving, so that everyone learns that it leaves before it does.
    pub drain: Duration,
}

impl Default for PodOptions {
    fn default() -> Self {
        Self { start_up: Duration::from_secs(1), drain: Duration::from_secs(3) }
    }
}

/// Starts the node and runs every pod bound to it, until the set is dropped.
pub fn start(
    client: &Client,
    clock: Clock,
    net: &Net,
    seed: &Seed,
    programs: Programs,
    options: PodOptions,
) -> JoinSet<()> {
    runner::start(client, runner::Site { clock, net: net.clone(), seed: seed.clone(), programs, options })
}

/// The socket address of a port of a pod.
fn at(ip: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(ip, port)
}
