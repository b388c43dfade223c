//! The stories that are told with and without crashes, refusals and losses. What they must look like is in `told`.

use std::time::Duration;

use seaway_api::Canary;
use seaway_api::canary::{HookType, Phase};
use seaway_core::plan::Plan;
use seaway_core::question::{Answer, Question, Subject};
use seaway_core::split::{Split, Variant};
use seaway_core::status::ROLLING_BACK;

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
                assert!(world.released && world.split.is_none(), "{name}: the primary goes, and others with it");
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

fn given_back(world: &World) -> bool {
    world.apex == Some(Variant::Canary) && world.split.is_none()
}

fn announced(world: &World) -> bool {
    world.announced && world.to_apex
}

fn at_half(world: &mut World) {
    world.meddle(Split::canary(50));
}

fn promoting(world: &World) -> bool {
    world.phase() == Phase::Promoting
}

fn succeeded(world: &World) -> bool {
    world.phase() == Phase::Succeeded
}

fn failed(world: &World) -> bool {
    world.phase() == Phase::Failed
}

fn lose_primary(world: &mut World) {
    world.lose(true);
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
            "primary is away for a while in analysis",
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
            Ending::Promoted("v2"),
        ),
        scenario(
            "canary is away for a while",
            Canary::test,
            script(
                all_good,
                &[
                    (initialized, push_v2),
                    (at_20, |world| world.target_dies(true)),
                    (|world| world.split == Some(Split::primary_only()), |world| world.target_dies(false)),
                ],
                always,
            ),
            Ending::Promoted("v2"),
        ),
        scenario(
            "primary dies in analysis and comes back",
            Canary::test,
            script(
                all_good,
                &[
                    (initialized, push_v2),
                    (at_20, |world| world.primary_dies(true)),
                    (|world| world.status().is_true(ROLLING_BACK), |world| world.primary_dies(false)),
                ],
                always,
            ),
            Ending::RolledBack("v2", "v1"),
        ),
        scenario(
            "primary dies in analysis and comes back late",
            Canary::test,
            script(
                all_good,
                &[
                    (initialized, push_v2),
                    (at_20, |world| world.primary_dies(true)),
                    (failed, |world| world.primary_dies(false)),
                ],
                always,
            ),
            Ending::RolledBack("v2", "v1"),
        ),
        scenario(
            "primary deleted at rest",
            Canary::test,
            script(all_good, &[(initialized, push_v2), (succeeded, lose_primary)], always),
            Ending::Promoted("v2"),
        ),
        scenario(
            "primary deleted while promoting",
            Canary::test,
            script(all_good, &[(initialized, push_v2), (promoting, lose_primary)], always),
            Ending::Promoted("v2"),
        ),
        scenario(
            "primary deleted while finalising",
            Canary::test,
            script(
                all_good,
                &[(initialized, push_v2), (|world| world.phase() == Phase::Finalising, lose_primary)],
                always,
            ),
            Ending::Promoted("v2"),
        ),
        scenario(
            "primary deleted after a failure, and the target put back",
            || Canary::test().threshold(1),
            script(
                errors_with_traffic,
                &[(initialized, push_v2), (failed, lose_primary), (failed, |world| world.set_image("v1"))],
                always,
            ),
            Ending::RolledBack("v2", "v1"),
        ),
        scenario(
            "primary deleted while it is restored",
            Canary::test,
            script(
                all_good,
                &[(initialized, push_v2), (|world| world.status().is_true(ROLLING_BACK), lose_primary)],
                v2_not_in_primary,
            ),
            Ending::RolledBack("v2", "v1"),
        ),
        scenario(
            "new configs only",
            Canary::test,
            script(all_good, &[(initialized, |world| world.set_image("v1+new"))], always),
            Ending::Promoted("v1+new"),
        ),
        scenario(
            "target deleted in analysis and applied again",
            Canary::test,
            script(
                all_good,
                &[
                    (initialized, push_v2),
                    (at_20, |world| world.lose(false)),
                    (|world| world.split == Some(Split::primary_only()), |world| world.apply_target("v2")),
                ],
                always,
            ),
            Ending::Promoted("v2"),
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
            script(all_good, &[(initialized, push_v2), (promoting, push_v3)], always),
            Ending::Promoted("v3"),
        ),
        scenario(
            "delete at rest",
            || Canary::test().revert_on_deletion(),
            script(all_good, &[(initialized, push_v2), (succeeded, World::delete)], always),
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
            "somebody edits apex and route while they are given back",
            || Canary::test().revert_on_deletion(),
            script(
                all_good,
                &[(initialized, World::delete), (given_back, |world| world.apex = None), (given_back, at_half)],
                always,
            ),
            Ending::Gone,
        ),
        scenario(
            "a route that another Canary left",
            Canary::test,
            script(all_good, &[(|_| true, World::inherit_route), (initialized, push_v2)], always),
            Ending::Promoted("v2"),
        ),
        scenario(
            "delete while a route that another Canary left is taken over",
            || Canary::test().revert_on_deletion(),
            script(all_good, &[(|_| true, World::inherit_route), (announced, World::delete)], always),
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
            script(errors_with_traffic, &[(initialized, push_v2), (failed, |world| world.set_image("v1"))], always),
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
