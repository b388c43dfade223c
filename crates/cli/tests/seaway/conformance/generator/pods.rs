//! Pods and templates of pods that few people write.

use serde_json::{Value, json};

use super::{Author, Body};
use crate::conformance::kinds::pod_parts::{ANNOTATIONS, CONTAINERS, SPECS, TEMPLATE_SPECS, VOLUMES};
use crate::conformance::kinds::{KINDS, Kind};

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A merge patch of a kind that is, or makes, pods.
pub(super) fn change(author: &Author, kind: &Kind) -> Value {
    let is_pod = kind.plural == "pods";
    let mut pod = match author.below(20) {
        0 => json!({"metadata": {"annotations": read(author.word(ANNOTATIONS))}}),
        1 if !is_pod => json!({"spec": read(author.word(TEMPLATE_SPECS))}),
        2..10 => {
            let mut container = json!({"name": "podinfod", "image": "x:1"});
            json_patch::merge(&mut container, &read(author.word(CONTAINERS)));
            json!({"spec": {"volumes": read(VOLUMES), "containers": [container]}})
        }
        _ => json!({"spec": read(author.word(SPECS))}),
    };
    if author.once_in(8) {
        json_patch::merge(&mut pod, &json!({"spec": read(author.word(SPECS))}));
    }
    if is_pod { pod } else { json!({"spec": {"template": pod}}) }
}

/// Gives a pod a node, or takes it from there.
pub(super) fn place(author: &mut Author) {
    let pods = author.things.iter().filter(|thing| thing.kind.plural == "pods").cloned().collect::<Vec<_>>();
    let Some(pod) = (!pods.is_empty()).then(|| author.pick(&pods).clone()) else { return create_plain(author) };
    let (part, mut object) = if author.once_in(2) {
        ("binding", json!({"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n"}}))
    } else {
        ("eviction", json!({"apiVersion": "policy/v1", "kind": "Eviction"}))
    };
    object["metadata"] = json!({"name": pod.name});
    let table = if part == "binding" { BINDINGS } else { EVICTIONS };
    if author.once_in(2) {
        let text = author.word(table).replace("<<of.", &format!("<<{}.", pod.seen));
        json_patch::merge(&mut object, &read(&text));
    }
    let dry = if author.once_in(8) { "?dryRun=All" } else { "" };
    let name = if author.once_in(12) { "none" } else { &pod.name };
    let path = format!("/api/v1/namespaces/<<ns>>/pods/{name}/{part}{dry}");
    let body = if author.once_in(16) { String::new() } else { object.to_string() };
    author.write("POST", path, "application/json", Body::Text(body));
    if author.once_in(2) {
        author.read(format!("/api/v1/namespaces/<<ns>>/pods/{}", pod.name));
    }
}

/// Merge patches of a binding.
const BINDINGS: &[&str] = &[
    r#"{"metadata":{"annotations":{"x":"y"},"labels":{"topology.kubernetes.io/zone":"z","app":"taken"}}}"#,
    r#"{"metadata":{"uid":"wrong"}}"#,
    r#"{"metadata":{"resourceVersion":"1"}}"#,
    r#"{"metadata":{"uid":"<<of.uid>>","resourceVersion":"<<of.rv>>"}}"#,
    r#"{"metadata":{"name":"other"}}"#,
    r#"{"metadata":{"namespace":"elsewhere"}}"#,
    r#"{"target":{"kind":"Odd","name":""}}"#,
    r#"{"target":null}"#,
    r#"{"target":{"kind":null}}"#,
    r#"{"kind":"Pod"}"#,
    r#"{"kind":"Sandwich"}"#,
];

/// Merge patches of an eviction. None has the uid of somebody else: a real server tries that again for ten seconds before it says
/// no, and a script must be over sooner.
const EVICTIONS: &[&str] = &[
    r#"{"metadata":{"name":"other"}}"#,
    r#"{"metadata":{"name":null}}"#,
    r#"{"metadata":{"namespace":"elsewhere"}}"#,
    r#"{"deleteOptions":{"gracePeriodSeconds":0}}"#,
    r#"{"deleteOptions":{"gracePeriodSeconds":-1}}"#,
    r#"{"deleteOptions":{"dryRun":["All"]}}"#,
    r#"{"deleteOptions":{"preconditions":{"uid":"<<of.uid>>"}}}"#,
    r#"{"deleteOptions":{"propagationPolicy":"Foreground"}}"#,
    r#"{"kind":"Pod","apiVersion":"v1"}"#,
];

fn create_plain(author: &mut Author) {
    let kind = KINDS.iter().find(|kind| kind.plural == "pods").unwrap();
    let name = author.name();
    let object = kind.object(&name);
    let step = author.write("POST", kind.path(), "application/json", Body::Text(object.to_string()));
    author.saw(kind, &name, step);
}

/// Creates something that is, or makes, such a pod.
pub(super) fn create(author: &mut Author) {
    let kinds: Vec<_> = KINDS.iter().filter(|kind| kind.makes_pods()).collect();
    let kind = *author.pick(&kinds);
    let name = author.name();
    let mut object = kind.object(&name);
    json_patch::merge(&mut object, &change(author, kind));
    let path = kind.path() + &author.options();
    let dry = path.contains("dryRun");
    let step = author.write("POST", path, "application/json", Body::Text(object.to_string()));
    if !dry {
        author.saw(kind, &name, step);
    }
}
