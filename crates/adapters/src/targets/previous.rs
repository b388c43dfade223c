//! The outgoing primary, kept until the next promotion so that a failed one can be taken back.
//!
//! The Deployment's part is a ControllerRevision (its data is immutable, so its name holds a hash), each config that the
//! promotion changes is copied to `{config}-primary-previous`. The ControllerRevision is written last: when it exists, all
//! of it is stored. It names the incoming revision for whose sake it was stored, so a promotion that is repeated after a
//! crash, with half of the primary's configs already new, does not store the new ones as the old; and it records their
//! checksums, so a restore never brings back one primary's template with another's configs.
//!
//! At rest the stored configs are kept equal to what the primary runs ([`keep`]), from the answers of the writes that put
//! them there. So a promotion finds the outgoing ones already stored and reads only the incoming ones. From then on the
//! ControllerRevision of the promotion before cannot be restored any more, nor need it be.

use std::collections::BTreeMap;
use std::sync::Arc;

use seaway_api::Canary;
use seaway_api::canary::primary_name;
use seaway_core::observed::Revision;
use seaway_core::revision::{digest, flagger_id, template_hash};
use serde_json::{Map, Value, json};

use super::template::FLAGGER_ID;
use super::{Conventions, config, deployment, ownership};
use crate::change::{Change, ObjectRef};
use crate::kinds::{CONTROLLER_REVISION, DEPLOYMENT};
use crate::object::{
    self, CREATE_MANAGER, MANAGER, Patch, at, delete, is_owned_by, number, owner_reference, reference, strings, text,
    uid,
};
use crate::refusal::Refusal;
use crate::world::{Fetched, World};

/// Label of everything stored here; a watch of ControllerRevisions can be limited to it.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "seaway");

/// Where a ControllerRevision records the configs of its primary.
const CONFIGS: &str = "/data/configs";

/// Fields of a primary's `spec` that a restore brings back: those that a promotion changes.
fn restored() -> impl Iterator<Item = &'static str> {
    deployment::COPIED.into_iter().chain(["template"])
}

/// Fields that only a primary that is gone gets back: the one cannot change, the other belongs to its autoscaler.
const RECREATED: [&str; 2] = ["selector", "replicas"];

fn previous_name(config: &str) -> String {
    format!("{}-previous", primary_name(config))
}

/// The ControllerRevisions of this Canary, newest first.
fn stored(canary: &Canary, world: &dyn World) -> Vec<Arc<Value>> {
    let mut all = world.controlled(CONTROLLER_REVISION, canary.namespace(), uid(canary));
    all.retain(|object| strings(object, "/metadata/labels").get(MANAGED_BY.0).is_some_and(|by| by == MANAGED_BY.1));
    all.sort_by_key(|object| std::cmp::Reverse(number(object, "/revision").unwrap_or_default()));
    all
}

/// The name under which a primary is stored before it becomes `incoming`.
fn store_name(canary: &Canary, primary: &Value, incoming: &Revision) -> String {
    let template = at(primary, "/spec/template").cloned().unwrap_or_default();
    let hash = template_hash(&json!([template, digest(incoming)]));
    let hash = hash.rsplit(':').next().unwrap_or_default();
    format!("{}-{hash}", canary.primary_workload())
}

/// The primary's copies that `incoming` will change: key of the config and its present checksum.
fn changing(canary: &Canary, incoming: &Revision, world: &dyn World) -> BTreeMap<String, String> {
    let copies = incoming.configs.iter().filter_map(|(key, wanted)| {
        let original = config::object_of(key, canary.namespace())?;
        let copy = world.get(original.kind, canary.namespace(), &primary_name(&original.name))?;
        let present = text(&copy, "/checksum").to_owned();
        (present != *wanted).then(|| (key.clone(), present))
    });
    copies.collect()
}

/// What has to be stored of the primary's copies before it becomes `incoming`. What was stored for its sake before (the
/// ControllerRevision exists) is only made good where the primary still has it.
fn outgoing(
    canary: &Canary,
    world: &dyn World,
    incoming: &Revision,
    store: Option<&Value>,
) -> BTreeMap<String, String> {
    match store {
        Some(store) => running(canary, &strings(store, CONFIGS), world),
        None => changing(canary, incoming, world),
    }
}

/// What [`store`] needs in full: the primary's copies that are about to change.
pub(crate) fn store_needs(canary: &Canary, world: &dyn World, incoming: &Revision) -> Vec<ObjectRef> {
    let Some(primary) = world.get(DEPLOYMENT, canary.namespace(), &canary.primary_workload()) else {
        return Vec::new();
    };
    let name = store_name(canary, &primary, incoming);
    let stored = stored(canary, world);
    let store = stored.iter().find(|object| text(object, "/metadata/name") == name);
    unkept(canary, world, &outgoing(canary, world, incoming, store.map(AsRef::as_ref)))
}

/// The primary's copies, among these with their checksums, that are not stored as they are.
fn unkept(canary: &Canary, world: &dyn World, copies: &BTreeMap<String, String>) -> Vec<ObjectRef> {
    let kept = |key: &str, checksum: &str| {
        let stored = previous_copy(canary, key).and_then(|copy| world.get(copy.kind, &copy.namespace, &copy.name));
        stored.is_some_and(|stored| text(&stored, "/checksum") == checksum && is_owned_by(&stored, canary))
    };
    let unkept = copies.iter().filter(|(key, checksum)| !kept(key, checksum));
    unkept.filter_map(|(key, _)| primary_copy(canary, key)).collect()
}

/// Those of these configs that the primary runs, with their checksums.
fn running(canary: &Canary, configs: &BTreeMap<String, String>, world: &dyn World) -> BTreeMap<String, String> {
    let running = configs.iter().filter(|(key, checksum)| has(world, primary_copy(canary, key), checksum));
    running.map(|(key, checksum)| (key.clone(), checksum.clone())).collect()
}

/// Whether a copy exists with this checksum.
fn has(world: &dyn World, copy: Option<ObjectRef>, checksum: &str) -> bool {
    let seen = copy.and_then(|copy| world.get(copy.kind, &copy.namespace, &copy.name));
    seen.is_some_and(|seen| text(&seen, "/checksum") == checksum)
}

/// What [`keep`] needs in full.
pub(crate) fn keep_needs(canary: &Canary, world: &dyn World, revision: &Revision) -> Vec<ObjectRef> {
    unkept(canary, world, &running(canary, &revision.configs, world))
}

/// Stores the configs of a revision that the primary runs, for the promotion after this one.
pub(crate) fn keep(
    canary: &Canary,
    world: &dyn World,
    fetched: &Fetched,
    conventions: &Conventions,
    revision: &Revision,
) -> Result<Vec<Change>, Refusal> {
    copies(canary, world, fetched, conventions, &running(canary, &revision.configs, world))
}

/// Brings the stored configs to these checksums, from the primary's copies.
fn copies(
    canary: &Canary,
    world: &dyn World,
    fetched: &Fetched,
    conventions: &Conventions,
    configs: &BTreeMap<String, String>,
) -> Result<Vec<Change>, Refusal> {
    let mut changes = Vec::new();
    for from in unkept(canary, world, configs) {
        let source = fetched.get(&from).ok_or_else(|| missing(&from))?;
        if !has(world, Some(from.clone()), &config::checksum(source)) {
            return Err(changed(&from));
        }
        let to = ObjectRef { name: format!("{}-previous", from.name), ..from };
        let seen = world.get(to.kind, &to.namespace, &to.name);
        changes.extend(config::copy(canary, source, to.kind, &to.name, seen.as_deref(), conventions)?);
    }
    Ok(changes)
}

fn primary_copy(canary: &Canary, key: &str) -> Option<ObjectRef> {
    let original = config::object_of(key, canary.namespace())?;
    Some(reference(original.kind, canary.namespace(), &primary_name(&original.name)))
}

fn previous_copy(canary: &Canary, key: &str) -> Option<ObjectRef> {
    let original = config::object_of(key, canary.namespace())?;
    Some(reference(original.kind, canary.namespace(), &previous_name(&original.name)))
}

/// Stores the primary as it is before it becomes `incoming`. Older stores go when the new one is complete.
pub(crate) fn store(
    canary: &Canary,
    world: &dyn World,
    fetched: &Fetched,
    conventions: &Conventions,
    incoming: &Revision,
) -> Result<Vec<Change>, Refusal> {
    let namespace = canary.namespace();
    let Some(primary) = world.get(DEPLOYMENT, namespace, &canary.primary_workload()) else {
        return Err(deployment::not_found(namespace, &canary.primary_workload()));
    };
    ownership::ours(canary, ownership::PRIMARY, &primary)?;
    let name = store_name(canary, &primary, incoming);
    let (this, others): (Vec<_>, Vec<_>) =
        stored(canary, world).into_iter().partition(|object| text(object, "/metadata/name") == name);
    let this = this.first().map(AsRef::as_ref);
    let configs = outgoing(canary, world, incoming, this);
    let mut changes = copies(canary, world, fetched, conventions, &configs)?;
    if this.is_none() {
        let newest = others.first().and_then(|object| number(object, "/revision")).unwrap_or_default();
        changes.push(create(canary, &primary, &name, &configs, incoming, newest + 1));
    }
    changes.extend(others.iter().map(|object| delete(CONTROLLER_REVISION, object)));
    Ok(changes)
}

fn create(
    canary: &Canary,
    primary: &Value,
    name: &str,
    configs: &BTreeMap<String, String>,
    incoming: &Revision,
    number: i64,
) -> Change {
    let mut spec = Map::new();
    for field in restored().chain(RECREATED) {
        if let Some(value) = primary.get("spec").and_then(|spec| spec.get(field)) {
            spec.insert(field.into(), value.clone());
        }
    }
    let metadata = json!({
        "name": name, "namespace": canary.namespace(),
        "labels": { MANAGED_BY.0: MANAGED_BY.1 }, "ownerReferences": [owner_reference(canary)],
    });
    let rest = Map::from_iter([
        ("data".into(), json!({ "spec": spec, "configs": configs, "incoming": digest(incoming) })),
        ("revision".into(), number.into()),
    ]);
    object::create(CONTROLLER_REVISION, metadata, rest, MANAGER)
}

/// What was stored before the primary became, or began to become, this revision.
fn store_for(canary: &Canary, world: &dyn World, incoming: &Revision) -> Option<Arc<Value>> {
    let digest = digest(incoming);
    stored(canary, world).into_iter().find(|store| text(store, "/data/incoming") == digest)
}

/// Whether a primary that became, or began to become, this revision can be given back all that it ran before.
pub fn is_stored(canary: &Canary, world: &dyn World, incoming: &Revision) -> bool {
    store_for(canary, world, incoming).is_some_and(|store| {
        strings(&store, CONFIGS).iter().all(|(key, checksum)| {
            has(world, primary_copy(canary, key), checksum) || has(world, previous_copy(canary, key), checksum)
        })
    })
}

/// Whether the primary is just what was stored before it became this revision: not changed yet, or completely restored.
pub fn is_intact(canary: &Canary, world: &dyn World, incoming: &Revision) -> bool {
    let Some(store) = store_for(canary, world, incoming) else { return false };
    let primary = world.get(DEPLOYMENT, canary.namespace(), &canary.primary_workload());
    primary.is_some_and(|primary| restored_spec(&primary, &store).is_none())
        && restoring(canary, world, &store).next().is_none()
}

/// What [`restore`] needs in full: the stored configs that differ from what the primary has now.
pub(crate) fn restore_needs(canary: &Canary, world: &dyn World, incoming: &Revision) -> Vec<ObjectRef> {
    let Some(store) = store_for(canary, world, incoming) else { return Vec::new() };
    restoring(canary, world, &store).filter_map(|(key, _)| previous_copy(canary, &key)).collect()
}

/// The configs of a store, with their checksums, that the primary has not.
fn restoring(canary: &Canary, world: &dyn World, store: &Value) -> impl Iterator<Item = (String, String)> {
    strings(store, CONFIGS).into_iter().filter(|(key, checksum)| !has(world, primary_copy(canary, key), checksum))
}

/// The primary runs again what was stored before it became `incoming`: its configs first, then its template. Its size is
/// not touched. A primary that is gone is made anew. Without a store nothing is done to a primary that never began to
/// change; one that did cannot be restored.
pub(crate) fn restore(
    canary: &Canary,
    world: &dyn World,
    fetched: &Fetched,
    conventions: &Conventions,
    incoming: &Revision,
) -> Result<Vec<Change>, Refusal> {
    let (namespace, name) = (canary.namespace(), canary.primary_workload());
    let primary = world.get(DEPLOYMENT, namespace, &name);
    if let Some(primary) = &primary {
        ownership::ours(canary, ownership::PRIMARY, primary)?;
    }
    let Some(store) = store_for(canary, world, incoming) else {
        let primary = primary.ok_or_else(|| deployment::not_found(namespace, &name))?;
        let id = at(&primary, "/spec/template/metadata/annotations").and_then(|all| all.get(FLAGGER_ID));
        // Without a store nothing was copied before the template was.
        if id.and_then(Value::as_str) != Some(&flagger_id(uid(canary), incoming)) {
            return Ok(Vec::new());
        }
        return Err(lost(canary, "what it ran before is not stored"));
    };
    let mut changes = Vec::new();
    for (key, checksum) in restoring(canary, world, &store) {
        let (Some(from), Some(to)) = (previous_copy(canary, &key), primary_copy(canary, &key)) else { continue };
        let Some(source) = fetched.get(&from).filter(|source| config::checksum(source) == checksum) else {
            let (kind, name) = (from.kind.kind, &from.name);
            return Err(lost(canary, &format!("{kind} {name}.{namespace} no longer holds what it ran")));
        };
        let seen = world.get(to.kind, namespace, &to.name);
        changes.extend(config::copy(canary, source, to.kind, &to.name, seen.as_deref(), conventions)?);
    }
    let Some(primary) = primary else {
        changes.push(recreate(canary, &store));
        return Ok(changes);
    };
    changes.extend(restored_spec(&primary, &store));
    Ok(changes)
}

/// The change that gives a primary its stored template back; nothing when it has it.
fn restored_spec(primary: &Value, store: &Value) -> Option<Change> {
    let mut patch = Patch::of(DEPLOYMENT, primary);
    for field in restored() {
        patch.set_or_unset(&format!("/spec/{field}"), at(store, &format!("/data/spec/{field}")));
    }
    patch.finish()
}

/// The stored primary as a new object.
fn recreate(canary: &Canary, store: &Value) -> Change {
    let metadata = json!({
        "name": canary.primary_workload(), "namespace": canary.namespace(),
        "labels": strings(store, "/data/spec/selector/matchLabels"), "ownerReferences": [owner_reference(canary)],
    });
    let spec = at(store, "/data/spec").cloned().unwrap_or_default();
    object::create(DEPLOYMENT, metadata, Map::from_iter([("spec".into(), spec)]), CREATE_MANAGER)
}

fn lost(canary: &Canary, why: &str) -> Refusal {
    let (name, namespace) = (canary.primary_workload(), canary.namespace());
    Refusal::user(format!("{name}.{namespace} cannot be restored: {why}; push a revision that works"))
}

/// A config that moved between the look at its checksum and the reading of its data.
pub(crate) fn changed(object: &ObjectRef) -> Refusal {
    let (kind, name, namespace) = (object.kind.kind, &object.name, &object.namespace);
    Refusal::cluster(format!("{kind} {name}.{namespace} changed since it was looked at; it is looked at again"))
}

/// A config that should have been handed in.
pub(crate) fn missing(object: &ObjectRef) -> Refusal {
    let (kind, plural) = (object.kind.kind.to_lowercase(), object.kind.plural);
    let (name, namespace) = (&object.name, &object.namespace);
    Refusal::cluster(format!("{kind} {name}.{namespace} get query error: {plural} {name:?} not found"))
}
