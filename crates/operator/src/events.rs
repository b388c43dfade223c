//! Notices as Kubernetes Events.
//!
//! Equal texts are counted on one Event. From the tenth distinct text of one type within ten minutes of the last, texts
//! are combined into one Event as client-go does, so that dashboards and `kubectl describe` look as they did with
//! Flagger. The [`Voice`] of a canary decides this. Events are written apart from the rounds, in order for one canary and
//! independent of each other for two: a slow API server delays no round, and one canary's trouble no other's Events.
//!
//! While the API server is away they wait, and are written when it is back. Each canary's queue is bounded, in length and in
//! time: in a long outage its oldest texts are dropped, and the log has them.

mod voice;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use seaway_adapters::change::ObjectRef;
use seaway_adapters::kinds::{CANARY, EVENT};
use seaway_core::effect::Severity;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use self::voice::Voice;
use crate::clock::Clock;
use crate::key::CanaryKey;
use crate::requests::{ApiError, Requests};

/// For how long writing one Event is tried again.
const PATIENCE: Duration = Duration::from_secs(600);
/// Longest pause between two attempts, whatever the server asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How many other names one Event may get that is called like another.
const NAMES: u32 = 5;
/// Texts of one canary that may wait.
const WAITING: usize = 64;
/// Requests for Events that may be under way at once.
const AT_ONCE: usize = 16;

/// Who an Event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    /// The canary.
    pub(crate) key: CanaryKey,
    /// Its uid.
    pub(crate) uid: String,
    /// Its resourceVersion.
    pub(crate) version: String,
}

/// A way to tell people. What is not written when it is dropped stays unwritten; see [`Events::flush`].
pub(crate) struct Events {
    desk: Arc<Desk>,
    /// One per canary that has something to tell.
    writers: Mutex<JoinSet<()>>,
}

struct Desk {
    requests: Requests,
    clock: Arc<dyn Clock>,
    permits: Semaphore,
    lines: Mutex<BTreeMap<CanaryKey, Line>>,
    /// Told whenever a writer has nothing more to do.
    done: Notify,
}

/// What one canary has told and has yet to tell.
#[derive(Default)]
struct Line {
    voice: Voice,
    waiting: VecDeque<Told>,
    /// The text that is being written.
    in_hand: Option<String>,
    writing: bool,
    /// The canary is gone: so is the line, once it is written.
    forgotten: bool,
}

struct Told {
    about: About,
    severity: Severity,
    text: String,
    at: Timestamp,
}

impl Events {
    /// Events that are written by `requests`.
    pub(crate) fn start(requests: Requests, clock: Arc<dyn Clock>) -> Self {
        let (permits, lines, done) = (Semaphore::new(AT_ONCE), Mutex::default(), Notify::new());
        Self { desk: Arc::new(Desk { requests, clock, permits, lines, done }), writers: Mutex::default() }
    }

    /// Tells one text. Returns at once.
    pub(crate) fn tell(&self, about: About, severity: Severity, text: String, now: Timestamp) {
        let key = about.key.clone();
        let mut lines = self.desk.lines();
        let line = lines.entry(key.clone()).or_default();
        line.forgotten = false;
        line.waiting.push_back(Told { about, severity, text, at: now });
        if line.waiting.len() > WAITING
            && let Some(Told { text, .. }) = line.waiting.pop_front()
        {
            tracing::warn!(canary = %key, text, "too many Events wait to be written, one is dropped");
        }
        if !std::mem::replace(&mut line.writing, true) {
            let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
            while writers.try_join_next().is_some() {}
            writers.spawn(self.desk.clone().write_line(key));
        }
    }

    /// The canary is gone: what it told is still written, then nothing of it is remembered.
    pub(crate) fn forget(&self, key: &CanaryKey) {
        let mut lines = self.desk.lines();
        match lines.get_mut(key) {
            Some(line) if line.writing => line.forgotten = true,
            _ => drop(lines.remove(key)),
        }
    }

    /// Of how many canaries something told is remembered.
    pub(crate) fn len(&self) -> usize {
        self.desk.lines().len()
    }

    /// What was told and is not known to be written, in order for each canary.
    pub(crate) fn unwritten(&self) -> Vec<(CanaryKey, String)> {
        let lines = self.desk.lines();
        let all = lines.iter().flat_map(|(key, line)| {
            let waiting = line.waiting.iter().map(|told| &told.text);
            line.in_hand.iter().chain(waiting).map(|text| (key.clone(), text.clone()))
        });
        all.collect()
    }

    /// Waits until everything told so far is written or given up.
    pub(crate) async fn flush(&self) {
        loop {
            let done = self.desk.done.notified();
            if self.desk.lines().values().all(|line| !line.writing) {
                return;
            }
            done.await;
        }
    }
}

impl Desk {
    async fn write_line(self: Arc<Self>, key: CanaryKey) {
        while let Some(note) = self.next(&key) {
            let first = note.name.clone();
            let name = self.write(note).await;
            if name != first
                && let Some(line) = self.lines().get_mut(&key)
            {
                line.voice.rename(&first, &name);
            }
        }
        self.done.notify_waiters();
    }

    /// What is to be written next for `key`; without anything, its writer is done.
    fn next(&self, key: &CanaryKey) -> Option<Note> {
        let mut lines = self.lines();
        let line = lines.get_mut(key)?;
        if let Some(Told { about, severity, text, at }) = line.waiting.pop_front() {
            let note = line.voice.note(&about, severity, &text, at);
            line.in_hand = Some(text);
            return Some(note);
        }
        line.in_hand = None;
        line.writing = false;
        if line.forgotten {
            lines.remove(key);
        }
        None
    }

    /// Writes one Event and returns the name it has at last.
    async fn write(&self, mut note: Note) -> String {
        let mut create = note.count == 1;
        // An Event that was sent without an answer may be there.
        let mut in_doubt = false;
        let give_up = self.clock.elapsed().saturating_add(PATIENCE);
        let mut renamed = 0;
        for attempt in 0.. {
            let Err(error) = self.send(&note, create).await else { break };
            if error.is_not_found() && !create {
                // The Event is older than the server keeps them: a new one under the same name goes on counting.
                create = true;
                continue;
            }
            let taken = create && error.is_taken();
            if taken && in_doubt {
                break;
            }
            if taken && renamed < NAMES {
                // Another process named one at the very same moment.
                renamed += 1;
                note.name = format!("{}{renamed}", note.name);
                continue;
            }
            // Another conflict passes: a quota that is counted by several at once, say.
            let passes = error.code == 429 || error.is_conflict() && !taken;
            let final_word = (400..500).contains(&error.code) && !passes;
            if final_word || self.clock.elapsed() >= give_up {
                tracing::warn!(canary = %note.about.key, %error, text = note.text, "the Event could not be written");
                break;
            }
            in_doubt |= create && error.code != 429;
            let pause = error.retry_after.unwrap_or(Duration::from_secs(1 << attempt.min(3)));
            self.clock.sleep(pause.min(LONGEST_PAUSE)).await;
        }
        note.name
    }

    async fn send(&self, note: &Note, create: bool) -> Result<Value, ApiError> {
        // The semaphore is never closed; without a permit the Event is still sent.
        let _permit = self.permits.acquire().await;
        if create {
            self.requests.create(&note.object(), &note.event()).await
        } else {
            self.requests.merge(&note.object(), &note.increment()).await
        }
    }

    fn lines(&self) -> MutexGuard<'_, BTreeMap<CanaryKey, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One write of one Event.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note {
    about: About,
    name: String,
    severity: Severity,
    text: String,
    count: u32,
    first: Timestamp,
    last: Timestamp,
}

impl Note {
    fn object(&self) -> ObjectRef {
        ObjectRef { kind: EVENT, namespace: self.about.key.namespace.clone(), name: self.name.clone() }
    }

    fn event(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "name": self.name, "namespace": self.about.key.namespace },
            "involvedObject": {
                "apiVersion": CANARY.api_version(),
                "kind": CANARY.kind,
                "namespace": self.about.key.namespace,
                "name": self.about.key.name,
                "uid": self.about.uid,
                "resourceVersion": self.about.version,
            },
            "type": word(self.severity),
            "reason": "Synced",
            "message": self.text,
            "source": { "component": "flagger" },
            "reportingComponent": "flagger",
            "reportingInstance": "",
            "firstTimestamp": seconds(self.first),
            "lastTimestamp": seconds(self.last),
            "count": self.count,
        })
    }

    fn increment(&self) -> Value {
        json!({ "count": self.count, "lastTimestamp": seconds(self.last), "message": self.text })
    }
}

/// The type of an Event.
pub(crate) fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    }
}

fn seconds(time: Timestamp) -> String {
    format!("{time:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Fence;
    use crate::testing::{LOST, Server, TestClock};

    fn about() -> About {
        About { key: CanaryKey::new("test", "podinfo"), uid: "u1".into(), version: "7".into() }
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_posted_then_patched_and_outlive_an_outage() {
        let (server, clock) = (Server::default(), TestClock::start());
        let requests = Requests::new(server.client(), clock.clone(), Fence::open());
        let events = Events::start(requests, clock.clone());
        server.faults.lock().unwrap().extend([503, 429]);
        for _ in 0..3 {
            events.tell(about(), Severity::Warning, "Halt".into(), clock.now());
        }
        events.flush().await;
        let objects = server.objects.lock().unwrap();
        let event = objects.values().next().unwrap();
        assert_eq!((objects.len(), &event["count"], &event["type"]), (1, &json!(3), &json!("Warning")));
        assert_eq!(event["involvedObject"]["kind"], "Canary");
        assert_eq!(event["firstTimestamp"], "2023-11-14T22:13:20Z");
        let verbs: Vec<_> = server.log.lock().unwrap().iter().map(|line| line[..4].to_owned()).collect();
        assert_eq!(verbs, ["POST", "POST", "POST", "PATC", "PATC"]);
    }

    #[tokio::test(start_paused = true)]
    async fn events_wait_for_a_server_that_is_away_for_minutes_but_not_for_ever() {
        for (failures, told) in [(10, vec!["Halt".to_owned()]), (100, Vec::new())] {
            let (server, clock) = (Server::default(), TestClock::start());
            let events = Events::start(Requests::new(server.client(), clock.clone(), Fence::open()), clock.clone());
            server.faults.lock().unwrap().extend(vec![503; failures]);
            events.tell(about(), Severity::Warning, "Halt".into(), clock.now());
            events.flush().await;
            assert_eq!(messages(&server), told, "after {failures} failures");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_always_refuses_is_not_asked_without_end() {
        let (server, clock) = (Server::default(), TestClock::start());
        let events = Events::start(Requests::new(server.client(), clock.clone(), Fence::open()), clock.clone());
        server.faults.lock().unwrap().extend(vec![409; 1000]);
        events.tell(about(), Severity::Normal, "Advance".into(), clock.now());
        events.flush().await;
        let asked = server.log.lock().unwrap().len();
        assert!((5..100).contains(&asked), "asked {asked} times");
    }

    #[tokio::test(start_paused = true)]
    async fn two_processes_that_speak_at_the_same_moment_are_both_heard() {
        let (server, clock) = (Server::default(), TestClock::start());
        for process in ["first", "second"] {
            let events = Events::start(Requests::new(server.client(), clock.clone(), Fence::open()), clock.clone());
            events.tell(about(), Severity::Normal, process.into(), clock.now());
            events.tell(about(), Severity::Normal, process.into(), clock.now());
            events.flush().await;
        }
        let objects = server.objects.lock().unwrap();
        let told: Vec<_> = objects.values().map(|event| (&event["message"], &event["count"])).collect();
        assert_eq!(told, [(&json!("first"), &json!(2)), (&json!("second"), &json!(2))]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_the_server_has_dropped_is_made_again() {
        let (server, clock) = (Server::default(), TestClock::start());
        let events = Events::start(Requests::new(server.client(), clock.clone(), Fence::open()), clock.clone());
        events.tell(about(), Severity::Normal, "Advance".into(), clock.now());
        events.flush().await;
        server.objects.lock().unwrap().clear();
        events.tell(about(), Severity::Normal, "Advance".into(), clock.now());
        events.flush().await;
        assert_eq!(server.objects.lock().unwrap().values().next().unwrap()["count"], 2);
    }

    fn other(name: &str) -> About {
        About { key: CanaryKey::new("test", name), ..about() }
    }

    fn messages(server: &Server) -> Vec<String> {
        let objects = server.objects.lock().unwrap();
        objects.values().map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_server_will_not_have_is_given_up_at_once() {
        let (server, clock) = (Server::default(), TestClock::start());
        let events = Events::start(Requests::new(server.client(), clock.clone(), Fence::open()), clock.clone());
        server.faults.lock().unwrap().push(403);
        let began = clock.now();
        events.tell(about(), Severity::Normal, "forbidden".into(), began);
        events.flush().await;
        events.tell(about(), Severity::Normal, "allowed".into(), began);
        events.flush().await;
        assert_eq!((messages(&server), clock.now()), (vec!["allowed".to_owned()], began));
    }

    #[tokio::test(start_paused = true)]
    async fn the_trouble_of_one_canary_delays_no_other() {
        let (server, clock) = (Server::default(), TestClock::start());
        let events = Events::start(Requests::new(server.client(), clock.clone(), Fence::open()), clock.clone());
        server.faults.lock().unwrap().push(503);
        events.tell(other("a"), Severity::Normal, "from a".into(), clock.now());
        tokio::time::sleep(Duration::from_millis(1)).await;
        events.tell(other("b"), Severity::Normal, "from b".into(), clock.now());
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(messages(&server), ["from b"]);
        events.flush().await;
        assert_eq!(messages(&server), ["from a", "from b"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_whose_answer_was_lost_is_not_written_twice() {
        let (server, clock) = (Server::default(), TestClock::start());
        let events = Events::start(Requests::new(server.client(), clock.clone(), Fence::open()), clock.clone());
        server.faults.lock().unwrap().push(LOST);
        events.tell(about(), Severity::Normal, "once".into(), clock.now());
        events.flush().await;
        events.tell(about(), Severity::Normal, "once".into(), clock.now());
        events.flush().await;
        let objects = server.objects.lock().unwrap();
        assert_eq!((objects.len(), &objects.values().next().unwrap()["count"]), (1, &json!(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_written_is_known() {
        let (server, clock) = (Server::default(), TestClock::start());
        let events = Events::start(Requests::new(server.client(), clock.clone(), Fence::open()), clock.clone());
        server.faults.lock().unwrap().extend([503; 20]);
        for text in ["first", "second"] {
            events.tell(about(), Severity::Normal, text.into(), clock.now());
        }
        assert!(tokio::time::timeout(Duration::from_secs(5), events.flush()).await.is_err());
        let unwritten = [(about().key, "first".to_owned()), (about().key, "second".to_owned())];
        assert_eq!(events.unwritten(), unwritten);
        server.faults.lock().unwrap().clear();
        events.flush().await;
        assert_eq!((messages(&server).len(), events.unwritten()), (2, Vec::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_outage_costs_neither_memory_nor_hours() {
        let (server, clock) = (Server::default(), TestClock::start());
        let events = Events::start(Requests::new(server.client(), clock.clone(), Fence::open()), clock.clone());
        server.faults.lock().unwrap().extend([503; 20]);
        for n in 0..1000 {
            events.tell(about(), Severity::Normal, format!("text {n}"), clock.now());
        }
        assert_eq!(events.desk.lines()[&about().key].waiting.len(), WAITING);
        events.forget(&about().key);
        events.flush().await;
        assert!(messages(&server).iter().any(|text| text.ends_with("text 999")), "the newest are kept");
        assert!(events.desk.lines().is_empty(), "and then nothing of it is remembered");
    }
}
