//! The keyed work queue that drives every controller: wakes, timers and retries.
//!
//! A key waits in the queue at most once, and one worker takes keys in the order they came, so a run is the same each
//! time. Nothing polls: an empty queue sleeps until a listener adds a key or a timer of the simulated clock is due.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;

use super::objects::Key;
use crate::Clock;

/// First and longest wait between retries of a failing key, in simulated time.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LONGEST_RETRY: Duration = Duration::from_secs(300);

/// How often a key is looked at without any time passing. A round takes no simulated time, so controllers that undo
/// each other's work, because one of them waits for its watch to come back, would never let the clock go on.
const AT_ONCE: u32 = 100;

#[derive(Default)]
struct State {
    waiting: VecDeque<Key>,
    queued: BTreeSet<Key>,
    timers: BTreeMap<Key, Timestamp>,
    failures: BTreeMap<Key, u32>,
    /// How often each key was looked at in the present instant.
    rounds: BTreeMap<Key, u32>,
    instant: Timestamp,
}

impl State {
    /// Whether a key has had its share of this instant.
    fn is_restless(&mut self, key: &Key, now: Timestamp) -> bool {
        if self.instant != now {
            self.instant = now;
            self.rounds.clear();
        }
        let rounds = self.rounds.entry(key.clone()).or_default();
        *rounds += 1;
        *rounds > AT_ONCE
    }
}

/// Keys that need a look. Clones share the queue.
#[derive(Clone)]
pub(crate) struct Queue {
    clock: Clock,
    state: Arc<Mutex<State>>,
    wake: Arc<Notify>,
}

/// A level-triggered controller: looks at one key and makes the world agree with it.
pub(crate) trait Reconcile: Send + Sync + 'static {
    /// For logs.
    const NAME: &'static str;

    /// Brings one object nearer to what it asks for; answers when to look again although nothing changed.
    fn reconcile(&self, key: &Key) -> impl Future<Output = kube::Result<Option<Timestamp>>> + Send;
}

impl Queue {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, state: Arc::default(), wake: Arc::default() }
    }

    /// Wakes a key now.
    pub(crate) fn add(&self, key: Key) {
        let mut state = self.lock();
        if state.queued.insert(key.clone()) {
            state.waiting.push_back(key);
            self.wake.notify_one();
        }
    }

    /// Runs a controller over the queue for ever, one key at a time.
    pub(crate) async fn drive<C: Reconcile>(self, controller: C) {
        loop {
            let key = self.next().await;
            match controller.reconcile(&key).await {
                Ok(again) => self.done(&key, again),
                Err(error) => {
                    tracing::debug!(controller = C::NAME, %key, %error, "will try again");
                    self.failed(key);
                }
            }
        }
    }

    async fn next(&self) -> Key {
        loop {
            let due = {
                let mut state = self.lock();
                let now = self.clock.now();
                fire_timers(&mut state, now);
                if let Some(key) = state.waiting.pop_front() {
                    state.queued.remove(&key);
                    if state.is_restless(&key, now) {
                        state.timers.insert(key, now + FIRST_RETRY);
                        continue;
                    }
                    // The run that starts now decides anew when to look again.
                    state.timers.remove(&key);
                    return key;
                }
                state.timers.values().min().copied()
            };
            match due {
                Some(due) => {
                    tokio::select! {
                        biased;
                        () = self.wake.notified() => {}
                        () = self.clock.sleep_until(due) => {}
                    }
                }
                None => self.wake.notified().await,
            }
        }
    }

    fn done(&self, key: &Key, again: Option<Timestamp>) {
        let mut state = self.lock();
        state.failures.remove(key);
        if let Some(when) = again {
            state.timers.insert(key.clone(), when);
        }
    }

    fn failed(&self, key: Key) {
        let mut state = self.lock();
        let failures = state.failures.entry(key.clone()).or_default();
        let wait = FIRST_RETRY.saturating_mul(1 << (*failures).min(20)).min(LONGEST_RETRY);
        *failures += 1;
        let when = self.clock.now() + wait;
        state.timers.insert(key, when);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fire_timers(state: &mut State, now: Timestamp) {
    let mut due: Vec<_> =
        state.timers.iter().filter(|(_, when)| **when <= now).map(|(key, when)| (*when, key.clone())).collect();
    due.sort();
    for (_, key) in due {
        state.timers.remove(&key);
        if state.queued.insert(key.clone()) {
            state.waiting.push_back(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Recorder {
        clock: Clock,
        start: Timestamp,
        seen: Arc<Mutex<Vec<(i64, String)>>>,
        fail_first: Mutex<u32>,
    }

    impl Reconcile for Recorder {
        const NAME: &'static str = "recorder";

        async fn reconcile(&self, key: &Key) -> kube::Result<Option<Timestamp>> {
            let now = self.clock.now();
            let mut seen = self.seen.lock().unwrap();
            seen.push((now.duration_since(self.start).as_millis() as i64, key.name.clone()));
            let mut failures = self.fail_first.lock().unwrap();
            if *failures > 0 {
                *failures -= 1;
                return Err(kube::Error::LinesCodecMaxLineLengthExceeded);
            }
            Ok((seen.len() < 4).then(|| now + Duration::from_secs(10)))
        }
    }

    async fn recorded(fail_first: u32, keys: &[&str]) -> Vec<(i64, String)> {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH, 1);
        let queue = Queue::new(clock);
        for key in keys {
            queue.add(Key::new("default", *key));
        }
        let seen = Arc::default();
        let recorder =
            Recorder { clock, start: clock.now(), seen: Arc::clone(&seen), fail_first: Mutex::new(fail_first) };
        let driver = tokio::spawn(queue.drive(recorder));
        tokio::time::sleep(Duration::from_secs(60)).await;
        driver.abort();
        let seen = seen.lock().unwrap();
        seen.clone()
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_waits_once_and_comes_back_on_its_timer() {
        let seen = recorded(0, &["a", "b", "a"]).await;
        let names: Vec<_> = seen.iter().map(|(at, name)| (at / 1000, name.as_str())).collect();
        assert_eq!(names, [(0, "a"), (0, "b"), (10, "a"), (10, "b"), (20, "a")]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_key_waits_longer_each_time() {
        let seen = recorded(3, &["a"]).await;
        let times: Vec<_> = seen.iter().map(|(at, _)| *at).take(4).collect();
        assert!(times[1] >= 50 && times[2] >= 150 && times[3] >= 350 && times[3] < 400, "{times:?}");
    }

    /// Wakes itself whenever it is looked at, as two controllers do that undo each other's work.
    struct Restless(Queue);

    impl Reconcile for Restless {
        const NAME: &'static str = "restless";

        async fn reconcile(&self, key: &Key) -> kube::Result<Option<Timestamp>> {
            self.0.add(key.clone());
            Ok(None)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_never_done_lets_time_go_on() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH, 1);
        let queue = Queue::new(clock);
        queue.add(Key::new("default", "a"));
        let driver = tokio::spawn(queue.clone().drive(Restless(queue)));
        clock.sleep(Duration::from_secs(1)).await;
        driver.abort();
    }
}
