//! What came of all sequences.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;

use super::explained::{EXPLAINED, explanation};
use super::trial::Verdict;

/// How many kinds of differences are shown.
const SHOWN: usize = 400;
/// How often it says how far it is.
const PROGRESS_EVERY: usize = 500;

#[derive(Default)]
struct Counts {
    sequences: usize,
    requests: usize,
    /// What differed, and did not when it was played again and the real server said something else: a seed, and what.
    once_only: BTreeMap<u64, String>,
    explained: BTreeMap<usize, usize>,
    /// By signature: how often, and a seed.
    unexplained: BTreeMap<String, (usize, u64)>,
    failed: BTreeSet<u64>,
}

#[derive(Default)]
pub struct Report(Mutex<Counts>);

impl Report {
    pub fn add(&self, seed: u64, requests: usize, verdict: Verdict) {
        let mut counts = self.0.lock().unwrap();
        counts.sequences += 1;
        counts.requests += requests;
        if let Some(difference) = verdict.excused.first() {
            counts.once_only.insert(seed, difference.signature() + " at " + &difference.field);
        }
        if let Some(difference) = verdict.wavering.first() {
            let signature = format!("now and then, at {}: {}", difference.field, difference.signature());
            counts.failed.insert(seed);
            counts.unexplained.entry(signature).or_insert((0, seed)).0 += 1;
        }
        let (mut first, mut named) = (None, BTreeSet::new());
        for difference in verdict.found {
            if let Some(entry) = explanation(&difference) {
                *counts.explained.entry(entry).or_default() += 1;
            } else if *first.get_or_insert(difference.step.id) == difference.step.id {
                // What follows the first that differs often follows from it.
                counts.failed.insert(seed);
                if named.insert(difference.step.id) {
                    counts.unexplained.entry(difference.signature()).or_insert((0, seed)).0 += 1;
                }
            }
        }
        if counts.sequences.is_multiple_of(PROGRESS_EVERY) {
            eprintln!("{} sequences compared, {} differ", counts.sequences, counts.failed.len());
        }
    }

    /// Sequences in which the real server contradicted itself: more than a few, and they ask for what nobody can know.
    pub fn once_only(&self) -> (usize, usize) {
        let counts = self.0.lock().unwrap();
        (counts.once_only.len(), counts.sequences)
    }

    pub fn failed(&self) -> BTreeSet<u64> {
        self.0.lock().unwrap().failed.clone()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0.lock().unwrap();
        let mut unexplained: Vec<_> = counts.unexplained.iter().collect();
        unexplained.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for (signature, (count, seed)) in unexplained.iter().take(SHOWN) {
            writeln!(out, "{count:>5} × (seed {seed}) {signature}")?;
        }
        for (entry, count) in &counts.explained {
            writeln!(out, "{count:>5} × explained: {}", EXPLAINED[*entry].sentence)?;
        }
        for (seed, signature) in &counts.once_only {
            writeln!(out, "   once (seed {seed}) {signature}")?;
        }
        let explained: usize = counts.explained.values().sum();
        writeln!(
            out,
            "{} sequences, {} requests: {} sequences differ in {} unexplained ways; {explained} differences are explained; in {} \
             sequences the real server contradicted itself",
            counts.sequences,
            counts.requests,
            counts.failed.len(),
            counts.unexplained.len(),
            counts.once_only.len(),
        )
    }
}
