//! What may differ between the end of a run with a fault and the end of the same run without it. Everything else must be
//! equal, byte for byte.

use std::collections::BTreeMap;

use serde_json::Value;

use super::board::{Book, family};

/// Objects that are not compared at all: resource, end of the name, and why.
const LEFT_OUT: &[(&str, &str, &str)] = &[
    (
        "configmaps",
        "-primary-previous",
        "kept ahead of time if that is cheap; a promotion makes up for what is missing",
    ),
    ("events", "", "how often something was told is bounded, not equal: see the oracle of noise"),
    ("leases", "", "who leads, and since when, is the fault itself"),
];

/// Fields that are not compared: resource (`*`: all), path (`*`: every element or key), and why.
const MASK: &[Trace] = &[
    ("*", "/metadata/uid", "drawn by the server for every object"),
    ("*", "/metadata/resourceVersion", "counts all writes of the cluster"),
    ("*", "/metadata/generation", "counts the writes on the way; the oracle of noise bounds them"),
    ("*", "/status/observedGeneration", "a generation"),
    ("*", "/status/conditions/*/observedGeneration", "a generation"),
    ("httproutes", "/status/parents/*/conditions/*/observedGeneration", "a generation"),
    ("*", "/metadata/creationTimestamp", "a time"),
    ("*", "/metadata/managedFields/*/time", "a time"),
    (
        "*",
        "/metadata/managedFields/*/fieldsV1/f:metadata/f:ownerReferences",
        "has the uid of another object as its key",
    ),
    ("*", "/metadata/ownerReferences/*/uid", "the uid of another object"),
    ("*", "/status/conditions/*/lastTransitionTime", "a time"),
    ("*", "/status/conditions/*/lastUpdateTime", "a time"),
    ("*", "/status/conditions/*/lastHeartbeatTime", "a time"),
    ("*", "/status/conditions/*/lastProbeTime", "a time"),
    ("httproutes", "/status/parents/*/conditions/*/lastTransitionTime", "a time"),
    ("gateways", "/status/listeners/*/conditions/*/lastTransitionTime", "a time"),
    ("canaries", "/status/lastTransitionTime", "a time"),
    ("canaries", "/status/decisions", "tells the story, and the story had a fault in it"),
    ("pods", "/metadata/name", "a generated suffix"),
    ("pods", "/metadata/managedFields", "holds the address; nobody but the cluster writes pods"),
    ("pods", "/status/podIP", "the next free address"),
    ("pods", "/status/podIPs", "the next free address"),
    ("pods", "/status/startTime", "a time"),
    ("pods", "/status/containerStatuses/*/state", "holds only the time of the start"),
    ("pods", "/status/containerStatuses/*/containerID", "drawn for every container"),
    ("endpointslices", "/metadata/name", "a generated suffix"),
    ("endpointslices", "/metadata/annotations/endpoints.kubernetes.io~1last-change-trigger-time", "a time"),
    ("endpointslices", "/endpoints/*/addresses", "the addresses of pods"),
    ("endpointslices", "/endpoints/*/targetRef/name", "the generated name of a pod"),
    ("endpointslices", "/endpoints/*/targetRef/uid", "the uid of a pod"),
];

/// Fields that are not compared where one leader may follow another: the label of its term, and who wrote that.
const TAKEOVER: &[Trace] = &[
    ("canaries", "/metadata/labels", "the term; it has no other labels"),
    ("deployments", "/metadata/labels/seaway.dev~1term", "the term"),
    ("httproutes", "/metadata/labels", "the term; it has no other labels"),
    ("canaries", "/metadata/managedFields", "who wrote the term"),
    ("deployments", "/metadata/managedFields", "who wrote the term"),
    ("httproutes", "/metadata/managedFields", "who wrote the term"),
];

/// A field that a fault leaves another value in: resource, path, and why.
pub type Trace = (&'static str, &'static str, &'static str);

/// A world without these traces too.
pub fn masked(world: &World, traces: &[Trace]) -> World {
    let mut world = world.clone();
    for (key, objects) in &mut world {
        let resource = key.split(' ').next().unwrap_or_default();
        for object in objects {
            mask(object, resource, traces);
        }
    }
    world
}

/// All objects at the end, masked.
pub type World = BTreeMap<String, Vec<Value>>;

/// The masked end of a run, of one leader or of two.
pub fn world(book: &Book, two: bool) -> World {
    let mut world = World::new();
    for (place, object) in &book.objects {
        let (resource, namespace, name) = place;
        if is_left_out(resource, name) {
            continue;
        }
        let (name, mut object) = (family(object, place), Value::clone(object));
        mask(&mut object, resource, MASK);
        // In the order in which they were first said, which is no difference.
        if let Some(Value::Array(conditions)) = object.pointer_mut("/status/conditions") {
            conditions.sort_by_key(|condition| condition["type"].to_string());
        }
        // In the order in which they wrote last, whose times are masked.
        if let Some(Value::Array(managers)) = object.pointer_mut("/metadata/managedFields") {
            managers.sort_by_key(Value::to_string);
        }
        if two {
            mask(&mut object, resource, TAKEOVER);
        }
        world.entry(format!("{resource} {namespace}/{name}")).or_default().push(object);
    }
    for objects in world.values_mut() {
        objects.sort_by_key(Value::to_string);
    }
    world
}

/// Whether an object is not compared.
pub fn is_left_out(resource: &str, name: &str) -> bool {
    LEFT_OUT.iter().any(|(left_out, end, _)| *left_out == resource && name.ends_with(end))
}

fn mask(object: &mut Value, resource: &str, fields: &[Trace]) {
    for (kind, path, _) in fields {
        if *kind == "*" || *kind == resource {
            let segments: Vec<String> = path.split('/').skip(1).map(|segment| segment.replace("~1", "/")).collect();
            remove(object, &segments);
        }
    }
}

fn remove(value: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else { return };
    match value {
        Value::Object(fields) if rest.is_empty() => {
            if first == "*" {
                fields.clear();
            } else {
                fields.remove(first);
            }
        }
        Value::Object(fields) if first == "*" => fields.values_mut().for_each(|value| remove(value, rest)),
        Value::Object(fields) => {
            if let Some(value) = fields.get_mut(first) {
                remove(value, rest);
            }
        }
        Value::Array(items) if rest.is_empty() && first.parse().is_ok_and(|index: usize| index < items.len()) => {
            items.remove(first.parse().unwrap_or_default());
        }
        Value::Array(items) if first == "*" => items.iter_mut().for_each(|value| remove(value, rest)),
        _ => {}
    }
}

/// What differs, one line each.
pub fn differences(expected: &World, found: &World) -> Vec<String> {
    let mut lines = Vec::new();
    let keys: std::collections::BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    for key in keys {
        let none = Vec::new();
        let (one, other) = (expected.get(key).unwrap_or(&none), found.get(key).unwrap_or(&none));
        if one.len() != other.len() {
            lines.push(format!("{key}: {} instead of {}", other.len(), one.len()));
            continue;
        }
        for (one, other) in one.iter().zip(other) {
            let mut paths = Vec::new();
            super::guard::changed("", one, other, &mut paths);
            lines.extend(paths.iter().map(|path| {
                let at = |object: &Value| object.pointer(path).map_or_else(|| "nothing".to_owned(), Value::to_string);
                format!("{key}{path}: {} instead of {}", at(other), at(one))
            }));
        }
    }
    lines
}
