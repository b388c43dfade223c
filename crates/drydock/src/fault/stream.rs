//! A watch on its way to the client: events are counted here, and here they are lost, doubled, delayed and replayed.
//!
//! The server sends every event as a frame of its own, so a frame is read as one event. Bookmarks and errors pass
//! uncounted.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http::{header, request};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use jiff::Timestamp;
use serde::Deserialize;
use tower::BoxError;

use super::layer::{reset, timed_out};
use super::plan::{Shared, Weather};
use super::{Fault, LAG, LOSS_NOTICED, Point, WatchEvent};
use crate::Clock;
use crate::apiserver::{ApiServer, Body, Target, expired};
use crate::bell::Listener;

/// What is watched, and in which form.
pub(crate) struct Source {
    target: Target,
    accept: String,
}

impl Source {
    pub(crate) fn new(parts: &request::Parts, target: Target) -> Self {
        let accept = parts.headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
        Self { target, accept: accept.unwrap_or_default().to_owned() }
    }
}

/// What the client gets next.
enum Step {
    Line(Bytes),
    /// Nothing until then.
    Wait(Timestamp),
}

/// How a watch ends when its time has come.
#[derive(Clone, Copy)]
enum End {
    Expired,
    TimedOut,
}

/// The events of one watch.
struct Flow {
    shared: Arc<Shared>,
    api: ApiServer,
    life: u64,
    restarts: u64,
    source: Source,
    inner: Body,
    turned: Listener,
    queue: VecDeque<Step>,
    doom: Option<(Timestamp, End)>,
    /// Whether nothing is read from the server any more.
    silent: bool,
    over: bool,
}

/// Puts the layer around the body of a watch.
pub(crate) fn deliver(shared: Arc<Shared>, api: ApiServer, life: u64, source: Source, inner: Body) -> Body {
    let flow = Flow {
        restarts: shared.restarts(),
        turned: shared.subscribe(),
        shared,
        api,
        life,
        source,
        inner,
        queue: VecDeque::new(),
        doom: None,
        silent: false,
        over: false,
    };
    let frames =
        stream::unfold(flow, |mut flow| async move { flow.next().await.map(|line| (line.map(Frame::data), flow)) });
    StreamBody::new(frames).boxed_unsync()
}

impl Flow {
    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            match self.shared.weather(self.life) {
                Weather::Dead => return std::future::pending().await,
                Weather::Held(until) => {
                    self.shared.clock.sleep_until(until).await;
                    continue;
                }
                Weather::Away | Weather::Fair => {}
            }
            if self.shared.restarts() != self.restarts && !self.over {
                return Some(self.broken(reset()));
            }
            let now = self.shared.clock.now();
            let waits_until = match self.queue.pop_front() {
                Some(Step::Line(line)) => return Some(Ok(line)),
                Some(Step::Wait(until)) if until <= now => continue,
                Some(Step::Wait(until)) => {
                    self.queue.push_front(Step::Wait(until));
                    Some(until)
                }
                None if self.over => return None,
                None => None,
            };
            let (clock, doom) = (self.shared.clock, self.doom);
            tokio::select! {
                biased;
                // Whatever turned, the beginning of the loop finds it.
                _ = self.turned.rung() => {}
                () = reach(clock, doom.map(|(at, _)| at)) => match doom {
                    Some((_, End::TimedOut)) => return Some(self.broken(timed_out())),
                    _ => self.expire("0"),
                },
                () = reach(clock, waits_until) => {}
                frame = self.inner.frame(), if waits_until.is_none() && !self.silent => match frame {
                    None => self.over = true,
                    Some(Err(error)) => return Some(self.broken(error)),
                    Some(Ok(frame)) => if let Ok(line) = frame.into_data() {
                        self.take(line).await;
                    },
                },
            }
        }
    }

    /// Ends the watch with a broken connection.
    fn broken(&mut self, error: BoxError) -> Result<Bytes, BoxError> {
        self.end();
        Err(error)
    }

    /// Ends the watch with 410.
    fn expire(&mut self, asked: &str) {
        self.end();
        self.queue.push_back(Step::Line(expired(asked, self.api.revision())));
    }

    fn end(&mut self) {
        self.queue.clear();
        self.doom = None;
        self.silent = true;
        self.over = true;
    }

    /// Counts an event and puts it, or what becomes of it, into the queue.
    async fn take(&mut self, line: Bytes) {
        let Some(seen) = Seen::read(&line) else {
            self.queue.push_back(Step::Line(line));
            return;
        };
        let target = &self.source.target;
        let event = self.shared.arrive(WatchEvent {
            index: 0,
            group: target.group.clone(),
            resource: target.plural.clone(),
            kind: seen.kind.into_owned(),
            namespace: seen.object.metadata.namespace.into_owned(),
            name: seen.object.metadata.name.into_owned(),
            resource_version: seen.object.metadata.resource_version.into_owned(),
            life: self.life,
            time: self.shared.clock.now(),
        });
        for fault in self.shared.reach(Point::Watch(event.index)).await {
            if fault.applies_to_event(&event) && self.faulted(fault, &event, &line) {
                return;
            }
        }
        self.queue.push_back(Step::Line(line));
    }

    /// Lets a fault happen to an event. Answers whether the fault has taken care of the event.
    fn faulted(&mut self, fault: Fault, event: &WatchEvent, line: &Bytes) -> bool {
        let now = self.shared.clock.now();
        let line = || Step::Line(line.clone());
        match fault {
            Fault::CrashBefore => self.shared.crash(),
            Fault::Pause(how_long) => {
                self.shared.hold(how_long);
                self.queue.push_back(line());
            }
            Fault::DropEvent => self.doom = Some((now + LOSS_NOTICED, End::Expired)),
            Fault::DuplicateEvent => self.queue.extend([line(), line()]),
            Fault::DelayEvent(how_long) => self.queue.extend([Step::Wait(now + how_long), line()]),
            Fault::ReplayOld => {
                let Some(older) = self.older(event) else { return false };
                self.queue.extend([line(), Step::Line(older), Step::Wait(now + LAG), line()]);
            }
            Fault::Gone => {
                self.api.compact();
                self.expire(&event.resource_version);
            }
            Fault::Silent(how_long) => {
                self.doom = Some((now + how_long, End::TimedOut));
                self.silent = true;
            }
            Fault::Restart(how_long) => self.shared.leave(how_long),
            _ => return false,
        }
        self.shared.strike(fault, event);
        true
    }

    /// The version of an event's object before the one it shows, as an event.
    fn older(&self, event: &WatchEvent) -> Option<Bytes> {
        let before = event.resource_version.parse::<u64>().ok()?.checked_sub(1)?;
        let target = &self.source.target;
        let object = self.api.shown_at(target, &event.namespace, &event.name, before, &self.source.accept)?;
        // To who was told that it is gone, it is new.
        let kind = if event.kind == "DELETED" { "ADDED" } else { "MODIFIED" };
        Some(format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n").into())
    }
}

/// Waits for a moment, for ever when there is none.
async fn reach(clock: Clock, moment: Option<Timestamp>) {
    match moment {
        Some(moment) => clock.sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// As much of an event as counting needs.
#[derive(Deserialize)]
struct Seen<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: Object<'a>,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata<'a> {
    #[serde(borrow)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
}

impl<'a> Seen<'a> {
    /// Reads a line; `None` for what is not counted.
    fn read(line: &'a [u8]) -> Option<Self> {
        let seen: Self = serde_json::from_slice(line).ok()?;
        matches!(&*seen.kind, "ADDED" | "MODIFIED" | "DELETED").then_some(seen)
    }
}
