//! Random runs: a story, a terrain and two to eight faults, all drawn from one seed.
//!
//! Several faults together may lead to other ends than each alone, so a run may rest at any end the story can have, and what
//! one of them excuses (errors of users while pods come back, a write that was decided before somebody's edit was heard of)
//! is excused for as long as all of them last together. The silence, the preconditions and the rollout afterwards are held to
//! the same as ever. `make swarm RUNS=… SEED=…` runs many; a run that fails prints its seed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use seaway_drydock::Seed;
use seaway_drydock::fault::Point;

use super::enumerate::{perform, tell};
use super::ground::Terrain;
use super::mishap::{KINDS, Kind, Mishap};
use super::stage::{Fate, Run};
use super::story::{STORIES, Story};

/// Everything a seed decides.
pub struct Draw {
    pub story: &'static Story,
    pub terrain: Terrain,
    pub mishaps: Vec<Mishap>,
}

/// Stories without faults, alone and with a standby: how long they take and how many points they have.
pub struct References(BTreeMap<(&'static str, bool), Run>);

impl References {
    /// Plays all of them once.
    pub fn record() -> Self {
        let mut runs = BTreeMap::new();
        for story in &STORIES {
            for two in [false, true] {
                runs.insert(
                    (story.name, two),
                    perform(story, &Fate::Mishaps(&[]), &Terrain { two, ..Terrain::default() }, None),
                );
            }
        }
        Self(runs)
    }

    fn of(&self, draw: &Draw) -> &Run {
        &self.0[&(draw.story.name, draw.terrain.two)]
    }
}

impl Draw {
    /// What a seed stands for.
    pub fn of(number: u64, references: &References) -> Self {
        let seed = Seed::new(number).fork("swarm");
        let story = &STORIES[seed.below(STORIES.len() as u64) as usize];
        let count = 2 + seed.below(7);
        let kinds: Vec<Kind> = (0..count).map(|_| KINDS[seed.below(KINDS.len() as u64) as usize].1).collect();
        let two = kinds.iter().any(|kind| kind.needs_two()) || seed.below(4) == 0;
        let terrain = Terrain {
            seed: number,
            replicas: 1 + seed.below(3) as u32,
            pause: Duration::from_millis(200 + 100 * seed.below(9)),
            two,
            proves: true,
            traced: false,
        };
        let reference = &references.0[&(story.name, two)];
        // A little beyond the end too: what goes wrong makes stories longer.
        let within = |points: usize| seed.below(points as u64 * 5 / 4 + 1);
        let place = |kind: Kind| {
            let at_events = reference.events.iter().any(|event| kind.applies_to_event(event));
            let at_calls = !at_events || reference.calls.iter().any(|call| kind.applies(call)) && seed.below(2) == 0;
            let at = if at_calls {
                Point::Call(within(reference.calls.len()))
            } else {
                Point::Watch(within(reference.events.len()))
            };
            Mishap { at, kind }
        };
        let mishaps = kinds.into_iter().map(place).collect();
        Self { story, terrain, mishaps }
    }

    /// Plays it.
    pub fn play(&self, references: &References, traced: bool) -> Run {
        let terrain = Terrain { traced, ..self.terrain };
        perform(self.story, &Fate::Mishaps(&self.mishaps), &terrain, Some(references.of(self)))
    }

    /// In words.
    pub fn describe(&self) -> String {
        let mishaps: Vec<String> = self.mishaps.iter().map(ToString::to_string).collect();
        let Terrain { replicas, pause, two, .. } = self.terrain;
        let crew = if two { "two operators" } else { "one operator" };
        format!("{} with {}; {replicas} pods, a request every {pause:?}, {crew}", self.story.name, mishaps.join(", "))
    }
}

/// Runs `count` seeds from `first` on, on all cores.
pub fn swarm(first: u64, count: u64) {
    let begun = Instant::now();
    let references = References::record();
    let (next, summary) = (AtomicU64::new(0), Mutex::new(Summary::default()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let done = next.fetch_add(1, Ordering::Relaxed);
                    if done >= count {
                        return;
                    }
                    let (number, draw) = (first + done, Draw::of(first + done, &references));
                    let run = draw.play(&references, false);
                    summary.lock().unwrap().add(number, &draw, &run);
                    if (done + 1) % 100 == 0 {
                        let failed = summary.lock().unwrap().failed.len();
                        tell(&format!(
                            "swarm: {} of {count} runs, {failed} failed, {:.0} s\n",
                            done + 1,
                            begun.elapsed().as_secs_f64()
                        ));
                    }
                }
            });
        }
    });
    let summary = summary.into_inner().unwrap();
    tell(&summary.show(begun.elapsed()));
    assert!(summary.failed.is_empty(), "seeds that failed: {:?}", summary.failed);
}

#[derive(Default)]
struct Summary {
    runs: u64,
    planned: usize,
    struck: usize,
    asked: u64,
    stories: BTreeMap<&'static str, u64>,
    failed: Vec<u64>,
}

impl Summary {
    fn add(&mut self, number: u64, draw: &Draw, run: &Run) {
        self.runs += 1;
        self.planned += draw.mishaps.len();
        self.struck += run.struck;
        self.asked += run.asked;
        *self.stories.entry(draw.story.name).or_default() += 1;
        if !run.failures.is_empty() {
            self.failed.push(number);
            tell(&format!("FAILED {}\n  {}\n  {}\n", replay(number), draw.describe(), run.failures.join("\n  ")));
        }
    }

    fn show(&self, took: Duration) -> String {
        let mut text = String::from("\nswarm\n");
        for (story, runs) in &self.stories {
            writeln!(text, "  {story:<24}{runs:>6} runs").unwrap();
        }
        let Self { runs, planned, struck, asked, failed, .. } = self;
        writeln!(text, "  {runs} runs, {struck} faults of {planned} planned, {asked} users' requests").unwrap();
        writeln!(text, "  {} failed, {:.0} s", failed.len(), took.as_secs_f64()).unwrap();
        text
    }
}

/// The command that tells a seed again.
fn replay(number: u64) -> String {
    format!("SEAWAY_SWARM_SEED={number} cargo test --workspace --test seaway faults::swarm_replay -- --nocapture")
}
