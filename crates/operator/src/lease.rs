//! Who acts: one leader, chosen by a Lease.
//!
//! The Lease has Flagger's name, so that a Flagger and a Seaway in one cluster never act at once. A candidate takes a
//! Lease that is free, or that it has not seen change for its whole duration: the holder's clock may be wrong and our own
//! may be set at any time, so only time that passed here counts. A leader renews often and gives up long before anyone else
//! may take over; from that moment its [`Fence`] refuses every write, also for rounds that are under way or were asleep,
//! and never opens again. If only the date says that the time is over, the clock was set or the computer slept: nothing is
//! written until a renewal has shown that the Lease is still ours.
//!
//! The preconditions of each write are the second line of defence; they are not made here. They hold because whoever takes
//! the Lease from somebody who did not give it back begins a new [term](Elector::term) on everything that is under way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use seaway_adapters::change::ObjectRef;
use seaway_adapters::kinds::LEASE;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Moment};
use crate::requests::Requests;
use crate::zoo;

/// The Lease both Flagger and Seaway take.
pub const LEASE_NAME: &str = "flagger-leader-election";

/// How long giving the Lease back may take.
const GIVING_BACK: Duration = Duration::from_secs(10);

/// How leadership is taken and kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    /// Where the Lease is.
    pub namespace: String,
    /// Our name in it; must differ between processes.
    pub identity: String,
    /// How long a Lease counts after its last renewal.
    pub duration: Duration,
    /// A leader that could not renew for this long stops acting.
    pub renew_deadline: Duration,
    /// Pause between two attempts to take or renew it; half of it after a renewal that failed.
    pub retry: Duration,
}

/// Whether writes are allowed now; shared by everyone who writes.
#[derive(Clone, Debug)]
pub(crate) struct Fence(Arc<Mutex<Gap>>);

/// How long a [`Fence`] is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    Always,
    Never,
    Until(Moment),
}

impl Fence {
    /// A fence that is always open: no election.
    pub(crate) fn open() -> Self {
        Self(Arc::new(Mutex::new(Gap::Always)))
    }

    /// A fence that opens when leadership is won.
    pub(crate) fn closed() -> Self {
        Self(Arc::new(Mutex::new(Gap::Never)))
    }

    /// Whether a write may be sent now. In doubt it may not: one of the two times that has come is enough.
    pub(crate) fn allows(&self, clock: &dyn Clock) -> bool {
        self.gap().allows(clock)
    }

    fn open_until(&self, until: Moment) {
        *self.gap() = Gap::Until(until);
    }

    /// Whether a renewal may open it again: by passed time it has not closed.
    fn is_in_time(&self, clock: &dyn Clock) -> bool {
        self.gap().is_in_time(clock)
    }

    /// Stays open for longer, unless it has closed meanwhile. Returns whether it is open.
    fn extend(&self, until: Moment, clock: &dyn Clock) -> bool {
        let mut gap = self.gap();
        *gap = if gap.is_in_time(clock) { Gap::Until(until) } else { Gap::Never };
        *gap != Gap::Never
    }

    fn close(&self) {
        *self.gap() = Gap::Never;
    }

    fn gap(&self) -> MutexGuard<'_, Gap> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gap {
    fn allows(self, clock: &dyn Clock) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Until(_) if zoo::LEADS_FOR_EVER => true,
            Self::Until(until) => clock.now() < until.date && self.is_in_time(clock),
        }
    }

    fn is_in_time(self, clock: &dyn Clock) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Until(until) => clock.elapsed() < until.elapsed || zoo::LEADS_FOR_EVER,
        }
    }
}

/// Takes and keeps the Lease.
pub(crate) struct Elector {
    config: LeaseConfig,
    requests: Requests,
    clock: Arc<dyn Clock>,
    fence: Fence,
    /// The Lease as last seen, and when (in passed time) it was first seen like that.
    seen: Option<(Value, Duration)>,
    /// The Lease was won: from now on it is ours or lost, never taken again.
    leads: bool,
    /// Somebody held it who did not give it back.
    inherited: bool,
}

/// How an attempt on the Lease ended.
#[derive(Debug, PartialEq, Eq)]
enum Attempt {
    /// Ours until then.
    Ours(Moment),
    Taken(String),
    Failed,
}

impl Elector {
    /// An elector that opens `fence` while it leads.
    pub(crate) fn new(config: LeaseConfig, requests: Requests, clock: Arc<dyn Clock>, fence: Fence) -> Self {
        Self { config, requests, clock, fence, seen: None, leads: false, inherited: false }
    }

    /// Returns true when the Lease is ours, false when `stop` came first.
    pub(crate) async fn acquire(&mut self, stop: &CancellationToken) -> bool {
        let mut known = String::new();
        loop {
            match self.attempt().await {
                Attempt::Ours(until) => {
                    self.leads = true;
                    self.fence.open_until(until);
                    tracing::info!(identity = self.config.identity, "became the leader");
                    return true;
                }
                Attempt::Taken(holder) if holder != known => {
                    tracing::info!(holder, "another one leads, standing by");
                    known = holder;
                }
                Attempt::Taken(_) | Attempt::Failed => {}
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return false,
                () = self.clock.sleep(self.config.retry) => {}
            }
        }
    }

    /// Renews until leadership is lost; from then on the fence is closed.
    pub(crate) async fn hold(&mut self) {
        let mut pause = self.config.retry;
        loop {
            self.clock.sleep(pause).await;
            let held = self.fence.is_in_time(&*self.clock)
                && match self.attempt().await {
                    Attempt::Ours(until) => {
                        pause = self.config.retry;
                        self.fence.extend(until, &*self.clock)
                    }
                    Attempt::Taken(holder) => {
                        tracing::error!(holder, "another one took the lease");
                        false
                    }
                    Attempt::Failed => {
                        pause = self.config.retry / 2;
                        self.fence.is_in_time(&*self.clock)
                    }
                };
            if !held {
                self.fence.close();
                return;
            }
        }
    }

    /// One attempt to take the Lease or to renew it.
    async fn attempt(&mut self) -> Attempt {
        let began = Moment::now(&*self.clock);
        let attempt = match self.requests.get(&self.object()).await {
            Ok(None) => {
                // Somebody deleted it; that does not stop the one who held it.
                self.inherited |= self.seen.as_ref().is_some_and(|(lease, _)| self.is_anothers(lease));
                self.requests.create(&self.object(), &self.record(None, began.date)).await.map(Some)
            }
            Ok(Some(lease)) => {
                if let Some(holder) = self.holder_in_the_way(&lease, began.elapsed) {
                    return Attempt::Taken(holder);
                }
                self.inherited |= self.is_anothers(&lease);
                self.requests.replace(&self.object(), &self.record(Some(&lease), began.date)).await.map(Some)
            }
            Err(error) => Err(error),
        };
        match attempt {
            Ok(lease) => {
                self.seen = lease.map(|lease| (lease, began.elapsed));
                // Counted from before the request, so that the server can only have seen the renewal later than that.
                Attempt::Ours(began.after(self.config.renew_deadline))
            }
            Err(error) => {
                // Losing a race is no trouble: the next attempt sees who won.
                if !error.is_conflict() {
                    tracing::warn!(%error, "the lease could not be taken or renewed");
                }
                Attempt::Failed
            }
        }
    }

    /// The name of the term that begins with us, if the leader before may still have requests on their way: the version of
    /// the Lease, which no other term can have. (Its `leaseTransitions` begin anew when somebody deletes it.)
    pub(crate) fn term(&self) -> Option<String> {
        let (lease, _) = self.seen.as_ref().filter(|_| self.inherited)?;
        Some(lease.pointer("/metadata/resourceVersion")?.as_str()?.to_owned())
    }

    /// Somebody else holds it.
    fn is_anothers(&self, lease: &Value) -> bool {
        !is_held_by(lease, "") && !is_held_by(lease, &self.config.identity)
    }

    /// Who holds `lease` and may not be pushed aside yet.
    fn holder_in_the_way(&mut self, lease: &Value, now: Duration) -> Option<String> {
        let holder = holder(lease);
        if holder == self.config.identity || (holder.is_empty() && !self.leads) {
            return None;
        }
        if self.leads {
            return Some(holder.to_owned());
        }
        let since = match &self.seen {
            Some((known, since)) if known.get("spec") == lease.get("spec") => *since,
            _ => now,
        };
        self.seen = Some((lease.clone(), since));
        let duration = lease.pointer("/spec/leaseDurationSeconds").and_then(Value::as_u64);
        let duration = duration.map_or(self.config.duration, Duration::from_secs);
        (now < since.saturating_add(duration)).then(|| holder.to_owned())
    }

    /// The Lease as we write it. Taken over from the stored one: everything we do not set, and the resourceVersion.
    fn record(&self, stored: Option<&Value>, now: Timestamp) -> Value {
        let renewal = stored.filter(|lease| is_held_by(lease, &self.config.identity));
        let number = |pointer: &str| stored.and_then(|lease| lease.pointer(pointer)?.as_i64());
        let transitions = number("/spec/leaseTransitions").unwrap_or(0);
        let object = self.object();
        let mut lease = stored.cloned().unwrap_or_else(|| {
            json!({
                "apiVersion": LEASE.api_version(), "kind": LEASE.kind,
                "metadata": { "namespace": object.namespace, "name": object.name }
            })
        });
        lease["spec"] = json!({
            "holderIdentity": self.config.identity,
            "leaseDurationSeconds": self.config.duration.as_secs().max(1),
            "acquireTime": renewal.and_then(|lease| lease.pointer("/spec/acquireTime").cloned()).unwrap_or_else(|| micro(now)),
            "renewTime": micro(now),
            "leaseTransitions": if stored.is_none() || renewal.is_some() { transitions } else { transitions + 1 },
        });
        lease
    }

    /// Gives the Lease back, so that the next leader need not wait. Best effort: it runs out by itself, and who was told to
    /// stop has other things to do. While a write may still be under way it is not: who finds it free need not expect any.
    pub(crate) async fn release(&mut self, all_ended: bool) {
        self.fence.close();
        if !all_ended {
            tracing::warn!("the lease is not given back but runs out: something may still be written");
            return;
        }
        if tokio::time::timeout(GIVING_BACK, self.give_back()).await.is_err() {
            tracing::warn!("the lease could not be given back in time");
        }
    }

    async fn give_back(&self) {
        let Ok(Some(mut lease)) = self.requests.get(&self.object()).await else { return };
        if !is_held_by(&lease, &self.config.identity) {
            return;
        }
        lease["spec"]["holderIdentity"] = json!("");
        lease["spec"]["leaseDurationSeconds"] = json!(1);
        if let Err(error) = self.requests.replace(&self.object(), &lease).await {
            tracing::warn!(%error, "the lease could not be given back");
        }
    }

    fn object(&self) -> ObjectRef {
        ObjectRef { kind: LEASE, namespace: self.config.namespace.clone(), name: LEASE_NAME.to_owned() }
    }
}

/// Who holds a Lease; nobody is the empty name.
fn holder(lease: &Value) -> &str {
    lease.pointer("/spec/holderIdentity").and_then(Value::as_str).unwrap_or_default()
}

fn is_held_by(lease: &Value, identity: &str) -> bool {
    holder(lease) == identity
}

/// A time as Leases store it: with exactly six digits behind the second.
fn micro(now: Timestamp) -> Value {
    json!(format!("{now:.6}"))
}

#[cfg(test)]
mod tests;
