//! ConfigMaps and Secrets that a pod template refers to: which are tracked, their checksums, the primary's copies.
//!
//! The cache holds only [`project`]ions: metadata, type and checksum. Data is handed in whole when a copy is written, and
//! nothing here keeps it. The operator may hold a copy that it has just written for a short while, until it is stored for
//! the next promotion (see [`super::previous`]). A checksum is Flagger's (`.data` alone) unless there is binary data, which Flagger overlooks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use seaway_api::Canary;
use seaway_api::canary::primary_name;
use seaway_core::observed::Revision;
use seaway_core::revision::template_hash;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::Conventions;
use crate::change::{Change, Kind, ObjectRef};
use crate::kinds::{CONFIG_MAP, SECRET};
use crate::object::{
    self, MANAGER, Patch, at, delete, has_canary_owner, is_owned_by, list, owner_reference, reference, strings, text,
    uid,
};
use crate::refusal::Refusal;
use crate::world::World;

/// Annotation that takes a config out of tracking when its value starts with `disable`.
const TRACKING: &str = "flagger.app/config-tracking";

/// Types of Secrets that are configuration; others (tokens, pull secrets, Helm releases) are not.
const SECRET_TYPES: [&str; 4] = ["Opaque", "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth", "kubernetes.io/tls"];

/// What the cache keeps of a ConfigMap or Secret. The data itself goes no further than this function.
pub fn project(kind: Kind, object: &Value) -> Value {
    let mut projection = Map::new();
    projection.insert("apiVersion".into(), "v1".into());
    projection.insert("kind".into(), kind.kind.into());
    let mut metadata = object.get("metadata").cloned().unwrap_or_default();
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.retain(|key, _| {
            ["name", "namespace", "uid", "resourceVersion", "labels", "annotations", "ownerReferences"]
                .contains(&key.as_str())
        });
        // kubectl keeps a whole copy of the data, plain or encoded, in this annotation.
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| key == TRACKING);
        }
    }
    projection.insert("metadata".into(), metadata);
    for field in ["type", "immutable"] {
        if let Some(value) = object.get(field) {
            projection.insert(field.into(), value.clone());
        }
    }
    if is_filled(object.get("binaryData")) {
        projection.insert("binary".into(), true.into());
    }
    projection.insert("checksum".into(), checksum(object).into());
    Value::Object(projection)
}

fn is_filled(value: Option<&Value>) -> bool {
    value.and_then(Value::as_object).is_some_and(|entries| !entries.is_empty())
}

/// 16 hex digits over the data of a whole ConfigMap or Secret.
pub fn checksum(object: &Value) -> String {
    let mut hasher = Sha256::new();
    hasher.update(go_json(object.get("data")));
    if is_filled(object.get("binaryData")) {
        hasher.update(go_json(object.get("binaryData")));
    }
    hasher.finalize().iter().take(8).fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// A map of strings as Go's `json.Marshal` writes it: keys sorted, HTML characters escaped, no map at all as `null`.
fn go_json(data: Option<&Value>) -> String {
    let Some(data) = data.and_then(Value::as_object) else { return "null".into() };
    let sorted: BTreeMap<&String, &Value> = data.iter().collect();
    let plain = serde_json::to_string(&sorted).unwrap_or_default();
    let mut escaped = String::with_capacity(plain.len());
    for c in plain.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            _ => escaped.push(c),
        }
    }
    escaped
}

/// A config that a pod template refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigRef {
    /// ConfigMap or Secret.
    pub kind: Kind,
    /// Name.
    pub name: String,
    /// Pods start without it.
    pub optional: bool,
}

/// `configmap/{name}` or `secret/{name}`, as the status names it.
pub fn key(kind: Kind, name: &str) -> String {
    format!("{}/{name}", if kind == SECRET { "secret" } else { "configmap" })
}

/// The object that a key of the status names.
pub(crate) fn object_of(key: &str, namespace: &str) -> Option<ObjectRef> {
    let (kind, name) = key.split_once('/')?;
    let kind = match kind {
        "configmap" => CONFIG_MAP,
        "secret" => SECRET,
        _ => return None,
    };
    Some(reference(kind, namespace, name))
}

/// Where a pod spec may name a config: the list of holders, the path inside one, the field of the name, the kind.
const VOLUMES: [(&str, &str, Kind); 2] = [("/configMap", "name", CONFIG_MAP), ("/secret", "secretName", SECRET)];
const SOURCES: [(&str, &str, Kind); 2] = [("/configMap", "name", CONFIG_MAP), ("/secret", "name", SECRET)];
const ENV: [(&str, &str, Kind); 2] =
    [("/valueFrom/configMapKeyRef", "name", CONFIG_MAP), ("/valueFrom/secretKeyRef", "name", SECRET)];
const ENV_FROM: [(&str, &str, Kind); 2] = [("/configMapRef", "name", CONFIG_MAP), ("/secretRef", "name", SECRET)];

/// Calls `visit` with every place in a pod spec that names a config.
fn visit_references(spec: &mut Value, visit: &mut dyn FnMut(Kind, &mut Value, bool)) {
    let mut each = |holders: Option<&mut Value>, places: &[(&str, &str, Kind)]| {
        for holder in holders.and_then(Value::as_array_mut).into_iter().flatten() {
            for (path, field, kind) in places {
                let Some(found) = holder.pointer_mut(path) else { continue };
                let optional = found.get("optional") == Some(&Value::Bool(true));
                if let Some(name) = found.get_mut(field) {
                    visit(*kind, name, optional);
                }
            }
        }
    };
    each(spec.get_mut("volumes"), &VOLUMES);
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        each(volume.pointer_mut("/projected/sources"), &SOURCES);
    }
    for containers in ["containers", "initContainers"] {
        for container in spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
            each(container.get_mut("env"), &ENV);
            each(container.get_mut("envFrom"), &ENV_FROM);
        }
    }
}

/// Every config a pod template refers to, once. As in Flagger the last mention decides whether it is optional.
pub fn references(template: &Value) -> Vec<ConfigRef> {
    let mut spec = template.get("spec").cloned().unwrap_or_default();
    let mut found: BTreeMap<String, ConfigRef> = BTreeMap::new();
    visit_references(&mut spec, &mut |kind, name, optional| {
        if let Some(name) = name.as_str() {
            found.insert(key(kind, name), ConfigRef { kind, name: name.to_owned(), optional });
        }
    });
    found.into_values().collect()
}

/// Points every reference to a tracked config at the primary's copy.
pub(super) fn rename_references(spec: &mut Value, tracked: &BTreeSet<String>) {
    visit_references(spec, &mut |kind, name, _| {
        if let Some(old) = name.as_str().filter(|old| tracked.contains(&key(kind, old))) {
            *name = primary_name(old).into();
        }
    });
}

/// The configs of a pod template that are tracked, with their checksums.
pub fn tracked(
    template: &Value,
    namespace: &str,
    world: &dyn World,
    conventions: &Conventions,
) -> Result<BTreeMap<String, String>, Refusal> {
    let mut tracked = BTreeMap::new();
    if !conventions.track_configs {
        return Ok(tracked);
    }
    for config in references(template) {
        match world.get(config.kind, namespace, &config.name) {
            Some(seen) if is_tracked(config.kind, &seen) => {
                tracked.insert(key(config.kind, &config.name), text(&seen, "/checksum").to_owned());
            }
            Some(_) => {}
            None if config.optional => {}
            None => {
                let (name, plural) = (&config.name, config.kind.plural);
                let kind = config.kind.kind.to_lowercase();
                return Err(Refusal::cluster(format!(
                    "GetTargetConfigs failed: {kind} {name}.{namespace} get query error: {plural} {name:?} not found"
                )));
            }
        }
    }
    Ok(tracked)
}

fn is_tracked(kind: Kind, seen: &Value) -> bool {
    let disabled = at(seen, "/metadata/annotations").and_then(|all| all.get(TRACKING)).and_then(Value::as_str);
    !disabled.is_some_and(|value| value.starts_with("disable"))
        && (kind != SECRET || SECRET_TYPES.contains(&text(seen, "/type")))
}

/// What the target would run now.
pub fn revision(target: &Value, world: &dyn World, conventions: &Conventions) -> Result<Revision, Refusal> {
    let template = at(target, "/spec/template").cloned().unwrap_or_default();
    let configs = tracked(&template, text(target, "/metadata/namespace"), world, conventions)?;
    Ok(Revision { template: template_hash(&template), configs })
}

/// Whether each tracked config equals the primary's copy of it.
pub fn equal_primary(revision: &Revision, namespace: &str, world: &dyn World) -> bool {
    revision.configs.iter().all(|(key, checksum)| {
        object_of(key, namespace)
            .and_then(|original| world.get(original.kind, namespace, &primary_name(&original.name)))
            .is_some_and(|copy| text(&copy, "/checksum") == checksum)
    })
}

/// Makes `name` a copy of a whole config, `source`. `seen` is the projection of what has that name now.
pub(crate) fn copy(
    canary: &Canary,
    source: &Value,
    kind: Kind,
    name: &str,
    seen: Option<&Value>,
    conventions: &Conventions,
) -> Result<Vec<Change>, Refusal> {
    let Some(seen) = seen else { return Ok(vec![new_copy(canary, source, kind, name, conventions, &[])]) };
    if !has_canary_owner(seen) {
        let (what, namespace) = (kind.kind, canary.namespace());
        return Err(Refusal::user(format!(
            "{what} {name}.{namespace} exists and no Canary owns it; rename or delete it, its name is needed for a copy"
        )));
    }
    let owners = owners(canary, seen);
    let same = text(seen, "/checksum") == checksum(source);
    if same && is_owned_by(seen, canary) {
        return Ok(Vec::new());
    }
    if seen.get("immutable") == Some(&Value::Bool(true)) && !same {
        return Ok(vec![delete(kind, seen), new_copy(canary, source, kind, name, conventions, &others(canary, seen))]);
    }
    let mut patch = Patch::of(kind, seen);
    patch.set("/metadata/ownerReferences", json!(owners));
    patch.merge("/metadata/labels", &conventions.included(&strings(source, "/metadata/labels")));
    if !same {
        patch.add("/data", source.get("data").cloned().unwrap_or_else(|| json!({})));
        if is_filled(source.get("binaryData")) || seen.get("binary").is_some() {
            patch.add("/binaryData", source.get("binaryData").cloned().unwrap_or_else(|| json!({})));
        }
        if source.get("immutable") == Some(&Value::Bool(true)) {
            patch.add("/immutable", true);
        }
    }
    Ok(patch.finish().into_iter().collect())
}

/// This Canary controls the copy; other owners (a config may be shared) stay without control.
fn owners(canary: &Canary, seen: &Value) -> Vec<Value> {
    let mut owners = vec![owner_reference(canary)];
    owners.extend(others(canary, seen));
    owners
}

/// The other owners, none of them in control.
fn others(canary: &Canary, seen: &Value) -> Vec<Value> {
    let mut owners = Vec::new();
    for owner in list(seen, "/metadata/ownerReferences").iter().filter(|owner| text(owner, "/uid") != uid(canary)) {
        let mut owner = owner.clone();
        if let Some(fields) = owner.as_object_mut() {
            fields.insert("controller".into(), false.into());
        }
        owners.push(owner);
    }
    owners
}

fn new_copy(
    canary: &Canary,
    source: &Value,
    kind: Kind,
    name: &str,
    conventions: &Conventions,
    other_owners: &[Value],
) -> Change {
    let mut owners = vec![owner_reference(canary)];
    owners.extend_from_slice(other_owners);
    let metadata = json!({
        "name": name, "namespace": canary.namespace(),
        "labels": conventions.included(&strings(source, "/metadata/labels")), "ownerReferences": owners,
    });
    let fields = ["type", "data", "binaryData", "immutable"];
    let rest = fields.iter().filter_map(|field| Some(((*field).to_owned(), source.get(*field)?.clone()))).collect();
    object::create(kind, metadata, rest, MANAGER)
}

#[cfg(test)]
mod tests;
