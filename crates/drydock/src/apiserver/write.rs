//! Writing: create and replace, and the steps every write goes through.
//!
//! A write is shaped (pruned, defaulted), completed with what the server owns (uid, generation, timestamps), checked,
//! and committed if it changes anything. PUT, every kind of patch and the sub-resources end here.

mod identity;
mod naming;
mod ownership;
mod shape;

use std::sync::Arc;

use serde_json::Value;

use super::crd::is_going;
use super::error::{ApiError, Result};
use super::judge::{Change, judge};
use super::managed::Managed;
use super::meta;
use super::plain_numbers::{Pointed, write_plainly};
use super::registry::api_version;
use super::request::Call;
use super::server::{Answer, Reply, Server};
use super::store::{Id, Key, State};
use super::zero::zero;
pub(crate) use identity::check_place;
use identity::{changed_fixed, check_identity, desired_state_changed, notes, restore};
use ownership::managed_before;
pub(crate) use ownership::{Ownership, is_untidy};
pub(crate) use shape::{is_known_version, shape, why_no};
use shape::{put_empty, take_empty};

/// A write that was carried out, or would have been.
pub(crate) struct Written {
    pub(crate) object: Arc<Value>,
    pub(crate) warnings: Vec<String>,
}

impl Server {
    /// `create`.
    pub(crate) fn create(&self, call: &Call) -> Result<Reply> {
        let mut object = call.object()?;
        if let Some(answer) = call.served.resource.behaviour.review {
            let warnings = shape(call, &mut object, &[])?;
            meta::metadata(&mut object);
            let nothing = zero(call.served.stored_schema());
            self.own(call, &nothing, &object, Managed::default(), Ownership::Written).write_to(&mut object);
            answer(call, &mut object)?;
            return Ok(Reply { answer: Answer::Plain(201, object), warnings });
        }
        let mut state = self.store.lock();
        let written = self.insert(&mut state, call, object, Ownership::Written)?;
        Ok(Reply { answer: Answer::Object(201, written.object), warnings: written.warnings })
    }

    /// `update`: replaces an object.
    pub(crate) fn update(&self, call: &Call) -> Result<Reply> {
        let mut object = call.object()?;
        let mut warnings = shape(call, &mut object, &[])?;
        let live = call.live(&self.store.lock()).ok();
        let held = live.as_deref().map(meta::finalizers).unwrap_or_default();
        match self.update_shaped(call, object) {
            Ok(answer) => {
                if let Answer::Object(_, object) = &answer {
                    warnings.extend(advice(call, live.as_deref(), object));
                    warnings.extend(unclaimed_finalizers(call, &held, object));
                }
                Ok(Reply { answer, warnings })
            }
            Err(error) => Err(error.after(&warnings)),
        }
    }

    fn update_shaped(&self, call: &Call, mut object: Value) -> Result<Answer> {
        check_place(call, &object)?;
        let mut state = self.store.lock();
        match call.live(&state) {
            Ok(live) => {
                Ok(Answer::Object(200, self.replace_shaped(&mut state, call, &live, object, Ownership::Written)?))
            }
            Err(_) if call.served.resource.behaviour.create_on_update && !meta::uid(&object).is_empty() => {
                let uids = (meta::uid(&object), "");
                Err(ApiError::other_uid(&call.served.resource, &call.name, &call.storage_key(), uids))
            }
            Err(_) if call.served.resource.behaviour.create_on_update => {
                // Nobody compares it with anything; a rehearsal repeats it.
                if !call.dry_run() {
                    meta::metadata(&mut object).shift_remove("resourceVersion");
                }
                Ok(Answer::Object(201, self.insert_shaped(&mut state, call, object, Ownership::Written)?))
            }
            Err(error) => Err(error),
        }
    }

    /// Stores a new object.
    pub(crate) fn insert(
        &self,
        state: &mut State,
        call: &Call,
        mut object: Value,
        ownership: Ownership,
    ) -> Result<Written> {
        let mut warnings = shape(call, &mut object, &[])?;
        match self.insert_shaped(state, call, object, ownership) {
            Ok(object) => {
                warnings.extend((call.served.resource.behaviour.warn)(&object));
                warnings.extend((call.served.resource.behaviour.warn_changed)(None, &object));
                warnings.extend(unclaimed_finalizers(call, &[], &object));
                Ok(Written { object, warnings })
            }
            Err(error) => Err(error.after(&warnings)),
        }
    }

    fn insert_shaped(
        &self,
        state: &mut State,
        call: &Call,
        mut object: Value,
        ownership: Ownership,
    ) -> Result<Arc<Value>> {
        let resource = &call.served.resource;
        let behaviour = resource.behaviour;
        let untidy = ownership.is_untidy();
        take_empty(call, &mut object);
        if resource.custom && is_going(state, &resource.id) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(resource, meta::name(&object), why));
        }
        self.check_namespace(state, call, &object)?;
        let key = Key {
            namespace: call.namespace.clone().unwrap_or_default(),
            name: self.choose_name(state, call, &object)?,
        };
        let now = meta::seconds(self.clock.now());
        let metadata = meta::metadata(&mut object);
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"] {
            metadata.shift_remove(field);
        }
        let namespace = call.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        meta::set(metadata, "namespace", namespace.map(Value::from));
        metadata.insert("uid".into(), self.seed.uid().into());
        metadata.insert("creationTimestamp".into(), now.into());
        if behaviour.generation {
            metadata.insert("generation".into(), 1.into());
        }
        if call.served.has("status") && !behaviour.status_on_create {
            meta::members(&mut object).shift_remove("status");
        }
        call.served.stored_schema().fill(&mut object);
        let pointed = pointed_numbers(call, &mut object);
        (behaviour.complete)(&mut object);
        // What the server itself adds from here on belongs to nobody.
        let managed = self.own(call, &zero(call.served.stored_schema()), &object, Managed::default(), ownership);
        meta::metadata(&mut object).insert("name".into(), key.name.clone().into());
        let begun = (behaviour.begin)(&mut object, None, state, call.dry_run());
        begun.map_err(|hitch| hitch.refuse(resource, &key.name))?;
        (behaviour.prepare)(&mut object, state, self.clock.now());
        judge(call, &object, &pointed, None)?;
        // It is only when something is to be stored that anybody looks.
        if !call.dry_run() && !meta::field(&object, "resourceVersion").is_empty() {
            return Err(ApiError::unforeseen("resourceVersion should not be set on objects to be created"));
        }
        if let Some(found) = state.get(&resource.id, &key) {
            // By then the object has been found to be good, and advice has been given.
            let mut warnings = Vec::from_iter((behaviour.warn)(&object));
            warnings.extend((behaviour.warn_changed)(None, &object));
            warnings.extend(unclaimed_finalizers(call, &[], &object));
            let taken = ApiError::already_exists(resource, &key.name, meta::deleting(found)).after(&warnings);
            let has_beginning = !meta::field(&object, "generateName").is_empty();
            return Err(if has_beginning { taken.despite_a_beginning() } else { taken });
        }
        managed.write_to(&mut object);
        stamp_version(call, &mut object);
        if call.dry_run() {
            return Ok(Arc::new(object));
        }
        let id = (resource.id.clone(), key);
        let written = self.put(state, call.author(), id.clone(), object);
        if untidy {
            state.mark_untidy(id);
        }
        Ok(written)
    }

    /// Replaces the live state of an object by a new one, as far as the client may. With it comes what a patch has left in it
    /// twice.
    pub(crate) fn replace(
        &self,
        state: &mut State,
        call: &Call,
        live: &Arc<Value>,
        (mut new, twice): (Value, &[String]),
        ownership: Ownership,
    ) -> Result<Written> {
        let mut warnings = shape(call, &mut new, twice)?;
        match self.replace_shaped(state, call, live, new, ownership) {
            Ok(object) => {
                warnings.extend(advice(call, Some(live), &object));
                warnings.extend(unclaimed_finalizers(call, &meta::finalizers(live), &object));
                Ok(Written { object, warnings })
            }
            Err(error) => Err(error.after(&warnings)),
        }
    }

    fn replace_shaped(
        &self,
        state: &mut State,
        call: &Call,
        live: &Arc<Value>,
        mut new: Value,
        ownership: Ownership,
    ) -> Result<Arc<Value>> {
        let resource = &call.served.resource;
        let untidy = ownership.is_untidy();
        let empty = take_empty(call, &mut new);
        check_identity(call, live, &new)?;
        let fixed = changed_fixed(live, &new);
        let managed = managed_before(call, live, &new);
        restore(call, live, &mut new);
        call.served.stored_schema().fill(&mut new);
        // What was written with a point differs from what is stored, even if it is the same number.
        let pointed = pointed_numbers(call, &mut new);
        let rewritten = !pointed.is_empty() && call.subresource.is_empty();
        (resource.behaviour.complete)(&mut new);
        let managed = match ownership {
            // Fields that belong to nobody stay so until somebody applies.
            Ownership::Written if managed.is_empty() => managed,
            ownership => self.own(call, live, &new, managed, ownership),
        };
        if call.subresource.is_empty() {
            let begun = (resource.behaviour.begin)(&mut new, Some(live), state, call.dry_run());
            begun.map_err(|hitch| hitch.refuse(resource, meta::name(live)))?;
        }
        (resource.behaviour.prepare_update)(&mut new, live, &call.subresource);
        if resource.behaviour.generation {
            let bump = rewritten
                || desired_state_changed(call, live, &new)
                || resource.behaviour.annotations_count && call.subresource.is_empty() && notes(live) != notes(&new)
                || resource.behaviour.labels_count && live["metadata"].get("labels") != new["metadata"].get("labels");
            let bump = i64::from(bump);
            meta::metadata(&mut new).insert("generation".into(), (meta::generation(live) + bump).into());
        }
        put_empty(&empty, &mut new);
        judge(call, &new, &pointed, Some(&Change { live, fixed: &fixed }))?;
        take_empty(call, &mut new);
        let before = Managed::of(live);
        let id = id_of(call, live);
        stamp_version(call, &mut new);
        // That somebody wrote what was there already is not worth a version.
        if managed.is_but_for_times(&before) {
            before.write_to(&mut new);
            // What is read may not be what is stored.
            let as_stored = state.get(&id.0, &id.1).is_some_and(|stored| **stored == **live);
            if new == **live && as_stored && !untidy && !state.is_untidy(&id) {
                return Ok(live.clone());
            }
        }
        managed.write_to(&mut new);
        if call.dry_run() {
            return Ok(Arc::new(new));
        }
        // The last finalizer of an object that is being deleted was taken away: watches see it go, not change.
        if is_finished(&new) {
            self.remove(state, call.author(), id);
            return Ok(Arc::new(new));
        }
        let written = self.put(state, call.author(), id.clone(), new);
        if untidy {
            state.mark_untidy(id);
        }
        Ok(written)
    }
}

/// Writes the whole numbers of a custom resource without a point, and says which had one.
fn pointed_numbers(call: &Call, object: &mut Value) -> Vec<Pointed> {
    if call.served.resource.custom { write_plainly(call.served.stored_schema(), object) } else { Vec::new() }
}

/// The place of an object in the store.
fn id_of(call: &Call, object: &Value) -> Id {
    let key = Key { namespace: meta::namespace(object).into(), name: meta::name(object).into() };
    (call.served.resource.id.clone(), key)
}

/// What whoever wrote an object should know. Who scales it changes what it should be; who writes its status does not.
fn advice(call: &Call, live: Option<&Value>, object: &Value) -> Vec<String> {
    match call.subresource.as_str() {
        "" | "scale" => (call.served.resource.behaviour.warn_changed)(live, object),
        _ => Vec::new(),
    }
}

/// Custom resources may have finalizers that do not say whose they are, but it is not recommended.
fn unclaimed_finalizers(call: &Call, held: &[&str], object: &Value) -> Vec<String> {
    let known = ["foregroundDeletion", "kubernetes", "orphan"];
    let new = meta::finalizers(object).into_iter().filter(|name| !held.contains(name) && !known.contains(name));
    new.filter(|name| call.served.resource.custom && !name.contains('/'))
        .map(|name| {
            let path = if name.contains('.') { " including a path (/)" } else { "" };
            format!(
                "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to avoid accidental \
                 conflicts with other finalizer writers"
            )
        })
        .collect()
}

/// Objects are stored in one version, whichever they came in.
fn stamp_version(call: &Call, object: &mut Value) {
    let resource = &call.served.resource;
    // Behind a lens everything was renamed when it came in.
    if let Some(storage) = resource.storage().filter(|_| resource.lens.is_none()) {
        let version = api_version(&resource.group, &storage.name);
        meta::members(object).insert("apiVersion".into(), version.into());
    }
}

/// Whether an object that is being deleted has nothing left to wait for.
pub(crate) fn is_finished(object: &Value) -> bool {
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    meta::deleting(object)
        && meta::finalizers(object).is_empty()
        && grace == 0
        && object.pointer("/spec/finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty)
}
