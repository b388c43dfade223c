//! Create and update.

use serde_json::{Value, json};

use super::{Author, Body};

const JSON: &str = "application/json";

pub(super) fn create(author: &mut Author) {
    let kind = author.kind();
    let name = author.name();
    let mut object = kind.object(&name);
    let labels = json!({"app": *author.pick(&["x", "y"]), "run": "<<ns>>"});
    object["metadata"]["labels"] = labels;
    let mut stored = Some(name);
    match author.below(24) {
        0 | 1 => {
            object["metadata"]["name"] = Value::Null;
            object["metadata"]["generateName"] = "gen-".into();
            stored = None;
        }
        2 | 3 => object["metadata"]["finalizers"] = json!(["seaway.dev/hold"]),
        4 | 5 if !author.things.is_empty() => own(author, &mut object),
        6 | 7 => json_patch::merge(&mut object, &author.change(kind, 1)),
        8 => json_patch::merge(&mut object, &author.change(kind, 1000)),
        9 => spoil_metadata(author, &mut object),
        10 => object["metadata"]["annotations"] = json!({"a": "1", "b.example.com/c": ""}),
        11 => object["status"] = json!({"phase": "Failed"}),
        12 => {
            let own = match author.below(4) {
                0 => json!({"uid": "0-1"}),
                1 => json!({"generation": 7}),
                2 => json!({"creationTimestamp": "2020-01-01T00:00:00Z"}),
                _ => json!({"selfLink": "/x", "deletionGracePeriodSeconds": 5}),
            };
            json_patch::merge(&mut object, &json!({"metadata": own}));
        }
        _ => {}
    }
    let path = kind.path() + &author.options();
    let dry = path.contains("dryRun");
    let step = author.write("POST", path, JSON, Body::Text(object.to_string()));
    match stored {
        Some(name) if !dry => author.saw(kind, &name, step),
        None if !dry => author.saw(kind, &format!("<<{step}.name>>"), step),
        _ => {}
    }
}

fn own(author: &mut Author, object: &mut Value) {
    let owner = author.thing();
    let mut reference = json!({"apiVersion": owner.kind.version, "kind": owner.kind.kind, "name": owner.name,
        "uid": format!("<<{}.uid>>", owner.seen)});
    match author.below(6) {
        0 => reference["controller"] = true.into(),
        1 => reference["blockOwnerDeletion"] = true.into(),
        2 => reference["uid"] = "".into(),
        3 => reference["apiVersion"] = Value::Null,
        _ => {}
    }
    object["metadata"]["ownerReferences"] = json!([reference]);
    if author.once_in(5) {
        reference["controller"] = true.into();
        object["metadata"]["ownerReferences"] = json!([reference, reference]);
    }
}

/// Metadata that no kind accepts, or hardly.
fn spoil_metadata(author: &Author, object: &mut Value) {
    let change = match author.below(14) {
        0 => json!({"name": "Upper"}),
        1 => json!({"name": "x".repeat(254)}),
        2 => json!({"name": "under_score"}),
        3 => json!({"name": null}),
        4 => json!({"name": "sla/sh"}),
        5 => json!({"namespace": "elsewhere"}),
        6 => json!({"labels": {"bad key!": "v"}}),
        7 => json!({"labels": {"k": "bad value!"}}),
        8 => json!({"annotations": {"bad key!": "v"}}),
        9 => json!({"finalizers": ["no-slash"]}),
        10 => json!({"resourceVersion": "5"}),
        11 => json!({"labels": {"k": 5}}),
        12 => json!({"unknown": "x"}),
        _ => json!({"name": "x".repeat(64)}),
    };
    json_patch::merge(object, &json!({"metadata": change}));
}

/// Read, modify, write.
pub(super) fn update(author: &mut Author) {
    let thing = author.thing();
    let mut change = author.change(thing.kind, 5);
    match author.below(14) {
        0 => json_patch::merge(&mut change, &json!({"metadata": {"resourceVersion": null}})),
        1 => json_patch::merge(&mut change, &json!({"metadata": {"resourceVersion": "1"}})),
        2 => json_patch::merge(&mut change, &json!({"metadata": {"uid": "11111111-2222-4333-8444-555555555555"}})),
        3 => json_patch::merge(&mut change, &json!({"metadata": {"name": "other"}})),
        4 => json_patch::merge(&mut change, &json!({"metadata": {"namespace": "elsewhere"}})),
        5 => json_patch::merge(
            &mut change,
            &json!({"metadata": {"labels": {"app": "z"}, "finalizers": ["seaway.dev/hold"]}}),
        ),
        6 => json_patch::merge(
            &mut change,
            &json!({"metadata": {"generation": 99, "creationTimestamp": null, "managedFields": []}}),
        ),
        7 => change = json!({}),
        8 => json_patch::merge(&mut change, &json!({"status": {"phase": "Failed", "replicas": 3}})),
        9 => json_patch::merge(&mut change, &json!({"kind": null, "apiVersion": null})),
        10 => json_patch::merge(&mut change, &json!({"metadata": {"resourceVersion": "0"}})),
        11 => json_patch::merge(&mut change, &json!({"metadata": {"resourceVersion": "abc"}})),
        _ => {}
    }
    let options = author.options();
    let path = format!("{}/{}{options}", thing.kind.path(), thing.name);
    let step = author.write("PUT", path, JSON, Body::Edited { of: thing.seen, change });
    // Once in a while the next one works on what was true before.
    if options.is_empty() && !author.once_in(4) {
        author.saw(thing.kind, &thing.name, step);
    }
}

/// A whole object that nobody has read, as `kubectl replace` sends it; where the kind allows that it is created.
pub(super) fn update_blindly(author: &mut Author) {
    let (kind, name) = (author.kind(), author.name());
    let mut object = kind.object(&name);
    if author.once_in(2) {
        json_patch::merge(&mut object, &author.change(kind, 4));
    }
    if author.once_in(5) {
        object["metadata"]["resourceVersion"] = author.word(&["1", "12", "999999999"]).into();
    }
    let path = format!("{}/{name}{}", kind.path(), author.options());
    author.write("PUT", path, JSON, Body::Text(object.to_string()));
}
