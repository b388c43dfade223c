//! The tutorial on real Kubernetes, real gateways and a real Prometheus.

use seaway_drydock::pods::PodOptions;

use super::cluster::{PARTS, RealCluster};
use super::gateways::{Contour, Gateway, Traefik};
use super::haven::in_haven;
use super::prometheus::Prometheus;
use super::splits::Splits;
use super::users::Users;
use crate::harness::{Ground, LOADTESTER, NAMESPACES, PODINFO};
use crate::scenarios::rollout::{
    FAULTY, PROMOTED, PROMOTED_AFTER_A_FAILURE, initialise_as_flagger_did, promote_as_flagger_did,
    roll_back_as_flagger_did,
};

/// The smoke test asks the users' way, as it did when Flagger was recorded.
fn with_the_recorded_smoke_test<G: Gateway>() -> String {
    let direct = "curl -sd 'anon' http://podinfo-canary.test:9898/token";
    assert!(G::CANARY.contains(direct));
    G::CANARY.replace(direct, &format!("curl -s -H 'Host: www.example.com' {}/token", G::URL))
}

/// A good version, a faulty one and a good one again.
async fn roll_out<G: Gateway>(cluster: &RealCluster) {
    promote_as_flagger_did(cluster, "6.0.1", PROMOTED).await;
    // Asked directly, this version fails half of the smoke tests too.
    cluster.apply(&with_the_recorded_smoke_test::<G>()).await;
    roll_back_as_flagger_did(cluster).await;
    cluster.apply(G::CANARY).await;
    promote_as_flagger_did(cluster, "6.0.3", PROMOTED_AFTER_A_FAILURE).await;
}

/// The tutorial behind a gateway; every split is measured on the way.
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
        let mut users = Users::of_gateway(G::WEB, "www.example.com");
        tokio::join!(
            initialise_as_flagger_did(&cluster, G::CANARY),
            // Before there is a route there is nothing to lose.
            users.forget_until_served(),
        );
        let splits = Splits::during(&cluster, &users, Box::pin(roll_out::<G>(&cluster))).await;
        splits.must_be(&[
            ("6.0.1", &[0, 10, 20, 30, 40, 50]),
            (FAULTY, &[0, 10, 0]),
            ("6.0.3", &[0, 10, 20, 30, 40, 50]),
        ]);
        users.rest().await;
        let (seen, lost) = (users.seen(), users.failures_of_ours(FAULTY));
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
