//! The store: every version of every object, one counter for all of them, and a log that watches follow.
//!
//! It knows nothing about Kubernetes beyond `metadata.resourceVersion`, owner references and the addresses of Services
//! (which nobody could hand out quickly without an index). History is kept until it
//! is compacted, so a list can be continued, or served stale, at the version it began with. All state is behind one
//! lock and a write is a plain function call under it, which makes read-modify-write trivially atomic.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::meta;
use crate::bell::{Bell, Listener};

/// An object's place among those of its resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// An object's place in the store: resource and key.
pub(crate) type Id = (Arc<str>, Key);

/// One committed write.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) id: Id,
    pub(crate) before: Option<Arc<Value>>,
    /// The object after the write; for a deletion its last state, at the revision of the deletion.
    pub(crate) after: Arc<Value>,
    pub(crate) deleted: bool,
}

struct Version {
    revision: u64,
    object: Option<Arc<Value>>,
}

/// The objects of one resource.
#[derive(Default)]
struct Shelf {
    objects: BTreeMap<Key, Vec<Version>>,
    log: VecDeque<Arc<Change>>,
    /// The revision of the last change that compaction took from the log.
    lost: u64,
    /// Rung after every change; watches sleep on it.
    changed: Bell,
}

/// Everything the lock protects.
pub(crate) struct State {
    revision: u64,
    compacted: u64,
    /// How many changes are kept.
    history: usize,
    changes: usize,
    shelves: BTreeMap<Arc<str>, Shelf>,
    by_uid: BTreeMap<String, Id>,
    dependents: BTreeMap<String, BTreeSet<Id>>,
    /// Addresses of Services, and whose they are.
    addresses: BTreeMap<IpAddr, Id>,
    /// The host part of the last one that was given out.
    pub(crate) last_address: Cell<u16>,
    /// Objects of which a real server would have stored more than it shows.
    untidy: BTreeSet<Id>,
}

/// The store; see the module.
pub(crate) struct Store(Mutex<State>);

impl Store {
    /// An empty store that keeps the last `history` changes.
    pub(crate) fn new(history: usize) -> Self {
        Self(Mutex::new(State {
            revision: 1,
            compacted: 0,
            history,
            changes: 0,
            shelves: BTreeMap::new(),
            by_uid: BTreeMap::new(),
            dependents: BTreeMap::new(),
            addresses: BTreeMap::new(),
            // The first belongs to the API server.
            last_address: Cell::new(1),
            untidy: BTreeSet::new(),
        }))
    }

    /// Exclusive access.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The revision of the last write.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// The last revision whose history is gone.
    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// The current state of an object.
    pub(crate) fn get(&self, resource: &str, key: &Key) -> Option<&Arc<Value>> {
        self.shelves.get(resource)?.objects.get(key)?.last()?.object.as_ref()
    }

    /// An object as it was at a revision.
    pub(crate) fn at(&self, resource: &str, key: &Key, revision: u64) -> Option<&Arc<Value>> {
        let versions = self.shelves.get(resource)?.objects.get(key)?;
        versions.iter().rev().find(|version| version.revision <= revision)?.object.as_ref()
    }

    /// The changes of a resource that are still remembered, the latest first.
    pub(crate) fn latest(&self, resource: &str) -> impl Iterator<Item = &Arc<Change>> {
        self.shelves.get(resource).into_iter().flat_map(|shelf| shelf.log.iter().rev())
    }

    /// The objects of a resource as they were at a revision, in key order, from one namespace or all.
    pub(crate) fn list_at<'a>(
        &'a self,
        resource: &str,
        namespace: Option<&'a str>,
        revision: u64,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        let shelf = self.shelves.get(resource);
        let objects = shelf.into_iter().flat_map(|shelf| shelf.objects.iter());
        objects.filter(move |(key, _)| namespace.is_none_or(|namespace| key.namespace == namespace)).filter_map(
            move |(key, versions)| {
                let version = versions.iter().rev().find(|version| version.revision <= revision)?;
                Some((key, version.object.as_ref()?))
            },
        )
    }

    /// The current objects of a resource.
    pub(crate) fn list<'a>(
        &'a self,
        resource: &str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        self.list_at(resource, namespace, u64::MAX)
    }

    /// The objects of all resources in a namespace.
    pub(crate) fn inside(&self, namespace: &str) -> Vec<Id> {
        let resources = self.shelves.keys();
        resources
            .flat_map(|resource| self.list(resource, Some(namespace)).map(|(key, _)| (resource.clone(), key.clone())))
            .collect()
    }

    /// Where the object with a uid is.
    pub(crate) fn find(&self, uid: &str) -> Option<&Id> {
        self.by_uid.get(uid)
    }

    /// The objects that name a uid among their owners.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Id> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// The Service that has an address.
    pub(crate) fn holder(&self, address: IpAddr) -> Option<&Id> {
        self.addresses.get(&address)
    }

    /// Whether the next write of an object is one even if it changes nothing.
    pub(crate) fn is_untidy(&self, id: &Id) -> bool {
        self.untidy.contains(id)
    }

    /// Makes the next write of an object one even if it changes nothing.
    pub(crate) fn mark_untidy(&mut self, id: Id) {
        self.untidy.insert(id);
    }

    /// Writes an object and gives it the next resource version.
    pub(crate) fn put(&mut self, id: Id, mut object: Value) -> Arc<Change> {
        self.revision += 1;
        meta::metadata(&mut object).insert("resourceVersion".into(), self.revision.to_string().into());
        let after = Arc::new(object);
        self.record(id, Some(after.clone()), after, false)
    }

    /// Removes an object; it must exist.
    pub(crate) fn remove(&mut self, id: Id) -> Option<Arc<Change>> {
        let mut last = Value::clone(self.get(&id.0, &id.1)?);
        self.revision += 1;
        meta::metadata(&mut last).insert("resourceVersion".into(), self.revision.to_string().into());
        Some(self.record(id, None, Arc::new(last), true))
    }

    fn record(&mut self, id: Id, now: Option<Arc<Value>>, after: Arc<Value>, deleted: bool) -> Arc<Change> {
        let revision = self.revision;
        self.untidy.remove(&id);
        let shelf = self.shelves.entry(id.0.clone()).or_default();
        let versions = shelf.objects.entry(id.1.clone()).or_default();
        let before = versions.last().and_then(|version| version.object.clone());
        versions.push(Version { revision, object: now });
        let change = Arc::new(Change { revision, id, before, after, deleted });
        shelf.log.push_back(change.clone());
        shelf.changed.ring();
        self.index(&change);
        self.changes += 1;
        if self.changes > self.history.saturating_mul(2) {
            self.compact(self.revision.saturating_sub(self.history as u64));
        }
        change
    }

    fn index(&mut self, change: &Change) {
        let address = |object: &Value| meta::text(object, "/spec/clusterIP").parse().ok();
        let address = |object: &Value| address(object).filter(|_: &IpAddr| *change.id.0 == *"services");
        if let Some(before) = &change.before {
            address(before).map(|address| self.addresses.remove(&address));
            self.by_uid.remove(meta::uid(before));
            for owner in meta::owners(before) {
                if let Some(dependents) = self.dependents.get_mut(owner.uid) {
                    dependents.remove(&change.id);
                    if dependents.is_empty() {
                        self.dependents.remove(owner.uid);
                    }
                }
            }
        }
        if !change.deleted {
            address(&change.after).map(|address| self.addresses.insert(address, change.id.clone()));
            self.by_uid.insert(meta::uid(&change.after).to_owned(), change.id.clone());
            for owner in meta::owners(&change.after) {
                self.dependents.entry(owner.uid.to_owned()).or_default().insert(change.id.clone());
            }
        }
    }

    /// Forgets history up to a revision: what was current then stays, what it replaced goes.
    pub(crate) fn compact(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision.min(self.revision));
        let compacted = self.compacted;
        self.changes = 0;
        for shelf in self.shelves.values_mut() {
            let gone = shelf.log.partition_point(|change| change.revision <= compacted);
            shelf.lost = shelf.log.drain(..gone).next_back().map_or(shelf.lost, |change| change.revision);
            self.changes += shelf.log.len();
            shelf.objects.retain(|_, versions| {
                let keep_from = versions.partition_point(|version| version.revision <= compacted).saturating_sub(1);
                versions.drain(..keep_from);
                versions.len() > 1 || versions.iter().any(|version| version.object.is_some())
            });
        }
    }

    /// The changes of a resource after a revision; `None` when some of them are compacted away.
    pub(crate) fn since(&self, resource: &str, revision: u64) -> Option<Vec<Arc<Change>>> {
        let Some(shelf) = self.shelves.get(resource) else { return Some(Vec::new()) };
        if shelf.lost > revision {
            return None;
        }
        let from = shelf.log.partition_point(|change| change.revision <= revision);
        Some(shelf.log.range(from..).cloned().collect())
    }

    /// Wakes whoever waits for a change of a resource; ends when the store does.
    pub(crate) fn subscribe(&mut self, resource: &Arc<str>) -> Listener {
        self.shelves.entry(resource.clone()).or_default().changed.listen()
    }

    /// Drops the history of a resource that is no more, and ends its watches. Objects that nobody asked for stay, should
    /// the resource come back.
    pub(crate) fn forget(&mut self, resource: &str) {
        let objects = self.shelves.remove(resource).map(|shelf| shelf.objects).unwrap_or_default();
        let last = |mut versions: Vec<Version>| versions.pop().filter(|version| version.object.is_some());
        let left: BTreeMap<_, _> =
            objects.into_iter().filter_map(|(key, versions)| Some((key, vec![last(versions)?]))).collect();
        if !left.is_empty() {
            let shelf = Shelf { objects: left, lost: self.revision, ..Shelf::default() };
            self.shelves.insert(resource.into(), shelf);
        }
        self.untidy.retain(|id| *id.0 != *resource);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id(name: &str) -> Id {
        ("pods".into(), Key { namespace: "default".into(), name: name.into() })
    }

    fn pod(name: &str, uid: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "default", "uid": uid}})
    }

    fn names_at(state: &State, revision: u64) -> Vec<String> {
        state.list_at("pods", None, revision).map(|(key, _)| key.name.clone()).collect()
    }

    #[test]
    fn every_revision_can_still_be_read() {
        let store = Store::new(100);
        let mut state = store.lock();
        state.put(id("a"), pod("a", "1"));
        let second = state.put(id("b"), pod("b", "2")).revision;
        state.remove(id("a"));
        assert_eq!(names_at(&state, second), ["a", "b"]);
        assert_eq!(names_at(&state, u64::MAX), ["b"]);
        assert_eq!(state.since("pods", second).unwrap().len(), 1);
    }

    #[test]
    fn compaction_keeps_what_is_current() {
        let store = Store::new(100);
        let mut state = store.lock();
        state.put(id("a"), pod("a", "1"));
        state.put(id("b"), pod("b", "2"));
        state.remove(id("a"));
        let now = state.revision();
        state.compact(now);
        assert_eq!(names_at(&state, now), ["b"]);
        assert!(state.since("pods", 0).is_none());
        assert!(state.since("pods", now).unwrap().is_empty());
        assert_eq!(state.compacted(), now);
    }

    #[test]
    fn history_is_bounded() {
        let store = Store::new(10);
        let mut state = store.lock();
        for round in 0..100 {
            state.put(id("a"), pod("a", &round.to_string()));
        }
        assert!(state.since("pods", state.compacted()).unwrap().len() <= 20);
        assert!(state.compacted() > 80);
    }
}
