//! What becomes of a definition: its names are accepted, its resource is established, and when it is deleted the objects of
//! the resource go first.
//!
//! A real server does each of these in a task of its own, with a write of the status. Here they follow upon the write that
//! leads to them, one after the other, so that nobody ever sees a definition that waits.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{CLEANUP, DEFINITIONS, instances};
use crate::apiserver::delete::{DeleteOptions, Propagation};
use crate::apiserver::fields::Fields;
use crate::apiserver::managed::{Managed, Manager, Operation};
use crate::apiserver::meta;
use crate::apiserver::server::{Author, Server};
use crate::apiserver::store::{Change, Id, Key, State};
use crate::apiserver::write::is_finished;

const AUTHOR: Author<'_> = Author { user: "system:apiserver", verb: "update", subresource: "status" };

/// Goes on with a definition that was written.
pub(crate) fn followed(server: &Server, state: &mut State, change: &Arc<Change>) {
    let definition = &change.after;
    if change.deleted {
        // Somebody may have waited for its names.
        return reconsider(server, state, definition);
    }
    if meta::deleting(definition) {
        return terminate(server, state, &change.id);
    }
    let now = meta::seconds(server.clock.now());
    if let Some(named) = with_names(state, definition, &now) {
        write(server, state, &change.id, definition, named);
        reconsider(server, state, definition);
    } else if has_condition(definition, "NamesAccepted") && !has_condition(definition, "Established") {
        let mut established = Value::clone(definition);
        let message = "the initial names have been accepted";
        set_condition(&mut established, "Established", "True", "InitialNamesAccepted", message, &now);
        write(server, state, &change.id, definition, established);
    }
}

/// Goes on with the deletion of a definition whose last object may have gone.
pub(crate) fn instance_followed(server: &Server, state: &mut State, change: &Arc<Change>) {
    let id = (Arc::from(DEFINITIONS), Key { namespace: String::new(), name: change.id.0.to_string() });
    // What goes at once is taken care of by who takes it away.
    let waited = change.deleted && meta::deleting(&change.after);
    if waited && state.get(&id.0, &id.1).is_some_and(|definition| meta::deleting(definition)) {
        terminate(server, state, &id);
    }
}

/// Marks a definition that somebody deletes.
pub(crate) fn mark(definition: &mut Value, now: &str) {
    meta::metadata(definition).insert("deletionTimestamp".into(), now.into());
    let mut finalizers: Vec<_> = meta::finalizers(definition).into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|held| held == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    meta::set_finalizers(definition, &finalizers);
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(definition, "Terminating", "True", "InstanceDeletionPending", message, now);
}

/// Whether a condition is there and true.
pub(super) fn has_condition(definition: &Value, kind: &str) -> bool {
    condition(definition, kind).is_some_and(|condition| condition["status"] == "True")
}

fn condition<'a>(definition: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind)
}

fn set_condition(definition: &mut Value, kind: &str, status: &str, reason: &str, message: &str, now: &str) {
    let before = condition(definition, kind).filter(|before| before["status"] == status);
    let time = before.map_or(now, |before| meta::text(before, "/lastTransitionTime")).to_owned();
    let new = json!({"type": kind, "status": status, "lastTransitionTime": time, "reason": reason, "message": message});
    let conditions = meta::child(definition, "status").entry("conditions").or_insert_with(|| json!([]));
    if conditions.is_null() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return };
    match conditions.iter_mut().find(|condition| condition["type"] == kind) {
        Some(condition) => *condition = new,
        None => conditions.push(new),
    }
}

/// Writes a status in the server's own name.
fn write(server: &Server, state: &mut State, id: &Id, before: &Value, mut after: Value) {
    let Some(served) = server.stored(DEFINITIONS) else { return };
    let manager = Manager {
        name: "kube-apiserver".into(),
        operation: Operation::Update,
        api_version: served.api_version(),
        subresource: "status".into(),
    };
    let mut old = before.clone();
    // A list that was never filled is an empty one.
    if let Some(conditions) = old.pointer_mut("/status/conditions").filter(|conditions| conditions.is_null()) {
        *conditions = json!([]);
    }
    let (changed, removed) = Fields::compare(served.stored_schema(), &old, &after);
    let (changed, removed) = (changed.restricted("status", true), removed.restricted("status", true));
    let mut managed = Managed::of(before);
    managed.record(&changed, &removed, &manager, &meta::seconds(server.clock.now()));
    managed.write_to(&mut after);
    if is_finished(&after) {
        server.remove(state, AUTHOR, id.clone());
    } else {
        server.put(state, AUTHOR, id.clone(), after);
    }
}

/// Looks again at the names of the others in a group, where some may have become free.
fn reconsider(server: &Server, state: &mut State, definition: &Value) {
    let group = meta::text(definition, "/spec/group");
    let others: Vec<_> =
        others(state, group, meta::name(definition)).map(|(key, other)| (key.clone(), other.clone())).collect();
    let now = meta::seconds(server.clock.now());
    for (key, other) in others.into_iter().filter(|(_, other)| !meta::deleting(other)) {
        if let Some(named) = with_names(state, &other, &now) {
            write(server, state, &(Arc::from(DEFINITIONS), key), &other, named);
        }
    }
}

fn others<'a>(state: &'a State, group: &'a str, name: &'a str) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
    state
        .list(DEFINITIONS, None)
        .filter(move |(key, other)| key.name != name && meta::text(other, "/spec/group") == group)
}

/// A definition with the names it can have; `None` when nothing is to be said about them.
fn with_names(state: &State, definition: &Value, now: &str) -> Option<Value> {
    let wanted = definition.pointer("/spec/names")?;
    let had = definition.pointer("/status/acceptedNames").cloned().unwrap_or_else(|| json!({}));
    if *wanted == had {
        return None;
    }
    let (mut resources, mut kinds) = (Vec::new(), Vec::new());
    let group = meta::text(definition, "/spec/group");
    for (_, other) in
        others(state, group, meta::name(definition)).chain([(&Key::default(), &Arc::new(definition.clone()))])
    {
        let name = |field: &str| meta::text(other, &format!("/status/acceptedNames/{field}")).to_owned();
        resources.extend([name("plural"), name("singular")]);
        resources
            .extend(meta::strings(other.pointer("/status/acceptedNames/shortNames")).into_iter().map(str::to_owned));
        kinds.extend([name("kind"), name("listKind")]);
    }
    let in_use = |name: &str, taken: &[String]| {
        taken.iter().any(|known| known == name).then(|| format!("{name:?} is already in use"))
    };
    let mut accepted = had.clone();
    let mut conflict = None;
    for (field, reason) in [
        ("plural", "PluralConflict"),
        ("singular", "SingularConflict"),
        ("shortNames", "ShortNamesConflict"),
        ("kind", "KindConflict"),
        ("listKind", "ListKindConflict"),
    ] {
        let taken = if field.ends_with("ind") { &kinds } else { &resources };
        let text = |names: &Value| meta::text(names, &format!("/{field}")).to_owned();
        let why = if field == "shortNames" {
            let own = meta::strings(had.get(field));
            let new = meta::strings(wanted.get(field)).into_iter().filter(|name| !own.contains(name));
            let mut taken: Vec<_> = new.filter_map(|name| in_use(name, taken)).collect();
            taken.dedup();
            match taken.as_slice() {
                [] => None,
                [one] => Some(one.clone()),
                several => Some(format!("[{}]", several.join(", "))),
            }
        } else if text(wanted) == text(&had) {
            None
        } else {
            in_use(&text(wanted), taken)
        };
        match why {
            Some(why) => conflict = Some((reason, why)),
            None => meta::set(meta::members(&mut accepted), field, wanted.get(field).cloned()),
        }
    }
    meta::set(meta::members(&mut accepted), "categories", wanted.get("categories").cloned());
    let (status, reason, message) = match &conflict {
        None => ("True", "NoConflicts", "no conflicts found"),
        Some((reason, why)) => ("False", *reason, why.as_str()),
    };
    let told = condition(definition, "NamesAccepted")
        .is_some_and(|told| told["status"] == status && told["reason"] == reason && told["message"] == message);
    if accepted == had && told {
        return None;
    }
    let mut named = definition.clone();
    meta::child(&mut named, "status").insert("acceptedNames".into(), accepted);
    set_condition(&mut named, "NamesAccepted", status, reason, message, now);
    if !has_condition(definition, "Established") {
        let (reason, message) = match conflict {
            None => ("Installing", "the initial names have been accepted"),
            Some(_) => ("NotAccepted", "not all names are accepted"),
        };
        set_condition(&mut named, "Established", "False", reason, message, now);
    }
    Some(named)
}

/// Deletes the objects of a resource, and lets its definition go when there are none.
fn terminate(server: &Server, state: &mut State, id: &Id) {
    let Some(definition) = state.get(&id.0, &id.1).cloned() else { return };
    if !meta::finalizers(&definition).contains(&CLEANUP) {
        return;
    }
    let now = meta::seconds(server.clock.now());
    let mut next = Value::clone(&definition);
    if condition(&definition, "Terminating").is_none_or(|told| told["reason"] != "InstanceDeletionInProgress") {
        let message = "CustomResource deletion is in progress";
        set_condition(&mut next, "Terminating", "True", "InstanceDeletionInProgress", message, &now);
        return write(server, state, id, &definition, next);
    }
    let (mut reason, mut message) = ("NeverEstablished", "resource was never established");
    if has_condition(&definition, "Established") {
        (reason, message) = ("InstanceDeletionCompleted", "removed all instances");
        for item in instances(state, &definition) {
            let found = state.get(&item.0, &item.1).cloned().filter(|found| !meta::deleting(found));
            if let (Some(found), Some(served)) = (found, server.stored(&item.0)) {
                let options =
                    DeleteOptions { propagation_policy: Some(Propagation::Background), ..DeleteOptions::default() };
                server.delete_object(state, AUTHOR, &served.resource, item, &found, &options);
            }
        }
    }
    // The last of them may have been the one to finish this.
    let gone = state
        .get(&id.0, &id.1)
        .is_none_or(|left| meta::field(left, "resourceVersion") != meta::field(&definition, "resourceVersion"));
    if gone || !instances(state, &definition).is_empty() {
        return;
    }
    set_condition(&mut next, "Terminating", "False", reason, message, &now);
    let others: Vec<_> =
        meta::finalizers(&definition).into_iter().filter(|held| *held != CLEANUP).map(str::to_owned).collect();
    meta::set_finalizers(&mut next, &others);
    write(server, state, id, &definition, next);
}
