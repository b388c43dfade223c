//! The cleaner: what must go because something else went.
//!
//! A task that is woken by every commit. It deletes objects whose owners are gone, carries out foreground and orphaning
//! deletion, empties namespaces and CRDs that are being deleted, and takes away Events whose time is over. It runs after the commit that causes it, as the
//! real one does: whoever deletes an owner still sees its dependents for a moment.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use serde_json::Value;
use tokio::sync::mpsc;

use super::delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation};
use super::expiry::Expiry;
use super::meta;
use super::server::{Author, Server};
use super::store::{Change, Id, State};
use super::write::is_finished;

const AUTHOR: Author<'_> =
    Author { user: "system:serviceaccount:kube-system:generic-garbage-collector", verb: "delete", subresource: "" };

/// Follows the commits until the server is dropped.
pub(crate) async fn collect(server: Weak<Server>, mut committed: mpsc::UnboundedReceiver<Arc<Change>>) {
    // Objects that hold others and are on their way out.
    let mut closing = BTreeSet::new();
    let mut expiry = Expiry::default();
    while let Some(change) = committed.recv().await {
        let Some(server) = server.upgrade() else { return };
        let mut state = server.store.lock();
        server.tidy(&mut state, &change, &mut closing);
        expiry.follow(&server, &mut state, &change);
    }
}

impl Server {
    fn tidy(&self, state: &mut State, change: &Change, closing: &mut BTreeSet<Id>) {
        if change.deleted {
            closing.remove(&change.id);
            for dependent in state.dependents(meta::uid(&change.after)) {
                self.collect(state, &dependent);
            }
            for owner in meta::owners(&change.after) {
                if let Some(owner) = state.find(owner.uid).cloned() {
                    self.settle(state, &owner);
                }
            }
            for container in closing.clone() {
                self.empty(state, &container);
            }
            return;
        }
        self.collect(state, &change.id);
        if meta::deleting(&change.after) {
            self.settle(state, &change.id);
            if self.stored(&change.id.0).is_some_and(|served| served.resource.behaviour.contents.is_some()) {
                closing.insert(change.id.clone());
                self.empty(state, &change.id);
            }
        }
    }

    /// Deletes an object that has owners of which none is left, and cuts references to those that are gone.
    fn collect(&self, state: &mut State, id: &Id) {
        let Some(object) = state.get(&id.0, &id.1).cloned() else { return };
        let owners = meta::owners(&object);
        if owners.is_empty() || meta::deleting(&object) {
            return;
        }
        let (mut solid, mut waiting) = (BTreeSet::new(), false);
        for owner in &owners {
            // An owner in another namespace is no owner.
            let found = state
                .find(owner.uid)
                .filter(|found| found.1.namespace.is_empty() || found.1.namespace == id.1.namespace);
            let Some(found) = found.and_then(|found| state.get(&found.0, &found.1)) else { continue };
            if meta::deleting(found) && meta::finalizers(found).contains(&FOREGROUND) {
                waiting = true;
            } else {
                solid.insert(owner.uid.to_owned());
            }
        }
        if solid.len() == owners.len() {
            return;
        }
        if solid.is_empty() {
            let held = !state.dependents(meta::uid(&object)).is_empty();
            let policy = if waiting && held { Propagation::Foreground } else { Propagation::Background };
            self.drop_object(state, id, &object, policy);
        } else {
            let mut object = Value::clone(&object);
            keep_owners(&mut object, |uid| solid.contains(uid));
            self.put(state, AUTHOR, id.clone(), object);
        }
    }

    /// Goes on with the deletion of an owner that waits for its dependents, or wants to leave them behind.
    fn settle(&self, state: &mut State, id: &Id) {
        let Some(object) = state.get(&id.0, &id.1).cloned() else { return };
        if !meta::deleting(&object) {
            return;
        }
        let finalizers = meta::finalizers(&object);
        let uid = meta::uid(&object);
        if finalizers.contains(&ORPHAN) {
            for dependent in state.dependents(uid) {
                if let Some(found) = state.get(&dependent.0, &dependent.1).cloned() {
                    let mut orphan = Value::clone(&found);
                    keep_owners(&mut orphan, |owner| owner != uid);
                    self.put(state, AUTHOR, dependent, orphan);
                }
            }
            self.let_go(state, id, &object, ORPHAN);
        } else if finalizers.contains(&FOREGROUND) {
            for dependent in state.dependents(uid) {
                self.collect(state, &dependent);
            }
            let blocked = state.dependents(uid).iter().any(|dependent| {
                let found = state.get(&dependent.0, &dependent.1);
                found.is_some_and(|found| meta::owners(found).iter().any(|owner| owner.uid == uid && owner.blocks))
            });
            if !blocked {
                self.let_go(state, id, &object, FOREGROUND);
            }
        }
    }

    /// Takes one finalizer away, and the object with it when that was the last.
    fn let_go(&self, state: &mut State, id: &Id, object: &Value, finalizer: &str) {
        let others: Vec<_> =
            meta::finalizers(object).into_iter().filter(|held| *held != finalizer).map(str::to_owned).collect();
        let mut released = object.clone();
        meta::set_finalizers(&mut released, &others);
        self.put_or_remove(state, id, released);
    }

    /// Deletes what is inside a namespace or a CRD, and releases it when nothing is.
    fn empty(&self, state: &mut State, id: &Id) {
        let Some(served) = self.stored(&id.0) else { return };
        let Some(contents) = &served.resource.behaviour.contents else { return };
        let Some(object) = state.get(&id.0, &id.1).cloned() else { return };
        let inside = (contents.list)(state, &object);
        for item in &inside {
            if let Some(found) = state.get(&item.0, &item.1).cloned().filter(|found| !meta::deleting(found)) {
                self.drop_object(state, item, &found, Propagation::Background);
            }
        }
        if (contents.list)(state, &object).is_empty() {
            let mut released = Value::clone(&object);
            (contents.release)(&mut released);
            if released != *object || is_finished(&released) {
                self.put_or_remove(state, id, released);
            }
        }
    }

    fn put_or_remove(&self, state: &mut State, id: &Id, object: Value) {
        if is_finished(&object) {
            self.remove(state, AUTHOR, id.clone());
        } else {
            self.put(state, AUTHOR, id.clone(), object);
        }
    }

    fn drop_object(&self, state: &mut State, id: &Id, object: &Arc<Value>, policy: Propagation) {
        if let Some(served) = self.stored(&id.0) {
            let options = DeleteOptions { propagation_policy: Some(policy), ..DeleteOptions::default() };
            self.delete_object(state, AUTHOR, &served.resource, id.clone(), object, &options);
        }
    }
}

fn keep_owners(object: &mut Value, keep: impl Fn(&str) -> bool) {
    let metadata = meta::metadata(object);
    if let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") {
        owners.retain(|owner| keep(meta::text(owner, "/uid")));
        if owners.is_empty() {
            metadata.shift_remove("ownerReferences");
        }
    }
}
