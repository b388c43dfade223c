//! The operator dies before every single write of every story, once and then twice, and each story ends the same.

use super::scenarios::{LONG, Scenario, scenarios};
use super::world::World;

/// Tells the rest of the story from `start` on, with these crashes.
fn tell(scenario: &Scenario, start: &World, crashes: [Option<u64>; 2]) -> World {
    let mut world = start.clone();
    [world.crash_at, world.second_crash] = crashes;
    world.run(LONG);
    scenario.assert_ended(&world);
    world.assert_silent();
    world
}

#[test]
fn a_crash_before_any_write_changes_no_ending() {
    let mut runs = 0;
    for scenario in scenarios() {
        let mut traces = Vec::new();
        let mut calm = scenario.world();
        calm.run_watched(LONG, |before, points| {
            for point in points {
                let world = tell(&scenario, before, [Some(point), None]);
                assert_eq!(world.crashes, 1, "{} at {point}", scenario.name);
                traces.push((point, world.trace));
                runs += 1;
            }
        });
        // Whether a revision that comes while the primary is being changed restarts the analysis depends on the moment.
        if scenario.name != "new revision while promoting" {
            for (point, trace) in traces {
                assert_eq!(trace, calm.trace, "{} at {point}", scenario.name);
            }
        }
    }
    assert!(runs > 600, "only {runs} crashes");
}

#[test]
fn a_second_crash_soon_after_the_first_changes_no_ending() {
    for scenario in scenarios() {
        scenario.world().run_watched(LONG, |before, points| {
            for (point, after) in points.zip([1, 2, 3, 5, 8].into_iter().cycle()) {
                tell(&scenario, before, [Some(point), Some(point + after)]);
            }
        });
    }
}
