//! What the stories look like when they are told without interruption.

use seaway_api::canary::Phase;
use seaway_core::split::Split;

use super::scenarios::{LONG, scenarios};
use super::world::World;

#[test]
fn every_story_ends_as_it_should_and_then_falls_silent() {
    for scenario in scenarios() {
        let mut world = scenario.world();
        world.run(LONG);
        scenario.assert_ended(&world);
        world.assert_silent();
    }
}

fn told(name: &str) -> World {
    let scenario = scenarios().into_iter().find(|scenario| scenario.name == name).unwrap();
    let mut world = scenario.world();
    world.run(LONG);
    world
}

#[test]
fn weights_and_phases_follow_flagger() {
    use Phase::{Failed, Finalising, Initialized, Initializing, Progressing, Promoting, Succeeded};
    let trace = told("success").trace;
    assert_eq!(
        trace,
        [
            (Initializing, 0),
            (Initialized, 0),
            (Progressing, 0),
            (Progressing, 10),
            (Progressing, 20),
            (Progressing, 30),
            (Progressing, 40),
            (Progressing, 50),
            (Promoting, 50),
            (Finalising, 0),
            (Succeeded, 0)
        ]
    );
    let weights = |name| told(name).trace.into_iter().skip(2).collect::<Vec<_>>();
    assert_eq!(
        weights("stepped promotion"),
        [
            (Progressing, 0),
            (Progressing, 50),
            (Progressing, 100),
            (Promoting, 100),
            (Promoting, 60),
            (Promoting, 20),
            (Finalising, 0),
            (Succeeded, 0)
        ]
    );
    assert_eq!(weights("step list")[..4], [(Progressing, 0), (Progressing, 1), (Progressing, 10), (Progressing, 80)]);
    assert_eq!(weights("deadline"), [(Progressing, 0), (Failed, 0)]);
    assert_eq!(weights("skip analysis"), [(Progressing, 0), (Promoting, 0), (Finalising, 0), (Succeeded, 0)]);
}

#[test]
fn a_gate_keeps_the_weight_and_is_told_once() {
    let world = told("gates");
    assert!(world.trace.contains(&(Phase::Waiting, 0)) && world.trace.contains(&(Phase::WaitingPromotion, 50)));
    let count = |text: &str| world.events.iter().filter(|event| *event == text).count();
    assert_eq!(count("Halt podinfo.test advancement waiting for approval start"), 1);
    assert_eq!(count("Halt podinfo.test advancement waiting for promotion approval promote"), 1);
    assert_eq!(count("Starting canary analysis for podinfo.test"), 1);
    assert_eq!(count("Pre-rollout check smoke passed"), 1);
    assert_eq!(count("Confirm-rollout check start passed"), 1);
    assert_eq!(count("Confirm-promotion check promote passed"), 1);
    assert_eq!(count("Post-rollout check after passed"), 1);
    assert!(count("Halt podinfo.test advancement waiting for traffic increase approval more") > 1);
}

#[test]
fn rollbacks_say_why() {
    let ends = |name: &str, texts: &[&str]| {
        let events = told(name).events;
        assert!(events.ends_with(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()), "{events:#?}");
    };
    ends(
        "deadline",
        &[
            "Rolling back podinfo.test progress deadline exceeded canary deployment podinfo.test not ready: exceeded its progress deadline",
            "Canary failed! Scaling down podinfo.test",
        ],
    );
    ends(
        "manual rollback",
        &[
            "Rollback check undo passed",
            "Rolling back podinfo.test manual webhook invoked",
            "Canary failed! Scaling down podinfo.test",
            "Post-rollout check after passed",
        ],
    );
    ends(
        "failed analysis",
        &[
            "Halt podinfo.test advancement success rate 12.50% < 99%",
            "Rolling back podinfo.test failed checks threshold reached 3",
            "Canary failed! Scaling down podinfo.test",
        ],
    );
    let promotion = told("primary fails in promotion").events;
    assert!(promotion.iter().any(|event| event.starts_with("Promotion of podinfo.test failed, primary not ready: ")));
}

#[test]
fn traffic_stays_with_the_side_that_answers() {
    let scenario = scenarios().into_iter().find(|scenario| scenario.name == "primary dies in promotion").unwrap();
    let mut world = scenario.world();
    let mut splits = Vec::new();
    world.run_watched(LONG, |before, _| splits.push(before.split));
    splits.dedup();
    let end = [50, 100, 0].map(|weight| Some(Split::canary(weight)));
    assert!(splits.ends_with(&end), "to the canary while the primary is restored, then back: {splits:?}");
}

#[test]
fn drift_is_repaired_to_the_weight_of_the_status() {
    let scenario = scenarios().into_iter().find(|scenario| scenario.name == "somebody edits the route").unwrap();
    let mut world = scenario.world();
    let meddled = Some(Split::canary(77));
    let mut splits = Vec::new();
    while world.phase() != Phase::Succeeded {
        world.round().ok();
        splits.push(world.split);
        splits.dedup();
        world.step_time();
    }
    assert!(!splits.contains(&meddled), "repaired in the very round that sees it: {splits:?}");
    let back = splits.iter().filter(|split| **split == Some(Split::primary_only())).count();
    assert_eq!(back, 2, "100/0 at the beginning and at the end only: {splits:?}");
}
