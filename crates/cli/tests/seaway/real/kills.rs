//! What happens when a part of the cluster is killed at twenty points of a rollout.
//!
//! A few more than twenty canaries roll out, one after the other, and with each beginning the part is killed once more: every
//! blow meets each of them somewhere else.

use std::collections::BTreeSet;
use std::time::Duration;

use seaway_api::canary::Phase;
use seaway_drydock::pods::PodOptions;

use super::cluster::{PARTS, RealCluster};
use super::gateways::{Gateway, Traefik};
use super::haven::in_haven;
use crate::harness::{Ground, NAMESPACES};

const CANARIES: usize = 22;
/// From the end of a blow to the next rollout.
const APART: Duration = Duration::from_millis(1_500);

/// The same when all have begun: under blow after blow hardly anything gets on.
const REST: Duration = Duration::from_secs(5);

/// A canary whose rollout takes about fifty seconds.
const MANIFEST: &str = include_str!("kills.yaml");

/// Where a rollout can be when something is killed.
const POINTS: [(Phase, i64); 5] = [
    (Phase::Progressing, 0),
    (Phase::Progressing, 25),
    (Phase::Progressing, 50),
    (Phase::Promoting, 50),
    (Phase::Finalising, 0),
];

/// What happens to a cluster.
type Blow = fn(&mut RealCluster);

fn names() -> impl Iterator<Item = String> {
    (0..CANARIES).map(|number| format!("app{number:02}"))
}

/// Rolls a version out everywhere, with a blow at each beginning; all of them must end well.
async fn roll_out_under_blows(cluster: &mut RealCluster, what: &str, tag: &str, blow: Blow) {
    let (mut beginnings, mut met) = (names(), BTreeSet::new());
    let (mut blows, mut struck) = (0, 0);
    loop {
        match beginnings.next() {
            Some(name) => {
                cluster.set_image(&name, tag).await;
                cluster.sail(APART).await;
            }
            None if met.len() == POINTS.len() => break,
            None => cluster.sail(REST).await,
        }
        let mut under_way = 0;
        for name in names() {
            let status = cluster.status(&name).await;
            let point = POINTS.iter().position(|point| *point == (status.phase, status.canary_weight));
            under_way += u32::from(point.is_some());
            met.extend(point);
        }
        assert!(under_way > 0, "no rollout is under way; met were {met:?} of {POINTS:?}");
        cluster.strike(blow).await;
        (blows, struck) = (blows + 1, struck + under_way);
    }
    let judged = cluster.lookout.judged();
    assert!(judged > CANARIES, "the invariants were hardly checked: {judged}");
    eprintln!("{what} was killed {blows} times, with {struck} rollouts under way in all, at each of {POINTS:?}");
    for name in names() {
        cluster.until_phase(&name, Phase::Succeeded).await;
        assert_eq!(cluster.image(&format!("{name}-primary")).await, tag);
        assert_eq!(cluster.weights(&name).await, (100, 0));
        // Scaled down last, when nobody is sent there any more.
        let what = format!("{name} is scaled down");
        cluster.until(&what, async |cluster| cluster.replicas(&name).await == 0).await;
    }
}

/// Canaries, ready for a rollout.
async fn fleet(values: &[&str]) -> (RealCluster, Traefik) {
    let mut cluster = RealCluster::start(PodOptions::default()).await;
    let traefik = Traefik::start(&cluster).await;
    cluster.apply(NAMESPACES).await;
    cluster.start_operator(values).await;
    for name in names() {
        cluster.apply(&MANIFEST.replace("NAME", &name)).await;
    }
    for name in names() {
        cluster.until_phase(&name, Phase::Initialized).await;
    }
    (cluster, traefik)
}

fn parts() -> Vec<&'static str> {
    [&PARTS[..], &["traefik"]].concat()
}

#[test]
fn killed_at_twenty_points_the_control_plane_harms_no_rollout() {
    in_haven("real::kills::killed_at_twenty_points_the_control_plane_harms_no_rollout", &parts(), async || {
        let (mut cluster, _traefik) = fleet(&[]).await;
        roll_out_under_blows(&mut cluster, "the API server", "6.0.1", |cluster| cluster.api.crash()).await;
        roll_out_under_blows(&mut cluster, "etcd", "6.0.2", |cluster| cluster.etcd.crash()).await;
    });
}

/// Without an election: with it the next one would wait until the Lease of the last has run out, and meet less.
#[test]
fn killed_at_twenty_points_the_operator_harms_no_rollout() {
    in_haven("real::kills::killed_at_twenty_points_the_operator_harms_no_rollout", &parts(), async || {
        let (mut cluster, _traefik) = fleet(&["leaderElection.enabled=false"]).await;
        let blow: Blow = |cluster| {
            cluster.kill_operator();
            cluster.restart_operator();
        };
        roll_out_under_blows(&mut cluster, "the operator", "6.0.1", blow).await;
    });
}
