//! A test of the tests: the lookout must cry when somebody breaks a rule under the operator's name.

use kube::api::{Api, Patch, PatchParams};
use seaway_api::foreign::gateway::HttpRoute;
use serde_json::{Value, json};

use crate::harness::{Ground, OPERATOR, Ship};

async fn as_operator(ship: &Ship, weights: (i64, i64)) -> Vec<String> {
    let operations: Value = json!([
        {"op": "replace", "path": "/spec/rules/0/backendRefs/0/weight", "value": weights.0},
        {"op": "replace", "path": "/spec/rules/0/backendRefs/1/weight", "value": weights.1},
    ]);
    let patch: json_patch::Patch = serde_json::from_value(operations).unwrap();
    let routes: Api<HttpRoute> = Api::namespaced(ship.cluster.client(OPERATOR), "test");
    routes.patch("podinfo", &PatchParams::default(), &Patch::Json::<()>(patch)).await.unwrap();
    ship.lookout.violations()
}

#[tokio::test(start_paused = true)]
async fn the_lookout_sees_traffic_to_the_dead_and_weights_that_do_not_add_up() {
    let mut ship = Ship::launch_initialised().await;
    ship.stop_operator().await;
    let dead = as_operator(&ship, (50, 50)).await;
    assert!(dead.iter().any(|violation| violation.contains("I1")), "{dead:?}");
    let sum = as_operator(&ship, (80, 30)).await;
    assert!(sum.iter().any(|violation| violation.contains("I2")), "{sum:?}");
}

#[tokio::test(start_paused = true)]
async fn the_lookout_sees_a_promotion_nobody_decided() {
    use k8s_openapi::api::apps::v1::Deployment;
    let mut ship = Ship::launch_initialised().await;
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_weight("podinfo", 10).await;
    ship.stop_operator().await;
    let api: Api<Deployment> = Api::namespaced(ship.cluster.client(OPERATOR), "test");
    let patch = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "podinfod", "image": "ghcr.io/stefanprodan/podinfo:6.0.1"},
    ]}}}});
    api.patch("podinfo-primary", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    let violations = ship.lookout.violations();
    assert!(violations.iter().any(|violation| violation.contains("I3")), "{violations:?}");
}
