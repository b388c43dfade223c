//! Watching: the changes of a collection, as they are committed.
//!
//! An idle watch sleeps until its resource changes; it wakes for nothing else but bookmarks and its end.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::error::{ApiError, Result};
use super::meta;
use super::options::check_list;
use super::read::at_most;
use super::request::Call;
use super::selector::Selector;
use super::server::{Answer, Server};
use super::store::Change;
use super::view::View;
use crate::Clock;
use crate::bell::Listener;

/// How often a watch that asked for bookmarks gets one.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long a watch lasts when the client does not say.
const LASTS: Duration = Duration::from_secs(30 * 60);

struct Watch {
    server: Weak<Server>,
    clock: Clock,
    view: View,
    /// How a change is shown that is told while it happens: nobody takes away from it what is usually not shown.
    live: View,
    /// The last change before the watch began.
    begun: u64,
    resource: Arc<str>,
    namespace: Option<String>,
    selector: Selector,
    changed: Listener,
    /// Everything up to this revision was sent, or was not asked for.
    seen: u64,
    ready: VecDeque<Value>,
    bookmarks: bool,
    next_bookmark: Timestamp,
    ends: Timestamp,
    over: bool,
    /// Whether a Table was sent.
    described: bool,
    /// Says that this watch is open.
    _open: Arc<()>,
}

impl Server {
    /// `watch`.
    pub(crate) fn watch(self: &Arc<Self>, call: &Call, view: &View) -> Result<Answer> {
        Selector::read(call.params.get("labelSelector"), call.params.get("fieldSelector"))?;
        check_list(&call.params)?;
        let selector = call.selector()?;
        let asked = call.params.revision().map_err(ApiError::unread)?.filter(|revision| *revision > 0);
        let stream_list = call.params.flag("sendInitialEvents");
        let bookmarks = call.params.flag("allowWatchBookmarks");
        // Asked not to show what is there, a watch without a version begins now.
        let only_changes = call.params.given("sendInitialEvents") && !stream_list;
        let asked_for = call.params.number("timeoutSeconds")?.filter(|seconds| *seconds > 0);
        let lasts = asked_for.map_or(LASTS, |seconds| Duration::from_secs(seconds.unsigned_abs()));
        let now = self.clock.now();
        let resource = call.served.resource.id.clone();
        let mut state = self.store.lock();
        // Changes may be waited for that are far away; what is there must be there.
        if stream_list {
            at_most(asked, &state)?;
        }
        let mut ready = VecDeque::new();
        let mut over = false;
        let seen = match asked {
            Some(revision) if !stream_list => {
                if revision < state.compacted() {
                    ready.push_back(too_old(revision, state.compacted()));
                    over = true;
                }
                revision
            }
            None if only_changes => state.revision(),
            _ => {
                let stored = state.list(&resource, call.namespace.as_deref());
                let objects = stored.map(|(_, object)| call.served.current(object));
                let chosen = objects.filter(|object| selector.matches(object));
                ready.extend(chosen.map(|object| event("ADDED", view.object(&object, now))));
                if stream_list && bookmarks {
                    ready.push_back(event("BOOKMARK", view.bookmark(state.revision(), true)));
                }
                state.revision()
            }
        };
        let watch = Watch {
            server: Arc::downgrade(self),
            clock: self.clock,
            view: view.clone(),
            live: view.bare(),
            begun: state.revision(),
            changed: state.subscribe(&resource),
            resource,
            namespace: call.namespace.clone(),
            selector,
            seen,
            ready,
            bookmarks,
            next_bookmark: now + BOOKMARK_EVERY,
            ends: meta::later(now, lasts),
            over,
            described: false,
            _open: self.watching.clone(),
        };
        Ok(Answer::Watch(watch.into_stream()))
    }
}

impl Watch {
    fn into_stream(self) -> BoxStream<'static, Value> {
        stream::unfold(self, |mut watch| async move {
            loop {
                if let Some(mut event) = watch.ready.pop_front() {
                    // Only the first Table of a watch says what its columns are.
                    if let Some(columns) = event.pointer_mut("/object/columnDefinitions") {
                        if watch.described {
                            *columns = Value::Null;
                        }
                        watch.described = true;
                    }
                    return Some((event, watch));
                }
                if watch.over {
                    return None;
                }
                watch.fetch();
                if watch.ready.is_empty() && !watch.over {
                    watch.sleep().await;
                }
            }
        })
        .boxed()
    }

    /// Takes what was committed since the last look; says where the store is, unless the watch is over.
    fn fetch(&mut self) -> Option<u64> {
        let Some(server) = self.server.upgrade() else {
            self.over = true;
            return None;
        };
        self.changed.catch_up();
        let state = server.store.lock();
        let Some(changes) = state.since(&self.resource, self.seen) else {
            self.ready.push_back(too_old(self.seen, state.compacted()));
            self.over = true;
            return None;
        };
        let revision = state.revision();
        drop(state);
        self.seen = self.seen.max(revision);
        for change in changes {
            self.ready.extend(self.translate(&change));
        }
        Some(revision)
    }

    /// What a change looks like through the selector.
    fn translate(&self, change: &Change) -> Option<Value> {
        if self.namespace.as_ref().is_some_and(|namespace| *namespace != change.id.1.namespace) {
            return None;
        }
        let was = change.before.as_ref().is_some_and(|before| self.selector.matches(before));
        let is = !change.deleted && self.selector.matches(&change.after);
        let kind = match (was, is) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => return None,
        };
        let view = if change.revision > self.begun { &self.live } else { &self.view };
        let (view, object) = match &change.before {
            // It lives on where the client does not look, so the client gets what it looked at last.
            Some(before) if !is && !change.deleted => {
                let mut last = Value::clone(before);
                meta::metadata(&mut last).insert("resourceVersion".into(), change.revision.to_string().into());
                (&self.view, Arc::new(last))
            }
            _ => (view, change.after.clone()),
        };
        Some(event(kind, view.object(&object, self.clock.now())))
    }

    async fn sleep(&mut self) {
        let (clock, next_bookmark, ends) = (self.clock, self.next_bookmark, self.ends);
        let bookmark: Pin<Box<dyn Future<Output = ()> + Send>> =
            if self.bookmarks { Box::pin(clock.sleep_until(next_bookmark)) } else { Box::pin(std::future::pending()) };
        tokio::select! {
            biased;
            changed = self.changed.rung() => self.over = changed.is_err(),
            () = clock.sleep_until(ends) => self.finish(),
            () = bookmark => {
                self.next_bookmark = clock.now() + BOOKMARK_EVERY;
                self.bookmark();
            }
        }
    }

    fn finish(&mut self) {
        self.fetch();
        self.bookmark();
        self.over = true;
    }

    fn bookmark(&mut self) {
        // Where a watch begins later than now there is nothing to mark yet.
        if self.bookmarks && !self.over && self.fetch() == Some(self.seen) {
            let bookmark = event("BOOKMARK", self.view.bookmark(self.seen, false));
            self.ready.push_back(bookmark);
        }
    }
}

/// Tells a client that slept too long to list again.
fn too_old(asked: u64, compacted: u64) -> Value {
    let message = format!("too old resource version: {asked} ({compacted})");
    event("ERROR", ApiError::expired(message).to_status())
}

fn event(kind: &str, object: Value) -> Value {
    Value::Object(Map::from_iter([("type".to_owned(), kind.into()), ("object".to_owned(), object)]))
}
