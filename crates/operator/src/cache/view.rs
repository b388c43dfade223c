//! The cache as one round sees it.
//!
//! Reading through a view pins what was read and registers the interest in it. A view does not outlive its round.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use seaway_adapters::change::{Kind, ObjectRef};
use seaway_adapters::kinds::CANARY;
use seaway_adapters::object::controller;
use seaway_adapters::world::World;
use serde_json::Value;

use super::interests::Subject;
use super::{Cache, Presence, name_of, parts, project};
use crate::key::CanaryKey;

/// The world as one round sees it: every object is read once and stays as it was read, except for the round's own
/// writes. What changes meanwhile is caught by the preconditions of those writes, and wakes the canary again.
pub(crate) struct View {
    pub(super) cache: Arc<Cache>,
    pub(super) key: CanaryKey,
    pub(super) read: Mutex<Pins>,
}

#[derive(Default)]
pub(super) struct Pins {
    /// Everything that was asked for.
    read: BTreeSet<Subject>,
    objects: BTreeMap<ObjectRef, Option<Arc<Value>>>,
    lists: BTreeMap<ObjectRef, Vec<Arc<Value>>>,
}

impl Pins {
    fn replace(&mut self, object: &ObjectRef, value: Option<Arc<Value>>) {
        self.lists.remove(&ObjectRef { name: String::new(), ..object.clone() });
        self.objects.insert(object.clone(), value);
    }
}

impl View {
    /// The canary this view belongs to, as it is stored.
    pub(crate) fn canary(&self) -> Option<Arc<Value>> {
        self.get(CANARY, &self.key.namespace, &self.key.name)
    }

    /// Takes over the answer of a write of this round.
    pub(crate) fn written(&self, object: &ObjectRef, answer: Value) {
        let pinned = Arc::new(project(object.kind, answer));
        self.cache.written(object.kind, pinned.clone(), &self.key);
        self.pins().replace(object, Some(pinned));
    }

    /// Takes over a deletion of this round.
    pub(crate) fn removed(&self, object: &ObjectRef, uid: &str) {
        self.cache.removed(object, uid, &self.key);
        self.pins().replace(object, None);
    }

    /// What is known of `kind` as a whole.
    pub(crate) fn presence(&self, kind: Kind) -> Presence {
        self.cache.presence(kind)
    }

    /// Takes over what the server says of `object`, which was read because the cache seems to be behind.
    pub(crate) fn refreshed(&self, object: &ObjectRef, answer: Option<Value>) {
        let doubted = self.pins().objects.get(object).cloned().flatten();
        self.cache.refreshed(object, doubted.as_deref(), answer);
    }

    /// The round is over: from now on the canary is woken by what this round read and by nothing else. If it `rests`, only
    /// a change brings the next one, and that may take months.
    pub(crate) fn finish(self, rests: bool) {
        let pins = self.read.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.cache.lock();
        state.interests.keep(&self.key, &pins.read);
        if rests {
            pins.objects.keys().for_each(|object| state.close(object));
        }
    }

    /// Nothing more is of interest: the canary is gone.
    pub(crate) fn forget(self) {
        self.cache.lock().interests.forget(&self.key);
    }

    fn pins(&self) -> MutexGuard<'_, Pins> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World for View {
    fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let object = ObjectRef { kind, namespace: namespace.to_owned(), name: name.to_owned() };
        let mut pins = self.pins();
        if let Some(pinned) = pins.objects.get(&object) {
            return pinned.clone();
        }
        let subject = Subject::of(&object);
        let known = {
            let mut state = self.cache.lock();
            state.interests.register(&self.key, subject);
            state.entry(&object).map(|entry| (entry.version, entry.open.clone(), entry.packed.clone()))
        };
        let value = known.and_then(|(version, open, packed)| {
            open.or_else(|| {
                // Opening takes its time, and nobody else should wait for it.
                let value = Arc::new(packed.open()?);
                self.cache.lock().opened(&object, version, &value);
                Some(value)
            })
        });
        pins.read.insert(subject);
        pins.objects.insert(object, value.clone());
        value
    }

    fn list(&self, kind: Kind, namespace: &str) -> Vec<Arc<Value>> {
        let whole = ObjectRef { kind, namespace: namespace.to_owned(), name: String::new() };
        let mut pins = self.pins();
        if let Some(pinned) = pins.lists.get(&whole) {
            return pinned.clone();
        }
        let subject = Subject::of(&whole);
        let mut state = self.cache.lock();
        state.interests.register(&self.key, subject);
        pins.read.insert(subject);
        let shelf = state.shelves.get(&kind);
        let entries = shelf.into_iter().flat_map(|shelf| shelf.objects.range(name_of(&whole)..));
        let entries = entries.take_while(|(name, _)| parts(name).0 == namespace);
        let values: Vec<_> = entries.filter_map(|(_, entry)| entry.read()).collect();
        pins.lists.insert(whole, values.clone());
        values
    }

    /// Only what is there now is registered. What comes later under another name is made by a round of this canary.
    fn controlled(&self, kind: Kind, namespace: &str, uid: &str) -> Vec<Arc<Value>> {
        let names = self.cache.lock().owned.of(uid, kind);
        let objects = names.iter().filter_map(|name| self.get(kind, namespace, name));
        objects.filter(|object| controller(object) == Some(uid)).collect()
    }
}
