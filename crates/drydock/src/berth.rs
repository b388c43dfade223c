//! What a real API server lacks to be a cluster: a node whose pods run, names that resolve, addresses that answer.
//!
//! The parts are the ones of [`Cluster`](crate::Cluster); here they are fed by a server that somebody else runs, and pods and
//! Services have the addresses that their objects say, so that real gateways find them. Whoever starts a berth has given
//! 10.244/16 and 10.96/16 to the machine, in a network namespace of their own.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use kube::Client;
use tokio_util::task::AbortOnDropHandle;

use crate::names::{Names, dns};
use crate::pods::{self, Node, PodOptions, Programs};
use crate::proxy::{Mesh, cluster_ip};
use crate::telemetry::Telemetry;
use crate::{Clock, Net, Seed, Wire};

/// Where names are answered: what goes into `resolv.conf`.
pub const DNS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 96, 0, 10));

/// A node, names and Service addresses on somebody's API server; all of it ends when this is dropped.
pub struct Berth {
    names: Names,
    _node: Node,
    _dns: AbortOnDropHandle<()>,
    _services: AbortOnDropHandle<()>,
}

impl Berth {
    /// Starts every part. Must be called inside a tokio runtime.
    pub async fn start(client: &Client, clock: Clock, programs: Programs, options: PodOptions) -> io::Result<Self> {
        let net = Net::new(Wire::Direct);
        let node = pods::start(client, clock, &net, &Seed::new(1), programs, options);
        let names = Names::start(client, net);
        node.reach_through(Mesh::new(names.clone(), Telemetry::new("", "")));
        names.synced().await;
        let dns = dns::serve(names.clone(), SocketAddr::new(DNS, 53)).await?;
        let services = cluster_ip::serve(names.clone());
        Ok(Self { names, _node: node, _dns: dns, _services: services })
    }

    /// Cluster DNS.
    pub fn names(&self) -> &Names {
        &self.names
    }
}
