//! Who controls which route, which workload and which stored revision, by the owner's uid.
//!
//! A canary must find what it made, also under names that its spec no longer says, without reading its whole namespace. Only
//! a hint: an entry may be out of date until its owner is gone, so whoever looks something up reads the object and checks.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use seaway_adapters::change::Kind;
use seaway_adapters::kinds::{CONTROLLER_REVISION, DEPLOYMENT};
use seaway_adapters::object::controller;
use serde_json::Value;

use super::{is_route, text};

/// Kinds and names of controlled objects, by the hash of the owner's uid: ten thousand canaries have few bytes each.
#[derive(Default)]
pub(super) struct Owned(BTreeMap<u64, Vec<(Kind, Box<str>)>>);

impl Owned {
    /// `object` exists.
    pub(super) fn insert(&mut self, kind: Kind, object: &Value) {
        let Some(owner) = owner(kind, object) else { return };
        let objects = self.0.entry(hash(owner)).or_default();
        let name = text(object, "/metadata/name");
        if !objects.iter().any(|(known, called)| *known == kind && **called == *name) {
            objects.push((kind, name.into()));
        }
    }

    /// `object` is gone.
    pub(super) fn remove(&mut self, kind: Kind, object: &Value) {
        let Some(owner) = owner(kind, object).map(hash) else { return };
        if let Some(objects) = self.0.get_mut(&owner) {
            let name = text(object, "/metadata/name");
            objects.retain(|(known, called)| *known != kind || **called != *name);
            if objects.is_empty() {
                self.0.remove(&owner);
            }
        }
    }

    /// The owner itself is gone.
    pub(super) fn forget(&mut self, uid: &str) {
        self.0.remove(&hash(uid));
    }

    /// Names of what the owner of this uid may control.
    pub(super) fn of(&self, uid: &str, kind: Kind) -> Vec<Box<str>> {
        let objects = self.0.get(&hash(uid)).into_iter().flatten().filter(|(known, _)| *known == kind);
        let mut names: Vec<Box<str>> = objects.map(|(_, name)| name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// How many owners there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Whether somebody may ask who controls an object of this kind.
pub(super) fn is_indexed(kind: Kind) -> bool {
    kind == DEPLOYMENT || kind == CONTROLLER_REVISION || is_route(kind)
}

fn owner(kind: Kind, object: &Value) -> Option<&str> {
    controller(object).filter(|_| is_indexed(kind))
}

fn hash(uid: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    hasher.finish()
}
