//! The tutorial on real Kubernetes, real gateways and a real Prometheus.

use seaway_drydock::pods::PodOptions;

use super::cluster::{PARTS, RealCluster};
use super::gateways::{Contour, Gateway, Traefik};
use super::haven::in_haven;
use super::prometheus::Prometheus;
use super::splits::Splits;
use super::users::Users;
use crate::harness::{Ground, LOADTESTER, NAMESPACES, PODINFO};
use crate::scenarios::rollout::{initialise_as_flagger_did, roll_out_as_flagger_did};

/// The smoke test asks the users' way, as it did when Flagger was recorded: asked directly, the faulty version fails half of
/// them.
fn canary<G: Gateway>() -> String {
    let direct = "curl -sd 'anon' http://podinfo-canary.test:9898/token";
    assert!(G::CANARY.contains(direct));
    G::CANARY.replace(direct, &format!("curl -s -H 'Host: www.example.com' {}/token", G::URL))
}

/// A good version, a faulty one and a good one again, behind a gateway; every split is measured on the way.
fn as_flagger_did<G: Gateway>(test: &str) {
    let parts = [&PARTS[..], &["prometheus"], G::PARTS].concat();
    in_haven(test, &parts, async || {
        let mut cluster = RealCluster::start(PodOptions::default()).await;
        let _gateway = G::start(&cluster).await;
        let _prometheus = Prometheus::start(&cluster, G::METRICS).await;
        for manifest in [NAMESPACES, PODINFO, LOADTESTER, G::METRIC_TEMPLATES] {
            cluster.apply(manifest).await;
        }
        cluster.start_operator(&["metricsServer=http://prometheus.monitoring:9090"]).await;
        cluster.until("podinfo is scaled by its autoscaler", async |cluster| cluster.ready("podinfo").await == 2).await;
        initialise_as_flagger_did(&cluster, &canary::<G>()).await;
        let users = Users::of_gateway(G::WEB, "www.example.com");
        let splits = Splits::during(&cluster, &users, Box::pin(roll_out_as_flagger_did(&cluster))).await;
        let promoted: &[i64] = &[10, 20, 30, 40, 50];
        splits.must_be(&[("6.0.1", promoted), ("6.0.2-err50", &[10]), ("6.0.3", promoted)]);
        let (seen, lost) = (users.seen(), users.failures_of_ours("6.0.2-err50"));
        eprintln!("{lost} of {} requests failed because of the rollouts: {seen:?}", seen.values().sum::<u64>());
        assert_eq!(lost, 0);
        assert!(cluster.lookout.judged() > 50, "the invariants were hardly checked: {}", cluster.lookout.judged());
    });
}

#[test]
fn traefik_promotes_rolls_back_and_promotes_again_as_flagger_did() {
    as_flagger_did::<Traefik>("real::rollout::traefik_promotes_rolls_back_and_promotes_again_as_flagger_did");
}

#[test]
fn contour_promotes_rolls_back_and_promotes_again_as_flagger_did() {
    as_flagger_did::<Contour>("real::rollout::contour_promotes_rolls_back_and_promotes_again_as_flagger_did");
}
