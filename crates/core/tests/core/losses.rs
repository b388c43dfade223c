//! Somebody deletes a workload, or a write is refused, at any moment of any story.

use std::rc::Rc;
use std::time::Duration;

use seaway_api::canary::Phase;
use seaway_core::split::Split;

use super::scenarios::{Ending, LONG, Scenario, scenarios};
use super::world::{World, revision};

const HOUR: Duration = Duration::from_secs(3600);

fn of(name: &str) -> Scenario {
    scenarios().into_iter().find(|scenario| scenario.name == name).unwrap()
}

/// Whatever has happened, a new revision that is wanted without analysis gets through.
fn assert_alive(mut world: World, story: &str) {
    world.dismiss_users();
    world.apply_target("v9");
    Rc::make_mut(&mut world.canary).spec.skip_analysis = true;
    world.run_for(HOUR);
    let status = world.status();
    // Before there was anything else it is simply adopted.
    let ended = matches!(status.phase, Phase::Succeeded | Phase::Initialized);
    assert!(ended && status.last_promoted_spec == "s1:v9", "{story}: {status:#?}");
    assert_eq!(world.primary.as_ref().unwrap().revision, revision("v9"), "{story}");
    assert_eq!((world.split, world.target.as_ref().unwrap().replicas), (Some(Split::primary_only()), 0), "{story}");
}

/// Tells every story up to every round, has a workload deleted there, and looks what becomes of it.
fn lose_everywhere(primary: bool) -> u32 {
    let mut losses = 0;
    // In one story people refuse whatever comes.
    let told = |scenario: &Scenario| scenario.ending != Ending::Gone && !scenario.name.starts_with("rollback while");
    for scenario in scenarios().into_iter().filter(told) {
        scenario.world().run_watched(LONG, |before, _| {
            let lost = if primary { &before.primary } else { &before.target };
            if lost.is_none() {
                return;
            }
            losses += 1;
            let mut world = before.clone();
            world.lose(primary);
            world.run_for(HOUR);
            let story = format!("{} at {} {}", scenario.name, before.phase(), before.weight());
            assert!(world.serves(), "{story}: users reach nobody at {:?}: {:#?}", world.split, world.status());
            assert_alive(world, &story);
        });
    }
    losses
}

#[test]
fn a_primary_that_is_deleted_is_no_dead_end() {
    assert!(lose_everywhere(true) > 300);
}

#[test]
fn a_target_that_is_deleted_is_no_dead_end() {
    assert!(lose_everywhere(false) > 300);
}

#[test]
fn a_side_that_dies_in_a_deletion_has_no_traffic_while_the_other_answers() {
    let mut deaths = 0;
    for scenario in scenarios().into_iter().filter(|scenario| scenario.ending == Ending::Gone) {
        scenario.world().run_watched(LONG, |before, _| {
            if !before.phase().is_terminating() || before.split.is_none() {
                return;
            }
            for die in [World::primary_dies, World::target_dies] {
                deaths += 1;
                let mut world = before.clone();
                die(&mut world, true);
                world.run_for(Duration::from_secs(5));
                let story = format!("{}: users reach nobody at {:?}", scenario.name, world.split);
                assert!(world.serves(), "{story}: {:#?}", world.status());
            }
        });
    }
    assert!(deaths > 20, "only {deaths}");
}

#[test]
fn a_refused_write_changes_no_ending() {
    for scenario in scenarios() {
        scenario.world().run_watched(LONG, |before, points| {
            for point in points {
                let mut world = before.clone();
                world.refuse_at = Some(point);
                world.run(LONG);
                scenario.assert_ended(&world);
                world.assert_silent();
            }
        });
    }
}

#[test]
fn a_promotion_ends_without_its_target() {
    let mut world = of("success").world();
    while world.phase() != Phase::Promoting {
        world.round().ok();
        world.step_time();
    }
    world.lose(false);
    world.run_for(HOUR);
    assert_eq!((world.phase(), world.split), (Phase::Succeeded, Some(Split::primary_only())));
}

#[test]
fn a_primary_that_cannot_be_restored_fails_on_the_canary() {
    let mut world = of("primary dies in promotion").world();
    while !world.status().is_true("RollingBack") {
        world.round().ok();
        world.step_time();
    }
    // What is restored does not come up either.
    world.primary_dies(true);
    world.run_for(HOUR);
    assert_eq!((world.phase(), world.weight(), world.split), (Phase::Failed, 100, Some(Split::canary(100))));
    assert!(world.target.as_ref().unwrap().replicas > 0 && world.serves());
    world.assert_silent();
    // Once it does come up it has its traffic back.
    world.primary_dies(false);
    world.run(LONG);
    assert_eq!((world.phase(), world.weight(), world.split), (Phase::Failed, 0, Some(Split::primary_only())));
    assert_eq!((world.target.unwrap().replicas, world.primary.unwrap().revision), (0, revision("v1")));
}

#[test]
fn a_route_is_repaired_although_upkeep_is_refused() {
    let mut world = of("success").world();
    world.run(LONG);
    world.no_autoscaler = true;
    world.lose(false);
    world.meddle(Split::canary(30));
    world.round().ok();
    assert_eq!(world.split, Some(Split::primary_only()));
}

#[test]
fn somebody_who_wakes_the_target_is_not_fought_at_every_turn() {
    let mut world = of("success").world();
    world.run(LONG);
    world.run_for(HOUR);
    let (writes, mut woken) = (world.writes, 0);
    // A deployment tool puts the replicas back every ten seconds; the interval is a minute.
    for _ in 0..60 {
        if world.target.as_ref().unwrap().replicas == 0 {
            world.scale_target(2);
            woken += 1;
        }
        world.run_for(Duration::from_secs(10));
    }
    let slept = world.writes - writes;
    assert!((5..=11).contains(&slept) && woken <= 11, "{slept} times put to sleep, {woken} times woken");
    let told = "podinfo.test was scaled up although no rollout is under way, scaling it to zero again";
    assert!(world.events.iter().any(|event| event == told), "{:#?}", world.events);
}
