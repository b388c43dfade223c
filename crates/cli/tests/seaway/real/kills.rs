//! What happens when a part of the cluster is killed at twenty points of a rollout.
//!
//! A few more than twenty canaries roll out, one a little after the other, so that a single blow meets each of them somewhere else.

use std::time::Duration;

use seaway_api::canary::Phase;
use seaway_drydock::pods::PodOptions;

use super::cluster::{PARTS, RealCluster};
use super::gateways::{Gateway, Traefik};
use super::haven::in_haven;
use crate::harness::{Ground, NAMESPACES};

const CANARIES: usize = 22;
/// From one rollout to the next: the last one begins when the first one is about to end.
const APART: Duration = Duration::from_millis(1_800);

/// A canary whose rollout takes about fifty seconds.
const MANIFEST: &str = include_str!("kills.yaml");

/// What happens to a cluster.
type Blow = fn(&mut RealCluster);

fn names() -> impl Iterator<Item = String> {
    (0..CANARIES).map(|number| format!("app{number:02}"))
}

#[test]
fn killed_at_twenty_points_every_rollout_ends_well() {
    let parts = [&PARTS[..], &["traefik"]].concat();
    in_haven("real::kills::killed_at_twenty_points_every_rollout_ends_well", &parts, async || {
        let mut cluster = RealCluster::start(PodOptions::default()).await;
        let _traefik = Traefik::start(&cluster).await;
        cluster.apply(NAMESPACES).await;
        cluster.start_operator(&[]).await;
        for name in names() {
            cluster.apply(&MANIFEST.replace("NAME", &name)).await;
        }
        for name in names() {
            cluster.until_phase(&name, Phase::Initialized).await;
        }
        let blows: [(&str, Blow); 3] = [
            ("the API server", |cluster| cluster.api.crash()),
            ("etcd", |cluster| cluster.etcd.crash()),
            ("the operator", |cluster| {
                cluster.kill_operator();
                cluster.restart_operator();
            }),
        ];
        for (round, (what, blow)) in blows.into_iter().enumerate() {
            let tag = format!("6.0.{}", round + 1);
            let mut bell = tokio::time::interval(APART);
            for name in names() {
                bell.tick().await;
                cluster.set_image(&name, &tag).await;
            }
            let mut points = Vec::new();
            for name in names() {
                let status = cluster.status(&name).await;
                points.push(format!("{:?} {}", status.phase, status.canary_weight));
            }
            cluster.strike(blow).await;
            eprintln!("{what} was killed: {}", points.join(", "));
            let under_way = points.iter().filter(|point| !point.starts_with("Succeeded")).count();
            assert!(under_way >= 20, "only {under_way} rollouts were under way");
            for name in names() {
                cluster.until_phase(&name, Phase::Succeeded).await;
                assert_eq!(cluster.image(&format!("{name}-primary")).await, tag);
                assert_eq!(cluster.weights(&name).await, (100, 0));
                // Scaled down last, when nobody is sent there any more.
                let what = format!("{name} is scaled down");
                cluster.until(&what, async |cluster| cluster.replicas(&name).await == 0).await;
            }
        }
    });
}
