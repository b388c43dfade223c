//! One telling of a story for all its faults: at every point the process forks, the child goes on with one fault there
//! and reports how that ended, the parent goes on without.
//!
//! A run then costs what comes after its fault, not the cluster, the adoption and the way to that point. It is the same
//! run: a story is deterministic, and [`enumerate`](super::enumerate) tells some of them from the beginning as well and
//! compares. A fork takes only the calling thread along, so a telling has a process of its own, with no other thread at
//! work; and in memory alone a cluster has no connections that two processes would share.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{PipeWriter, Read, Write};
use std::sync::{Arc, Mutex};

use fork::{Fork, fork, waitpid};
use rustix::process::{Signal, getpid, kill_process};
use seaway_drydock::fault::Point;
use serde::{Deserialize, Serialize};

use super::mishap::{Kind, Mishap};
use super::plot::Plot;
use super::stage::Run;

/// Which faults are wanted at which point, and which of these runs prove that the next rollout works.
pub type Wanted = BTreeMap<Point, Vec<(Kind, bool)>>;

/// What a child says of its run.
#[derive(Serialize, Deserialize)]
pub struct Outcome {
    /// What went wrong.
    pub failures: Vec<String>,
    /// Whether the fault could do anything at its point.
    pub struck: bool,
    /// Two runs that asked and saw the same have the same print.
    pub print: u64,
}

/// What the children said, in the order in which they ran.
pub type Outcomes = Arc<Mutex<Vec<(Mishap, Outcome)>>>;

/// Where this process reports, if it is a child.
static REPORT: Mutex<Option<PipeWriter>> = Mutex::new(None);

/// Forks at every wanted point of a run that is about to begin.
pub fn split(wanted: &Wanted, plot: &Plot, outcomes: &Outcomes) {
    for (at, kinds) in wanted.clone() {
        let (this, outcomes) = (plot.clone(), outcomes.clone());
        plot.at(at, move || {
            // A child has its fault already.
            if REPORT.lock().unwrap().is_some() {
                return;
            }
            for (kind, proves) in kinds {
                let mishap = Mishap { at, kind };
                let Some(outcome) = follow() else {
                    this.prove(proves);
                    this.place(mishap);
                    return;
                };
                outcomes.lock().unwrap().push((mishap, outcome));
            }
        });
    }
}

/// Forks. The parent waits for the child's outcome; in the child there is none.
fn follow() -> Option<Outcome> {
    let (mut reader, writer) = std::io::pipe().unwrap();
    match fork().unwrap() {
        Fork::Child => {
            *REPORT.lock().unwrap() = Some(writer);
            None
        }
        Fork::Parent(child) => {
            drop(writer);
            let mut report = Vec::new();
            reader.read_to_end(&mut report).unwrap();
            waitpid(child).unwrap();
            let silent = |error| Outcome {
                failures: vec![format!("the run died without a word: {error}")],
                struck: true,
                print: 0,
            };
            Some(serde_json::from_slice(&report).unwrap_or_else(silent))
        }
    }
}

/// Ends a child with its report; to anybody else nothing happens.
pub fn report(run: &Run) {
    let Some(mut writer) = REPORT.lock().unwrap().take() else { return };
    let outcome = Outcome { failures: run.failures.clone(), struck: run.struck > 0, print: print(run) };
    writer.write_all(&serde_json::to_vec(&outcome).unwrap()).unwrap();
    drop(writer);
    // At once: everything else in this memory, unwritten output included, is a copy of the parent's.
    kill_process(getpid(), Signal::KILL).unwrap();
}

/// What a run asked and saw, in one number.
pub fn print(run: &Run) -> u64 {
    let mut hasher = DefaultHasher::new();
    for call in &run.calls {
        (call.time.as_nanosecond(), call.digest, call.code).hash(&mut hasher);
    }
    for event in &run.events {
        (event.time.as_nanosecond(), &event.name, &event.resource_version).hash(&mut hasher);
    }
    (run.asked, &run.failures).hash(&mut hasher);
    hasher.finish()
}
