//! Rollouts that people and clusters get in the way of, on real Kubernetes behind a real gateway: a Canary for each, all at once.

use std::time::Duration;

use seaway_api::canary::Phase;
use seaway_drydock::pods::PodOptions;

use super::cluster::{PARTS, RealCluster};
use super::gateways::{Gateway, Traefik};
use super::haven::in_haven;
use super::users::Users;
use crate::harness::{Ground, NAMESPACES};
use crate::scenarios::setbacks::{
    App, deleted_primary, deleted_route, deleted_target, edited_route, never_ready, newer_revision,
    primary_that_cannot_run, proven_revision, skipped_analysis,
};

const MANIFEST: &str = include_str!("setbacks.yaml");
/// Those of the manifest.
const WEIGHTS: [i64; 3] = [10, 25, 50];
/// What happens at the end of a story is over after this.
const LAST: Duration = Duration::from_secs(6);

/// An app that serves, with a Canary that gives up soon.
async fn launch(cluster: &RealCluster, name: &'static str) -> App {
    cluster.apply(&MANIFEST.replace("NAME", name)).await;
    cluster.until_phase(name, Phase::Initialized).await;
    App { name, weights: &WEIGHTS }
}

/// No user of the app notices anything.
async fn unnoticed(cluster: &RealCluster, name: &'static str, story: impl AsyncFnOnce(&RealCluster, App)) {
    let app = launch(cluster, name).await;
    let mut users = Users::few_of_gateway(Traefik::WEB, &format!("{name}.example.com"));
    users.forget_until_served().await;
    story(cluster, app).await;
    // Pods that are no longer needed stop last.
    cluster.sail(LAST).await;
    users.rest().await;
    let (seen, lost) = (users.seen(), users.failures_of_ours("none"));
    eprintln!("{name}: {lost} of {} requests failed: {seen:?}", seen.values().sum::<u64>());
    assert_eq!(lost, 0, "{name}\n{}", cluster.transcript);
}

#[test]
fn rollouts_that_somebody_gets_in_the_way_of_end_well() {
    let parts = [&PARTS[..], Traefik::PARTS].concat();
    in_haven("real::setbacks::rollouts_that_somebody_gets_in_the_way_of_end_well", &parts, async || {
        let mut cluster = RealCluster::start(PodOptions::default()).await;
        let _traefik = Traefik::start(&cluster).await;
        cluster.apply(NAMESPACES).await;
        cluster.start_operator(&[]).await;
        let cluster = &cluster;
        tokio::join!(
            unnoticed(cluster, "late", async |cluster, app| never_ready(cluster, app).await),
            unnoticed(cluster, "newer", async |cluster, app| newer_revision(cluster, app).await),
            unnoticed(cluster, "proven", async |cluster, app| proven_revision(cluster, app).await),
            unnoticed(cluster, "edited", async |cluster, app| edited_route(cluster, app).await),
            unnoticed(cluster, "crashing", async |cluster, app| primary_that_cannot_run(cluster, app).await),
            unnoticed(cluster, "sure", async |cluster, app| skipped_analysis(cluster, app).await),
            // Here users do notice: their route, or who served them, is gone for a moment.
            async { deleted_route(cluster, launch(cluster, "routeless").await).await },
            async { deleted_target(cluster, launch(cluster, "aimless").await).await },
            async { deleted_primary(cluster, launch(cluster, "bereft").await).await },
        );
        assert!(cluster.lookout.judged() > 50, "the invariants were hardly checked: {}", cluster.lookout.judged());
    });
}
