//! Notices as Kubernetes Events.
//!
//! Equal texts are counted on one Event. From the tenth distinct text of one type within ten minutes of the last, texts
//! are combined into one Event as client-go does, so that dashboards and `kubectl describe` look as they did with
//! Flagger; unlike there, nothing is dropped. The [`Correlator`] decides this and is plain data; a single task writes,
//! in order, apart from the rounds: a slow API server delays no canary because of its Events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use seaway_adapters::change::ObjectRef;
use seaway_adapters::kinds::{CANARY, EVENT};
use seaway_core::effect::Severity;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use crate::clock::{Clock, later};
use crate::key::CanaryKey;
use crate::requests::{Requests, Retry};

/// Distinct texts of one type until they are combined.
const DISTINCT: usize = 10;
/// Silence after which distinct texts are counted anew.
const WINDOW: Duration = Duration::from_secs(600);
/// Texts per canary and type whose Event is remembered.
const REMEMBERED: usize = 64;
/// Bytes of a text; the API server takes no more.
const LONGEST: usize = 1024;
/// Attempts to write one Event.
const ATTEMPTS: u32 = 5;

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
    messages: mpsc::UnboundedSender<Message>,
    _task: AbortOnDropHandle<()>,
}

enum Message {
    Tell(About, Severity, String, Timestamp),
    Forget(CanaryKey),
    Flush(oneshot::Sender<()>),
}

impl Events {
    /// Starts the task that writes.
    pub(crate) fn start(requests: Requests, clock: Arc<dyn Clock>) -> Self {
        let (messages, received) = mpsc::unbounded_channel();
        let task = tokio::spawn(write_all(received, requests, clock));
        Self { messages, _task: AbortOnDropHandle::new(task) }
    }

    /// Tells one text. Returns at once.
    pub(crate) fn tell(&self, about: About, severity: Severity, text: String, now: Timestamp) {
        let _ = self.messages.send(Message::Tell(about, severity, text, now));
    }

    /// The canary is gone: nothing of it is counted on.
    pub(crate) fn forget(&self, key: &CanaryKey) {
        let _ = self.messages.send(Message::Forget(key.clone()));
    }

    /// Waits until everything told so far is written or given up.
    pub(crate) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        if self.messages.send(Message::Flush(done)).is_ok() {
            let _ = wait.await;
        }
    }
}

async fn write_all(mut messages: mpsc::UnboundedReceiver<Message>, requests: Requests, clock: Arc<dyn Clock>) {
    let mut correlator = Correlator::default();
    while let Some(message) = messages.recv().await {
        match message {
            Message::Tell(about, severity, text, now) => {
                let note = correlator.note(&about, severity, &text, now);
                let first = note.name.clone();
                let name = write(&requests, &*clock, note).await;
                if name != first {
                    correlator.rename(&about.key, &first, &name);
                }
            }
            Message::Forget(key) => correlator.forget(&key),
            Message::Flush(done) => drop(done.send(())),
        }
    }
}

/// Writes one Event and returns the name it has at last.
async fn write(requests: &Requests, clock: &dyn Clock, mut note: Note) -> String {
    let mut create = note.count == 1;
    for attempt in 1..=ATTEMPTS {
        let result = if create {
            requests.create(&note.object(), &note.event()).await
        } else {
            requests.merge(&note.object(), &note.increment()).await
        };
        let Err(error) = result else { break };
        if error.is_not_found() && !create {
            // The Event is older than the server keeps them: a new one under the same name goes on counting.
            create = true;
            continue;
        }
        if error.is_conflict() && create {
            // Another process named one at the very same moment.
            note.name = format!("{}{attempt}", note.name);
            continue;
        }
        if error.retry() != Retry::Backoff || attempt == ATTEMPTS {
            tracing::warn!(canary = %note.about.key, %error, text = note.text, "the Event could not be written");
            break;
        }
        let pause = error.retry_after.unwrap_or(Duration::from_secs(1 << (attempt - 1)));
        clock.sleep(pause).await;
    }
    note.name
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

/// Which texts share an Event.
#[derive(Default)]
struct Correlator {
    voices: BTreeMap<CanaryKey, Voice>,
    /// The last time used in a name; names must differ.
    named: i128,
}

/// What one canary has said.
#[derive(Default)]
struct Voice {
    uid: String,
    normal: Tone,
    warning: Tone,
}

/// What one canary has said in one type.
#[derive(Default)]
struct Tone {
    distinct: BTreeSet<String>,
    last: Option<Timestamp>,
    /// Events already made, the one used last at the end. The text is `None` for the combined one.
    events: Vec<(Option<String>, Made)>,
}

#[derive(Clone)]
struct Made {
    name: String,
    count: u32,
    first: Timestamp,
}

impl Correlator {
    fn note(&mut self, about: &About, severity: Severity, text: &str, now: Timestamp) -> Note {
        let voice = self.voices.entry(about.key.clone()).or_default();
        if voice.uid != about.uid {
            *voice = Voice { uid: about.uid.clone(), ..Voice::default() };
        }
        let tone = match severity {
            Severity::Normal => &mut voice.normal,
            Severity::Warning => &mut voice.warning,
        };
        let text = shorten(text);
        let combined = tone.is_one_too_many(&text, now);
        let key = (!combined).then(|| text.clone());
        let made = if let Some(at) = tone.events.iter().position(|(known, _)| *known == key) {
            let (_, made) = tone.events.remove(at);
            Made { count: made.count + 1, ..made }
        } else {
            self.named = now.as_nanosecond().max(self.named + 1);
            Made { name: format!("{}.{:x}", about.key.name, self.named), count: 1, first: now }
        };
        tone.events.push((key, made.clone()));
        if tone.events.len() > REMEMBERED {
            tone.events.remove(0);
        }
        let text = if combined { shorten(&format!("(combined from similar events): {text}")) } else { text };
        let Made { name, count, first } = made;
        Note { about: about.clone(), name, severity, text, count, first, last: now }
    }

    fn rename(&mut self, key: &CanaryKey, from: &str, to: &str) {
        let Some(voice) = self.voices.get_mut(key) else { return };
        let made = voice.normal.events.iter_mut().chain(&mut voice.warning.events).map(|(_, made)| made);
        for made in made.filter(|made| made.name == from) {
            to.clone_into(&mut made.name);
        }
    }

    fn forget(&mut self, key: &CanaryKey) {
        self.voices.remove(key);
    }
}

impl Tone {
    fn is_one_too_many(&mut self, text: &str, now: Timestamp) -> bool {
        if self.last.is_some_and(|last| later(last, WINDOW) < now) {
            self.distinct.clear();
        }
        self.last = Some(now);
        self.distinct.insert(text.to_owned());
        if self.distinct.len() < DISTINCT {
            return false;
        }
        // Texts known before go on being counted by themselves.
        self.distinct.remove(text);
        true
    }
}

fn shorten(text: &str) -> String {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Fence;
    use crate::testing::{Server, TestClock};

    fn about() -> About {
        About { key: CanaryKey::new("test", "podinfo"), uid: "u1".into(), version: "7".into() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn equal_texts_are_counted_on_one_event() {
        let mut correlator = Correlator::default();
        let first = correlator.note(&about(), Severity::Normal, "Advance", at(1));
        let second = correlator.note(&about(), Severity::Normal, "Advance", at(2));
        let warning = correlator.note(&about(), Severity::Warning, "Advance", at(2));
        assert_eq!((first.count, second.count, warning.count), (1, 2, 1));
        assert_eq!((&second.name, second.first), (&first.name, at(1)));
        assert_ne!(warning.name, first.name);
    }

    #[test]
    fn the_tenth_distinct_text_is_combined_as_in_client_go() {
        let mut correlator = Correlator::default();
        let mut say = |text: &str, second| {
            let note = correlator.note(&about(), Severity::Normal, text, at(second));
            (note.text, note.count)
        };
        for n in 1..10 {
            assert_eq!(say(&format!("text {n}"), n), (format!("text {n}"), 1));
        }
        assert_eq!(say("text 10", 10), ("(combined from similar events): text 10".into(), 1));
        assert_eq!(say("text 11", 11), ("(combined from similar events): text 11".into(), 2));
        assert_eq!(say("text 3", 12), ("text 3".into(), 2), "a known text is still counted by itself");
        assert_eq!(say("text 12", 613), ("text 12".into(), 1), "after ten silent minutes everything starts anew");
    }

    #[test]
    fn a_canary_of_the_same_name_starts_anew() {
        let mut correlator = Correlator::default();
        correlator.note(&about(), Severity::Normal, "Advance", at(1));
        let reborn = About { uid: "u2".into(), ..about() };
        assert_eq!(correlator.note(&reborn, Severity::Normal, "Advance", at(2)).count, 1);
    }

    #[test]
    fn memory_and_texts_are_bounded() {
        let mut correlator = Correlator::default();
        for n in 0..1000 {
            correlator.note(&about(), Severity::Warning, &format!("{n} {}", "ä".repeat(2000)), at(n * 1000));
        }
        let voice = &correlator.voices[&about().key];
        assert_eq!(voice.warning.events.len(), REMEMBERED);
        assert!(voice.warning.events.iter().all(|(text, _)| text.as_ref().is_none_or(|text| text.len() <= LONGEST)));
        correlator.forget(&about().key);
        assert!(correlator.voices.is_empty());
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
}
