//! Every grant of the chart is needed: a canary's whole life, with all that may be in its way, uses each of them.
//!
//! That none is missing every scenario on a real cluster says: nothing the operator asks for is forbidden. So a rule that is
//! taken away from the chart breaks this test.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams};
use seaway_api::canary::{Canary, Phase};
use seaway_drydock::pods::PodOptions;
use serde_json::Value;

use super::chart::Rendered;
use super::cluster::{PARTS, RealCluster};
use super::gateways::{Gateway, Traefik};
use super::haven::in_haven;
use super::refusals::Refusals;
use crate::harness::{Ground, NAMESPACES};

const APP: &str = include_str!("grants.yaml");
const CANARY: &str = include_str!("grants-canary.yaml");

/// A group, a resource of it (with its sub-resource), and a verb.
type Grant = (String, String, String);

/// What the chart grants.
fn granted() -> BTreeSet<Grant> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let mut grants = BTreeSet::new();
    for rule in Rendered::with(&[]).rules() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    grants.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    grants
}

/// What the operator used.
fn used(cluster: &RealCluster) -> BTreeSet<Grant> {
    let resource = |resource: &str, subresource: &str| match subresource {
        "" => resource.to_owned(),
        _ => format!("{resource}/{subresource}"),
    };
    let requests = cluster.audit.requests().into_iter();
    requests.map(|asked| (asked.group, resource(&asked.resource, &asked.subresource), asked.verb)).collect()
}

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

#[test]
fn every_grant_of_the_chart_is_needed() {
    let parts = [&PARTS[..], &["traefik"]].concat();
    in_haven("real::grants::every_grant_of_the_chart_is_needed", &parts, async || {
        let mut cluster = RealCluster::start(PodOptions::default()).await;
        let _traefik = Traefik::start(&cluster).await;
        cluster.apply(NAMESPACES).await;
        // Whoever is refused twice reads what is in the way.
        let _refusals = Refusals::start(&cluster).await;
        cluster.start_operator(&[]).await;
        cluster.apply(APP).await;
        cluster.apply(CANARY).await;
        cluster.until_phase("podinfo", Phase::Initialized).await;
        roll_out(&cluster, &app("6.0.1")).await;
        // Another port for the Services, more pods for the autoscaler.
        cluster.apply(&CANARY.replace("portName: http", "portName: web")).await;
        roll_out(&cluster, &app("6.0.2").replace("maxReplicas: 3", "maxReplicas: 4")).await;
        let canaries: Api<Canary> = cluster.api("test");
        canaries.delete("podinfo", &DeleteParams::default()).await.unwrap();
        let gone =
            async |cluster: &RealCluster| cluster.api::<Canary>("test").get_opt("podinfo").await.unwrap().is_none();
        cluster.until("the Canary is gone", gone).await;
        cluster.sail(Duration::from_secs(1)).await;

        let (granted, used) = (granted(), used(&cluster));
        let idle: Vec<_> = granted.difference(&used).collect();
        assert!(idle.is_empty(), "granted and never used: {idle:?}");
        eprintln!("{} grants, all of them used", granted.len());
    });
}
