//! Every point of a story times every fault that makes sense there.
//!
//! Each story is told in a process of its own, which [forks](super::forks) at every point. What is left out because it
//! cannot differ from another run is counted as pruned, never silently dropped. `SEAWAY_FAULTS_EVERY=40` takes a sample,
//! evenly spread and always the same, and says so.

use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use seaway_drydock::fault::Point;
use serde::{Deserialize, Serialize};

use super::forks::{self, Outcome, Outcomes, Wanted};
use super::ground::Terrain;
use super::mishap::{KINDS, Kind, Mishap};
use super::stage::{Fate, Run, play};
use super::story::{STORIES, Story, find};
use crate::harness::alone;

/// One row of the table.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
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
static TOTAL: Mutex<(usize, Row)> = Mutex::new((0, Row { points: 0, pruned: 0, run: 0, proved: 0, failed: 0 }));

/// One more rollout is told after every so manieth run, another point with every kind: it costs as much as the story.
const PROOFS: usize = 3;

/// So many runs all stories have together, or somebody lost some.
const LEAST: usize = 8_000;

/// Every so manieth run is told from its beginning as well.
const TOLD_WHOLE: usize = 100;

/// Failures that are told in full; of the others only the command.
const TOLD: usize = 40;

/// What the process of a story says before its row of sums.
const SUM: &str = "sum of all faults: ";

/// Runs one story with every fault at every point, in a process of its own.
pub fn story(name: &str) {
    let story = find(name).unwrap_or_else(|| panic!("no story {name}"));
    let Some(told) = alone(&format!("faults::{name}")) else { return all_faults(story) };
    let words = String::from_utf8_lossy(&told.stdout);
    let sum = words.lines().find_map(|line| line.split_once(SUM)).map(|(_, sum)| serde_json::from_str(sum).unwrap());
    if let Some(sum) = sum {
        let mut total = TOTAL.lock().unwrap();
        total.0 += 1;
        total.1 += sum;
        tell(&line(&format!("all {} stories so far", total.0), total.1));
        let whole = total.0 == STORIES.len() && every() == 1;
        assert!(!whole || total.1.run >= LEAST, "only {} runs of all stories", total.1.run);
    }
    assert!(told.status.success() && sum.is_some(), "{name}: {}\n{words}", told.status);
}

fn all_faults(story: &'static Story) {
    let begun = Instant::now();
    let every = every();
    let terrain = |two| Terrain { two, ..Terrain::default() };
    let crews = [false, true].map(|two| perform(story, &Fate::Mishaps(&[]), &terrain(two), None));
    for (who, run) in ["alone", "with a standby"].iter().zip(&crews) {
        assert!(run.failures.is_empty(), "{} without faults, {who}: {:#?}", story.name, run.failures);
    }
    let [alone, together] = &crews;
    let mut table: Vec<(Kind, Row)> = Vec::new();
    let mut wanted = [Wanted::new(), Wanted::new()];
    for (number, (kind, points)) in points(alone, together).into_iter().enumerate() {
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
            wanted[usize::from(kind.needs_two())].entry(at).or_default().push((kind, proves));
        }
        table.push((kind, row));
    }
    let mut failed = Vec::new();
    for (two, (wanted, reference)) in wanted.iter().zip(&crews).enumerate() {
        let terrain = Terrain { proves: false, ..terrain(two == 1) };
        for (mishap, Outcome { failures, struck, .. }) in tell_all(story, wanted, &terrain, reference) {
            let row = table.iter_mut().find(|(kind, _)| *kind == mishap.kind).map(|(_, row)| row).unwrap();
            if !struck {
                (row.run, row.pruned) = (row.run - 1, row.pruned + 1);
            }
            if failures.is_empty() {
                continue;
            }
            row.failed += 1;
            if failed.len() < TOLD {
                tell(&format!("FAILED {}\n  {}\n", replay(story, &[mishap]), failures.join("\n  ")));
            }
            failed.push(mishap);
        }
    }
    let sum = report(story, &table, every, begun.elapsed());
    println!("{SUM}{}", serde_json::to_string(&sum).unwrap());
    assert!(failed.is_empty(), "{} of {} runs of {} failed: {}", sum.failed, sum.run, story.name, list(&failed));
}

/// Tells a story once for all the faults that are wanted, and answers how each of them ended.
fn tell_all(story: &'static Story, wanted: &Wanted, terrain: &Terrain, reference: &Run) -> Vec<(Mishap, Outcome)> {
    let outcomes = Outcomes::default();
    let run = perform(story, &Fate::Forks(wanted, &outcomes), terrain, Some(reference));
    assert!(run.failures.is_empty(), "{} without faults: {:#?}", story.name, run.failures);
    let mut outcomes = std::mem::take(&mut *outcomes.lock().unwrap());
    let all: usize = wanted.values().map(Vec::len).sum();
    assert_eq!(outcomes.len(), all, "{}: points that were never reached", story.name);
    for (mishap, outcome) in outcomes.iter_mut().step_by(TOLD_WHOLE) {
        let proves = wanted[&mishap.at].iter().any(|(kind, proves)| *kind == mishap.kind && *proves);
        let terrain = Terrain { proves, ..*terrain };
        let whole = perform(story, &Fate::Mishaps(&[*mishap]), &terrain, Some(reference));
        if forks::print(&whole) != outcome.print {
            outcome.failures.push(format!("told from the beginning it goes another way: {:?}", whole.failures));
        }
    }
    outcomes
}

/// Plays a story on a runtime of its own. A panic is a failure like any other.
pub fn perform(story: &'static Story, fate: &Fate<'_>, terrain: &Terrain, reference: Option<&Run>) -> Run {
    let played = catch_unwind(AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(story, fate, terrain, reference))
    }));
    let run = played.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Run { failures: vec![format!("panicked: {}", words.unwrap_or_default())], ..Run::default() }
    });
    forks::report(&run);
    run
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
    KINDS.iter().map(|(_, kind)| of(*kind)).collect()
}

/// Which part of the points runs.
fn every() -> usize {
    let read = |text: String| text.parse().expect("SEAWAY_FAULTS_EVERY is a number");
    let told = std::env::var("SEAWAY_FAULTS_EVERY").ok().map(read);
    told.unwrap_or(1).max(1)
}

fn line(name: &str, row: Row) -> String {
    let Row { points, pruned, run, proved, failed } = row;
    format!("{name:<34}{points:>8}{pruned:>8}{run:>8}{proved:>8}{failed:>8}\n")
}

fn report(story: &Story, table: &[(Kind, Row)], every: usize, took: Duration) -> Row {
    let mut text = String::new();
    let heads = ["points", "pruned", "run", "proved", "failed"];
    writeln!(text, "\n{:<34}{}", "story × fault", heads.map(|head| format!("{head:>8}")).concat()).unwrap();
    let mut sum = Row::default();
    for (kind, row) in table {
        text += &line(&format!("{} × {}", story.name, kind.name()), *row);
        sum += *row;
    }
    text += &line(story.name, sum);
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
        "SEAWAY_FAULT='{}/{}' cargo test --workspace --test seaway faults::replay -- --nocapture",
        story.name,
        list(mishaps)
    )
}

fn list(mishaps: &[Mishap]) -> String {
    mishaps.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
