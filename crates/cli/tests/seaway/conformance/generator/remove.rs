//! Delete, delete a collection, let go.

use serde_json::{Value, json};

use super::{Author, Body, quoted};

fn options(author: &Author, seen: usize) -> Value {
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    let more = match author.below(14) {
        0 => json!({"propagationPolicy": "Background"}),
        1 => json!({"propagationPolicy": "Foreground"}),
        2 => json!({"propagationPolicy": "Orphan"}),
        3 => json!({"propagationPolicy": "Whatever"}),
        4 | 5 => {
            json!({"preconditions": {"uid": format!("<<{seen}.uid>>"), "resourceVersion": format!("<<{seen}.rv>>")}})
        }
        6 => json!({"preconditions": {"uid": "wrong"}}),
        7 => json!({"preconditions": {"resourceVersion": "1"}}),
        8 => json!({"gracePeriodSeconds": 0}),
        9 => json!({"gracePeriodSeconds": -5}),
        10 => json!({"dryRun": ["All"]}),
        11 => json!({"orphanDependents": true}),
        12 => json!({"orphanDependents": true, "propagationPolicy": "Orphan"}),
        _ => json!({"dryRun": ["Most"]}),
    };
    json_patch::merge(&mut options, &more);
    options
}

pub(super) fn delete(author: &mut Author) {
    let thing = author.thing();
    let name = if author.once_in(10) { "none".to_owned() } else { thing.name.clone() };
    let place = format!("{}/{name}", thing.kind.path());
    match author.below(8) {
        0 => author.write("DELETE", place, "", Body::Text(String::new())),
        1 => author.write("DELETE", place + "?propagationPolicy=Foreground", "", Body::Text(String::new())),
        2 => author.write("DELETE", place + "?gracePeriodSeconds=0&dryRun=All", "", Body::Text(String::new())),
        3 if author.once_in(3) => author.write("DELETE", place, "application/json", Body::Text("{".into())),
        _ => {
            let body = options(author, thing.seen).to_string();
            author.write("DELETE", place, "application/json", Body::Text(body))
        }
    };
    if author.once_in(2) {
        author.forget(&thing);
    }
}

pub(super) fn delete_collection(author: &mut Author) {
    let kind = author.kind();
    let query = match author.below(5) {
        0 => "?labelSelector=app%3Dx".to_owned(),
        1 => format!("?fieldSelector={}", quoted(author.word(kind.selectable))),
        2 => "?dryRun=All".to_owned(),
        3 => "?limit=1".to_owned(),
        _ => String::new(),
    };
    let body = if author.once_in(4) { json!({"propagationPolicy": "Background"}).to_string() } else { String::new() };
    author.write("DELETE", kind.path() + &query, "application/json", Body::Text(body));
}

/// Takes the finalizers away, as a controller does that is done; what waited goes.
pub(super) fn release(author: &mut Author) {
    let thing = author.thing();
    let place = format!("{}/{}", thing.kind.path(), thing.name);
    if author.once_in(2) {
        author.write("DELETE", place.clone(), "", Body::Text(String::new()));
    }
    let (language, body) = if author.once_in(2) {
        ("application/merge-patch+json", json!({"metadata": {"finalizers": null}}))
    } else {
        ("application/json-patch+json", json!([{"op": "remove", "path": "/metadata/finalizers"}]))
    };
    author.write("PATCH", place, language, Body::Text(body.to_string()));
}
