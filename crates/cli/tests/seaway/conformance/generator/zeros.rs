//! Writes that give a field nothing, in every language.

use serde_json::{Value, json};

use super::change::{APPLY, JSON_PATCH, MERGE, STRATEGIC};
use super::{Author, Body};

/// Every kind of nothing.
const NOTHING: &[&str] = &["null", "false", "0", "\"\"", "{}", "[]"];

pub(super) fn zero(author: &mut Author) {
    let thing = author.thing();
    let kind = thing.kind;
    let &(field, right) = author.pick(&kind.zeros());
    let nothing = if author.once_in(5) { author.word(NOTHING) } else { right };
    let nothing: Value = serde_json::from_str(nothing).unwrap();
    let mut object = kind.object(&thing.name);
    put(&mut object, field, nothing.clone());
    // The part of the object that the field is in.
    let part = field.split('/').nth(1).unwrap_or_default();
    let change = json!({part: object[part]});
    let place = format!("{}/{}{}", kind.path(), thing.name, author.options());
    let text = |value: &Value| Body::Text(value.to_string());
    let step = match author.below(6) {
        0 => {
            object["metadata"]["name"] = author.name_of(kind).into();
            author.write("POST", kind.path() + &author.options(), "application/json", text(&object));
            return;
        }
        1 => author.write("PUT", place.clone(), "application/json", Body::Edited { of: thing.seen, change }),
        2 => author.write("PATCH", place.clone(), MERGE, text(&change)),
        3 => author.write("PATCH", place.clone(), STRATEGIC, text(&change)),
        4 => {
            let manager = author.word(&["?fieldManager=first", "?fieldManager=second&force=true"]);
            author.write("PATCH", format!("{}/{}{manager}", kind.path(), thing.name), APPLY, text(&object))
        }
        _ => {
            let operation = author.word(&["add", "replace"]);
            let patch = json!([{"op": operation, "path": field, "value": nothing}]);
            author.write("PATCH", place.clone(), JSON_PATCH, text(&patch))
        }
    };
    if !place.contains("dryRun") {
        author.saw(kind, &thing.name, step);
    }
}

/// Sets the value at a pointer and makes the objects on the way.
fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for step in pointer.split('/').skip(1) {
        place = match step.parse::<usize>() {
            Ok(at) if place.is_array() => &mut place[at],
            _ => &mut place[step],
        };
    }
    *place = value;
}
