//! What one process remembers of a canary between two rounds.
//!
//! Nothing here is needed to be safe: all of it is lost in a restart, and the next process derives what it needs from
//! the status and the world. It saves asking twice, saying twice and hurrying where something keeps failing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use seaway_adapters::world::Fetched;
use seaway_core::question::{Answer, QuestionKey};
use tokio_util::task::AbortOnDropHandle;

use crate::key::CanaryKey;

/// Texts said that are remembered per canary, by hash: thousands of canaries must not cost megabytes of texts.
const SAID: usize = 128;

/// What is remembered of one canary.
#[derive(Default)]
pub(crate) struct Memory {
    /// Uid of the Canary all of it is about.
    uid: String,
    /// Answers that came back.
    pub(crate) answers: BTreeMap<QuestionKey, Answer>,
    /// Questions under way; dropping one stops it.
    pub(crate) asked: BTreeMap<QuestionKey, AbortOnDropHandle<()>>,
    /// When the first question of the present tick was asked.
    pub(crate) tick_began: Option<Timestamp>,
    /// Failed rounds in a row.
    pub(crate) failures: u32,
    /// Rounds in a row that wrote something.
    pub(crate) busy: u32,
    /// What a failing round complained about last.
    pub(crate) complaint: Option<String>,
    /// The route's generation that the data plane has taken up, and since when.
    settled: Option<(i64, Timestamp)>,
    /// Copies of configs that were written in this promotion. Never shown, never logged.
    pub(crate) copied: Fetched,
    said: VecDeque<u64>,
}

impl Memory {
    /// Since when the route is settled, given what a router reads now.
    pub(crate) fn settled_since(&mut self, settled: bool, generation: i64, now: Timestamp) -> Option<Timestamp> {
        self.settled = match self.settled {
            _ if !settled => None,
            Some((known, since)) if known == generation => Some((known, since)),
            _ => Some((generation, now)),
        };
        self.settled.map(|(_, since)| since)
    }

    /// Whether `once` is said for the first time; from now on it is not. The one heard longest ago is forgotten first.
    pub(crate) fn says(&mut self, once: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        once.hash(&mut hasher);
        let hash = hasher.finish();
        let known = self.said.iter().position(|said| *said == hash).and_then(|at| self.said.remove(at));
        self.said.push_back(hash);
        if self.said.len() > SAID {
            self.said.pop_front();
        }
        known.is_none()
    }

    /// Drops what no decision at this step will use: questions and answers of other steps, and of the many ticks a gate
    /// may stay closed all but the last two and the last consent.
    pub(crate) fn keep_only(&mut self, step: &str) {
        self.asked.retain(|key, _| key.step == step);
        self.answers.retain(|key, _| key.step == step);
        let newest = self.answers.keys().map(|key| key.tick).max().unwrap_or(0);
        let mut consents = BTreeSet::new();
        let mut kept = BTreeMap::new();
        while let Some((key, answer)) = self.answers.pop_last() {
            let consent = answer == Answer::Yes && consents.insert((key.revision.clone(), key.subject.clone()));
            if consent || key.tick == 0 || key.tick + 1 >= newest {
                kept.insert(key, answer);
            }
        }
        self.answers = kept;
    }

    /// The questions under way.
    pub(crate) fn under_way(&self) -> BTreeSet<QuestionKey> {
        self.asked.keys().cloned().collect()
    }
}

/// The memories of all canaries.
#[derive(Default)]
pub(crate) struct Memories(Mutex<BTreeMap<CanaryKey, Arc<Mutex<Memory>>>>);

impl Memories {
    /// The memory of `key`; a fresh one if the Canary of that name is another one than before.
    pub(crate) fn of(&self, key: &CanaryKey, uid: &str) -> Arc<Mutex<Memory>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = all.entry(key.clone()).or_default().clone();
        let mut known = lock(&memory);
        if known.uid != uid {
            *known = Memory { uid: uid.to_owned(), ..Memory::default() };
        }
        drop(known);
        memory
    }

    /// An answer came back; it is kept if somebody still waits for it.
    pub(crate) fn answered(&self, key: &CanaryKey, question: QuestionKey, answer: Answer) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = all.get(key) {
            let mut memory = lock(memory);
            if memory.asked.remove(&question).is_some() {
                memory.answers.insert(question, answer);
            }
        }
    }

    /// The canary is gone: its questions stop.
    pub(crate) fn forget(&self, key: &CanaryKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// The memory behind its lock. A round that panicked may have left it half changed; nothing in it matters for safety.
pub(crate) fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use seaway_core::question::Subject;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn question(step: &str, tick: u64) -> QuestionKey {
        QuestionKey { revision: "r".into(), step: step.into(), tick, subject: Subject::Hook(0) }
    }

    #[test]
    fn a_route_is_settled_since_its_generation_was_first_seen_settled() {
        let mut memory = Memory::default();
        assert_eq!(memory.settled_since(false, 1, at(1)), None);
        assert_eq!(memory.settled_since(true, 1, at(2)), Some(at(2)));
        assert_eq!(memory.settled_since(true, 1, at(3)), Some(at(2)));
        assert_eq!(memory.settled_since(true, 2, at(4)), Some(at(4)), "a new generation settles anew");
        assert_eq!(memory.settled_since(false, 2, at(5)), None);
        assert_eq!(memory.settled_since(true, 2, at(6)), Some(at(6)));
    }

    #[tokio::test]
    async fn an_answer_nobody_waits_for_is_dropped() {
        let memories = Memories::default();
        let key = CanaryKey::new("test", "podinfo");
        let memory = memories.of(&key, "u1");
        let never = || AbortOnDropHandle::new(tokio::spawn(std::future::pending()));
        lock(&memory).asked.insert(question("a", 1), never());
        lock(&memory).asked.insert(question("b", 1), never());
        memories.answered(&key, question("a", 1), Answer::Yes);
        memories.answered(&key, question("c", 1), Answer::Yes);
        assert_eq!(lock(&memory).answers.len(), 1);
        lock(&memory).keep_only("b");
        memories.answered(&key, question("a", 1), Answer::Yes);
        assert!(lock(&memory).answers.is_empty() && lock(&memory).asked.len() == 1);
        let reborn = memories.of(&key, "u2");
        assert!(lock(&reborn).asked.is_empty(), "another Canary of the same name");
    }

    #[test]
    fn a_gate_that_stays_closed_for_a_week_costs_no_memory() {
        let mut memory = Memory::default();
        for tick in 1..=60_000 {
            let answer = if tick == 7 { Answer::Yes } else { Answer::No("status 403 Forbidden".into()) };
            memory.answers.insert(question("a", tick), answer);
            memory.keep_only("a");
        }
        let ticks: Vec<u64> = memory.answers.keys().map(|key| key.tick).collect();
        assert_eq!(ticks, [7, 59_999, 60_000]);
    }

    #[test]
    fn a_text_is_said_once() {
        let mut memory = Memory::default();
        assert!(memory.says("a") && !memory.says("a"));
        (0..SAID).for_each(|n| assert!(memory.says(&n.to_string())));
        assert_eq!(memory.said.len(), SAID, "bounded");
    }
}
