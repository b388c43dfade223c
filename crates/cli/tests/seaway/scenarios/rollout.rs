//! The tutorial's rollouts, against the sequence recorded from real Flagger.

use std::time::Duration;

use seaway_api::canary::Phase;

use crate::harness::{CANARY, Ground, Ship, Users};

/// What is told follows what is stored.
const NEWS: Duration = Duration::from_secs(2);

/// Recorded from Flagger 1.44.0 on a real cluster; `after` names the step, `message` is the Event's text.
const GOLDEN: &str = include_str!("../../../../core/tests/golden/gateway-api-weighted.jsonl");
/// The same, of the Canary's status.
const GOLDEN_STEPS: &str = include_str!("../../../../core/tests/golden/gateway-api-weighted-steps.jsonl");

/// Texts Flagger said after a step, repeats and readiness noise left out: those repeat with its ticks, ours are said
/// once.
fn golden(step: &str) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for line in GOLDEN.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = event["message"].as_str().unwrap();
        if event["after"] == step && !is_noise(text) && texts.last().map(String::as_str) != Some(text) {
            texts.push(text.to_owned());
        }
    }
    assert!(!texts.is_empty(), "no golden events after {step}");
    texts
}

/// Whoever waits says so, once or with every tick, depending on who was faster.
fn is_noise(text: &str) -> bool {
    text.contains("not ready: ") || text.contains("is not ready (status: ") || text.contains("providers are available")
}

/// Our texts in the same form; the value of a failing metric is not a promise.
fn said(ground: &impl Ground) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for text in ground.transcript().events() {
        if !is_noise(&text) && texts.last() != Some(&text) {
            texts.push(text);
        }
    }
    texts
}

fn without_values(texts: Vec<String>) -> Vec<String> {
    let mut masked: Vec<String> = Vec::new();
    for text in texts {
        let text = match text.split_once("error-rate ") {
            Some((head, tail)) => format!("{head}error-rate _ {}", tail.split_once(' ').map_or("", |(_, rest)| rest)),
            None => text,
        };
        masked.push(text);
    }
    masked.dedup();
    masked
}

/// (phase, weight) that Flagger went through after a step, repeats left out.
fn golden_steps(step: &str) -> Vec<(String, i64)> {
    let lines = GOLDEN_STEPS.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut steps: Vec<_> = lines
        .filter(|line| line["after"] == step)
        .map(|line| (line["phase"].as_str().unwrap().to_owned(), line["weight"].as_i64().unwrap()))
        .collect();
    steps.dedup();
    assert!(!steps.is_empty(), "no golden steps after {step}");
    steps
}

/// From the detection on: where it stood before is the step before.
fn after_detection(steps: Vec<(String, i64)>) -> Vec<(String, i64)> {
    steps.into_iter().skip_while(|(phase, _)| phase != "Progressing").collect()
}

/// A rollout went as Flagger's: the same phases and weights in the same order, and the same Events. Each by itself: what is
/// meant is written before it is told here, and Flagger does it now one way and now the other.
fn must_go_as_flaggers(ground: &impl Ground, step: &str) {
    assert_eq!(without_values(said(ground)), without_values(golden(step)));
    let steps = ground.transcript().steps("podinfo");
    assert_eq!(after_detection(steps), after_detection(golden_steps(step)), "{}", ground.transcript());
}

/// The tutorial's Canary is created. The ground has podinfo 6.0.0 and an operator.
pub async fn initialise_as_flagger_did(ground: &impl Ground, canary: &str) {
    ground.apply(canary).await;
    ground.until_phase("podinfo", Phase::Initialized).await;
    ground.sail(NEWS).await;
    assert_eq!(said(ground), golden("A1-canary-create"));
    assert_eq!(ground.transcript().steps("podinfo"), golden_steps("A1-canary-create"));
    assert_eq!((ground.replicas("podinfo").await, ground.replicas("podinfo-primary").await), (0, 2));
}

/// A good version, one that fails half of its requests, and a good one again.
pub async fn roll_out_as_flagger_did(ground: &impl Ground) {
    ground.transcript().clear();
    ground.set_image("podinfo", "6.0.1").await;
    ground.until_phase("podinfo", Phase::Succeeded).await;
    ground.sail(NEWS).await;
    must_go_as_flaggers(ground, "A2-set-image-6.0.1");
    assert_eq!(ground.transcript().route("podinfo"), [10, 20, 30, 40, 50, 0]);
    assert_eq!(ground.image("podinfo-primary").await, "6.0.1");

    ground.transcript().clear();
    ground.set_image("podinfo", "6.0.2-err50").await;
    ground.until_phase("podinfo", Phase::Failed).await;
    ground.sail(NEWS).await;
    must_go_as_flaggers(ground, "A3-set-image-6.0.2-err50");
    assert_eq!(ground.image("podinfo-primary").await, "6.0.1");
    assert_eq!(ground.replicas("podinfo").await, 0);

    ground.transcript().clear();
    ground.set_image("podinfo", "6.0.3").await;
    ground.until_phase("podinfo", Phase::Succeeded).await;
    ground.sail(NEWS).await;
    must_go_as_flaggers(ground, "A3b-set-image-6.0.3-after-failure");
}

#[tokio::test(start_paused = true)]
async fn initialise_promote_roll_back_and_promote_again_as_flagger_did() {
    let mut ship = Ship::launch().await;
    ship.start_operator();
    initialise_as_flagger_did(&ship, CANARY).await;
    let users = Users::start(&ship.cluster, 10);
    roll_out_as_flagger_did(&ship).await;
    assert_eq!(users.failures_of_ours("6.0.2-err50"), 0, "{:?}", users.seen());
}

#[tokio::test(start_paused = true)]
async fn users_see_the_split_the_status_shows() {
    let ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 20);
    ship.set_image("podinfo", "6.0.1").await;
    for weight in [10_u64, 20, 30] {
        ship.until_weight("podinfo", i64::try_from(weight).unwrap()).await;
        ship.sail(Duration::from_secs(2)).await;
        users.forget();
        ship.sail(Duration::from_secs(50)).await;
        let seen = users.seen();
        let new = seen.get(&("6.0.1".to_owned(), 200)).copied().unwrap_or_default();
        let all: u64 = seen.values().sum();
        let share = new * 100 / all;
        assert!(share.abs_diff(weight) <= 1, "{share} % instead of {weight} %: {seen:?}");
    }
}
