//! Traefik, by the Gateway API.

use std::net::SocketAddr;
use std::process::Command;

use super::super::cluster::RealCluster;
use super::super::parts::installed;
use super::super::process::Program;
use super::{Gateway, address, publish_at, until_open};
use crate::harness::Ground;

/// Where it lives in the corner of the pod network.
const HOST: u8 = 4;
const PORT: u16 = 8000;
const METRICS: u16 = 8082;

/// A running Traefik.
pub struct Traefik {
    _program: Program,
}

impl Gateway for Traefik {
    const PARTS: &[&str] = &["traefik"];
    const NAMESPACE: &str = "traefik";
    const WEB: SocketAddr = SocketAddr::new(address(HOST), PORT);
    const URL: &str = "http://traefik.traefik:8000";
    const METRICS: (SocketAddr, &str) = (SocketAddr::new(address(HOST), METRICS), "/metrics");
    const CANARY: &str = include_str!("../../../../../../examples/traefik/canary.yaml");
    const METRIC_TEMPLATES: &str = include_str!("../../../../../../examples/traefik/metric-templates.yaml");

    async fn start(cluster: &RealCluster) -> Self {
        cluster.apply(include_str!("../../../../../../examples/traefik/gateway.yaml")).await;
        let at =
            publish_at(&cluster.client(), HOST, "traefik", "traefik", &[("web", PORT), ("metrics", METRICS)]).await;
        let mut command = Command::new(installed("traefik"));
        command
            .args([
                format!("--entrypoints.web.address={at}:{PORT}"),
                format!("--entrypoints.metrics.address={at}:{METRICS}"),
            ])
            .args(["--metrics.prometheus=true", "--metrics.prometheus.entrypoint=metrics"])
            .args(["--metrics.prometheus.addserviceslabels=true", "--metrics.prometheus.addrouterslabels=true"])
            .args(["--providers.kubernetesgateway=true", "--providers.kubernetesgateway.token=gateway"])
            .args([
                format!("--providers.kubernetesgateway.endpoint={}", cluster.api.url()),
                format!("--providers.kubernetesgateway.certauthfilepath={}", cluster.api.authority().display()),
                format!("--providers.kubernetesgateway.statusaddress.ip={at}"),
            ])
            .args(["--global.checknewversion=false", "--global.sendanonymoususage=false", "--log.level=ERROR"]);
        let program = Program::start("traefik", cluster.folder(), &mut command);
        until_open(at, PORT).await;
        Self { _program: program }
    }
}
