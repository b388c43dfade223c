//! The plan and the counters that all clients of one [`Faults`](super::Faults) share.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::Notify;

use super::{Call, Fault, Point, WatchEvent};
use crate::Clock;
use crate::bell::{Bell, Listener};

/// What is to happen at a point.
#[derive(Default)]
struct Due {
    /// First these, one after the other.
    acts: VecDeque<BoxFuture<'static, ()>>,
    /// Then these, until one of them answers.
    faults: Vec<Fault>,
}

/// How the outside world looks to the client at a moment.
pub(crate) enum Weather {
    /// Requests go through.
    Fair,
    /// The process is dead; nothing of it goes anywhere, ever.
    Dead,
    /// The process is paused, or cut off, until a moment.
    Held(Timestamp),
    /// The server is away.
    Away,
}

#[derive(Default)]
struct State {
    plan: BTreeMap<Point, Due>,
    calls: Vec<Call>,
    next_call: u64,
    events: Vec<WatchEvent>,
    struck: Vec<String>,
    life: u64,
    restarts: u64,
    held_until: Option<Timestamp>,
    away_until: Option<Timestamp>,
    /// Requests still to be refused, and the seconds to tell them.
    throttled: (u32, u64),
}

/// Plan, counters and the signals that end watches.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    state: Mutex<State>,
    crashed: Notify,
    /// Rung whenever open watches must look at the weather.
    turned: Bell,
}

impl Shared {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, state: Mutex::default(), crashed: Notify::new(), turned: Bell::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn plan(&self, at: Point, fault: Fault) {
        self.lock().plan.entry(at).or_default().faults.push(fault);
    }

    pub(crate) fn before(&self, at: Point, act: BoxFuture<'static, ()>) {
        self.lock().plan.entry(at).or_default().acts.push_back(act);
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    pub(crate) fn watch_events(&self) -> Vec<WatchEvent> {
        self.lock().events.clone()
    }

    pub(crate) fn struck(&self) -> Vec<String> {
        self.lock().struck.clone()
    }

    pub(crate) async fn crashed(&self) {
        self.crashed.notified().await;
    }

    /// The number of the current process.
    pub(crate) fn life(&self) -> u64 {
        self.lock().life
    }

    /// How often the server went away.
    pub(crate) fn restarts(&self) -> u64 {
        self.lock().restarts
    }

    pub(crate) fn subscribe(&self) -> Listener {
        self.turned.listen()
    }

    /// What a process meets when it sends or expects something now.
    pub(crate) fn weather(&self, life: u64) -> Weather {
        let (state, now) = (self.lock(), self.clock.now());
        if state.life != life {
            return Weather::Dead;
        }
        match (state.held_until, state.away_until) {
            (Some(until), _) if until > now => Weather::Held(until),
            (_, Some(until)) if until > now => Weather::Away,
            _ => Weather::Fair,
        }
    }

    /// Waits while the process is paused, for ever when it is dead. Answers whether the server is there.
    pub(crate) async fn passage(&self, life: u64) -> bool {
        loop {
            match self.weather(life) {
                Weather::Fair => return true,
                Weather::Away => return false,
                Weather::Held(until) => self.clock.sleep_until(until).await,
                Weather::Dead => std::future::pending().await,
            }
        }
    }

    /// Records a request and hands out its place in the record.
    pub(crate) fn begin(&self, mut call: Call) -> (usize, Call) {
        let mut state = self.lock();
        if call.resource != "leases" {
            call.index = Some(state.next_call);
            state.next_call += 1;
        }
        state.calls.push(call.clone());
        (state.calls.len() - 1, call)
    }

    /// Lets everything happen that is planned before a point, also what is planned meanwhile; then hands out its faults.
    pub(crate) async fn reach(&self, at: Point) -> Vec<Fault> {
        while let Some(act) = self.next_act(at) {
            act.await;
        }
        self.lock().plan.remove(&at).unwrap_or_default().faults
    }

    fn next_act(&self, at: Point) -> Option<BoxFuture<'static, ()>> {
        self.lock().plan.get_mut(&at)?.acts.pop_front()
    }

    /// Changes a recorded request.
    pub(crate) fn note(&self, place: usize, change: impl FnOnce(&mut Call)) {
        if let Some(call) = self.lock().calls.get_mut(place) {
            change(call);
        }
    }

    /// Records an event and numbers it.
    pub(crate) fn arrive(&self, mut event: WatchEvent) -> WatchEvent {
        let mut state = self.lock();
        event.index = state.events.len() as u64;
        state.events.push(event.clone());
        event
    }

    /// Writes down that a fault happens.
    pub(crate) fn strike(&self, fault: Fault, at: &dyn std::fmt::Display) {
        self.lock().struck.push(format!("{at}: {fault:?}"));
    }

    /// The process dies.
    pub(crate) fn crash(&self) {
        {
            let mut state = self.lock();
            state.life += 1;
            // What was wrong with the old process's connections is not wrong with the next one's.
            state.held_until = None;
            state.throttled = (0, 0);
        }
        self.turned.ring();
        self.crashed.notify_one();
    }

    /// The server goes away.
    pub(crate) fn leave(&self, how_long: Duration) {
        {
            let mut state = self.lock();
            state.away_until = Some(self.clock.now() + how_long);
            state.restarts += 1;
        }
        self.turned.ring();
    }

    /// The process stops for a while.
    pub(crate) fn hold(&self, how_long: Duration) {
        self.lock().held_until = Some(self.clock.now() + how_long);
    }

    /// Refuses the next requests.
    pub(crate) fn throttle(&self, requests: u32, seconds: u64) {
        self.lock().throttled = (requests, seconds);
    }

    /// Whether a request is among those to be refused; if so, what it is told.
    pub(crate) fn throttled(&self, call: &Call) -> Option<u64> {
        let mut state = self.lock();
        let (left, seconds) = state.throttled;
        if call.index.is_none() || left == 0 {
            return None;
        }
        state.throttled.0 = left - 1;
        Some(seconds)
    }
}
