//! Objects that belong to no namespace: namespaces themselves, and roles for all of them.

use serde_json::{Value, json};

use super::{Author, Body};
use crate::conformance::kinds::CLUSTER_WIDE;

const JSON: &str = "application/json";

/// One more of them, or what only namespaces have.
pub(super) fn request(author: &mut Author) {
    let namespaces: Vec<_> = author.things.iter().filter(|thing| thing.kind.plural == "namespaces").cloned().collect();
    match author.below(3) {
        0 if !namespaces.is_empty() => {
            let namespace = author.pick(&namespaces).clone();
            finalize(author, &namespace.name, namespace.seen);
        }
        1 if !namespaces.is_empty() => {
            let namespace = author.pick(&namespaces).name.clone();
            fill(author, &namespace);
        }
        _ => create(author),
    }
}

fn create(author: &mut Author) {
    let kind = author.weighted(CLUSTER_WIDE, |kind| kind.weight);
    let name = author.name_of(kind);
    let mut object = kind.object(&name);
    object["metadata"]["labels"] = json!({"app": author.word(&["x", "y"]), "run": "<<ns>>"});
    match author.below(8) {
        0 => json_patch::merge(&mut object, &author.change(kind, 1)),
        1 => json_patch::merge(&mut object, &author.change(kind, 1000)),
        2 => object["metadata"]["generateName"] = format!("{name}-").into(),
        3 => object["metadata"]["finalizers"] = json!(["seaway.dev/hold"]),
        _ => {}
    }
    let generated = object["metadata"]["generateName"].is_string() && author.once_in(2);
    if generated {
        object["metadata"]["name"] = Value::Null;
    }
    let path = kind.path() + &author.options();
    let dry = path.contains("dryRun");
    let step = author.write("POST", path, JSON, Body::Text(object.to_string()));
    if !dry {
        let name = if generated { format!("<<{step}.name>>") } else { name };
        author.saw(kind, &name, step);
    }
}

/// Something in it, which keeps it, and which it does not take any more when it goes.
fn fill(author: &mut Author, namespace: &str) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": author.name()}});
    let path = format!("/api/v1/namespaces/{namespace}/configmaps{}", author.options());
    author.write("POST", path, JSON, Body::Text(object.to_string()));
}

/// What a controller does that has emptied it.
fn finalize(author: &mut Author, name: &str, seen: usize) {
    let held: Value = serde_json::from_str(author.word(&[
        "[]",
        "[]",
        "null",
        r#"["kubernetes"]"#,
        r#"["kubernetes","example.com/y"]"#,
        r#"["bad name!"]"#,
        r#"["bad"]"#,
    ]))
    .unwrap();
    if author.once_in(2) {
        author.write("DELETE", format!("/api/v1/namespaces/{name}"), "", Body::Text(String::new()));
    }
    let method = if author.once_in(12) { "PATCH" } else { "PUT" };
    let path = format!("/api/v1/namespaces/{name}/finalize");
    let language = if method == "PUT" { JSON } else { "application/merge-patch+json" };
    let body = if author.once_in(2) {
        Body::Edited { of: seen, change: json!({"metadata": {"resourceVersion": null}, "spec": {"finalizers": held}}) }
    } else {
        let metadata = json!({"name": name, "labels": {"run": "<<ns>>"}});
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "spec": {"finalizers": held}});
        Body::Text(object.to_string())
    };
    author.write(method, path, language, body);
}
