//! Members that the values of a JSON Patch have twice, on their way into an object.
//!
//! A real server carries a value about as it was sent and opens it only where a later operation leads into it. What is still
//! closed at the end is read with everything that is there twice, and told once more, by its new place. Here such an object has
//! a mark, which goes where the object goes.

use json_patch::PatchOperation;
use serde_json::Value;

use super::repeated::{As, Odd};
use super::schema::join;

/// The name of the mark. Its value are the names of the members, with the same sign between them.
const MARK: &str = "\u{0}";

/// Marks what is there twice in the values of operations.
pub(super) fn mark(operations: &mut [Value], odd: &[Odd]) {
    for odd in odd.iter().filter(|odd| odd.known) {
        let Some((at, steps)) = odd.holder.split_first() else { continue };
        let Some(operation) = at.parse::<usize>().ok().and_then(|at| operations.get_mut(at)) else { continue };
        let inside = steps.first().is_some_and(|step| step == "value");
        let holder = steps.iter().try_fold(operation, |value, step| match value {
            Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
            value => value.get_mut(step),
        });
        if let Some(Value::Object(members)) = holder.filter(|_| inside) {
            let names = members.get(MARK).and_then(Value::as_str).map(|names| format!("{names}{MARK}"));
            members.insert(MARK.into(), (names.unwrap_or_default() + &odd.name).into());
        }
    }
}

/// Takes away the marks of what an operation reads: all on its way and, where something is compared, everything in it.
pub(super) fn open(object: &mut Value, operation: &PatchOperation) {
    let (path, from) = match operation {
        PatchOperation::Add(add) => (&add.path, None),
        PatchOperation::Remove(remove) => (&remove.path, None),
        PatchOperation::Replace(replace) => (&replace.path, None),
        PatchOperation::Move(moved) => (&moved.path, Some(&moved.from)),
        PatchOperation::Copy(copy) => (&copy.path, Some(&copy.from)),
        PatchOperation::Test(test) => (&test.path, None),
    };
    for path in from.into_iter().chain([path]) {
        for (end, _) in path.as_str().match_indices('/') {
            if let Some(Value::Object(members)) = path.as_str().get(..end).and_then(|way| object.pointer_mut(way)) {
                members.shift_remove(MARK);
            }
        }
    }
    if let PatchOperation::Test(test) = operation
        && let Some(compared) = object.pointer_mut(test.path.as_str())
    {
        take_marks(None, compared, "", &mut Vec::new());
    }
}

/// Takes the marks away and says what is still there twice, as the object is read.
pub(super) fn close(read_as: As<'_>, object: &mut Value) -> Vec<String> {
    // The object itself was open all the time.
    if let Value::Object(members) = object {
        members.shift_remove(MARK);
    }
    let mut found = Vec::new();
    take_marks(Some(read_as), object, "", &mut found);
    found
}

/// The same below a path; nobody looks where nothing is said about how it is read.
fn take_marks(read_as: Option<As<'_>>, value: &mut Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            // What was opened has been written anew, in order.
            if !members.contains_key(MARK) {
                members.sort_keys();
            }
            if let (Some(Value::String(names)), Some(read_as)) = (members.shift_remove(MARK), read_as) {
                let known = names.split(MARK).filter(|name| read_as.knows(name));
                found.extend(known.map(|name| join(path, name)));
            }
            for (name, value) in members {
                take_marks(read_as.and_then(|read_as| read_as.member(name)), value, &join(path, name), found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                take_marks(read_as.map(As::item), item, &format!("{path}[{at}]"), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apiserver::repeated::odd_members;

    /// What is told of a patch of an empty object.
    fn told(patch: &str) -> Vec<String> {
        let mut operations: Vec<Value> = serde_json::from_str(patch).unwrap();
        mark(&mut operations, &odd_members(patch.as_bytes(), As::Operations));
        let mut object = json!({});
        for operation in operations {
            let operation: PatchOperation = serde_json::from_value(operation).unwrap();
            open(&mut object, &operation);
            json_patch::patch(&mut object, &[operation]).unwrap();
        }
        let found = close(As::Anything, &mut object);
        assert!(!object.to_string().contains("\\u0000"), "{object}");
        found
    }

    #[test]
    fn what_is_there_twice_is_told_where_it_comes_to_be() {
        assert_eq!(told(r#"[{"op":"add","path":"/data","value":{"a":1,"a":2,"b":1,"b":2}}]"#), ["data.a", "data.b"]);
        let moved = r#"[{"op":"add","path":"/x","value":[{"a":1,"a":2}]},{"op":"move","from":"/x","path":"/y"}]"#;
        assert_eq!(told(moved), ["y[0].a"]);
        let copied = r#"[{"op":"add","path":"/x","value":{"a":1,"a":2}},{"op":"copy","from":"/x","path":"/y"}]"#;
        assert_eq!(told(copied), ["x.a", "y.a"]);
    }

    #[test]
    fn what_was_opened_is_there_once() {
        let into = r#"[{"op":"add","path":"/x","value":{"a":1,"a":2,"in":{"b":1,"b":2}}},{"op":"add","path":"/x/c","value":1}]"#;
        assert_eq!(told(into), ["x.in.b"]);
        let compared = r#"[{"op":"add","path":"/x","value":{"a":1,"a":{"b":1,"b":2}}},{"op":"test","path":"/x","value":{"a":{"b":2}}}]"#;
        assert_eq!(told(compared), Vec::<String>::new());
        let over = r#"[{"op":"add","path":"/x","value":{"a":1,"a":2}},{"op":"replace","path":"/x","value":{}}]"#;
        assert_eq!(told(over), Vec::<String>::new());
    }
}
