//! Telling people: each notice becomes a log line, a Kubernetes Event, and a call of the event hooks.
//!
//! Event hooks are called in order and one at a time per canary, apart from the rounds; a hook that does not answer is
//! logged and delays only the next call for the same canary. A canary's own `event` hooks replace the global one.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use seaway_adapters::hooks::{self, Payload};
use seaway_adapters::http::Http;
use seaway_adapters::object;
use seaway_api::Canary;
use seaway_api::canary::HookType;
use seaway_core::effect::{Notice, Severity};
use seaway_core::plan::{Hook, Plan};
use seaway_core::question::Answer;
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use crate::events::{About, Events, word};
use crate::key::CanaryKey;

/// Calls of event hooks that may wait per canary.
const WAITING: usize = 64;

/// Tells people.
pub(crate) struct Announcer {
    events: Events,
    http: Http,
    /// The event hook of canaries that have none of their own.
    global: Option<Hook>,
    lines: Mutex<Lines>,
}

/// Calls of event hooks: in order for one canary, independent of each other for two.
#[derive(Default)]
struct Lines {
    open: BTreeMap<CanaryKey, Sender<(Hook, Payload)>>,
    /// One per canary; a line that is closed ends when everything in it is delivered.
    tasks: JoinSet<()>,
}

impl Announcer {
    /// An announcer that writes to `events`; `webhook` is the URL of the global event hook.
    pub(crate) fn new(events: Events, http: Http, webhook: Option<String>) -> Self {
        let global = webhook.map(|url| Hook {
            name: "events".to_owned(),
            kind: HookType::Event,
            url,
            timeout: seaway_api::duration::DEFAULT_TIMEOUT,
            retries: 0,
            insecure: false,
            mute_alert: false,
            metadata: BTreeMap::new(),
        });
        Self { events, http, global, lines: Mutex::default() }
    }

    /// Tells a notice of the rules.
    pub(crate) fn tell(&self, canary: &Canary, plan: &Plan, notice: &Notice, now: Timestamp) {
        let key = CanaryKey::new(canary.namespace(), canary.name());
        log(&key, notice.severity, &notice.text);
        let metadata = &canary.metadata;
        let about = About {
            key: key.clone(),
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
        };
        self.events.tell(about, notice.severity, notice.text.clone(), now);
        let own = plan.hooks_of(HookType::Event).map(|(_, hook)| hook).collect::<Vec<_>>();
        let hooks = if own.is_empty() { self.global.iter().collect() } else { own };
        for hook in hooks {
            let (kind, at) = (word(notice.severity), now.as_millisecond());
            let payload = hooks::event_payload(canary, &notice.text, kind, at, &hook.metadata);
            self.call(&key, hook.clone(), payload);
        }
    }

    /// Tells of something that went wrong outside the rules, maybe with an object that nobody can read.
    pub(crate) fn warn(&self, stored: &Value, text: &str, now: Timestamp) {
        let field = |pointer: &str| object::text(stored, pointer).to_owned();
        let key = CanaryKey::of(stored);
        log(&key, Severity::Warning, text);
        let about = About { key, uid: field("/metadata/uid"), version: field("/metadata/resourceVersion") };
        self.events.tell(about, Severity::Warning, text.to_owned(), now);
    }

    /// The canary is gone. What was told of it is still delivered.
    pub(crate) fn forget(&self, key: &CanaryKey) {
        self.events.forget(key);
        self.lines().open.remove(key);
    }

    /// How many canaries have told something that is remembered.
    pub(crate) fn len(&self) -> usize {
        self.events.len() + self.lines().open.len()
    }

    /// Waits until everything told so far is delivered or given up.
    pub(crate) async fn flush(&self) {
        let mut lines = std::mem::take(&mut *self.lines());
        lines.open.clear();
        self.events.flush().await;
        while lines.tasks.join_next().await.is_some() {}
    }

    /// Puts the texts that were told and are not written into the log: nobody will try again.
    pub(crate) fn log_what_waits(&self) {
        for (canary, text) in self.events.unwritten() {
            tracing::warn!(%canary, text, "the Event was not written");
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self, key: &CanaryKey, hook: Hook, payload: Payload) {
        let mut lines = self.lines();
        let Lines { open, tasks } = &mut *lines;
        while tasks.try_join_next().is_some() {}
        let line = open.entry(key.clone()).or_insert_with(|| {
            let (calls, waiting) = channel(WAITING);
            tasks.spawn(deliver(key.clone(), self.http.clone(), waiting));
            calls
        });
        if line.try_send((hook, payload)).is_err() {
            tracing::warn!(canary = %key, "too many calls of the event webhook wait, one is dropped");
        }
    }
}

async fn deliver(key: CanaryKey, http: Http, mut waiting: Receiver<(Hook, Payload)>) {
    while let Some((hook, payload)) = waiting.recv().await {
        if let Answer::No(error) | Answer::Broken(error) = hooks::call(&http, &hook, &payload).await {
            tracing::warn!(canary = %key, hook = hook.name, error, "error sending event to webhook");
        }
    }
}

fn log(key: &CanaryKey, severity: Severity, text: &str) {
    // Flagger logs warnings about a canary at the info level too: they are news, not faults of the operator.
    tracing::info!(canary = %key, kind = word(severity), "{text}");
}
