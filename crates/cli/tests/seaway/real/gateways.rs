//! Real gateways in front of the pods.

mod contour;
mod traefik;

pub use contour::Contour;
pub use traefik::Traefik;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use kube::Client;
use seaway_drydock::names::{Publication, ServiceName, publish};

use super::cluster::RealCluster;

/// A gateway in front of the tutorial's app.
pub trait Gateway: Sized {
    /// The programs it is made of.
    const PARTS: &[&str];
    /// Where its Gateway is.
    const NAMESPACE: &str;
    /// Where people reach it, and the same by name, as the example does.
    const WEB: SocketAddr;
    const URL: &str;
    /// Where it shows its counters.
    const METRICS: (SocketAddr, &str);
    /// What its users write.
    const CANARY: &str;
    const METRIC_TEMPLATES: &str;

    /// Starts it, with its Gateway.
    async fn start(cluster: &RealCluster) -> Self;
}

/// A server that is no pod gets an address in the corner of the pod network that no pod uses, and a Service.
pub async fn publish_at(client: &Client, host: u8, namespace: &str, name: &str, ports: &[(&str, u16)]) -> IpAddr {
    let address = address(host);
    let publication = Publication {
        service: ServiceName::new(namespace, name),
        load_balancer: None,
        address,
        ports: ports.iter().map(|(name, port)| ((*name).to_owned(), *port)).collect(),
        labels: Vec::new(),
        annotations: Vec::new(),
        owner: None,
        manager: "tests",
    };
    publish(client, &publication).await.unwrap();
    address
}

/// An address for a server that is no pod.
pub const fn address(host: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 244, 255, host))
}

/// Returns when somebody accepts connections there.
pub async fn until_open(address: IpAddr, port: u16) {
    for _ in 0..600 {
        if tokio::net::TcpStream::connect((address, port)).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nobody listens on {address}:{port}");
}
