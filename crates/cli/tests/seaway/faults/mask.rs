//! What may differ between the end of a run with a fault and the end of the same run without it. Everything else must be
//! equal, byte for byte.

use std::collections::BTreeMap;

use serde_json::Value;

use super::board::{Book, text};

/// Resources that are not compared at all.
const LEFT_OUT: &[(&str, &str)] = &[
    ("events", "how often something was told is bounded, not equal: see the oracle of noise"),
    ("leases", "who leads, and since when, is the fault itself"),
];

/// Fields that are not compared: resource (`*`: all), path (`*`: every element or key), and why.
const MASK: &[(&str, &str, &str)] = &[
    ("*", "/metadata/uid", "drawn by the server for every object"),
    ("*", "/metadata/resourceVersion", "counts all writes of the cluster"),
    ("*", "/metadata/creationTimestamp", "a time"),
    ("*", "/metadata/managedFields/*/time", "a time"),
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
    ("endpointslices", "/metadata/generation", "counts the changes of a set of pods, which come in any grouping"),
];

/// All objects at the end, masked.
pub type World = BTreeMap<String, Vec<Value>>;

/// The masked end of a run.
pub fn world(book: &Book) -> World {
    let mut world = World::new();
    for ((resource, namespace, name), object) in &book.objects {
        if LEFT_OUT.iter().any(|(left_out, _)| left_out == resource) {
            continue;
        }
        let mut object = Value::clone(object);
        for (kind, path, _) in MASK {
            if *kind == "*" || kind == resource {
                let segments: Vec<String> = path.split('/').skip(1).map(|segment| segment.replace("~1", "/")).collect();
                remove(&mut object, &segments);
            }
        }
        let generated = text(&object, "/metadata/generateName");
        let name = if generated.is_empty() { name } else { &generated };
        world.entry(format!("{resource} {namespace}/{name}")).or_default().push(object);
    }
    for objects in world.values_mut() {
        objects.sort_by_key(Value::to_string);
    }
    world
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
