//! A fault at every call: each story is told once in peace, then again with every fault at every point.
//!
//! | module | what it is |
//! |---|---|
//! | [`story`] | what a person does, and how it ends |
//! | [`mishap`] | what can go wrong, by name; [`actors`], [`outside`]: who does it |
//! | [`stage`] | one run: prelude, story, end, silence, one more rollout |
//! | [`plot`] | what is planned against a run, and what it may take and come to |
//! | [`forks`] | one telling of a story for all faults |
//! | [`oracle`], [`mask`], [`guard`] | what must be true at the end, what may differ, what every write must be |
//! | [`enumerate`] | all points of all faults, and the table |
//! | [`swarm`] | random runs with several faults |
//! | [`ground`], [`crew`], [`crowd`], [`board`], [`hand`] | the cluster, the operators, the users, what was committed, people |
//!
//! The invariants at every commit are the harness's lookout. Nothing here knows how the operator works.

mod actors;
mod board;
mod crew;
mod crowd;
mod enumerate;
mod forks;
mod ground;
mod guard;
mod hand;
mod mask;
mod mishap;
mod oracle;
mod outside;
mod plot;
mod stage;
mod story;
mod swarm;

use std::fmt::Write as _;

use ground::Terrain;
use mishap::Mishap;
use stage::Fate;

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
    operator_restarted,
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
    let reference = enumerate::perform(story, &Fate::Mishaps(&[]), &terrain, None);
    let begun = std::time::Instant::now();
    let fate = Fate::Mishaps(&mishaps);
    let run = enumerate::perform(story, &fate, &Terrain { traced: true, ..terrain }, Some(&reference));
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

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// A few random runs here; `make swarm` asks for many by `SEAWAY_SWARM` and `SEAWAY_SEED`.
#[test]
fn swarm_of_random_runs() {
    swarm::swarm(number("SEAWAY_SEED").unwrap_or(1), number("SEAWAY_SWARM").unwrap_or(40));
}

/// Tells one seed of the swarm again: `SEAWAY_SWARM_SEED=7`. Without that variable there is nothing to tell.
#[test]
fn swarm_replay() {
    let Some(seed) = number("SEAWAY_SWARM_SEED") else { return };
    let references = swarm::References::record();
    let draw = swarm::Draw::of(seed, &references);
    let run = draw.play(&references, true);
    for line in &run.trace {
        println!("{line}");
    }
    println!("{}", draw.describe());
    assert!(run.failures.is_empty(), "seed {seed}:\n{}", run.failures.join("\n"));
}

/// The same seed tells the same story, byte for byte: requests, commits, faults and answers, each with its time.
#[test]
fn twenty_seeds_give_the_same_trace_twice() {
    let references = swarm::References::record();
    for seed in 1..=20 {
        let draw = swarm::Draw::of(seed, &references);
        let (one, other) = (draw.play(&references, true), draw.play(&references, true));
        assert!(one.trace.len() > 100, "seed {seed} has hardly any trace");
        let at = one.trace.iter().zip(&other.trace).position(|(one, other)| one != other);
        if let Some(at) = at {
            panic!("seed {seed} ({}) differs in line {at}:\n{}\n{}", draw.describe(), one.trace[at], other.trace[at]);
        }
        assert_eq!(one.trace.len(), other.trace.len(), "seed {seed}");
    }
}

/// What a run costs without faults; printed for whoever makes it cheaper.
#[test]
fn the_cost_of_a_run_is_told() {
    let (mut text, mut failures) = (String::new(), Vec::new());
    for story in &story::STORIES {
        let begun = std::time::Instant::now();
        let run = enumerate::perform(story, &Fate::Mishaps(&[]), &Terrain::default(), None);
        let (took, calls, events) = (begun.elapsed().as_millis(), run.calls.len(), run.events.len());
        let simulated = run.took.as_secs();
        let laps: Vec<u128> = run.laps.iter().map(std::time::Duration::as_millis).collect();
        writeln!(
            text,
            "{:<20}{took:>6} ms, {simulated:>4} s simulated, {calls} calls, {events} watch events, {} users' requests, {laps:?}",
            story.name, run.asked,
        )
        .unwrap();
        failures.extend(run.failures.iter().map(|failure| format!("{}: {failure}", story.name)));
    }
    enumerate::tell(&text);
    assert!(failures.is_empty(), "{failures:#?}");
}
