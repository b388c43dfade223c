//! The outgoing primary, kept until the next promotion so that a failed one can be taken back.
//!
//! The Deployment's part is a ControllerRevision (its data is immutable, so its name holds a hash), each config that the
//! promotion changes is copied to `{config}-primary-previous`. The ControllerRevision is written last: when it exists, all
//! of it is stored. Its name says for which incoming revision it was stored, so a promotion that is repeated after a
//! crash, with half of the primary's configs already new, does not store the new ones as the old.
//!
//! At rest the stored configs are kept equal to what the primary runs ([`keep`]), from the answers of the writes that put
//! them there. So a promotion finds the outgoing ones already stored and reads only the incoming ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use seaway_api::Canary;
use seaway_api::canary::primary_name;
use seaway_core::observed::Revision;
use seaway_core::revision::{digest, template_hash};
use serde_json::{Map, Value, json};

use super::{Conventions, config, deployment};
use crate::change::{Change, ObjectRef};
use crate::kinds::{CONTROLLER_REVISION, DEPLOYMENT};
use crate::object::{
    self, MANAGER, Patch, delete, is_controlled_by, is_owned_by, number, owner_reference, reference, strings, text,
};
use crate::refusal::Refusal;
use crate::world::{Fetched, World};

/// Label of everything stored here; a watch of ControllerRevisions can be limited to it.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "seaway");

fn previous_name(config: &str) -> String {
    format!("{}-previous", primary_name(config))
}

/// The ControllerRevisions of this Canary, newest first.
fn stored(canary: &Canary, world: &dyn World) -> Vec<Arc<Value>> {
    let mut all = world.list(CONTROLLER_REVISION, canary.namespace());
    all.retain(|object| {
        is_controlled_by(object, canary)
            && strings(object, "/metadata/labels").get(MANAGED_BY.0).is_some_and(|by| by == MANAGED_BY.1)
    });
    all.sort_by_key(|object| std::cmp::Reverse(number(object, "/revision").unwrap_or_default()));
    all
}

/// The name under which a primary is stored before it becomes `incoming`.
fn store_name(canary: &Canary, primary: &Value, incoming: &Revision) -> String {
    let template = primary.pointer("/spec/template").cloned().unwrap_or_default();
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

/// What [`store`] needs in full: the primary's copies that are about to change.
pub(crate) fn store_needs(canary: &Canary, world: &dyn World, incoming: &Revision) -> Vec<ObjectRef> {
    let Some(primary) = world.get(DEPLOYMENT, canary.namespace(), &canary.primary_workload()) else {
        return Vec::new();
    };
    let name = store_name(canary, &primary, incoming);
    if stored(canary, world).iter().any(|object| text(object, "/metadata/name") == name) {
        return Vec::new();
    }
    unkept(canary, world, &changing(canary, incoming, world))
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

/// The configs of a revision that the primary runs, with their checksums.
fn running(canary: &Canary, revision: &Revision, world: &dyn World) -> BTreeMap<String, String> {
    let runs = |key: &str, checksum: &str| {
        let copy = primary_copy(canary, key).and_then(|copy| world.get(copy.kind, &copy.namespace, &copy.name));
        copy.is_some_and(|copy| text(&copy, "/checksum") == checksum)
    };
    let configs = revision.configs.iter().filter(|(key, checksum)| runs(key, checksum));
    configs.map(|(key, checksum)| (key.clone(), checksum.clone())).collect()
}

/// What [`keep`] needs in full.
pub(crate) fn keep_needs(canary: &Canary, world: &dyn World, revision: &Revision) -> Vec<ObjectRef> {
    unkept(canary, world, &running(canary, revision, world))
}

/// Stores the configs of a revision that the primary runs, for the promotion after this one.
pub(crate) fn keep(
    canary: &Canary,
    world: &dyn World,
    fetched: &Fetched,
    conventions: &Conventions,
    revision: &Revision,
) -> Result<Vec<Change>, Refusal> {
    copies(canary, world, fetched, conventions, &running(canary, revision, world))
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
    let name = store_name(canary, &primary, incoming);
    let old = stored(canary, world);
    let mut changes = Vec::new();
    if !old.iter().any(|object| text(object, "/metadata/name") == name) {
        let configs = changing(canary, incoming, world);
        changes.extend(copies(canary, world, fetched, conventions, &configs)?);
        let newest = old.first().and_then(|object| number(object, "/revision")).unwrap_or_default();
        changes.push(create(canary, &primary, &name, &configs, newest + 1));
    }
    changes.extend(
        old.iter().filter(|object| text(object, "/metadata/name") != name).map(|o| delete(CONTROLLER_REVISION, o)),
    );
    Ok(changes)
}

fn create(canary: &Canary, primary: &Value, name: &str, configs: &BTreeMap<String, String>, number: i64) -> Change {
    let mut spec = Map::new();
    for field in deployment::COPIED.into_iter().chain(["template"]) {
        if let Some(value) = primary.get("spec").and_then(|spec| spec.get(field)) {
            spec.insert(field.into(), value.clone());
        }
    }
    let metadata = json!({
        "name": name, "namespace": canary.namespace(),
        "labels": { MANAGED_BY.0: MANAGED_BY.1 }, "ownerReferences": [owner_reference(canary)],
    });
    let rest = Map::from_iter([
        ("data".into(), json!({ "spec": spec, "configs": configs })),
        ("revision".into(), number.into()),
    ]);
    object::create(CONTROLLER_REVISION, metadata, rest, MANAGER)
}

/// What [`restore`] needs in full: the stored configs that differ from what the primary has now.
pub(crate) fn restore_needs(canary: &Canary, world: &dyn World) -> Vec<ObjectRef> {
    let Some(store) = stored(canary, world).into_iter().next() else { return Vec::new() };
    restoring(canary, world, &store).filter_map(|key| previous_copy(canary, &key)).collect()
}

fn restoring<'a>(canary: &'a Canary, world: &'a dyn World, store: &Value) -> impl Iterator<Item = String> + use<'a> {
    strings(store, "/data/configs").into_iter().filter_map(move |(key, checksum)| {
        let copy = primary_copy(canary, &key)?;
        let seen = world.get(copy.kind, canary.namespace(), &copy.name);
        seen.is_none_or(|seen| text(&seen, "/checksum") != checksum).then_some(key)
    })
}

/// The primary runs again what was stored: its configs first, then its template. Its size is not touched.
pub(crate) fn restore(
    canary: &Canary,
    world: &dyn World,
    fetched: &Fetched,
    conventions: &Conventions,
) -> Result<Vec<Change>, Refusal> {
    let namespace = canary.namespace();
    let Some(primary) = world.get(DEPLOYMENT, namespace, &canary.primary_workload()) else {
        return Err(deployment::not_found(namespace, &canary.primary_workload()));
    };
    let Some(store) = stored(canary, world).into_iter().next() else {
        return Err(Refusal::cluster(format!(
            "{}.{namespace} cannot be restored: no ControllerRevision of it is stored",
            canary.primary_workload()
        )));
    };
    let mut changes = Vec::new();
    for key in restoring(canary, world, &store) {
        let (Some(from), Some(to)) = (previous_copy(canary, &key), primary_copy(canary, &key)) else { continue };
        let source = fetched.get(&from).ok_or_else(|| missing(&from))?;
        let seen = world.get(to.kind, namespace, &to.name);
        changes.extend(config::copy(canary, source, to.kind, &to.name, seen.as_deref(), conventions)?);
    }
    let mut patch = Patch::of(DEPLOYMENT, &primary);
    for field in deployment::COPIED.into_iter().chain(["template"]) {
        patch.set_or_unset(&format!("/spec/{field}"), store.pointer(&format!("/data/spec/{field}")));
    }
    changes.extend(patch.finish());
    Ok(changes)
}

/// A config that should have been handed in.
pub(crate) fn missing(object: &ObjectRef) -> Refusal {
    let (kind, plural) = (object.kind.kind.to_lowercase(), object.kind.plural);
    let (name, namespace) = (&object.name, &object.namespace);
    Refusal::cluster(format!("{kind} {name}.{namespace} get query error: {plural} {name:?} not found"))
}
