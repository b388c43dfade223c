//! The cluster put together: API server, controllers, pods, names, gateway, mesh and Prometheus on one clock and one
//! network.
//!
//! Nothing is decided here. Each part gets a client with a name of its own, so that the request log tells them apart,
//! and all of it ends when the [`Cluster`] is dropped.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use jiff::Timestamp;
use kube::Client;
use kube::api::DynamicObject;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::apiserver::ApiServer;
use crate::controllers;
use crate::gateway::Gateway;
use crate::manifests::{self, ApplyError};
use crate::names::Names;
use crate::pods::{self, NODE, Node, PodOptions, Programs};
use crate::prometheus::{self, Prometheus, Target};
use crate::proxy::{self, Mesh, Proxy};
use crate::telemetry::Telemetry;
use crate::{Clock, Net, Seed, Wire};

/// Where the mesh shows its counters, in the corner of the pod network that no pod uses.
const MESH: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 244, 255, 2)), 15020);

/// What a cluster is made of.
#[derive(Clone)]
pub struct Options {
    /// Where everything that looks random comes from: uids, name suffixes, jitter.
    pub seed: u64,
    /// The cluster's time.
    pub clock: Clock,
    /// What carries the bytes between pods, gateway and clients.
    pub wire: Wire,
    /// Which image runs which program.
    pub programs: Programs,
    /// How pods behave in time.
    pub pods: PodOptions,
    /// How often is scraped, and what besides the cluster itself.
    pub prometheus: prometheus::Options,
}

impl Options {
    /// A cluster on real sockets whose clock shows `epoch` now and runs `speed` times as fast as the runtime's.
    pub fn scaled(epoch: Timestamp, speed: u32) -> Self {
        Self {
            seed: 1,
            clock: Clock::starting_at(epoch, speed),
            wire: Wire::Loopback,
            programs: Programs::built_in(),
            pods: PodOptions::default(),
            prometheus: prometheus::Options::default(),
        }
    }

    /// A cluster without sockets, for a runtime whose time is paused; its story begins at a fixed moment.
    pub fn paused() -> Self {
        let epoch = Timestamp::from_second(1_735_689_600).unwrap_or(Timestamp::UNIX_EPOCH);
        Self { wire: Wire::Memory, ..Self::scaled(epoch, 1) }
    }
}

/// Why a cluster did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An object that every cluster has could not be written.
    #[error("cannot write the cluster's own objects")]
    Objects(#[from] kube::Error),
    /// No address for Prometheus, the mesh or the resolving proxy.
    #[error("cannot listen on the cluster's own addresses")]
    Listen(#[from] io::Error),
}

/// A running cluster.
pub struct Cluster {
    api: ApiServer,
    clock: Clock,
    net: Net,
    names: Names,
    mesh: Mesh,
    proxy: Option<Proxy>,
    gateway: Gateway,
    _prometheus: Prometheus,
    _counters: AbortOnDropHandle<()>,
    _controllers: JoinSet<()>,
    _node: Node,
}

impl Cluster {
    /// Starts every part. Must be called inside a tokio runtime.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let Options { seed, clock, wire, programs, pods, mut prometheus } = options;
        let seed = Seed::new(seed);
        let net = Net::new(wire);
        let api = ApiServer::start(clock, seed.clone());
        let controllers = controllers::start(&api.client("kube-controller-manager"), clock);
        let node = pods::start(&api.client("kubelet"), clock, &net, &seed.fork("pods"), programs, pods);
        api.register_kubelet(NODE, node.kubelet());
        let names = Names::start(&api.client("names"), net.clone());
        let gateway = Gateway::start(api.client("gateway"), names.clone(), clock).await?;
        let mesh = Mesh::new(names.clone(), Telemetry::new("istio-system", "drydock-mesh"));
        node.reach_through(mesh.clone());
        let proxy = match wire {
            Wire::Loopback | Wire::Direct => Some(Proxy::start(mesh.clone()).await?),
            Wire::Memory => None,
        };
        let counters = proxy::serve_router(&net, MESH, mesh.telemetry().router()).await?;
        prometheus.targets.push(Target::new("mesh", MESH, "/stats/prometheus"));
        let prometheus = Prometheus::start(names.clone(), clock, prometheus).await?;
        Prometheus::publish(&api.client("prometheus"), "istio-system").await?;
        names.synced().await;
        Ok(Self {
            api,
            clock,
            net,
            names,
            mesh,
            proxy,
            gateway,
            _prometheus: prometheus,
            _counters: counters,
            _controllers: controllers,
            _node: node,
        })
    }

    /// A client whose requests are logged under a name.
    pub fn client(&self, user: &str) -> Client {
        self.api.client(user)
    }

    /// The API server.
    pub fn api(&self) -> &ApiServer {
        &self.api
    }

    /// The virtual network.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// Cluster DNS.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The sidecar that sends requests to names and counts them.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// How many requests gateway and mesh sent to a pod a second time, each of them a cut that no client noticed.
    pub fn resent(&self) -> u64 {
        self.gateway.resent() + self.mesh.telemetry().resent()
    }

    /// The cluster's time.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The resolving HTTP forward proxy on loopback; there is none where there are no sockets.
    pub fn proxy_address(&self) -> Option<SocketAddr> {
        self.proxy.as_ref().map(Proxy::address)
    }

    /// What to put into `http_proxy`, for commands that live in a namespace.
    pub fn proxy_url(&self, namespace: &str) -> Option<String> {
        self.proxy.as_ref().map(|proxy| proxy.url(namespace))
    }

    /// Serves the API as plain HTTP for kubectl, and answers with the address that was bound.
    pub async fn serve(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        self.api.serve(address).await
    }

    /// Server-side apply of a multi-document YAML, document by document, as `kubectl apply --server-side` does.
    pub async fn apply(&self, yaml: &str) -> Result<Vec<DynamicObject>, ApplyError> {
        manifests::apply(&self.client("kubectl"), yaml).await
    }
}
