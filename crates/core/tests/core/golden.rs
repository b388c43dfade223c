//! A recorded run of Flagger 1.44 on a real API server, reproduced by the model world.
//!
//! Left out on both sides: reasons for waiting, which depend on timing, and immediate repetitions.

use std::time::Duration;

use seaway_api::Canary;
use seaway_api::canary::{HookType, Metric, NamespacedRef, Phase, ThresholdRange};
use seaway_core::plan::Plan;
use seaway_core::question::{Answer, Question, Subject};

use super::scenarios::LONG;
use super::world::{Script, Users, World, revision};

const RECORDED: &str = include_str!("../golden/gateway-api-weighted.jsonl");

fn canary() -> Canary {
    let metric = |name: &str, max: f64| Metric {
        name: name.into(),
        interval: "20s".into(),
        threshold_range: Some(ThresholdRange { min: None, max: Some(max) }),
        template_ref: Some(NamespacedRef { name: name.into(), namespace: "flagger-system".into() }),
        ..Metric::default()
    };
    Canary::test()
        .autoscaled()
        .revert_on_deletion()
        .interval("10s")
        .metrics(vec![metric("error-rate", 1.0), metric("latency", 0.5)])
        .webhook("smoke-test", HookType::PreRollout)
        .webhook("load-test", HookType::Rollout)
}

/// The bad version shows the error rates of the recording.
fn answer(world: &World, _: &Plan, question: &Question) -> (Answer, Duration) {
    const ERRORS: [f64; 5] = [54.82, 60.89, 49.30, 46.48, 52.11];
    let bad = world.target.as_ref().unwrap().revision == revision("6.0.2-err50");
    let value = |value| Answer::Value { value, query: "100 - sum(…)".into() };
    let answer = match question.key.subject {
        Subject::Hook(_) | Subject::Providers => Answer::Yes,
        Subject::Metric(0) if bad => {
            let failed = usize::try_from(world.status().failed_checks).unwrap();
            value(ERRORS[failed.min(4)])
        }
        Subject::Metric(_) => value(0.0),
    };
    (answer, Duration::from_millis(50))
}

const USERS: Users = &[
    (|world| world.phase() == Phase::Initialized, |world| world.set_image("6.0.1")),
    (|world| world.phase() == Phase::Succeeded, |world| world.set_image("6.0.2-err50")),
    (|world| world.phase() == Phase::Failed, |world| world.set_image("6.0.3")),
    (|world| world.phase() == Phase::Succeeded, World::delete),
];

fn essential(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut texts: Vec<String> = texts.filter(|text| !text.contains(" not ready: ")).collect();
    texts.dedup();
    texts
}

#[test]
fn the_events_are_those_of_flagger() {
    let recorded = essential(RECORDED.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["message"].as_str().map(ToOwned::to_owned)
    }));
    let mut world = World::new(canary(), Script { answer, users: USERS, comes_up: |_, _| true, deadly: false });
    world.run(LONG);
    let ours = essential(world.events.iter().cloned());
    assert_eq!(ours, recorded);
    assert!(world.gone);
}
