//! Somebody edits the names a Canary lives under: the route and the primary that serve users keep the old ones.

use std::time::Duration;

use kube::api::{Api, DeleteParams};
use rstest::rstest;
use seaway_api::canary::{Canary, ConditionStatus, Phase};
use serde_json::{Value, json};

use crate::harness::{CANARY, Ground, Ship, Users};

/// What is wrong with the spec, as the condition says it.
async fn refusal(ship: &Ship) -> Option<String> {
    let status = ship.status("podinfo").await;
    let accepted = status.condition("Accepted").cloned()?;
    (accepted.status == ConditionStatus::False).then_some(accepted.message)
}

/// Users get answers, now.
async fn assert_served(ship: &Ship, users: &Users) {
    users.forget();
    ship.sail(Duration::from_secs(60)).await;
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}\n{}", users.seen(), ship.transcript);
}

#[rstest]
#[case::service(json!({"spec": {"service": {"name": "shop"}}}), json!({"spec": {"service": {"name": null}}}), "spec.service.name")]
#[case::target(json!({"spec": {"targetRef": {"name": "shop"}}}), json!({"spec": {"targetRef": {"name": "podinfo"}}}), "spec.targetRef.name")]
#[tokio::test(start_paused = true)]
async fn an_edited_name_holds_the_canary_until_it_is_put_back(
    #[case] edit: Value,
    #[case] undo: Value,
    #[case] field: &str,
    #[values(false, true)] under_way: bool,
) {
    let ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 10);
    if under_way {
        ship.set_image("podinfo", "6.0.1").await;
        ship.until_weight("podinfo", 20).await;
        ship.sail(Duration::from_secs(5)).await;
    }
    let weights = ship.weights("podinfo").await;
    ship.patch_canary("podinfo", edit).await;
    ship.sail(Duration::from_secs(5)).await;
    let told = refusal(&ship).await.expect("it is refused");
    assert!(told.starts_with(field) && told.contains("change it back to podinfo"), "{told}");
    let event = format!("invalid canary spec: {told}");
    assert_eq!(ship.transcript.events().into_iter().filter(|text| *text == event).count(), 1, "{}", ship.transcript);

    // Whatever was to happen next does not happen, for as long as it takes.
    ship.cluster.api().log().clear();
    assert_served(&ship, &users).await;
    ship.sail(Duration::from_secs(600)).await;
    assert_eq!(ship.requests().len(), 0, "{:#?}", ship.requests());
    assert_eq!(ship.weights("podinfo").await, weights);
    assert_served(&ship, &users).await;

    ship.patch_canary("podinfo", undo).await;
    if !under_way {
        ship.set_image("podinfo", "6.0.1").await;
    }
    ship.until_phase("podinfo", Phase::Succeeded).await;
    assert_eq!(refusal(&ship).await, None);
    assert_eq!(ship.image("podinfo-primary").await, "6.0.1");
    assert_served(&ship, &users).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_does_not_forget_which_names_are_in_use() {
    let mut ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 10);
    ship.kill_operator().await;
    ship.patch_canary("podinfo", json!({"spec": {"service": {"name": "shop"}}})).await;
    ship.start_operator();
    ship.sail(Duration::from_secs(60)).await;
    assert!(refusal(&ship).await.is_some());
    assert_served(&ship, &users).await;
}

#[tokio::test(start_paused = true)]
async fn deletion_with_revert_puts_back_what_is_under_the_old_name() {
    let canary = CANARY.replace("spec:\n", "spec:\n  revertOnDeletion: true\n");
    let ship = Ship::launch_with(&canary).await;
    let users = Users::start(&ship.cluster, 10);
    ship.patch_canary("podinfo", json!({"spec": {"service": {"name": "shop"}}})).await;
    ship.sail(Duration::from_secs(5)).await;
    let api: Api<Canary> = ship.api("test");
    api.delete("podinfo", &DeleteParams::default()).await.unwrap();
    ship.until("the canary is gone", async |ship| {
        ship.api::<Canary>("test").get_opt("podinfo").await.unwrap().is_none()
    })
    .await;
    ship.sail(Duration::from_secs(30)).await;
    assert_eq!(ship.replicas("podinfo").await, 2);
    let services: Api<k8s_openapi::api::core::v1::Service> = ship.api("test");
    assert!(services.get_opt("shop").await.unwrap().is_none(), "nothing is made under the new name");
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
    assert_served(&ship, &users).await;
}

#[tokio::test(start_paused = true)]
async fn a_name_is_free_once_nothing_is_left_under_the_old_one() {
    use seaway_api::foreign::gateway::HttpRoute;
    let ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 10);
    ship.patch_canary("podinfo", json!({"spec": {"service": {"name": "shop"}}})).await;
    ship.sail(Duration::from_secs(5)).await;
    assert!(refusal(&ship).await.is_some());
    let routes: Api<HttpRoute> = ship.api("test");
    routes.delete("podinfo", &DeleteParams::default()).await.unwrap();
    ship.sail(Duration::from_secs(30)).await;
    assert_eq!(refusal(&ship).await, None);
    assert_eq!(ship.weights("shop").await, (100, 0));
    assert_served(&ship, &users).await;
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
}
