//! When each canary has its next round.
//!
//! The [`Queue`] promises three things: a canary never has two rounds at once; a wake that comes while a round runs
//! is not lost but leads to one more round; and a timer never fires before its time. It is plain data driven by the
//! operator's loop: it knows no clock, starts no task and does not know what a round does. All its times are passed time
//! (see `clock`), so that a clock that is set back stalls nobody and one that is set forward hurries nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::key::CanaryKey;
use crate::zoo;

/// Spread of timers: at most this part of the waiting time …
const JITTER_PART: u32 = 20;
/// … and at most this long.
const JITTER_MOST: Duration = Duration::from_secs(1);

/// Rounds that are due, planned and running.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    slots: BTreeMap<CanaryKey, Slot>,
    /// Every slot that waits for a time, earliest first.
    planned: BTreeSet<(Duration, CanaryKey)>,
}

#[derive(Debug, Default)]
struct Slot {
    running: bool,
    /// The next round; while one runs, the one after it.
    due: Option<Duration>,
}

impl Queue {
    /// Asks for a round at `at`; an earlier one that is already planned stays.
    pub(crate) fn wake(&mut self, key: &CanaryKey, at: Duration) {
        let slot = self.slots.entry(key.clone()).or_default();
        if slot.due.is_some_and(|due| due <= at) {
            return;
        }
        let before = slot.due.replace(at);
        if !slot.running || zoo::STARTS_A_SECOND_ROUND {
            if let Some(before) = before {
                self.planned.remove(&(before, key.clone()));
            }
            self.planned.insert((at, key.clone()));
        }
    }

    /// The next canary whose time has come; its round counts as running until [`Queue::finish`].
    pub(crate) fn start(&mut self, now: Duration) -> Option<CanaryKey> {
        if self.planned.first().is_none_or(|(due, _)| *due > now) {
            return None;
        }
        let (_, key) = self.planned.pop_first()?;
        let slot = self.slots.entry(key.clone()).or_default();
        slot.running = true;
        slot.due = None;
        Some(key)
    }

    /// The round of `key` is over; the next one is at `next`, or at a wake that came meanwhile, whichever is earlier.
    pub(crate) fn finish(&mut self, key: &CanaryKey, next: Option<Duration>) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        slot.running = false;
        slot.due = [slot.due, next].into_iter().flatten().min();
        match slot.due {
            Some(due) => {
                self.planned.insert((due, key.clone()));
            }
            // Nothing is remembered of a canary that only a change can wake.
            None => {
                self.slots.remove(key);
            }
        }
    }

    /// When the next round is due, if any is planned.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.planned.first().map(|(due, _)| *due)
    }
}

/// Spreads timers so that canaries created together do not tick together for ever: `at`, or a little later. The same
/// seed, canary and times give the same answer; the answer is never before `at`.
pub(crate) fn spread(seed: u64, key: &CanaryKey, now: Duration, at: Duration) -> Duration {
    let most = (at.saturating_sub(now) / JITTER_PART).min(JITTER_MOST);
    let salt = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
    at.saturating_add(most.mul_f64(fraction(seed, key, salt)))
}

/// How long to wait after the `failures`th failure in a row: doubling from `first`, never more than `most`, with up to
/// a quarter added so that many canaries hit by one outage do not come back at once.
pub(crate) fn backoff(seed: u64, key: &CanaryKey, failures: u32, first: Duration, most: Duration) -> Duration {
    let doubled = first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(20))).min(most);
    doubled.mul_f64(1.0 + fraction(seed, key, u64::from(failures)) / 4.0)
}

/// A number in 0..1 that depends on nothing but its arguments.
fn fraction(seed: u64, key: &CanaryKey, salt: u64) -> f64 {
    let bytes = key.namespace.bytes().chain([0]).chain(key.name.bytes());
    let hash = bytes.fold(mix(seed ^ salt), |hash, byte| mix(hash ^ u64::from(byte)));
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}

/// Spreads every input bit over the whole word (the finaliser of SplitMix64).
fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    fn key(name: &str) -> CanaryKey {
        CanaryKey::new("test", name)
    }

    #[test]
    fn a_canary_never_has_two_rounds_at_once_and_no_wake_is_lost() {
        let mut queue = Queue::default();
        queue.wake(&key("a"), at(1));
        queue.wake(&key("b"), at(1));
        assert_eq!(queue.start(at(1)), Some(key("a")));
        queue.wake(&key("a"), at(1));
        assert_eq!(queue.start(at(1)), Some(key("b")));
        assert_eq!(queue.start(at(1)), None, "a is running");
        queue.finish(&key("a"), Some(at(60)));
        assert_eq!(queue.start(at(1)), Some(key("a")), "the wake that came while it ran");
        queue.finish(&key("a"), None);
        queue.finish(&key("b"), None);
        assert_eq!(queue.next(), None);
        assert!(queue.slots.is_empty(), "a settled canary costs nothing");
    }

    #[test]
    fn the_earlier_of_two_wakes_wins() {
        let mut queue = Queue::default();
        queue.wake(&key("a"), at(60));
        queue.wake(&key("a"), at(90));
        assert_eq!(queue.next(), Some(at(60)));
        queue.wake(&key("a"), at(5));
        assert_eq!(queue.next(), Some(at(5)));
        assert_eq!(queue.start(at(4)), None, "never early");
        assert_eq!(queue.start(at(5)), Some(key("a")));
        queue.finish(&key("a"), Some(at(60)));
        assert_eq!((queue.start(at(59)), queue.next()), (None, Some(at(60))));
    }

    #[test]
    fn timers_are_spread_but_never_early() {
        let spread_of = |name: &str| spread(7, &key(name), at(0), at(60));
        let times: BTreeSet<_> = (0..100).map(|n| spread_of(&format!("canary-{n}"))).collect();
        assert!(times.len() > 90, "spread out: {}", times.len());
        assert!(times.iter().all(|time| *time >= at(60) && *time <= at(61)));
        assert_eq!(spread_of("a"), spread_of("a"), "the same seed gives the same time");
        assert!(spread(7, &key("a"), at(60), at(60)) == at(60), "what is due now is due now");
    }

    #[test]
    fn backoff_doubles_up_to_its_limit() {
        let (first, most) = (Duration::from_secs(1), Duration::from_secs(60));
        for (failures, least) in [(1, 1), (2, 2), (3, 4), (7, 60), (400, 60)] {
            let wait = backoff(7, &key("a"), failures, first, most);
            assert!(wait >= Duration::from_secs(least) && wait <= Duration::from_secs(least * 5 / 4 + 1), "{wait:?}");
        }
    }
}
