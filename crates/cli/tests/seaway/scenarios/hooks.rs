//! Hooks: which are called, in which order, and what they are told.

use seaway_api::canary::Phase;
use serde_json::json;

use crate::harness::{CANARY, Ground, Ship, Users};

/// The tutorial's Canary with one hook of every type, each at a path of its own.
fn all_hooks() -> String {
    let kinds = [
        "confirm-rollout",
        "pre-rollout",
        "rollout",
        "confirm-traffic-increase",
        "confirm-promotion",
        "post-rollout",
        "rollback",
        "event",
    ];
    let hooks: String = kinds
        .map(|kind| {
            format!(
                "      - name: {kind}\n        type: {kind}\n        url: http://flagger-loadtester.test/{kind}\n        \
                 metadata: {{team: shop}}\n"
            )
        })
        .concat();
    let head = CANARY.split("    webhooks:\n").next().unwrap();
    format!("{head}    webhooks:\n{hooks}").replace("stepWeight: 10", "stepWeight: 25")
}

#[tokio::test(start_paused = true)]
async fn every_type_is_called_where_flagger_calls_it() {
    let mut ship = Ship::launch().await;
    ship.hooks.answer("/rollback", 403);
    // The pods that answer hooks are up before the first Event.
    ship.sail(std::time::Duration::from_secs(30)).await;
    ship.start_operator();
    ship.apply(&all_hooks()).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    let _users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
    ship.sail(std::time::Duration::from_secs(60)).await;

    let calls = ship.hooks.calls();
    let told = |path: &str| calls.iter().filter(|(called, _)| called == path).count();
    let order: Vec<(&str, &str)> = calls
        .iter()
        .filter(|(path, _)| path != "/event" && path != "/rollback")
        .map(|(path, payload)| (path.trim_start_matches('/'), payload["phase"].as_str().unwrap()))
        .collect();
    assert_eq!(
        order,
        [
            ("confirm-rollout", "Initialized"),
            ("pre-rollout", "Progressing"),
            ("confirm-traffic-increase", "Progressing"),
            ("rollout", "Progressing"),
            ("confirm-traffic-increase", "Progressing"),
            ("rollout", "Progressing"),
            ("confirm-traffic-increase", "Progressing"),
            ("confirm-promotion", "Progressing"),
            ("post-rollout", "Succeeded"),
        ]
    );
    assert!(told("/rollback") >= 3, "asked at every tick of the analysis");
    let events = ship.transcript.events().len();
    assert_eq!(told("/event"), events, "every Event goes to the event hook");
    let (_, payload) = calls.iter().find(|(path, _)| path == "/pre-rollout").unwrap();
    assert_eq!((payload["name"].as_str(), payload["namespace"].as_str()), (Some("podinfo"), Some("test")));
    assert_eq!(payload["metadata"]["team"], "shop");
    assert_eq!(payload["checksum"].as_str().map(str::is_empty), Some(false));
    let (_, event) = calls.iter().find(|(path, _)| path == "/event").unwrap();
    for key in ["eventMessage", "eventType", "timestamp", "team"] {
        assert!(event["metadata"][key].is_string(), "{event}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_gate_holds_the_promotion_at_its_weight() {
    let mut ship = Ship::launch().await;
    ship.hooks.answer("/rollback", 403);
    ship.hooks.answer("/confirm-promotion", 403);
    ship.start_operator();
    ship.apply(&all_hooks()).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    let users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::WaitingPromotion).await;
    ship.sail(std::time::Duration::from_secs(900)).await;
    let status = ship.status("podinfo").await;
    assert_eq!((status.phase, status.canary_weight, status.iterations), (Phase::WaitingPromotion, 50, 0));
    assert_eq!(ship.weights("podinfo").await, (50, 50));
    ship.hooks.answer("/confirm-promotion", 200);
    ship.until_phase("podinfo", Phase::Succeeded).await;
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
}

#[tokio::test(start_paused = true)]
async fn consent_counts_for_the_hook_that_gave_it() {
    let gates = |paths: [&str; 2]| {
        let gate = |path| json!({"name": path, "type": "confirm-promotion", "url": format!("http://flagger-loadtester.test/{path}")});
        json!({"spec": {"analysis": {"webhooks": paths.map(gate)}}})
    };
    let mut ship = Ship::launch().await;
    ship.hooks.answer("/security", 403);
    ship.hooks.answer("/finance", 403);
    ship.start_operator();
    ship.apply(&all_hooks()).await;
    ship.patch_canary("podinfo", gates(["product", "security"])).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    let users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::WaitingPromotion).await;
    ship.sail(std::time::Duration::from_secs(60)).await;
    // Product has consented; its place goes to finance, which has not.
    ship.patch_canary("podinfo", gates(["finance", "security"])).await;
    ship.hooks.answer("/security", 200);
    ship.sail(std::time::Duration::from_secs(600)).await;
    assert_eq!(ship.status("podinfo").await.phase, Phase::WaitingPromotion);
    assert!(ship.hooks.calls().iter().any(|(path, _)| path == "/finance"));
    ship.hooks.answer("/finance", 200);
    ship.until_phase("podinfo", Phase::Succeeded).await;
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
}
