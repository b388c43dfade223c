//! Patches in four languages, and the sub-resources.

use serde_json::{Value, json};

use super::{Author, Body, Thing};

pub(super) const JSON_PATCH: &str = "application/json-patch+json";
pub(super) const MERGE: &str = "application/merge-patch+json";
pub(super) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(super) const APPLY: &str = "application/apply-patch+yaml";

pub(super) fn patch(author: &mut Author, thing: &Thing, suffix: &str, language: &str, body: &Value) -> usize {
    let path = format!("{}/{}{suffix}", thing.kind.path(), thing.name);
    let step = author.write("PATCH", path, language, Body::Text(body.to_string()));
    if !suffix.contains("dryRun") && !author.once_in(4) && !suffix.starts_with("/scale") {
        author.saw(thing.kind, &thing.name, step);
    }
    step
}

/// As the operator writes: tests first.
pub(super) fn json_patch(author: &mut Author) {
    let thing = author.thing();
    let (path, before, after) = thing.kind.field;
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let mut patch_of = vec![json!({"op": "test", "path": "/metadata/uid", "value": format!("<<{}.uid>>", thing.seen)})];
    if author.once_in(2) {
        patch_of.push(
            json!({"op": "test", "path": "/metadata/resourceVersion", "value": format!("<<{}.rv>>", thing.seen)}),
        );
    }
    if author.once_in(3) {
        patch_of.push(json!({"op": "test", "path": path, "value": value(before)}));
    }
    patch_of.push(json!({"op": "replace", "path": path, "value": value(after)}));
    match author.below(18) {
        0 => patch_of.push(json!({"op": "remove", "path": "/metadata/annotations/none"})),
        1 => patch_of.push(json!({"op": "add", "path": "/metadata/labels/new", "value": "label"})),
        2 => patch_of.push(json!({"op": "add", "path": "/metadata/annotations", "value": {"a/b": "c"}})),
        3 => patch_of.push(json!({"op": "copy", "from": path, "path": "/metadata/labels/copied"})),
        4 => patch_of.push(json!({"op": "move", "from": "/metadata/labels/app", "path": "/metadata/labels/moved"})),
        5 => patch_of.push(json!({"op": "test", "path": "/metadata/name", "value": "another"})),
        6 => patch_of.push(json!({"op": "replace", "path": "/metadata/name", "value": "another"})),
        7 => patch_of.push(json!({"op": "replace", "path": "/no/such/place", "value": 1})),
        8 => patch_of.push(json!({"op": "add", "path": "/metadata/finalizers", "value": ["seaway.dev/hold"]})),
        9 => patch_of.push(json!({"op": "nonsense", "path": "/metadata"})),
        10 => patch_of.push(json!({"op": "replace", "path": path, "value": {"wrong": ["type"]}})),
        11 => patch_of.push(json!({"op": "add", "path": "/metadata/ownerReferences/-", "value": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}})),
        12 => patch_of.push(json!({"op": "add", "path": "/unknownField", "value": true})),
        13 => patch_of.push(json!({"op": "remove", "path": "/metadata/labels"})),
        14 => patch_of = vec![json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "1"})],
        _ => {}
    }
    let options = author.options();
    patch(author, &thing, &options, JSON_PATCH, &Value::Array(patch_of));
}

pub(super) fn merge_patch(author: &mut Author) {
    let thing = author.thing();
    let mut change = author.change(thing.kind, 3);
    match author.below(8) {
        0 => {
            json_patch::merge(&mut change, &json!({"metadata": {"resourceVersion": format!("<<{}.rv>>", thing.seen)}}));
        }
        1 => json_patch::merge(&mut change, &json!({"metadata": {"labels": {"app": null, "more": "1"}}})),
        2 => json_patch::merge(&mut change, &json!({"metadata": {"labels": null}})),
        3 => json_patch::merge(&mut change, &json!({"metadata": {"finalizers": ["seaway.dev/hold"]}})),
        4 => json_patch::merge(&mut change, &json!({"metadata": {"uid": "wrong"}})),
        _ => {}
    }
    let options = author.options();
    patch(author, &thing, &options, MERGE, &change);
}

pub(super) fn strategic_patch(author: &mut Author) {
    let thing = author.thing();
    let change = match (thing.kind.plural, author.below(7)) {
        ("deployments" | "replicasets", 0) => {
            json!({"spec": {"template": {"spec": {"containers": [{"name": "podinfod", "image": "podinfo:7"}]}}}})
        }
        ("deployments" | "replicasets", 1) => {
            json!({"spec": {"template": {"spec": {"containers": [{"name": "podinfod", "$patch": "delete"}, {"name": "new", "image": "x"}]}}}})
        }
        ("deployments", 2) => {
            json!({"spec": {"template": {"spec": {"containers": [{"name": "podinfod", "env": [{"name": "A", "$patch": "delete"}, {"name": "B", "value": "2"}]}]}}}})
        }
        ("deployments", 3) => json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
        ("services", 0) => json!({"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}),
        ("services", 1) => json!({"spec": {"ports": [{"port": 80, "$patch": "delete"}, {"name": "b", "port": 81}]}}),
        ("services", 2) => json!({"spec": {"selector": {"$patch": "replace", "only": "this"}}}),
        (_, 0) => json!({"metadata": {"finalizers": ["seaway.dev/hold"]}}),
        (_, 1) => json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["seaway.dev/hold"]}}),
        (_, 2) => json!({"metadata": {"labels": {"$patch": "delete"}}}),
        (_, 3) => json!({"$patch": "sideways"}),
        _ => author.change(thing.kind, 4),
    };
    let options = author.options();
    patch(author, &thing, &options, STRATEGIC, &change);
}

pub(super) fn apply(author: &mut Author) {
    let (kind, name) = if author.once_in(3) {
        (author.kind(), author.name())
    } else {
        let thing = author.thing();
        (thing.kind, thing.name)
    };
    let mut object = kind.object(&name);
    if author.once_in(2) {
        json_patch::merge(&mut object, &author.change(kind, 6));
    }
    let mut query = match author.below(8) {
        0 | 1 => "?fieldManager=first",
        2 => "?fieldManager=second",
        3 => "?fieldManager=second&force=true",
        4 => "?fieldManager=first&force=true",
        5 => "?fieldManager=first&fieldValidation=Strict",
        6 => "?fieldManager=third&dryRun=All",
        _ => "?fieldManager=third&force=1",
    };
    match author.below(16) {
        0 => query = "",
        1 => object["metadata"]["name"] = "other".into(),
        2 => object["kind"] = Value::Null,
        3 => object["apiVersion"] = "v9".into(),
        4 => object["metadata"]["managedFields"] = json!([]),
        5 => object["metadata"]["resourceVersion"] = "1".into(),
        6 => object["metadata"]["uid"] = "wrong".into(),
        7 => object["metadata"]["labels"] = json!({"app": "applied"}),
        8 => object["metadata"]["finalizers"] = json!(["seaway.dev/hold"]),
        9 => object["metadata"]["name"] = Value::Null,
        10 => object["spec"] = Value::Null,
        _ => {}
    }
    let path = format!("{}/{name}{query}", kind.path());
    let step = author.write("PATCH", path, APPLY, Body::Text(object.to_string()));
    if !query.contains("dryRun") {
        author.saw(kind, &name, step);
    }
}

pub(super) fn status(author: &mut Author) {
    let thing = author.thing();
    let place = format!("{}/{}/status", thing.kind.path(), thing.name);
    let choice = author.below(7);
    if thing.kind.status.is_empty() || choice == 0 {
        author.read(place);
        return;
    }
    let mut change: Value = serde_json::from_str(author.word(thing.kind.status)).unwrap();
    match choice {
        1 | 2 => {
            if author.once_in(3) {
                json_patch::merge(&mut change, &author.change(thing.kind, 100));
            }
            let step = author.write("PUT", place, "application/json", Body::Edited { of: thing.seen, change });
            author.saw(thing.kind, &thing.name, step);
        }
        3 => {
            let value = &change["status"];
            let body = json!([
                {"op": "test", "path": "/metadata/uid", "value": format!("<<{}.uid>>", thing.seen)},
                {"op": if author.once_in(2) { "add" } else { "replace" }, "path": "/status", "value": value},
            ]);
            patch(author, &thing, "/status", JSON_PATCH, &body);
        }
        4 => {
            json_patch::merge(&mut change, &json!({"apiVersion": thing.kind.version, "kind": thing.kind.kind}));
            patch(author, &thing, "/status?fieldManager=first", APPLY, &change);
        }
        5 => {
            json_patch::merge(&mut change, &json!({"metadata": {"labels": {"from": "status"}}}));
            patch(author, &thing, "/status", MERGE, &change);
        }
        _ => {
            let language = if thing.kind.is_custom() { MERGE } else { STRATEGIC };
            patch(author, &thing, "/status", language, &change);
        }
    }
}

pub(super) fn scale(author: &mut Author) {
    let thing = author.thing();
    let place = format!("{}/{}/scale", thing.kind.path(), thing.name);
    let seen = author.read(place.clone());
    if !thing.kind.scale {
        return;
    }
    let replicas = *author.pick(&[0_i64, 2, 5, -1]);
    match author.below(5) {
        0 => {
            let change = json!({"spec": {"replicas": replicas}});
            author.write("PUT", place, "application/json", Body::Edited { of: seen, change });
        }
        1 => {
            let change = json!({"spec": {"replicas": replicas}, "metadata": {"resourceVersion": null}});
            author.write("PUT", place, "application/json", Body::Edited { of: seen, change });
        }
        2 => {
            patch(author, &thing, "/scale", MERGE, &json!({"spec": {"replicas": replicas}}));
        }
        3 => {
            let body = json!([{"op": "replace", "path": "/spec/replicas", "value": replicas}]);
            patch(author, &thing, "/scale", JSON_PATCH, &body);
        }
        _ => {
            let change = json!({"spec": {"replicas": "many"}});
            author.write("PUT", place, "application/json", Body::Edited { of: seen, change });
        }
    }
}
