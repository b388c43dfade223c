//! What a canary costs the API server, counted on drydock's request log.

use std::time::Duration;

use seaway_api::canary::Phase;
use seaway_drydock::apiserver::Request;
use serde_json::json;

use crate::harness::{CANARY, Ground, Ship, Users};

fn count(requests: &[Request], keep: impl Fn(&Request) -> bool) -> usize {
    requests.iter().filter(|request| keep(request)).count()
}

fn is_event(request: &Request) -> bool {
    request.resource == "events"
}

async fn assert_silent(ship: &Ship, state: &str) {
    ship.sail(Duration::from_secs(120)).await;
    ship.cluster.api().log().clear();
    ship.sail(Duration::from_secs(600)).await;
    let requests = ship.requests();
    assert!(requests.is_empty(), "{state}: {requests:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_settled_canary_costs_nothing() {
    let ship = Ship::launch_initialised().await;
    let _users = Users::start(&ship.cluster, 2);
    assert_silent(&ship, "Initialized").await;

    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
    assert_silent(&ship, "Succeeded").await;

    ship.set_image("podinfo", "6.0.2-err50").await;
    ship.until_phase("podinfo", Phase::Failed).await;
    assert_silent(&ship, "Failed").await;
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_waits_for_a_person_costs_nothing() {
    let gated = CANARY.replace(
        "    webhooks:\n",
        "    webhooks:\n      - name: gate\n        type: confirm-rollout\n        url: http://flagger-loadtester.test/gate/check\n",
    );
    let ship = Ship::launch_with(&gated).await;
    ship.hooks.answer("/gate/check", 403);
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::Waiting).await;
    assert_silent(&ship, "Waiting").await;
    assert_eq!(ship.replicas("podinfo").await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_advance_is_one_route_write_one_status_write_and_one_event() {
    let ship = Ship::launch_initialised().await;
    let _users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_weight("podinfo", 10).await;
    ship.sail(Duration::from_secs(5)).await;
    for weight in [20, 30, 40, 50] {
        ship.cluster.api().log().clear();
        ship.until_weight("podinfo", weight).await;
        ship.sail(Duration::from_secs(5)).await;
        let requests = ship.requests();
        assert_eq!(count(&requests, |r| r.resource == "httproutes" && r.is_write()), 1, "{requests:#?}");
        assert_eq!(count(&requests, |r| r.resource == "canaries" && r.is_write()), 1, "{requests:#?}");
        assert_eq!(count(&requests, is_event), 1, "{requests:#?}");
        assert_eq!(requests.len(), 3, "{requests:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_rollout_stays_within_its_budget() {
    let ship = Ship::launch().await;
    // Two tracked configs; both change together with the image.
    ship.apply(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: test}\ndata: {color: red}\n---\n\
         apiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: test}\nstringData: {token: one}\n",
    )
    .await;
    let refs = json!({"spec": {"template": {"spec": {"containers": [{
        "name": "podinfod",
        "envFrom": [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "keys"}}],
    }]}}}});
    let deployments = ship.api::<k8s_openapi::api::apps::v1::Deployment>("test");
    deployments.patch("podinfo", &kube::api::PatchParams::default(), &kube::api::Patch::Strategic(refs)).await.unwrap();
    let mut ship = ship;
    ship.start_operator();
    ship.apply(CANARY).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    let _users = Users::start(&ship.cluster, 10);
    ship.sail(Duration::from_secs(60)).await;

    let tracked = 2;
    let hooks = 2;
    ship.cluster.api().log().clear();
    ship.apply(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: test}\ndata: {color: blue}\n---\n\
         apiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: test}\nstringData: {token: two}\n",
    )
    .await;
    // Pods that start slowly make ticks find them not ready, which must not cost an Event each time.
    ship.set_image("podinfo", "6.0.1-slowstart-40s").await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
    ship.sail(Duration::from_secs(60)).await;

    let requests = ship.requests();
    let writes = count(&requests, |r| r.is_write() && !is_event(r));
    let reads = count(&requests, |r| !r.is_write());
    let events = count(&requests, is_event);
    let table = format!("{writes} object writes, {reads} reads, {events} Events\n{requests:#?}");
    assert!(writes <= 20 + 2 * tracked, "{table}");
    assert!(reads <= tracked, "{table}");
    assert!(events <= 12 + hooks, "{table}");

    let config: k8s_openapi::api::core::v1::ConfigMap = ship.api("test").get("settings-primary").await.unwrap();
    assert_eq!(config.data.unwrap()["color"], "blue");
}
