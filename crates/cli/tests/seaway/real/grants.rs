//! Every grant of the chart is needed: a canary's whole life, with all that may be in its way, uses each of them.
//!
//! None reaches further than it must: names and namespaces are compared, and the server refuses what is beside them.
//! That none is missing every scenario on a real cluster says: nothing the operator asks for is forbidden. So a grant that is
//! taken away breaks a test here; `make grants` takes each of them away, one at a time, and demands that.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams};
use seaway_api::canary::{Canary, Phase};
use seaway_drydock::pods::PodOptions;
use seaway_operator::LEASE_NAME;

use super::cluster::{PARTS, RealCluster};
use super::gateways::{Gateway, Traefik};
use super::haven::in_haven;
use super::prometheus::Prometheus;
use super::refusals::Refusals;
use super::rendered::{Grant, Granted, Rendered};
use crate::harness::{Ground, NAMESPACES};

const APP: &str = include_str!("grants.yaml");
const CANARY: &str = include_str!("grants-canary.yaml");
/// A check whose credentials are in a Secret.
const CHECK: &str = include_str!("grants-check.yaml");

/// The app in a version, with what it brings.
fn app(tag: &str) -> String {
    APP.replace("6.0.0", tag)
}

/// A promotion of an app, with configs that changed as well.
async fn roll_out(cluster: &RealCluster, app: &str) {
    let (configs, secrets): (Api<ConfigMap>, Api<Secret>) = (cluster.api("test"), cluster.api("test"));
    // What is immutable changes by being replaced.
    configs.delete("fixed", &DeleteParams::default()).await.unwrap();
    secrets.delete("fixed", &DeleteParams::default()).await.unwrap();
    cluster.apply(app).await;
    cluster.until_phase("podinfo", Phase::Progressing).await;
    cluster.until_phase("podinfo", Phase::Succeeded).await;
}

/// The server refuses what is beside a grant: in other namespaces, everywhere at once, and upon other objects.
async fn must_end_there(cluster: &RealCluster, granted: &[Granted]) {
    for granted in granted {
        let asked = granted.request();
        let mut beside = Vec::new();
        if granted.namespace.is_some() {
            beside.extend(
                [None, Some("kube-system".to_owned())]
                    .map(|namespace| ResourceAttributes { namespace, ..asked.clone() }),
            );
        }
        if granted.name.is_some() {
            beside.extend([None, Some("another".to_owned())].map(|name| ResourceAttributes { name, ..asked.clone() }));
        }
        for asked in beside {
            assert!(!cluster.may_operator(asked.clone()).await, "granted too: {asked:?}");
        }
    }
}

/// A canary from its beginning to its end, with the chart's values as given. Returns what was granted and never asked for.
async fn whole_life(mut cluster: RealCluster, values: &[&str], canary: &str) -> Vec<String> {
    let _traefik = Traefik::start(&cluster).await;
    cluster.apply(NAMESPACES).await;
    // Whoever is refused twice reads what is in the way.
    let _refusals = Refusals::start(&cluster).await;
    cluster.start_operator(values).await;
    cluster.apply(APP).await;
    cluster.apply(canary).await;
    cluster.until_phase("podinfo", Phase::Initialized).await;
    roll_out(&cluster, &app("6.0.1")).await;
    // Another port for the Services, more pods for the autoscaler.
    cluster.apply(&canary.replace("portName: http", "portName: web")).await;
    roll_out(&cluster, &app("6.0.2").replace("maxReplicas: 3", "maxReplicas: 4")).await;
    let canaries: Api<Canary> = cluster.api("test");
    canaries.delete("podinfo", &DeleteParams::default()).await.unwrap();
    let gone = async |cluster: &RealCluster| cluster.api::<Canary>("test").get_opt("podinfo").await.unwrap().is_none();
    cluster.until("the Canary is gone", gone).await;
    cluster.sail(Duration::from_secs(1)).await;

    let rendered = Rendered::with(values).grants();
    must_end_there(&cluster, &rendered).await;
    let granted: Vec<_> = rendered.into_iter().map(|granted| granted.grant).collect();
    let once: BTreeSet<_> = granted.iter().collect();
    assert_eq!(once.len(), granted.len(), "something is granted twice: {granted:#?}");
    let asked: BTreeSet<_> = cluster.audit.requests().iter().map(Grant::for_request).collect();
    for grant in &granted {
        eprintln!("granted: {grant}");
    }
    granted.iter().filter(|grant| !asked.contains(grant)).map(ToString::to_string).collect()
}

/// How far a grant must reach: where canaries are watched, upon whatever they are called. The Lease has a place and a name.
fn must_reach_no_further(values: &[&str], watched: Option<&str>, elected: &str) {
    for Granted { grant, namespace, name } in Rendered::with(values).grants() {
        let (place, object) = match (grant.resource.as_str(), grant.verb.as_str()) {
            // What is not there yet has no name.
            ("leases", "create") => (Some(elected), None),
            ("leases", _) => (Some(elected), Some(LEASE_NAME)),
            _ => (watched, None),
        };
        assert_eq!((namespace.as_deref(), name.as_deref()), (place, object), "how far {grant} reaches with {values:?}");
    }
}

#[test]
fn no_grant_of_the_chart_reaches_too_far() {
    in_haven("real::grants::no_grant_of_the_chart_reaches_too_far", &["helm"], async || {
        let owners = "rbac.ownerReferencesPermissionEnforcement=true";
        must_reach_no_further(&[], None, "seaway-system");
        must_reach_no_further(&[owners], None, "seaway-system");
        must_reach_no_further(&["leaderElection.namespace=flagger-system"], None, "flagger-system");
        must_reach_no_further(&["namespace=test"], Some("test"), "test");
        must_reach_no_further(
            &["namespace=test", owners, "leaderElection.namespace=flagger-system"],
            Some("test"),
            "test",
        );
        must_reach_no_further(&["namespace=test", "configTracking.enabled=false"], Some("test"), "test");
    });
}

#[test]
fn every_grant_of_the_chart_is_needed() {
    let parts = [&PARTS[..], &["traefik"]].concat();
    in_haven("real::grants::every_grant_of_the_chart_is_needed", &parts, async || {
        let cluster = RealCluster::start(PodOptions::default()).await;
        assert_eq!(whole_life(cluster, &[], CANARY).await, [""; 0], "granted and never used");
    });
}

/// Where the owners of objects are guarded more is needed, for requests that nobody sends by themselves.
#[test]
fn guarded_owners_need_three_grants_more() {
    let parts = [&PARTS[..], &["traefik"]].concat();
    in_haven("real::grants::guarded_owners_need_three_grants_more", &parts, async || {
        let cluster = RealCluster::with_plugins(&["OwnerReferencesPermissionEnforcement"]).await;
        let more = [
            "update canaries/finalizers.flagger.app",
            "delete services",
            "delete httproutes.gateway.networking.k8s.io",
        ];
        let value = "rbac.ownerReferencesPermissionEnforcement=true";
        assert_eq!(whole_life(cluster, &[value], CANARY).await, more, "granted and never used");
    });
}

/// In one namespace, without config tracking: a Secret is read where a check names it.
#[test]
fn untracked_configs_need_fewer_grants() {
    let parts = [&PARTS[..], &["traefik", "prometheus"]].concat();
    in_haven("real::grants::untracked_configs_need_fewer_grants", &parts, async || {
        let cluster = RealCluster::start(PodOptions::default()).await;
        let _prometheus = Prometheus::start(&cluster, Traefik::METRICS).await;
        cluster.apply(NAMESPACES).await;
        cluster.apply(CHECK).await;
        let checked = "metrics: [{name: one, templateRef: {name: one}, thresholdRange: {min: 1}, interval: 10s}]";
        let canary = CANARY.replace("stepWeights: [50]", &format!("stepWeights: [50], {checked}"));
        let values = ["configTracking.enabled=false", "namespace=test"];
        assert_eq!(whole_life(cluster, &values, &canary).await, [""; 0], "granted and never used");
    });
}
