//! What happens when a part of the cluster is killed at twenty points of a rollout.
//!
//! A few more than twenty canaries roll out, one after the other, and with each beginning the part is killed once more: every
//! blow meets each of them somewhere else. Some of them are called back on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::Api;
use seaway_api::canary::Phase;
use seaway_api::foreign::gateway::HttpRoute;
use seaway_core::status::ROLLING_BACK;
use seaway_drydock::pods::PodOptions;
use serde_json::{Value, json};

use super::cluster::{PARTS, RealCluster};
use super::gateways::{Gateway, Traefik};
use super::haven::in_haven;
use crate::harness::{Ground, NAMESPACES};

const CANARIES: usize = 22;
/// So often a part is killed at least, and each time it meets so many rollouts on average.
const BLOWS: usize = 20;
const MET: usize = 5;
/// From the end of a blow to the next rollout.
const APART: Duration = Duration::from_millis(1_500);

/// The same when all have begun: under blow after blow hardly anything gets on.
const REST: Duration = Duration::from_secs(5);

/// A canary whose rollout takes about fifty seconds.
const MANIFEST: &str = include_str!("app.yaml");

/// Where a rollout can be when something is killed: phase, weight, and whether it is being rolled back.
const POINTS: [(Phase, i64, bool); 6] = [
    (Phase::Progressing, 0, false),
    (Phase::Progressing, 25, false),
    (Phase::Progressing, 25, true),
    (Phase::Progressing, 50, false),
    (Phase::Promoting, 50, false),
    (Phase::Finalising, 0, false),
];

/// What happens to a cluster.
type Blow = fn(&mut RealCluster);

fn names() -> impl Iterator<Item = String> {
    (0..CANARIES).map(|number| format!("app{number:02}"))
}

/// Lets a hook call a rollout back, or lets it go on.
async fn call_back(cluster: &RealCluster, name: &str, back: bool) {
    let hook = json!([{"name": "back", "type": "rollback", "url": format!("http://{name}-primary.test:9898/echo")}]);
    let hooks = if back { hook } else { Value::Null };
    cluster.patch_canary(name, json!({"spec": {"analysis": {"webhooks": hooks}}})).await;
}

/// Rolls a version out everywhere, with a blow at each beginning; all of them must end as they should.
async fn roll_out_under_blows(cluster: &mut RealCluster, what: &str, tag: &str, blow: Blow) {
    let (mut beginnings, mut met, mut called_back) = (names(), BTreeSet::new(), BTreeSet::new());
    let (mut blows, mut struck) = (0, 0);
    let judged = cluster.lookout.judged();
    let mut proven = BTreeMap::new();
    for name in names() {
        proven.insert(name.clone(), cluster.image(&format!("{name}-primary")).await);
    }
    loop {
        match beginnings.next() {
            Some(name) => {
                call_back(cluster, &name, false).await;
                cluster.set_image(&name, tag).await;
                cluster.sail(APART).await;
            }
            None if met.len() == POINTS.len() => break,
            None => cluster.sail(REST).await,
        }
        let mut under_way = 0;
        for (number, name) in names().enumerate() {
            let status = cluster.status(&name).await;
            let here = (status.phase, status.canary_weight, status.is_true(ROLLING_BACK));
            // Every fourth is called back at its first weight.
            if here == (Phase::Progressing, 25, false) && number % 4 == 0 && called_back.insert(name.clone()) {
                call_back(cluster, &name, true).await;
            }
            let point = POINTS.iter().position(|point| *point == here);
            under_way += usize::from(point.is_some());
            met.extend(point);
        }
        assert!(under_way > 0, "no rollout is under way; met were {met:?} of {POINTS:?}");
        cluster.strike(blow).await;
        (blows, struck) = (blows + 1, struck + under_way);
    }
    eprintln!("{what} was killed {blows} times, with {struck} rollouts under way in all, at each of {POINTS:?}");
    assert!(blows >= BLOWS && struck >= BLOWS * MET, "{what} was killed {blows} times, and met {struck} rollouts");
    for name in names() {
        let before = proven[&name].as_str();
        let (phase, proven) =
            if called_back.contains(&name) { (Phase::Failed, before) } else { (Phase::Succeeded, tag) };
        cluster.until_phase(&name, phase).await;
        assert_eq!(cluster.image(&format!("{name}-primary")).await, proven, "{name}");
        assert_eq!(cluster.weights(&name).await, (100, 0));
        // Scaled down last, when nobody is sent there any more.
        let what = format!("{name} is scaled down");
        cluster.until(&what, async |cluster| cluster.replicas(&name).await == 0).await;
    }
    // Each canary is looked at with every write of the operator; one that a crash took from the log is not told.
    let writes = (cluster.lookout.judged() - judged) / CANARIES;
    assert!(writes > 2 * CANARIES, "the invariants were hardly checked: after {writes} writes");
}

/// How far an initialisation can have come when something is killed.
#[derive(Clone, Copy, Debug)]
enum Begun {
    JustCreated,
    PrimaryMade,
    PrimaryReady,
    RouteMade,
}

impl Begun {
    async fn holds(self, cluster: &RealCluster, name: &str) -> bool {
        let primary = format!("{name}-primary");
        let made: Api<Deployment> = cluster.api("test");
        let routes: Api<HttpRoute> = cluster.api("test");
        match self {
            Self::JustCreated => true,
            Self::PrimaryMade => made.get_opt(&primary).await.unwrap().is_some(),
            Self::PrimaryReady => {
                let status = made.get_opt(&primary).await.unwrap().and_then(|made| made.status);
                status.and_then(|status| status.ready_replicas) > Some(0)
            }
            Self::RouteMade => routes.get_opt(name).await.unwrap().is_some(),
        }
    }
}

/// Canaries, ready for a rollout. Every fifth of them is being initialised when something is killed, each time somewhere else.
async fn fleet(values: &[&str], blows: &[Blow]) -> (RealCluster, Traefik) {
    let mut cluster = RealCluster::start(PodOptions::default()).await;
    let traefik = Traefik::start(&cluster).await;
    cluster.apply(NAMESPACES).await;
    cluster.start_operator(values).await;
    let mut points = [Begun::JustCreated, Begun::PrimaryMade, Begun::PrimaryReady, Begun::RouteMade].into_iter();
    let mut blows = blows.iter().cycle();
    for (number, name) in names().enumerate() {
        cluster.apply(&MANIFEST.replace("NAME", &name)).await;
        if number % 5 == 4
            && let Some(point) = points.next()
        {
            cluster.until(&format!("{point:?}"), async |cluster| point.holds(cluster, &name).await).await;
            assert!(cluster.status(&name).await.phase.is_initializing(), "{point:?} was seen too late");
            cluster.strike(*blows.next().unwrap()).await;
        }
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
        let (server, store): (Blow, Blow) = (|cluster| cluster.api.crash(), |cluster| cluster.etcd.crash());
        let (mut cluster, _traefik) = fleet(&[], &[server, store]).await;
        roll_out_under_blows(&mut cluster, "the API server", "6.0.1", server).await;
        roll_out_under_blows(&mut cluster, "etcd", "6.0.2", store).await;
    });
}

/// Twenty points without an election: with it the next one waits until the Lease of the last has run out, and meets less. Then
/// three more as the chart has it.
#[test]
fn killed_at_twenty_points_the_operator_harms_no_rollout() {
    in_haven("real::kills::killed_at_twenty_points_the_operator_harms_no_rollout", &parts(), async || {
        let blow: Blow = |cluster| {
            cluster.kill_operator();
            cluster.restart_operator();
        };
        let (mut cluster, _traefik) = fleet(&["leaderElection.enabled=false"], &[blow]).await;
        roll_out_under_blows(&mut cluster, "the operator", "6.0.1", blow).await;

        cluster.kill_operator();
        cluster.start_operator(&[]).await;
        cluster.set_image("app01", "6.0.2").await;
        for weight in [0, 25, 50] {
            let point = async |cluster: &RealCluster| {
                let status = cluster.status("app01").await;
                (status.phase, status.canary_weight) == (Phase::Progressing, weight)
            };
            cluster.until("the next point is reached", point).await;
            cluster.strike(blow).await;
        }
        cluster.until_phase("app01", Phase::Succeeded).await;
        assert_eq!(cluster.image("app01-primary").await, "6.0.2");
    });
}
