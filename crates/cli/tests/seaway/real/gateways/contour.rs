//! Contour and its Envoy, by the Gateway API.

use std::net::SocketAddr;
use std::process::Command;

use super::super::cluster::RealCluster;
use super::super::parts::installed;
use super::super::process::Program;
use super::{Gateway, address, publish_at, until_open};
use crate::harness::Ground;

/// Where Envoy lives in the corner of the pod network.
const HOST: u8 = 5;
/// The port of the Gateway's listener plus 8000.
const PORT: u16 = 16800;
const METRICS: u16 = 8003;

/// Which Gateway it serves.
const CONFIG: &str = "gateway: {gatewayRef: {namespace: projectcontour, name: gateway}}";

/// A running Contour with its Envoy.
pub struct Contour {
    _programs: [Program; 2],
}

impl Gateway for Contour {
    const PARTS: &[&str] = &["contour", "contour-files", "envoy"];
    const NAMESPACE: &str = "projectcontour";
    const WEB: SocketAddr = SocketAddr::new(address(HOST), PORT);
    const URL: &str = "http://envoy.projectcontour:16800";
    const METRICS: (SocketAddr, &str) = (SocketAddr::new(address(HOST), METRICS), "/stats/prometheus");
    const CANARY: &str = include_str!("../../../../../../examples/contour/canary.yaml");
    const METRIC_TEMPLATES: &str = include_str!("../../../../../../examples/contour/metric-templates.yaml");

    async fn start(cluster: &RealCluster) -> Self {
        let crds = installed("contour-files").join("examples/contour/01-crds.yaml");
        cluster.apply(&std::fs::read_to_string(crds).unwrap()).await;
        // It looks once which kinds there are.
        cluster.until_defined().await;
        cluster.apply(include_str!("../../../../../../examples/contour/gateway.yaml")).await;
        let ports = [("web", PORT), ("metrics", METRICS)];
        let at = publish_at(&cluster.client(), HOST, "projectcontour", "envoy", &ports).await;
        let (config, bootstrap) = (cluster.folder().join("contour.yaml"), cluster.folder().join("envoy.json"));
        std::fs::write(&config, CONFIG).unwrap();
        let mut contour = Command::new(installed("contour"));
        contour
            .arg("serve")
            .arg(format!("--kubeconfig={}", cluster.api.kubeconfig("gateway").display()))
            .arg(format!("--config-path={}", config.display()))
            .args(["--insecure", "--disable-leader-election", "--xds-address=127.0.0.1", "--xds-port=8001"])
            .args(["--http-address=127.0.0.1", "--http-port=8002", "--health-address=127.0.0.1", "--health-port=8004"])
            .args([format!("--stats-address={at}"), format!("--stats-port={METRICS}")])
            .arg(format!("--envoy-service-http-address={at}"));
        let contour = Program::start("contour", cluster.folder(), &mut contour);
        let made = Command::new(installed("contour"))
            .arg("bootstrap")
            .arg(&bootstrap)
            .arg(format!("--admin-address={}", cluster.folder().join("envoy.sock").display()))
            .args(["--xds-address=127.0.0.1", "--xds-port=8001", "--xds-resource-version=v3"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut envoy = Command::new(installed("envoy"));
        envoy.arg("-c").arg(bootstrap).args([
            "--service-cluster",
            "contour",
            "--service-node",
            "one",
            "--log-level",
            "warn",
        ]);
        let envoy = Program::start("envoy", cluster.folder(), &mut envoy);
        // Envoy listens once there is a route.
        until_open(at, METRICS).await;
        Self { _programs: [envoy, contour] }
    }
}
