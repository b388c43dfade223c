//! Rollouts that do not go to plan.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use seaway_api::canary::{Canary, Phase};
use seaway_api::foreign::gateway::HttpRoute;
use serde_json::json;

use crate::harness::{CANARY, Ground, Ship, Users};

#[tokio::test(start_paused = true)]
async fn a_route_whose_rules_were_taken_away_gets_ours_back() {
    let ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 10);
    let routes: Api<HttpRoute> = ship.api("test");
    let none = json!({"spec": {"rules": null}});
    routes.patch("podinfo", &PatchParams::default(), &Patch::Merge(none)).await.unwrap();
    ship.sail(Duration::from_secs(5)).await;
    assert_eq!(ship.weights("podinfo").await, (100, 0));
    users.forget();
    ship.sail(Duration::from_secs(30)).await;
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
}

#[tokio::test(start_paused = true)]
async fn a_reason_for_waiting_is_told_once() {
    let ship = Ship::launch_initialised().await;
    let _users = Users::start(&ship.cluster, 5);
    ship.patch_canary("podinfo", json!({"spec": {"progressDeadlineSeconds": 900}})).await;
    let api: Api<Deployment> = ship.api("test");
    let patch = json!({"spec": {"progressDeadlineSeconds": 900, "template": {"spec": {"containers": [
        {"name": "podinfod", "image": "ghcr.io/stefanprodan/podinfo:6.0.1-noready"},
    ]}}}});
    api.patch("podinfo", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    ship.sail(Duration::from_secs(600)).await;
    let waiting = ship.transcript.events().into_iter().filter(|text| text.contains("not ready: ")).count();
    assert_eq!(waiting, 1, "{}", ship.transcript);
}

#[tokio::test(start_paused = true)]
async fn a_person_can_roll_back_by_hook() {
    let canary = CANARY.replace(
        "    webhooks:\n",
        "    webhooks:\n      - name: stop\n        type: rollback\n        url: http://flagger-loadtester.test/rollback/check\n",
    );
    let ship = Ship::launch().await;
    ship.hooks.answer("/rollback/check", 403);
    let mut ship = ship;
    ship.start_operator();
    ship.apply(&canary).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    let users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_weight("podinfo", 20).await;
    ship.hooks.answer("/rollback/check", 200);
    ship.until_phase("podinfo", Phase::Failed).await;
    let told = ship.transcript.events();
    assert!(told.contains(&"Rolling back podinfo.test manual webhook invoked".to_owned()), "{told:#?}");
    assert_eq!(ship.weights("podinfo").await, (100, 0));
    assert_eq!(ship.image("podinfo-primary").await, "6.0.0");
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
}

#[tokio::test(start_paused = true)]
async fn a_suspended_canary_does_nothing_until_it_is_resumed() {
    let ship = Ship::launch_initialised().await;
    let _users = Users::start(&ship.cluster, 10);
    ship.patch_canary("podinfo", json!({"spec": {"suspend": true}})).await;
    ship.set_image("podinfo", "6.0.1").await;
    ship.sail(Duration::from_secs(600)).await;
    assert_eq!(ship.status("podinfo").await.phase, Phase::Initialized);
    assert_eq!(ship.replicas("podinfo").await, 0);
    ship.patch_canary("podinfo", json!({"spec": {"suspend": false}})).await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn deletion_with_revert_leaves_a_service_that_works() {
    let canary = CANARY.replace("spec:\n", "spec:\n  revertOnDeletion: true\n");
    let ship = Ship::launch_with(&canary).await;
    let users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
    let api: Api<Canary> = ship.api("test");
    api.delete("podinfo", &DeleteParams::default()).await.unwrap();
    ship.until("the canary is gone", async |ship| {
        ship.api::<Canary>("test").get_opt("podinfo").await.unwrap().is_none()
    })
    .await;
    ship.sail(Duration::from_secs(60)).await;
    assert_eq!(ship.replicas("podinfo").await, 2);
    let service: Service = ship.api("test").get("podinfo").await.unwrap();
    assert_eq!(service.spec.unwrap().selector.unwrap()["app"], "podinfo");
    let deployments: Api<Deployment> = ship.api("test");
    assert!(deployments.get_opt("podinfo-primary").await.unwrap().is_none(), "no orphans");
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
    users.forget();
    ship.sail(Duration::from_secs(60)).await;
    assert!(users.seen().contains_key(&("6.0.1".to_owned(), 200)), "{:?}", users.seen());
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
}

#[tokio::test(start_paused = true)]
async fn no_traffic_means_no_promotion() {
    let ship = Ship::launch_initialised().await;
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::Failed).await;
    assert_eq!(ship.image("podinfo-primary").await, "6.0.0");
    let told = ship.transcript.events();
    let reason = "Halt advancement no values found for custom metric: error-rate: no values found";
    assert!(told.iter().any(|text| text == reason), "{told:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_primary_is_made_again() {
    let ship = Ship::launch_initialised().await;
    let deployments: Api<Deployment> = ship.api("test");
    deployments.delete("podinfo-primary", &DeleteParams::default()).await.unwrap();
    ship.sail(Duration::from_secs(60)).await;
    assert_eq!(ship.image("podinfo-primary").await, "6.0.0");
    let users = Users::start(&ship.cluster, 10);
    ship.sail(Duration::from_secs(30)).await;
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
    let missing = "podinfo-primary.test not ready: it does not exist";
    assert!(ship.transcript.events().iter().any(|text| text == missing), "{}", ship.transcript);
}

#[tokio::test(start_paused = true)]
async fn a_primary_deleted_after_a_failure_is_made_again_from_what_was_proven() {
    let ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo", "6.0.1-err50").await;
    ship.until_phase("podinfo", Phase::Failed).await;
    let deployments: Api<Deployment> = ship.api("test");
    deployments.delete("podinfo-primary", &DeleteParams::default()).await.unwrap();
    ship.sail(Duration::from_secs(30)).await;
    assert_eq!((ship.image("podinfo-primary").await.as_str(), ship.replicas("podinfo").await), ("6.0.0", 0));
    users.forget();
    ship.sail(Duration::from_secs(60)).await;
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
    ship.set_image("podinfo", "6.0.2").await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_the_primary_stays_and_is_told_once() {
    let ship = Ship::launch_initialised().await;
    let _users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo-primary", "6.0.9").await;
    ship.sail(Duration::from_secs(300)).await;
    assert_eq!(ship.image("podinfo-primary").await, "6.0.9");
    let text = "podinfo-primary.test was edited and no longer runs what was promoted, the next promotion replaces it";
    assert_eq!(ship.transcript.events().iter().filter(|told| *told == text).count(), 1, "{}", ship.transcript);
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
    assert_eq!(ship.image("podinfo-primary").await, "6.0.1");
    assert_eq!(ship.transcript.events().iter().filter(|told| *told == text).count(), 1, "{}", ship.transcript);
}
