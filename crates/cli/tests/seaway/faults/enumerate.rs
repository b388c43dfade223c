//! Every point of a story times every fault that makes sense there, each in a cluster of its own.
//!
//! In an optimised build all of it runs. A debug build takes a sample, evenly spread and always the same, and says so;
//! `SEAWAY_FAULTS_EVERY=1` makes it run all. What is left out because it cannot differ from another run is counted as
//! pruned, never silently dropped.

use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use seaway_drydock::fault::Point;

use super::ground::Terrain;
use super::mishap::{KINDS, Kind, Mishap};
use super::stage::{Run, play};
use super::story::{Story, find};

/// One row of the table.
#[derive(Clone, Copy, Default)]
struct Row {
    points: usize,
    pruned: usize,
    run: usize,
    proved: usize,
    failed: usize,
}

impl std::ops::AddAssign for Row {
    fn add_assign(&mut self, other: Self) {
        self.points += other.points;
        self.pruned += other.pruned;
        self.run += other.run;
        self.proved += other.proved;
        self.failed += other.failed;
    }
}

/// Stories that are done, all tests of this process together.
static TOTAL: Mutex<(usize, Row, Duration)> =
    Mutex::new((0, Row { points: 0, pruned: 0, run: 0, proved: 0, failed: 0 }, Duration::ZERO));

/// One more rollout is told after every so manieth run, another point with every kind: it costs as much as the story.
const PROOFS: usize = 3;

/// Failures that are told in full; of the others only the command.
const TOLD: usize = 40;

/// Runs one story with every fault at every point.
pub fn story(name: &str) {
    let story = find(name).unwrap_or_else(|| panic!("no story {name}"));
    let begun = Instant::now();
    let every = every();
    let alone = perform(story, &[], &Terrain::default(), None);
    let together = perform(story, &[], &two(), None);
    for (who, run) in [("alone", &alone), ("with a standby", &together)] {
        assert!(run.failures.is_empty(), "{name} without faults, {who}: {:#?}", run.failures);
    }
    let mut table: Vec<(Kind, Row)> = Vec::new();
    let (mut told, mut failed) = (0, Vec::new());
    for (number, (kind, points)) in points(&alone, &together).into_iter().enumerate() {
        let mut row = Row { points: points.len(), ..Row::default() };
        for (place, (at, needed)) in points.into_iter().enumerate() {
            if !needed {
                row.pruned += 1;
                continue;
            }
            // Shifted from kind to kind, so that a sample meets different points.
            if !(place + number).is_multiple_of(every) {
                continue;
            }
            row.run += 1;
            let proves = ((place + number) / every).is_multiple_of(PROOFS);
            row.proved += usize::from(proves);
            let mishap = Mishap { at, kind };
            let (terrain, reference) = if kind.needs_two() { (two(), &together) } else { (Terrain::default(), &alone) };
            let terrain = Terrain { proves, ..terrain };
            let run = perform(story, &[mishap], &terrain, Some(reference));
            if !run.failures.is_empty() {
                row.failed += 1;
                failed.push(mishap);
                if told < TOLD {
                    told += 1;
                    tell(&format!("FAILED {}\n  {}\n", replay(story, &[mishap]), run.failures.join("\n  ")));
                }
            }
        }
        table.push((kind, row));
    }
    let sum = report(story, &table, every, begun.elapsed());
    assert!(sum.failed == 0, "{} of {} runs of {name} failed: {}", sum.failed, sum.run, list(&failed));
}

fn two() -> Terrain {
    Terrain { two: true, ..Terrain::default() }
}

/// Plays a story on a runtime of its own. A panic is a failure like any other.
pub fn perform(story: &'static Story, mishaps: &[Mishap], terrain: &Terrain, reference: Option<&Run>) -> Run {
    let played = catch_unwind(AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(story, mishaps, terrain, reference))
    }));
    played.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Run { failures: vec![format!("panicked: {}", words.unwrap_or_default())], ..Run::default() }
    })
}

/// The points of each kind, and whether a run there can differ from another.
fn points(alone: &Run, together: &Run) -> Vec<(Kind, Vec<(Point, bool)>)> {
    let of = |kind: Kind| {
        let run = if kind.needs_two() { together } else { alone };
        let mut points = Vec::new();
        for (place, call) in run.calls.iter().enumerate() {
            let Some(index) = call.index.filter(|_| kind.applies(call)) else { continue };
            let noop = call.is_write() && !call.changed();
            let at_once = place > 0 && run.calls[place - 1].time == call.time;
            let event = call.resource == "events";
            let needed = match kind {
                Kind::Api(_) | Kind::LeaderKilled | Kind::LeaderPaused => !noop,
                // Only time passes differently, or answers outside: two requests of one moment are one point.
                kind if kind.is_timed() => !at_once,
                // An Event is no part of the state that pods, writers and people act on.
                _ => !event && !noop,
            };
            points.push((Point::Call(index), needed));
        }
        for event in run.events.iter().filter(|event| kind.applies_to_event(event)) {
            points.push((Point::Watch(event.index), true));
        }
        (kind, points)
    };
    KINDS.iter().map(|(_, kind)| of(*kind)).filter(|(_, points)| !points.is_empty()).collect()
}

/// Which part of the points runs.
fn every() -> usize {
    let told = std::env::var("SEAWAY_FAULTS_EVERY").ok().and_then(|text| text.parse().ok());
    told.unwrap_or(if cfg!(debug_assertions) { 40 } else { 1 }).max(1)
}

fn report(story: &Story, table: &[(Kind, Row)], every: usize, took: Duration) -> Row {
    let mut text = String::new();
    let heads = ["points", "pruned", "run", "proved", "failed"];
    writeln!(text, "\n{:<34}{}", "story × fault", heads.map(|head| format!("{head:>8}")).concat()).unwrap();
    let mut line = |name: &str, row: Row| {
        let Row { points, pruned, run, proved, failed } = row;
        writeln!(text, "{name:<34}{points:>8}{pruned:>8}{run:>8}{proved:>8}{failed:>8}").unwrap();
    };
    let mut sum = Row::default();
    for (kind, row) in table {
        line(&format!("{} × {}", story.name, kind.name()), *row);
        sum += *row;
    }
    line(story.name, sum);
    let mut total = TOTAL.lock().unwrap();
    total.0 += 1;
    total.1 += sum;
    total.2 += took;
    line(&format!("all {} stories so far", total.0), total.1);
    if every > 1 {
        writeln!(text, "a sample: every {every}th point").unwrap();
    }
    let per_run = took.as_secs_f64() * 1000.0 / sum.run.max(1) as f64;
    writeln!(text, "{} took {:.1} s, {per_run:.0} ms a run", story.name, took.as_secs_f64()).unwrap();
    tell(&text);
    sum
}

/// Writes past the test runner, which would keep it from whoever reads along.
pub fn tell(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// The one command that tells a run again.
pub fn replay(story: &Story, mishaps: &[Mishap]) -> String {
    format!(
        "SEAWAY_FAULT='{}/{}' cargo test -p seaway-cli --test seaway faults::replay -- --nocapture",
        story.name,
        list(mishaps)
    )
}

fn list(mishaps: &[Mishap]) -> String {
    mishaps.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
