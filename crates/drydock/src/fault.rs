//! Faults between one client and the API server, placed at exact points.
//!
//! [`Faults::client`] gives a client whose every request and every watch event passes here. Without a plan the layer
//! only counts; with one, the *i*-th request is refused, lost, answered from the past and so on, or the *i*-th event
//! is. A point and a fault name a run exactly: nothing here is random and all time is the cluster's, so the same plan
//! on the same seed gives the same story. [`Switch`] does the same for programs that answer HTTP.
//!
//! It knows nothing of what the client is for, it places one fault at a point, and it does not decide which points are
//! worth it: that is the enumerator's, which runs once without faults and reads [`Faults::calls`].

mod calls;
mod layer;
mod mood;
mod plan;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use crate::Clock;
use crate::apiserver::ApiServer;

pub use self::calls::{Call, WatchEvent};
use self::layer::Layer;
pub use self::mood::{Mood, Moody, Switch};
use self::plan::Shared;

/// A place for faults between one client and the API server. Clones share the plan and the counters.
#[derive(Clone)]
pub struct Faults(Arc<Shared>);

/// Where a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// The *i*-th request, from 0, watches and leases not counted.
    Call(u64),
    /// The *i*-th event delivered, from 0, over all watches; bookmarks not counted.
    Watch(u64),
}

/// What goes wrong. Durations are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The process dies before the request is sent, or before it sees the event: neither it nor anything else of this
    /// client is ever answered again, and [`Faults::crash`] completes.
    CrashBefore,
    /// The process dies after the request was carried out and before it saw the answer.
    CrashAfter,
    /// The request is carried out, then the connection breaks.
    LostReply,
    /// 409: somebody else wrote in between. Not carried out.
    Conflict,
    /// 429 with Retry-After, for this and the next `calls - 1` requests. Not carried out.
    TooManyRequests {
        /// What the server asks the client to wait; sent in whole seconds.
        retry_after: Duration,
        /// How many requests are refused.
        calls: u32,
    },
    /// A status code (500, 503, 504). Not carried out.
    Status(u16),
    /// The request is carried out, but answered with a status code (500, 504): the outcome is unknown.
    AppliedStatus(u16),
    /// No answer for so long, then the connection breaks. Not carried out.
    Hang(Duration),
    /// The connection breaks. Not carried out.
    Reset,
    /// A read answers as of so many versions of that object or collection ago.
    Stale(u64),
    /// Before the request is carried out, its object is deleted and created anew by somebody else: same name, other
    /// uid. Objects that are held by finalizers are left alone, as nobody can replace them at once.
    Recreated,
    /// The process is paused before the request is sent, or before it sees the event: for so long nothing of this
    /// client goes out or comes in, then everything does, late.
    Pause(Duration),
    /// The event is lost. A server never loses one silently for good: [`LOSS_NOTICED`] later the watch ends with 410,
    /// so that the client lists again and finds the latest state, but never sees the one that was lost.
    DropEvent,
    /// The event comes twice.
    DuplicateEvent,
    /// The event and those behind it on the same watch come so much later; other watches go on.
    DelayEvent(Duration),
    /// After the event comes the version before it, and [`LAG`] later the event once more: the client was handed to a
    /// server that lags behind.
    ReplayOld,
    /// The watch ends with 410 instead of the event, and history is compacted, so that watching again from there is
    /// refused as well.
    Gone,
    /// The watch delivers nothing for so long, not even bookmarks, then the connection breaks. The event comes on the
    /// next watch.
    Silent(Duration),
    /// The API server is away: all watches of this client break, and every request fails for so long.
    Restart(Duration),
}

/// How long after a lost event the watch ends.
pub const LOSS_NOTICED: Duration = Duration::from_secs(10);

/// How long a lagging server shows the past.
pub const LAG: Duration = Duration::from_secs(1);

impl Fault {
    /// Whether the fault makes sense at a request, as far as the request of a run without faults can tell.
    pub fn applies(&self, call: &Call) -> bool {
        match self {
            Self::CrashBefore
            | Self::CrashAfter
            | Self::TooManyRequests { .. }
            | Self::Status(_)
            | Self::Hang(_)
            | Self::Reset
            | Self::Pause(_)
            | Self::Restart(_) => true,
            Self::LostReply | Self::AppliedStatus(_) => call.is_write(),
            Self::Conflict => matches!(call.verb.as_str(), "update" | "patch" | "delete") && call.meets_an_object(),
            Self::Stale(versions) => {
                !call.is_write() && call.is_resource() && call.subresource.is_empty() && *versions > 0
            }
            Self::Recreated => !call.name.is_empty() && call.meets_an_object(),
            Self::DropEvent
            | Self::DuplicateEvent
            | Self::DelayEvent(_)
            | Self::ReplayOld
            | Self::Gone
            | Self::Silent(_) => false,
        }
    }

    /// Whether the fault makes sense at a watch event.
    pub fn applies_to_event(&self, _: &WatchEvent) -> bool {
        matches!(
            self,
            Self::CrashBefore
                | Self::Pause(_)
                | Self::DropEvent
                | Self::DuplicateEvent
                | Self::DelayEvent(_)
                | Self::ReplayOld
                | Self::Gone
                | Self::Silent(_)
                | Self::Restart(_)
        )
    }
}

impl Faults {
    /// No faults yet, only counting.
    pub fn new(clock: Clock) -> Self {
        Self(Arc::new(Shared::new(clock)))
    }

    /// A client whose requests pass here. After a crash the clients made before it are dead; the next process needs a
    /// new one.
    pub fn client(&self, api: &ApiServer, user: &str) -> kube::Client {
        kube::Client::new(Layer::new(self.0.clone(), api, user), "default")
    }

    /// Places a fault. A fault that makes no sense at its point when the time comes does nothing.
    pub fn plan(&self, at: Point, fault: Fault) {
        self.0.plan(at, fault);
    }

    /// Calls back at a point, before the request is carried out or the event delivered. The callback must not wait.
    pub fn on(&self, at: Point, act: impl FnOnce() + Send + 'static) {
        self.before(at, async { act() });
    }

    /// Runs a future at a point; the request or event waits until it is done. This is how another writer gets in
    /// between.
    pub fn before(&self, at: Point, act: impl Future<Output = ()> + Send + 'static) {
        self.0.before(at, Box::pin(act));
    }

    /// Every request so far but watches, in order. Those on leases have no index.
    pub fn calls(&self) -> Vec<Call> {
        self.0.calls()
    }

    /// Every event that arrived for this client so far, in order.
    pub fn watch_events(&self) -> Vec<WatchEvent> {
        self.0.watch_events()
    }

    /// The planned faults that have happened, one line each.
    pub fn struck(&self) -> Vec<String> {
        self.0.struck()
    }

    /// The process dies now, as if a crash had struck.
    pub fn kill(&self) {
        self.0.crash();
    }

    /// Completes when a crash strikes, once for each; whoever waits then drops the process and starts another.
    pub async fn crash(&self) {
        self.0.crashed().await;
    }
}
