//! Everything that has been seen. Pure: a sight goes in, changes worth telling come out.
//!
//! What was there before anybody looked is shown but not told: a log begins with where things are, not with what led
//! there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use seaway_api::Phase;
use seaway_api::canary::HookType;
use serde::Serialize;
use serde_json::Value;

use super::canary::{self, CanaryFacts};
use super::checks::{self, Check};
use super::objects::{EventLine, Key, Kind, Object, Pod, ReplicaSet, Route, Service, Workload};

/// Events that are remembered of one canary.
const EVENTS_KEPT: usize = 50;
/// Weights that are remembered of one canary.
const WEIGHTS_KEPT: usize = 500;
/// Times of Events and decisions are whole seconds, so what was said in the second we came is new.
const GRAIN: Duration = Duration::from_secs(1);

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    /// An object as it is now.
    Seen(Object),
    /// An object is gone.
    Gone(Kind, Key),
    /// All objects of a kind will be shown again.
    Listing(Kind),
    /// That was all of them.
    Listed(Kind),
    /// A kind cannot be seen at the moment.
    Trouble(Kind, Trouble),
}

/// Why a kind cannot be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// We are not allowed to.
    Forbidden(String),
    /// The cluster does not know it.
    Unknown,
    /// The API server did not answer, or not well.
    Lost(String),
}

/// How well a kind can be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// It was asked for, and has not come yet.
    Waiting,
    /// What is not known does not exist.
    Synced,
    /// It cannot be seen, since then.
    Troubled(Timestamp, Trouble),
}

/// Something new that is worth telling.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "lowercase")]
pub enum Change {
    /// A new phase.
    Phase {
        /// Which.
        phase: Phase,
    },
    /// The traffic moved.
    Split {
        /// Weight of the primary.
        primary: u8,
        /// Weight of the canary.
        canary: u8,
    },
    /// A check was answered.
    Check(Check),
    /// Somebody should know.
    Event(EventLine),
    /// The operator does nothing for this Canary.
    Refused {
        /// Why, with the field.
        message: String,
    },
    /// The Canary does not exist any more.
    Deleted,
}

/// What is known of one canary.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The Canary.
    pub facts: CanaryFacts,
    /// Since when it is gone.
    pub gone: Option<Timestamp>,
    /// Since when the operator refuses it.
    pub refused: Option<Timestamp>,
    /// Weights of primary and canary, as the route has them.
    pub split: Option<(u8, u8)>,
    /// What its checks said last, in the order they are asked.
    pub checks: Vec<Check>,
    /// The last Events, oldest first.
    pub events: VecDeque<EventLine>,
    /// The canary's weight over time, oldest first.
    pub weights: VecDeque<(Timestamp, u8)>,
}

/// Everything that is known.
#[derive(Clone, Debug)]
pub struct World {
    began: Timestamp,
    canaries: BTreeMap<Key, Known>,
    /// Deployments and DaemonSets may share a name, as targets they do not.
    pub(super) workloads: BTreeMap<Key, Workload>,
    pub(super) replica_sets: BTreeMap<Key, ReplicaSet>,
    pub(super) pods: BTreeMap<Key, Pod>,
    pub(super) services: BTreeMap<Key, Service>,
    pub(super) routes: BTreeMap<Key, Route>,
    access: BTreeMap<Kind, Access>,
    /// Names met since a list began; what a finished list did not name is gone.
    listing: BTreeMap<Kind, BTreeSet<Key>>,
}

impl World {
    /// Nothing has been seen yet. What happened before `began` is not told.
    pub fn new(began: Timestamp) -> Self {
        Self {
            began,
            canaries: BTreeMap::new(),
            workloads: BTreeMap::new(),
            replica_sets: BTreeMap::new(),
            pods: BTreeMap::new(),
            services: BTreeMap::new(),
            routes: BTreeMap::new(),
            access: BTreeMap::new(),
            listing: BTreeMap::new(),
        }
    }

    /// Takes in a sight; what is new about it comes back, with the canary it is about.
    pub fn take(&mut self, now: Timestamp, sight: Sight) -> Vec<(Key, Change)> {
        match sight {
            Sight::Seen(object) => self.see(now, object),
            Sight::Gone(kind, key) => self.lose(now, kind, &key).into_iter().collect(),
            Sight::Listing(kind) => {
                self.access.entry(kind).or_insert(Access::Waiting);
                self.listing.insert(kind, BTreeSet::new());
                Vec::new()
            }
            Sight::Listed(kind) => self.listed(now, kind),
            Sight::Trouble(kind, trouble) => {
                let since = match self.access.get(&kind) {
                    Some(Access::Troubled(since, _)) => *since,
                    _ => now,
                };
                self.listing.remove(&kind);
                self.access.insert(kind, Access::Troubled(since, trouble));
                Vec::new()
            }
        }
    }

    /// A canary.
    pub fn canary(&self, key: &Key) -> Option<&Known> {
        self.canaries.get(key)
    }

    /// All canaries that exist, by namespace and name.
    pub fn canaries(&self) -> impl Iterator<Item = (&Key, &Known)> {
        self.canaries.iter().filter(|(_, known)| known.gone.is_none())
    }

    /// How well a kind can be seen; `None` when nobody looks.
    pub fn access(&self, kind: Kind) -> Option<&Access> {
        self.access.get(&kind)
    }

    /// Everything that cannot be seen, and since when.
    pub fn troubles(&self) -> impl Iterator<Item = (Kind, Timestamp, &Trouble)> {
        self.access.iter().filter_map(|(kind, access)| match access {
            Access::Troubled(since, trouble) => Some((*kind, *since, trouble)),
            Access::Waiting | Access::Synced => None,
        })
    }

    /// Somebody begins to look at this kind.
    pub fn expect(&mut self, kind: Kind) {
        self.access.insert(kind, Access::Waiting);
    }

    /// Nobody looks at these kinds any more.
    pub fn forget(&mut self, kinds: &[Kind]) {
        for kind in kinds {
            self.access.remove(kind);
            self.listing.remove(kind);
            for key in self.known(*kind) {
                self.remove(*kind, &key);
            }
        }
    }

    fn see(&mut self, now: Timestamp, object: Object) -> Vec<(Key, Change)> {
        let (kind, key) = identity(&object);
        if let Some(met) = self.listing.get_mut(&kind) {
            met.insert(key.clone());
        }
        match object {
            Object::Canary(facts) => {
                let changes = self.see_canary(now, *facts);
                return changes.into_iter().map(|change| (key.clone(), change)).collect();
            }
            Object::Event(event) => return self.see_event(event).into_iter().collect(),
            Object::Route(route) => {
                self.routes.insert(key.clone(), route);
                return self.see_route(now, &key);
            }
            Object::Workload(workload) => drop(self.workloads.insert(key, workload)),
            Object::ReplicaSet(set) => drop(self.replica_sets.insert(key, set)),
            Object::Pod(pod) => drop(self.pods.insert(key, pod)),
            Object::Service(service) => drop(self.services.insert(key, service)),
        }
        Vec::new()
    }

    fn see_canary(&mut self, now: Timestamp, facts: CanaryFacts) -> Vec<Change> {
        let began = self.began;
        let route = self.routes.get(&Key::new(facts.key.namespace.as_str(), facts.apex.as_str())).cloned();
        let first = !self.canaries.contains_key(&facts.key);
        let known = self.canaries.entry(facts.key.clone()).or_default();
        if known.gone.is_some() || known.facts.uid != facts.uid {
            // Another Canary under the same name; what people read about the first is still theirs to read.
            *known = Known { events: std::mem::take(&mut known.events), ..Known::default() };
        }
        let mut changes = Vec::new();
        if known.facts.status.last_applied_spec != facts.status.last_applied_spec || known.checks.is_empty() {
            known.checks.clone_from(&facts.checks);
        }
        let told = std::mem::take(&mut known.facts.status.decisions);
        for record in facts.status.decisions.iter().filter(|record| !told.contains(record)) {
            let old = is_before(record, began);
            if first || old {
                known.weights.extend(canary::recorded(record));
            }
            let mut found = Vec::new();
            checks::recorded(record, &mut found);
            if record.get("rule").is_some_and(|rule| rule == "advance") || !found.is_empty() {
                known.hooks_agreed();
            }
            for check in found {
                known.hear(&check);
                if !old {
                    changes.push(Change::Check(check));
                }
            }
        }
        if known.facts.phase() != facts.phase() {
            changes.push(Change::Phase { phase: facts.phase() });
        }
        let refusal = facts.refusal();
        if let Some(message) = refusal.clone().filter(|_| refusal != known.facts.refusal()) {
            changes.push(Change::Refused { message });
        }
        known.refused = refusal.and(known.refused.or(Some(now)));
        known.facts = facts;
        changes.extend(known.move_traffic(now, route.as_ref()));
        changes
    }

    fn see_event(&mut self, event: EventLine) -> Option<(Key, Change)> {
        let known = self.canaries.get_mut(&event.about)?;
        let last = known.events.iter().rev().find(|other| other.name == event.name);
        if last.is_some_and(|last| last.writes >= event.writes && last.text == event.text) {
            return None;
        }
        let recorded = !known.facts.status.decisions.is_empty();
        if let Some(check) = checks::said(&event, &known.checks).filter(|check| check.hook.is_some() || !recorded) {
            known.hear(&check);
        }
        if event.text.starts_with("Advance ") && !recorded {
            known.hooks_agreed();
        }
        let place = known.events.partition_point(|other| other.at <= event.at);
        known.events.insert(place, event.clone());
        if known.events.len() > EVENTS_KEPT {
            known.events.pop_front();
        }
        let old = event.at.is_some_and(|at| at + GRAIN < self.began);
        (!old).then(|| (event.about.clone(), Change::Event(event)))
    }

    /// A route was changed, or is gone: whom does it concern?
    fn see_route(&mut self, now: Timestamp, key: &Key) -> Vec<(Key, Change)> {
        let route = self.routes.get(key);
        let neighbours = self.canaries.range_mut(Key::new(key.namespace.as_str(), "")..);
        let neighbours = neighbours.take_while(|(canary, _)| canary.namespace == key.namespace);
        let concerned = neighbours.filter(|(_, known)| known.facts.apex == key.name && known.gone.is_none());
        let changes = concerned.map(|(canary, known)| (canary.clone(), known.move_traffic(now, route)));
        changes.filter_map(|(canary, change)| change.map(|change| (canary, change))).collect()
    }

    fn lose(&mut self, now: Timestamp, kind: Kind, key: &Key) -> Option<(Key, Change)> {
        if kind == Kind::Canary {
            let known = self.canaries.get_mut(key).filter(|known| known.gone.is_none())?;
            known.gone = Some(now);
            return Some((key.clone(), Change::Deleted));
        }
        self.remove(kind, key);
        if kind == Kind::Route {
            self.see_route(now, key);
        }
        None
    }

    fn listed(&mut self, now: Timestamp, kind: Kind) -> Vec<(Key, Change)> {
        self.access.insert(kind, Access::Synced);
        let Some(met) = self.listing.remove(&kind) else { return Vec::new() };
        let gone: Vec<Key> = self.known(kind).into_iter().filter(|key| !met.contains(key)).collect();
        gone.iter().filter_map(|key| self.lose(now, kind, key)).collect()
    }

    fn known(&self, kind: Kind) -> Vec<Key> {
        match kind {
            Kind::Canary => self.canaries.keys().cloned().collect(),
            Kind::Route => self.routes.keys().cloned().collect(),
            // Events expire; what was said stays said.
            Kind::Event => Vec::new(),
            Kind::Deployment | Kind::DaemonSet => {
                self.workloads.iter().filter(|(_, one)| one.kind == kind).map(|(key, _)| key.clone()).collect()
            }
            Kind::ReplicaSet => self.replica_sets.keys().cloned().collect(),
            Kind::Pod => self.pods.keys().cloned().collect(),
            Kind::Service => self.services.keys().cloned().collect(),
        }
    }

    fn remove(&mut self, kind: Kind, key: &Key) {
        match kind {
            Kind::Canary => drop(self.canaries.remove(key)),
            Kind::Route => drop(self.routes.remove(key)),
            Kind::Event => {}
            Kind::Deployment | Kind::DaemonSet => drop(self.workloads.remove(key)),
            Kind::ReplicaSet => drop(self.replica_sets.remove(key)),
            Kind::Pod => drop(self.pods.remove(key)),
            Kind::Service => drop(self.services.remove(key)),
        }
    }
}

fn identity(object: &Object) -> (Kind, Key) {
    match object {
        Object::Canary(one) => (Kind::Canary, one.key.clone()),
        Object::Workload(one) => (one.kind, one.key.clone()),
        Object::ReplicaSet(one) => (Kind::ReplicaSet, one.key.clone()),
        Object::Pod(one) => (Kind::Pod, one.key.clone()),
        Object::Service(one) => (Kind::Service, one.key.clone()),
        Object::Route(one) => (Kind::Route, one.key.clone()),
        Object::Event(one) => (Kind::Event, Key::new(one.about.namespace.as_str(), one.name.as_str())),
    }
}

/// Whether a decision was made before `began`. A record without a time is news.
fn is_before(record: &Value, began: Timestamp) -> bool {
    let time = record.get("time").and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok());
    time.is_some_and(|time| time + GRAIN < began)
}

impl Known {
    /// Keeps what a check said, in the place where it is asked. Bounds that were not said again stay.
    fn hear(&mut self, check: &Check) {
        match self.checks.iter_mut().find(|known| known.name == check.name) {
            Some(known) => {
                *known = Check {
                    hook: known.hook,
                    min: check.min.or(known.min),
                    max: check.max.or(known.max),
                    ..check.clone()
                }
            }
            None => self.checks.push(check.clone()),
        }
    }

    /// Nobody records that a hook agreed. But hooks are asked before metrics, and all before a step: whoever got there has
    /// passed them. One that did not agree is recorded, and heard after this.
    fn hooks_agreed(&mut self) {
        for check in self.checks.iter_mut().filter(|check| check.hook == Some(HookType::Rollout)) {
            (check.verdict, check.reason) = ("pass".to_owned(), None);
        }
    }

    /// Where the traffic is: by the route, and by the status where there is no route to look at.
    fn move_traffic(&mut self, now: Timestamp, route: Option<&Route>) -> Option<Change> {
        let facts = &self.facts;
        let seen = route.and_then(|route| {
            let primary = route.weight(&facts.primary_service)?;
            Some(percent(primary, route.weight(&facts.canary_service).unwrap_or(0)))
        });
        let moved = seen.is_some() && seen != self.split;
        let weight = seen.map_or(facts.weight(), |(_, canary)| canary);
        if self.weights.back().is_none_or(|(_, last)| *last != weight) {
            self.weights.push_back((now, weight));
            if self.weights.len() > WEIGHTS_KEPT {
                self.weights.pop_front();
            }
        }
        self.split = seen;
        seen.filter(|_| moved).map(|(primary, canary)| Change::Split { primary, canary })
    }
}

/// Two weights as shares of a hundred. Flagger's add up to it already.
fn percent(primary: i64, canary: i64) -> (u8, u8) {
    let total = primary.saturating_add(canary);
    if total <= 0 {
        return (0, 0);
    }
    let canary = u8::try_from(i128::from(canary) * 100 / i128::from(total)).unwrap_or(100);
    (100 - canary, canary)
}

#[cfg(test)]
#[path = "world/tests.rs"]
mod tests;
