//! The stories that are told with and without crashes.

use std::time::Duration;

use seaway_api::Canary;
use seaway_api::canary::{HookType, Phase};
use seaway_core::plan::Plan;
use seaway_core::question::{Answer, Question, Subject};
use seaway_core::split::{Split, Variant};

use super::world::{Script, Users, World, revision};

pub const LONG: Duration = Duration::from_secs(3 * 3600);

/// How a story ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ending {
    /// This template serves from the primary.
    Promoted(&'static str),
    /// This template was rejected; the primary serves the other.
    RolledBack(&'static str, &'static str),
    /// The Canary is gone and the target serves.
    Gone,
}

pub struct Scenario {
    pub name: &'static str,
    pub canary: fn() -> Canary,
    pub script: Script,
    pub ending: Ending,
}

impl Scenario {
    pub fn world(&self) -> World {
        World::new((self.canary)(), self.script)
    }

    /// ESR: the world is where it should be.
    pub fn assert_ended(&self, world: &World) {
        let name = self.name;
        let status = world.status();
        match self.ending {
            Ending::Gone => {
                let target = world.target.as_ref().unwrap();
                assert!(world.gone, "{name}: {status:#?}");
                assert_eq!((target.replicas, world.apex), (2, Some(Variant::Canary)), "{name}");
            }
            Ending::Promoted(template) => {
                assert_eq!(status.phase, Phase::Succeeded, "{name}: {status:#?}");
                assert_eq!(status.last_promoted_spec, revision(template).template, "{name}");
                self.assert_rest(world, template);
            }
            Ending::RolledBack(rejected, serving) => {
                assert_eq!(status.phase, Phase::Failed, "{name}: {status:#?}");
                assert_eq!(status.last_applied_spec, revision(rejected).template, "{name}");
                assert_eq!((status.failed_checks, status.canary_weight), (0, 0));
                self.assert_rest(world, serving);
            }
        }
    }

    fn assert_rest(&self, world: &World, serving: &str) {
        let (target, primary) = (world.target.as_ref().unwrap(), world.primary.as_ref().unwrap());
        assert_eq!(primary.revision, revision(serving), "{}", self.name);
        assert_eq!((target.replicas, world.split), (0, Some(Split::primary_only())), "{}", self.name);
    }
}

fn value(value: f64) -> Answer {
    Answer::Value { value, query: "up".into() }
}

const QUICK: Duration = Duration::from_secs(1);

/// The name of the hook that is asked, or nothing for a metric.
pub fn hook<'a>(plan: &'a Plan, question: &Question) -> &'a str {
    match question.key.subject {
        Subject::Hook(index) => &plan.hooks[index].name,
        _ => "",
    }
}

/// Every hook but rollback hooks consents, every metric is fine.
fn all_good(_: &World, plan: &Plan, question: &Question) -> (Answer, Duration) {
    let answer = match question.key.subject {
        Subject::Hook(index) if plan.hooks[index].kind == HookType::Rollback => {
            Answer::No("status 404 Not Found".into())
        }
        Subject::Hook(_) | Subject::Providers => Answer::Yes,
        Subject::Metric(0) => value(99.9),
        Subject::Metric(_) => value(0.2),
    };
    (answer, QUICK)
}

/// Errors show once the canary gets traffic; the second time there is no data at all.
fn errors_with_traffic(world: &World, plan: &Plan, question: &Question) -> (Answer, Duration) {
    match question.key.subject {
        Subject::Metric(0) if world.target.as_ref().unwrap().revision == revision("v2") => {
            let none = Answer::NoData { reason: "no values found".into(), query: "up".into() };
            (if world.status().failed_checks == 1 { none } else { value(12.5) }, QUICK)
        }
        _ => all_good(world, plan, question),
    }
}

fn manual_rollback(world: &World, plan: &Plan, question: &Question) -> (Answer, Duration) {
    match hook(plan, question) {
        "undo" if world.weight() >= 20 => (Answer::Yes, QUICK),
        _ => all_good(world, plan, question),
    }
}

/// Each gate opens a while after it was closed.
fn slow_people(world: &World, plan: &Plan, question: &Question) -> (Answer, Duration) {
    let closed = match hook(plan, question) {
        "start" => world.phase() != Phase::Waiting || question.key.tick < 3,
        "more" => question.key.tick < 2,
        "promote" => world.phase() != Phase::WaitingPromotion || question.key.tick < 3,
        _ => return all_good(world, plan, question),
    };
    (if closed { Answer::No("status 403 Forbidden".into()) } else { Answer::Yes }, QUICK)
}

/// The rollout is refused and then taken back.
fn nobody_starts(_: &World, plan: &Plan, question: &Question) -> (Answer, Duration) {
    let undo = hook(plan, question) == "undo" && question.key.tick > 1;
    (if undo { Answer::Yes } else { Answer::No("status 403 Forbidden".into()) }, QUICK)
}

/// The load test takes longer than an interval.
fn slow_hook(world: &World, plan: &Plan, question: &Question) -> (Answer, Duration) {
    let (answer, _) = all_good(world, plan, question);
    (answer, if hook(plan, question) == "load" { Duration::from_secs(150) } else { QUICK })
}

fn always(_: &str, _: bool) -> bool {
    true
}

fn v2_never(template: &str, _: bool) -> bool {
    template != revision("v2").template
}

fn v2_not_in_primary(template: &str, primary: bool) -> bool {
    !primary || template != revision("v2").template
}

fn initialized(world: &World) -> bool {
    world.phase() == Phase::Initialized
}

fn at_20(world: &World) -> bool {
    world.phase() == Phase::Progressing && world.weight() >= 20
}

fn push_v2(world: &mut World) {
    world.set_image("v2");
}

fn push_v3(world: &mut World) {
    world.set_image("v3");
}

const V2: Users = &[(initialized, push_v2)];

const fn script(
    answer: fn(&World, &Plan, &Question) -> (Answer, Duration),
    users: Users,
    comes_up: fn(&str, bool) -> bool,
) -> Script {
    Script { answer, users, comes_up, deadly: false }
}

pub fn scenarios() -> Vec<Scenario> {
    let scenario = |name, canary, script, ending| Scenario { name, canary, script, ending };
    vec![
        scenario(
            "success",
            || Canary::test().webhook("smoke", HookType::PreRollout),
            script(all_good, V2, always),
            Ending::Promoted("v2"),
        ),
        scenario(
            "failed analysis",
            || Canary::test().threshold(3),
            script(errors_with_traffic, V2, always),
            Ending::RolledBack("v2", "v1"),
        ),
        scenario("deadline", Canary::test, script(all_good, V2, v2_never), Ending::RolledBack("v2", "v1")),
        scenario(
            "new revision midway",
            Canary::test,
            script(all_good, &[(initialized, push_v2), (at_20, push_v3)], always),
            Ending::Promoted("v3"),
        ),
        scenario(
            "primary fails in promotion",
            Canary::test,
            script(all_good, V2, v2_not_in_primary),
            Ending::RolledBack("v2", "v1"),
        ),
        scenario(
            "primary fails in stepped promotion",
            || Canary::test().step_weight_promotion(20),
            script(all_good, V2, v2_not_in_primary),
            Ending::RolledBack("v2", "v1"),
        ),
        scenario(
            "primary dies in promotion",
            Canary::test,
            Script { deadly: true, ..script(all_good, V2, v2_not_in_primary) },
            Ending::RolledBack("v2", "v1"),
        ),
        scenario(
            "primary dies in analysis and comes back",
            Canary::test,
            script(
                all_good,
                &[
                    (initialized, push_v2),
                    (at_20, |world| world.primary_dies(true)),
                    (|world| world.split == Some(Split::canary(100)), |world| world.primary_dies(false)),
                ],
                always,
            ),
            Ending::RolledBack("v2", "v1"),
        ),
        scenario(
            "rollback while waiting for consent",
            || Canary::test().webhook("closed", HookType::ConfirmRollout).webhook("undo", HookType::Rollback),
            script(nobody_starts, V2, always),
            Ending::RolledBack("v2", "v1"),
        ),
        scenario(
            "manual rollback",
            || Canary::test().webhook("undo", HookType::Rollback).webhook("after", HookType::PostRollout),
            script(manual_rollback, V2, always),
            Ending::RolledBack("v2", "v1"),
        ),
        scenario(
            "skip analysis",
            || Canary::test().skip_analysis(),
            script(all_good, V2, always),
            Ending::Promoted("v2"),
        ),
        scenario(
            "skip analysis midway",
            Canary::test,
            script(
                all_good,
                &[
                    (initialized, push_v2),
                    (at_20, |world| std::rc::Rc::make_mut(&mut world.canary).spec.skip_analysis = true),
                ],
                always,
            ),
            Ending::Promoted("v2"),
        ),
        scenario(
            "step list",
            || Canary::test().step_weights(&[1, 10, 80]),
            script(all_good, V2, always),
            Ending::Promoted("v2"),
        ),
        scenario(
            "stepped promotion",
            || Canary::test().step_weight(50).max_weight(100).step_weight_promotion(40),
            script(all_good, V2, always),
            Ending::Promoted("v2"),
        ),
        scenario(
            "new revision while promoting",
            || Canary::test().step_weight_promotion(10),
            script(all_good, &[(initialized, push_v2), (|world| world.phase() == Phase::Promoting, push_v3)], always),
            Ending::Promoted("v3"),
        ),
        scenario(
            "delete at rest",
            || Canary::test().revert_on_deletion(),
            script(
                all_good,
                &[(initialized, push_v2), (|world| world.phase() == Phase::Succeeded, World::delete)],
                always,
            ),
            Ending::Gone,
        ),
        scenario(
            "delete midway",
            || Canary::test().revert_on_deletion(),
            script(all_good, &[(initialized, push_v2), (at_20, World::delete)], always),
            Ending::Gone,
        ),
        scenario(
            "delete while initialising",
            || Canary::test().revert_on_deletion(),
            script(all_good, &[(|world| world.primary.is_some(), World::delete)], always),
            Ending::Gone,
        ),
        scenario(
            "gates",
            || {
                Canary::test()
                    .webhook("start", HookType::ConfirmRollout)
                    .webhook("smoke", HookType::PreRollout)
                    .webhook("more", HookType::ConfirmTrafficIncrease)
                    .webhook("promote", HookType::ConfirmPromotion)
                    .webhook("undo", HookType::Rollback)
                    .webhook("after", HookType::PostRollout)
            },
            script(slow_people, V2, always),
            Ending::Promoted("v2"),
        ),
        scenario(
            "slow hook",
            || Canary::test().webhook("load", HookType::Rollout),
            script(slow_hook, V2, always),
            Ending::Promoted("v2"),
        ),
        scenario(
            "somebody edits the route",
            Canary::test,
            script(all_good, &[(initialized, push_v2), (at_20, |world| world.meddle(Split::canary(77)))], always),
            Ending::Promoted("v2"),
        ),
        scenario(
            "back to the promoted template after a failure",
            || Canary::test().threshold(1),
            script(
                errors_with_traffic,
                &[(initialized, push_v2), (|world| world.phase() == Phase::Failed, |world| world.set_image("v1"))],
                always,
            ),
            Ending::RolledBack("v2", "v1"),
        ),
        scenario(
            "a new image while initialising",
            Canary::test,
            script(all_good, &[(|world| world.primary.is_some(), push_v2), (initialized, push_v3)], always),
            Ending::Promoted("v3"),
        ),
    ]
}

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
