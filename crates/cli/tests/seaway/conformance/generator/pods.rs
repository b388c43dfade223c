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
