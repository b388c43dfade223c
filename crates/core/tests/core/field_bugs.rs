//! Bugs that canary operators have had in the field, each as the story in which it did its harm.
//!
//! They are told in the model world, which checks the invariants on every decision and every commit; what is asserted here
//! is what users would have noticed. `make zoo` puts each bug back into the rules and demands that its test fails; those
//! that need a crash at the right moment are found in `crashes`.

use std::time::Duration;

use seaway_api::Canary;
use seaway_api::canary::{HookType, Phase};
use seaway_core::plan::Plan;
use seaway_core::question::{Answer, Question, Subject};
use seaway_core::split::{Split, Variant};

use super::scenarios::{Ending, LONG, Scenario, scenarios};
use super::world::{Script, Users, World, revision};

const HOUR: Duration = Duration::from_secs(3600);

fn of(name: &str) -> Scenario {
    scenarios().into_iter().find(|scenario| scenario.name == name).unwrap()
}

/// Tells a story to its end and beyond; `watch` looks at the world before every round.
fn tell(scenario: &Scenario, mut watch: impl FnMut(&World)) {
    let mut world = scenario.world();
    world.run_watched(LONG, |world, _| watch(world));
    scenario.assert_ended(&world);
    world.assert_silent();
}

/// Everybody consents, and success rate and latency are fine.
fn good_data(_: &World, _: &Plan, question: &Question) -> (Answer, Duration) {
    let answer = match question.key.subject {
        Subject::Metric(0) => Answer::Value { value: 99.9, query: "up".into() },
        Subject::Metric(_) => Answer::Value { value: 0.2, query: "up".into() },
        Subject::Hook(_) | Subject::Providers => Answer::Yes,
    };
    (answer, Duration::from_secs(1))
}

/// The same, but for what metrics say of `v2`.
fn of_v2(metric: Answer, world: &World, plan: &Plan, question: &Question) -> (Answer, Duration) {
    let v2 = world.target.as_ref().is_some_and(|target| target.revision == revision("v2"));
    let (answer, after) = good_data(world, plan, question);
    (if v2 && matches!(question.key.subject, Subject::Metric(_)) { metric } else { answer }, after)
}

fn no_data(world: &World, plan: &Plan, question: &Question) -> (Answer, Duration) {
    of_v2(Answer::NoData { reason: "no values found".into(), query: "up".into() }, world, plan, question)
}

fn bad_data(world: &World, plan: &Plan, question: &Question) -> (Answer, Duration) {
    of_v2(Answer::Value { value: 1.5, query: "up".into() }, world, plan, question)
}

fn closed_gates(world: &World, plan: &Plan, question: &Question) -> (Answer, Duration) {
    match question.key.subject {
        Subject::Hook(_) => (Answer::No("status 403 Forbidden".into()), Duration::from_secs(1)),
        _ => good_data(world, plan, question),
    }
}

const fn script(answer: fn(&World, &Plan, &Question) -> (Answer, Duration), users: Users) -> Script {
    Script { answer, users, comes_up: |_, _| true, deadly: false }
}

fn initialized(world: &World) -> bool {
    world.phase() == Phase::Initialized
}

fn push_v2(world: &mut World) {
    world.set_image("v2");
}

fn push_v3(world: &mut World) {
    world.set_image("v3");
}

/// Z1, Flagger #1898: the rollback went to the primary that had just failed, and the healthy canary was deleted.
#[test]
fn the_canary_outlives_a_promotion_that_fails_in_the_primary() {
    tell(&of("primary fails in promotion"), |world| {
        let sleeps = world.target.as_ref().is_some_and(|target| target.replicas == 0);
        let broken = world.primary.as_ref().is_some_and(|primary| primary.revision == revision("v2"));
        assert!(!sleeps || !broken, "nobody is left but a primary that does not come up");
    });
}

/// Z3, Flagger's order of a rollback: whoever looked before the status was written gave the canary its traffic back.
#[test]
fn a_rollback_that_has_begun_gives_nothing_back() {
    for story in ["manual rollback", "failed analysis"] {
        let (mut most, mut begun) = (0, false);
        tell(&of(story), |world| {
            let share = world.split.map_or(0, |split| split.weight(Variant::Canary));
            begun |= share < most;
            assert!(!begun || share == 0, "{story}: {share} % in a rollback");
            most = most.max(share);
        });
    }
}

/// Z5, Flagger #874: the gate was closed, nothing of the canary ran, and half of all users were sent there.
#[test]
fn a_closed_gate_sends_nobody_to_a_canary_without_pods() {
    const EDIT: Users =
        &[(initialized, push_v2), (|world| world.phase() == Phase::Waiting, |world| world.meddle(Split::canary(50)))];
    let mut world = World::new(Canary::test().webhook("start", HookType::ConfirmRollout), script(closed_gates, EDIT));
    world.run_for(HOUR);
    assert_eq!((world.phase(), world.target.as_ref().unwrap().replicas), (Phase::Waiting, 0));
    assert!(world.serves(), "users reach nobody at {:?}", world.split);
}

/// Z9, Flagger #1550, #686: after the deletion there were no pods.
#[test]
fn a_deletion_leaves_pods_behind() {
    tell(&of("delete at rest"), |_| ());
    tell(&of("delete midway"), |_| ());
}

/// Z10, Argo Rollouts #2235, #3681: pods went while requests were still on their way to them.
#[test]
fn pods_go_after_their_traffic() {
    for story in ["success", "stepped promotion", "failed analysis"] {
        tell(&of(story), |_| ());
    }
}

/// Z11, Argo Rollouts #3372, #3020: everything went to a stable side that could not take it.
#[test]
fn a_new_revision_sends_nobody_to_a_primary_that_is_down() {
    const USERS: Users = &[
        (initialized, push_v2),
        (|world| world.phase() == Phase::Progressing && world.weight() >= 20, |world| world.primary_dies(true)),
        (|world| world.split == Some(Split::canary(100)), push_v3),
        (
            |world| world.status().last_applied_spec == revision("v3").template,
            |world| {
                assert!(world.serves(), "users reach nobody at {:?}", world.split);
                world.primary_dies(false);
            },
        ),
    ];
    let scenario = Scenario {
        name: "new revision while the primary is down",
        canary: Canary::test,
        script: script(good_data, USERS),
        ending: Ending::Promoted("v3"),
    };
    tell(&scenario, |_| ());
}

/// Z15, Flagger #989: a leader change of etcd started canaries that nobody had asked for.
#[test]
fn what_cannot_be_read_for_a_while_is_no_change() {
    let mut looks = 0;
    for scenario in scenarios() {
        let (mut traces, mut calm) = (Vec::new(), scenario.world());
        let mut seen = None;
        calm.run_watched(LONG, |before, _| {
            let position = (before.phase(), before.weight(), before.split);
            if seen.replace(position) == Some(position) {
                return;
            }
            looks += 1;
            let mut world = before.clone();
            world.blind = true;
            world.run_for(Duration::from_secs(30));
            world.blind = false;
            world.run(LONG);
            scenario.assert_ended(&world);
            traces.push((position, world.trace));
        });
        // Whether a revision that comes while the primary is being changed restarts the analysis depends on the moment.
        if scenario.name != "new revision while promoting" {
            for (position, trace) in traces {
                assert_eq!(trace, calm.trace, "{} at {position:?}", scenario.name);
            }
        }
    }
    assert!(looks > 300, "only {looks} looks");
}

/// Z16, Flagger #1581: no rows came back, and that was good enough.
#[test]
fn what_was_not_measured_is_not_promoted() {
    let scenario = Scenario {
        name: "no data",
        canary: Canary::test,
        script: script(no_data, &[(initialized, push_v2)]),
        ending: Ending::RolledBack("v2", "v1"),
    };
    tell(&scenario, |world| assert!(world.weight() <= 10, "{} % without a single number", world.weight()));
}

/// Z17, Flagger: a revision that came after a failure was noted and never rolled out.
#[test]
fn a_new_revision_after_a_failure_is_rolled_out() {
    let scenario = Scenario {
        name: "new revision after a failure",
        canary: || Canary::test().threshold(1),
        script: script(bad_data, &[(initialized, push_v2), (|world| world.phase() == Phase::Failed, push_v3)]),
        ending: Ending::Promoted("v3"),
    };
    tell(&scenario, |_| ());
}

/// Z18, Flagger #1588, #1591: the primary was past its deadline and the canary stayed in `Promoting`, for ever.
#[test]
fn a_promotion_always_ends() {
    for story in ["primary fails in promotion", "primary fails in stepped promotion", "primary dies in promotion"] {
        tell(&of(story), |_| ());
    }
}

/// Z19, Flagger: the deletion pointed everything to the target, and the rollout, which went on, pointed it back.
#[test]
fn a_deletion_midway_ends_the_rollout() {
    tell(&of("delete midway"), |world| {
        let terminating = world.phase() == Phase::Terminating;
        assert!(!terminating || world.weight() == 0, "{} % while everything is put back", world.weight());
    });
}

/// Z21: a deletion led the route to the apex, and the next Canary led it back, at once. Envoy had never heard of those Services.
#[test]
fn users_are_led_where_they_are_waited_for() {
    for story in ["delete at rest", "a route that another Canary left"] {
        tell(&of(story), |_| ());
    }
}
