//! Plays a script again where the answers differ, to tell what is different from what is only a matter of time.
//!
//! A real server may be slow, or show a cache that has not heard of the last write. Then it contradicts itself when it is
//! asked again, and only then is a difference that went away forgiven. Where drydock changed its mind alone, that is a fault
//! like any other.

use serde_json::Value;

use super::compare::Difference;
use super::explained::explanation;
use super::script::{Body, Step};
use super::servers::Servers;

/// How often a difference must be seen before it counts: a real server may be slow, never wrong.
const SIGHTINGS: usize = 4;
/// The same where chance decides: in which order two generated names come, or whether a cache has heard of a write. As often
/// may a real server be asked before it counts as sure of what it says.
const SIGHTINGS_BY_CHANCE: usize = 12;

/// What both said to one playing of a script.
pub struct Try {
    /// The masked answers of the real server, one for each step.
    pub real: Vec<Value>,
    pub found: Vec<Difference>,
}

impl Try {
    fn unexplained(&self) -> impl Iterator<Item = &Difference> {
        self.found.iter().filter(|difference| explanation(difference).is_none())
    }
}

/// What came of a script.
#[derive(Default)]
pub struct Verdict {
    /// What differed in the last try.
    pub found: Vec<Difference>,
    /// What differed once, where the real server said something else when it was asked again.
    pub excused: Vec<Difference>,
    /// What differed once, where it did not: drydock has said two things.
    pub wavering: Vec<Difference>,
}

/// Plays a script until it is clear what differs.
pub async fn judge(servers: &Servers, steps: &[Step]) -> Verdict {
    let sightings = if by_chance(steps) { SIGHTINGS_BY_CHANCE } else { SIGHTINGS };
    let mut tries: Vec<Try> = Vec::new();
    loop {
        tries.push(servers.once(steps).await);
        let differing = tries.iter().filter(|played| played.unexplained().next().is_some()).count();
        let agreed = differing < tries.len();
        if !agreed && tries.len() < sightings {
            continue;
        }
        let (excused, wavering): (Vec<_>, Vec<_>) = tries
            .iter()
            .flat_map(Try::unexplained)
            .cloned()
            .partition(|difference| contradicts_itself(&tries, steps, difference));
        if !agreed {
            let found = tries.pop().map(|last| last.found).unwrap_or_default();
            return Verdict { found, ..Verdict::default() };
        }
        if wavering.is_empty() || tries.len() >= SIGHTINGS_BY_CHANCE {
            let found = tries.into_iter().flat_map(|played| played.found);
            let found = found.filter(|difference| explanation(difference).is_some()).collect();
            return Verdict { found, excused, wavering };
        }
    }
}

/// Whether the real server has given two answers to the step that a difference is about.
fn contradicts_itself(tries: &[Try], steps: &[Step], difference: &Difference) -> bool {
    let Some(at) = steps.iter().position(|step| step.id == difference.step.id) else { return false };
    tries.iter().any(|played| played.real[at] != tries[0].real[at])
}

fn by_chance(steps: &[Step]) -> bool {
    let generated = |step: &&Step| matches!(&step.body, Body::Text(text) if text.contains("generateName"));
    // Who is content with what is not too old may be shown a cache that has not heard of the last write.
    // One of a kind that is new may not go back to when it was.
    let stale = |step: &Step| {
        let fresh = step.path.contains("conformance.seaway.dev");
        step.method == "GET" && step.path.contains("resourceVersion=") && (fresh || !step.is_watch())
    };
    steps.iter().filter(generated).count() > 1 || steps.iter().any(stale)
}
