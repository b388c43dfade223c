//! Pods that run: a node, a scheduler with one choice, and a kubelet whose containers are programs in this process.
//!
//! A container's image decides which [`Program`] it is; the program answers with routers, and those are served on the
//! pod's virtual address until the pod is deleted and drained. Like the controllers, the runner speaks to the cluster
//! only through a `kube::Client`, so it can be the node of a real API server. There are no volumes, no init
//! containers and no resource limits: a pod here is what answers on its ports.

mod address;
mod backoff;
mod commands;
mod environment;
mod image;
mod kubelet;
mod log;
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
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use axum::Router;
use futures::future::BoxFuture;
use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::image::Image;
use self::kubelet::Interiors;
use self::log::Log;
pub use self::node::NODE;
use crate::apiserver::Kubelet;
pub use crate::apiserver::{Console, Output};
use crate::proxy::Mesh;
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

    /// Executes a command in a container that runs this program, as `kubectl exec` asks, and gives its exit code.
    /// Nothing happens before the future is polled; dropping it ends the command. A program without commands says, as
    /// a container runtime does, that there is no such file.
    fn execute(&self, pod: &PodContext, command: Vec<String>, console: Console) -> BoxFuture<'static, i32> {
        let _ = pod;
        Box::pin(async move { not_found(&command, &console).await })
    }
}

/// What a container runtime says of a command that its image does not have, and the exit code for it.
pub async fn not_found(command: &[String], console: &Console) -> i32 {
    let name = command.first().map_or("", String::as_str);
    let why = format!("exec: {name:?}: executable file not found in $PATH: unknown");
    let text = format!("OCI runtime exec failed: exec failed: unable to start container process: {why}\n");
    console.complain(text).await;
    commands::NOT_FOUND
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
    log: Log,
    outward: Outward,
    life: Life,
}

/// How programs reach the names of the cluster, once there is a way.
type Outward = Arc<OnceLock<Mesh>>;

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

    /// Writes a line to the container's log.
    pub fn log(&self, line: &str) {
        self.log.write(self.clock.now(), line);
    }

    /// The sidecar through which the pod reaches the names of the cluster; none in a cluster without a mesh.
    pub fn mesh(&self) -> Option<Mesh> {
        self.outward.get().map(|mesh| mesh.in_namespace(&self.namespace))
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
    /// How long a deleted pod goes on serving, so that everyone learns that it leaves before it does. Zero is an app that
    /// stops at once.
    pub drain: Duration,
}

impl Default for PodOptions {
    fn default() -> Self {
        Self { start_up: Duration::from_secs(1), drain: Duration::from_secs(3) }
    }
}

/// A running node; dropping it ends its pods.
pub struct Node {
    _tasks: JoinSet<()>,
    kubelet: Arc<Interiors>,
    outward: Outward,
}

impl Node {
    /// Who answers for what goes on inside the pods, for [`crate::apiserver::ApiServer::register_kubelet`].
    pub fn kubelet(&self) -> Weak<dyn Kubelet> {
        let kubelet: Arc<dyn Kubelet> = self.kubelet.clone();
        Arc::downgrade(&kubelet)
    }

    /// Gives the pods a sidecar, which is there only once the node is.
    pub fn reach_through(&self, mesh: Mesh) {
        // A second one would be for another cluster; the first one stays.
        let _ = self.outward.set(mesh);
    }
}

/// Starts the node and runs every pod bound to it.
pub fn start(client: &Client, clock: Clock, net: &Net, seed: &Seed, programs: Programs, options: PodOptions) -> Node {
    let (kubelet, outward) = (Arc::new(Interiors::new(net.clone())), Outward::default());
    let site = runner::Site {
        clock,
        net: net.clone(),
        seed: seed.clone(),
        programs,
        options,
        interiors: kubelet.clone(),
        outward: outward.clone(),
    };
    Node { _tasks: runner::start(client, site), kubelet, outward }
}

/// The socket address of a port of a pod.
fn at(ip: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(ip, port)
}
