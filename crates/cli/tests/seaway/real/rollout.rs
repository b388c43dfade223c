//! The tutorial on real Kubernetes, a real gateway and a real Prometheus.

use std::net::SocketAddr;
use std::time::Duration;

use seaway_drydock::pods::PodOptions;

use super::cluster::{PARTS, RealCluster};
use super::gateways::{self, Traefik};
use super::haven::in_haven;
use super::prometheus::Prometheus;
use super::splits::Splits;
use super::users::Users;
use crate::harness::{Ground, LOADTESTER, NAMESPACES, PODINFO};
use crate::scenarios::rollout::{initialise_as_flagger_did, roll_out_as_flagger_did};

const CANARY: &str = include_str!("../../../../../examples/traefik/canary.yaml");
const METRIC_TEMPLATES: &str = include_str!("../../../../../examples/traefik/metric-templates.yaml");

const PROMETHEUS: &str = "-metrics-server=http://prometheus.monitoring:9090";

/// The version whose half of the answers are errors.
const FAULTY: &str = "6.0.2-err50";

/// The smoke test asks the users' way, as it did when Flagger was recorded: asked directly, the faulty version fails half of
/// them.
fn canary() -> String {
    let direct = "curl -sd 'anon' http://podinfo-canary.test:9898/token";
    assert!(CANARY.contains(direct));
    CANARY.replace(direct, "curl -s -H 'Host: www.example.com' http://traefik.traefik:8000/token")
}

/// The tutorial's app on a cluster with Traefik and Prometheus, and an operator.
async fn podinfo(pods: PodOptions) -> (RealCluster, (Traefik, Prometheus)) {
    let mut cluster = RealCluster::start(pods).await;
    let traefik = Traefik::start(&cluster).await;
    let prometheus = Prometheus::start(&cluster, &["10.244.255.4:8082"]).await;
    for manifest in [NAMESPACES, PODINFO, LOADTESTER, METRIC_TEMPLATES] {
        cluster.apply(manifest).await;
    }
    cluster.start_operator(&[PROMETHEUS]);
    cluster.until("podinfo is scaled by its autoscaler", async |cluster| cluster.ready("podinfo").await == 2).await;
    (cluster, (traefik, prometheus))
}

#[test]
fn traefik_promotes_rolls_back_and_promotes_again_as_flagger_did() {
    let parts = [&PARTS[..], &["traefik", "prometheus"]].concat();
    in_haven("real::rollout::traefik_promotes_rolls_back_and_promotes_again_as_flagger_did", &parts, async || {
        let (cluster, _around) = podinfo(PodOptions::default()).await;
        initialise_as_flagger_did(&cluster, &canary()).await;
        let users = Users::start(SocketAddr::new(gateways::address(4), 8000), 40, Duration::from_millis(100));
        let splits = Splits::during(&cluster, &users, "6.0.1", roll_out_as_flagger_did(&cluster)).await;
        splits.must_be(&[10, 20, 30, 40, 50]);
        println!("{:?}", users.seen());
        assert_eq!(users.failures_of_ours(FAULTY), 0, "{:?}", users.seen());
    });
}
