//! What adapters read: cached objects, by kind and name.
//!
//! The operator's cache implements [`World`]; tests use [`Objects`], a map filled from YAML. Nothing here asks the API
//! server. ConfigMaps and Secrets are in the world only as the projection that [`crate::targets::config::project`]
//! makes (name, type, checksum): their data is fetched when a promotion needs it and handed in as [`Fetched`].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::change::{Kind, ObjectRef};
use crate::object::{self, controller};

/// Cached objects.
pub trait World {
    /// One object, or `None` when it does not exist (as far as the cache knows).
    fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// Every cached object of one kind in one namespace, ordered by name.
    fn list(&self, kind: Kind, namespace: &str) -> Vec<Arc<Value>>;

    /// Those of them that the Canary of this uid controls, under whatever names.
    fn controlled(&self, kind: Kind, namespace: &str, uid: &str) -> Vec<Arc<Value>> {
        let mut objects = self.list(kind, namespace);
        objects.retain(|object| controller(object) == Some(uid));
        objects
    }
}

/// Whole ConfigMaps and Secrets, fetched because [`crate::effects::needs`] asked for them. An object that was asked for
/// and does not exist is simply absent.
pub type Fetched = BTreeMap<ObjectRef, Value>;

/// A world made of plain objects: for tests, for `lint`, for rehearsals.
#[derive(Clone, Debug, Default)]
pub struct Objects(BTreeMap<(String, String, String), Arc<Value>>);

impl Objects {
    /// Adds or replaces one object; its kind, namespace and name are read from it.
    pub fn insert(&mut self, object: Value) {
        let text = |pointer: &str| object::text(&object, pointer).to_owned();
        let key = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        self.0.insert(key, Arc::new(object));
    }

    /// Removes one object.
    pub fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        self.0.remove(&(kind.kind.to_owned(), namespace.to_owned(), name.to_owned()));
    }
}

impl FromIterator<Value> for Objects {
    fn from_iter<I: IntoIterator<Item = Value>>(objects: I) -> Self {
        let mut world = Self::default();
        objects.into_iter().for_each(|object| world.insert(object));
        world
    }
}

impl World for Objects {
    fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.0.get(&(kind.kind.to_owned(), namespace.to_owned(), name.to_owned())).cloned()
    }

    fn list(&self, kind: Kind, namespace: &str) -> Vec<Arc<Value>> {
        self.0.iter().filter(|((k, ns, _), _)| k == kind.kind && ns == namespace).map(|(_, o)| o.clone()).collect()
    }
}
