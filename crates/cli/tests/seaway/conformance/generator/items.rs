//! JSON Patches inside lists: by index, behind the end, and where there is nothing.

use serde_json::{Value, json};

use super::change::{JSON_PATCH, patch};
use super::{Author, Thing};

/// Places in a list, right and wrong.
const PLACES: &[&str] = &["0", "0", "1", "2", "7", "-", "-", "-1", "01", "x", ""];

/// The lists of a kind.
fn lists(kind: &str) -> &'static [&'static str] {
    match kind {
        "deployments" | "replicasets" => &["/spec/template/spec/containers"],
        "services" => &["/spec/ports"],
        "pods" => &["/spec/containers"],
        "horizontalpodautoscalers" => &["/spec/metrics"],
        "canaries" => &["/spec/analysis/metrics", "/spec/service/hosts", "/spec/service/gatewayRefs"],
        "httproutes" => &["/spec/rules/0/backendRefs", "/spec/rules", "/spec/hostnames", "/spec/parentRefs"],
        _ => &["/metadata/finalizers", "/metadata/ownerReferences"],
    }
}

pub(super) fn json_patch(author: &mut Author) {
    let thing = author.thing();
    let list = author.word(lists(thing.kind.plural));
    let mut operations = vec![operation(author, &thing, list)];
    if author.once_in(3) {
        operations.push(operation(author, &thing, list));
    }
    let options = author.options();
    patch(author, &thing, &options, JSON_PATCH, &Value::Array(operations));
}

fn operation(author: &Author, thing: &Thing, list: &str) -> Value {
    let place = |author: &Author| format!("{list}/{}", author.word(PLACES));
    let path = place(author);
    match author.below(8) {
        0..3 => json!({"op": "add", "path": path, "value": item(author, thing, list)}),
        3 => json!({"op": "replace", "path": path, "value": item(author, thing, list)}),
        4 => json!({"op": "remove", "path": path}),
        5 => json!({"op": "test", "path": path, "value": item(author, thing, list)}),
        6 => json!({"op": "copy", "from": place(author), "path": path}),
        _ => json!({"op": "move", "from": place(author), "path": path}),
    }
}

/// An item like the first of the list, or nothing.
fn item(author: &Author, thing: &Thing, list: &str) -> Value {
    let object = thing.kind.object(&thing.name);
    let mut item = object.pointer(&format!("{list}/0")).cloned().unwrap_or_else(|| json!("seaway.dev/hold"));
    match (author.below(4), &mut item) {
        (0, _) => return Value::Null,
        (1, _) => {}
        (_, Value::Object(members)) if members.contains_key("name") => {
            members.insert("name".into(), "more".into());
            members.shift_remove("ports");
        }
        (_, Value::String(text)) => text.insert_str(0, "more."),
        _ => {}
    }
    item
}
