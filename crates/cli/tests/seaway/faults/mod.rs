//! A fault at every call: each story is told once in peace, then again with every fault at every point.
//!
//! | module | what it is |
//! |---|---|
//! | [`story`] | what a person does, and how it ends |
//! | [`mishap`] | what can go wrong, by name; [`actors`], [`outside`]: who does it |
//! | [`stage`] | one run: prelude, story, end, silence, one more rollout |
//! | [`oracle`], [`mask`], [`guard`] | what must be true at the end, what may differ, what every write must be |
//! | [`enumerate`] | all points of all faults, and the table |
//! | [`ground`], [`crew`], [`crowd`], [`board`], [`hand`] | the cluster, the operators, the users, what was committed, people |
//!
//! The invariants at every commit are the harness's lookout. Nothing here knows how the operator works.

mod actors;
mod board;
mod crew;
mod crowd;
mod enumerate;
mod ground;
mod guard;
mod hand;
mod mask;
mod mishap;
mod oracle;
mod outside;
mod stage;
mod story;

use ground::Terrain;
use mishap::Mishap;

/// One test per story.
macro_rules! stories {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { enumerate::story(stringify!($name)); })*
        #[test]
        fn every_story_has_a_test() {
            let tested = [$(stringify!($name)),*];
            assert_eq!(story::STORIES.each_ref().map(|story| story.name), tested);
        }
    };
}

stories![
    initialisation,
    success,
    failed_analysis,
    deadline,
    new_revision,
    target_edited,
    primary_fails,
    manual_rollback,
    delete_with_revert,
    step_list,
    stepped_promotion,
    skip_analysis,
];

/// Tells one run again, with everything that was committed, asked and answered: `SEAWAY_FAULT=success/crash-after@17`.
/// Without that variable there is nothing to tell.
#[test]
fn replay() {
    let Ok(wanted) = std::env::var("SEAWAY_FAULT") else { return };
    let (name, rest) = wanted.split_once('/').unwrap_or((&wanted, ""));
    let story = story::find(name).unwrap_or_else(|| panic!("no story {name}"));
    let mishaps: Vec<Mishap> =
        rest.split(',').filter(|text| !text.is_empty()).map(|text| text.parse().unwrap()).collect();
    let terrain = Terrain { two: mishaps.iter().any(|mishap| mishap.kind.needs_two()), ..Terrain::default() };
    let reference = enumerate::perform(story, &[], &terrain, None);
    let begun = std::time::Instant::now();
    let run = enumerate::perform(story, &mishaps, &Terrain { traced: true, ..terrain }, Some(&reference));
    let took = begun.elapsed();
    for line in &run.trace {
        println!("{line}");
    }
    for (number, call) in run.calls.iter().enumerate() {
        println!("{number}: {call} -> {} {}", call.code, if call.changed() { "" } else { "(changed nothing)" });
    }
    for event in &run.events {
        println!("{event}");
    }
    println!("{wanted}: {:?} simulated, {} users' requests, {took:?}", run.took, run.asked);
    assert!(run.failures.is_empty(), "{wanted}:\n{}", run.failures.join("\n"));
}

/// What a run costs without faults; printed for whoever makes it cheaper.
#[test]
fn the_cost_of_a_run_is_told() {
    let (mut text, mut failures) = (String::new(), Vec::new());
    for story in &story::STORIES {
        let begun = std::time::Instant::now();
        let run = enumerate::perform(story, &[], &Terrain::default(), None);
        let (took, calls, events) = (begun.elapsed().as_millis(), run.calls.len(), run.events.len());
        let simulated = run.took.as_secs();
        text.push_str(&format!(
            "{:<20}{took:>6} ms, {simulated:>4} s simulated, {calls} calls, {events} watch events, {} users' requests, {:?}\n",
            story.name,
            run.asked,
            run.laps.iter().map(std::time::Duration::as_millis).collect::<Vec<_>>(),
        ));
        failures.extend(run.failures.iter().map(|failure| format!("{}: {failure}", story.name)));
    }
    enumerate::tell(&text);
    assert!(failures.is_empty(), "{failures:#?}");
}
