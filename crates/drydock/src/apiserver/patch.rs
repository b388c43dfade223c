//! Patching: the four languages in which a client can say what to change.

use bytes::Bytes;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation};
use serde_json::Value;

use super::convert::convert;
use super::decode::decode;
use super::error::{ApiError, Result};
use super::go_json;
use super::go_numbers::{as_sent, as_written, has_endless, too_large};
use super::json_patch_paths;
use super::json_patch_tests::is_as_go_writes;
use super::json_patch_twice;
use super::merge;
use super::meta;
use super::patch_kind::check_kind;
use super::registry::Resource;
use super::repeated::{As, odd_members};
use super::request::{Call, media_type};
use super::schema::Schema;
use super::server::{Answer, BODY_LIMIT, Reply, Server};
use super::write::Ownership;

/// The media type of server-side apply.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
/// The media type of strategic merge patches.
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// So many operations may a JSON Patch have.
const MOST: usize = 10_000;

/// The operations of a JSON Patch.
const KNOWN: [&str; 6] = ["add", "copy", "move", "remove", "replace", "test"];

impl Server {
    /// `patch`, on an object or on a sub-resource that shows the whole object.
    pub(crate) fn patch(&self, call: &Call) -> Result<Reply> {
        if media_type(&call.content_type) == APPLY {
            return self.apply(call);
        }
        let mut state = self.store.lock();
        let live = call.live(&state)?;
        let Patched { mut object, twice } = patched(call, &call.versioned(&live), call.served.version().schema())?;
        check_kind(call, &mut object)?;
        readable(call, &object)?;
        let written = self.replace(&mut state, call, &live, (object, &twice), Ownership::Written)?;
        Ok(Reply { answer: Answer::Object(200, written.object), warnings: written.warnings })
    }
}

/// A resource is patched in the languages it speaks.
pub(crate) fn check_language(call: &Call) -> Result<()> {
    let spoken = languages(&call.served.resource);
    if spoken.contains(&media_type(&call.content_type)) {
        return Ok(());
    }
    Err(if call.served.resource.custom {
        ApiError::unsupported_media_type(spoken)
    } else {
        ApiError::unknown_language()
    })
}

/// What a patch leaves must still be of its kind, as far as Go's types go.
fn readable(call: &Call, new: &Value) -> Result<()> {
    let schema = call.served.version().schema();
    let refuse = |why| {
        let why = if call.served.resource.custom { as_written(why) } else { as_sent(&call.body, why) };
        ApiError::unreadable_patch(new, &why)
    };
    let mut copy = new.clone();
    schema.drop_nulls(&mut copy);
    if call.served.resource.custom {
        if let Some(why) = too_large(&call.body, "Go value").filter(|_| has_endless(new)) {
            return Err(ApiError::unreadable_patch(new, &why));
        }
        let (Some(schema), Some(metadata)) = (schema.member("metadata"), copy.get_mut("metadata")) else {
            return Ok(());
        };
        return decode(schema, metadata).map_err(refuse);
    }
    decode(schema, &mut copy).map_err(refuse)
}

/// What a patch makes of an object.
pub(crate) struct Patched {
    pub(crate) object: Value,
    /// Members that a JSON Patch has left there twice.
    pub(crate) twice: Vec<String>,
}

/// What a patch other than server-side apply makes of an object.
pub(crate) fn patched(call: &Call, live: &Value, schema: &Schema) -> Result<Patched> {
    let (mut object, mut twice) = (live.clone(), Vec::new());
    match media_type(&call.content_type) {
        "application/merge-patch+json" => {
            json_patch::merge(&mut object, &merge_patch(call)?);
        }
        "application/json-patch+json" => {
            let (operations, marked) = operations(call)?;
            let (mut copied, mut written) = (0, Vec::new());
            for (at, operation) in operations.0.into_iter().enumerate() {
                if let PatchOperation::Test(test) = &operation {
                    // What the patch itself has put there is compared with what it has put.
                    let is_own = written.iter().any(|path: &String| test.path.as_str().starts_with(path.as_str()));
                    if !is_own && !is_as_go_writes(&call.body, at, &test.value) {
                        return Err(rejected());
                    }
                } else {
                    written.push(operation.path().to_string());
                }
                for operation in steps(&object, operation)? {
                    let operation = forgiving(&object, located(&object, operation));
                    check_growth(&object, &operation, &mut copied)?;
                    if marked {
                        json_patch_twice::open(&mut object, &operation);
                    }
                    json_patch::patch(&mut object, &[operation]).map_err(|_| rejected())?;
                }
            }
            if marked {
                let read_as = if call.served.resource.custom { As::Anything } else { As::Known(schema) };
                twice = json_patch_twice::close(read_as, &mut object);
            }
        }
        STRATEGIC if !call.served.resource.custom => {
            let patch = patch_body(&call.body, "")?;
            if !patch.is_null() {
                merge::strategic(schema, &mut object, &patch)?;
            }
            convert(schema, &mut object).map_err(|why| ApiError::unfitting_patch(&patch, &why))?;
            // Of which kind it is the server knows without being told.
            for field in ["apiVersion", "kind"] {
                meta::set(meta::members(&mut object), field, live.get(field).cloned());
            }
        }
        _ => return Err(ApiError::unsupported_media_type(languages(&call.served.resource))),
    }
    Ok(Patched { object, twice })
}

/// A patch that is JSON and nothing else. What is wrong with it is said as Go does, after some words of the server.
fn patch_body(body: &Bytes, words: &str) -> Result<Value> {
    let refuse = |why: String| ApiError::bad_request(format!("{words}{why}"));
    let read = go_json::parse(body).map_err(refuse)?;
    if let Some(why) = too_large(body, "Go value") {
        return Err(refuse(why));
    }
    match read {
        object @ (Value::Object(_) | Value::Null) => Ok(object),
        other => {
            let found = go_json::kind_of(&other);
            Err(refuse(format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")))
        }
    }
}

/// Whether a patch is read by types first that find what is wrong in it. Who wants to hear nothing of that has it read as
/// whatever it is, which fails later and in other words.
fn is_looked_through(call: &Call) -> bool {
    call.params.get("fieldValidation") != "Ignore"
}

fn merge_patch(call: &Call) -> Result<Value> {
    let wrong = || ApiError::bad_request("Invalid JSON Patch");
    let patch = if is_looked_through(call) {
        patch_body(&call.body, "error decoding patch: ")?
    } else {
        go_json::parse(&call.body).map_err(|_| wrong())?
    };
    match patch {
        Value::Object(_) => Ok(patch),
        // It takes the place of the object.
        Value::Array(list) => Err(ApiError::patched_to_a_list(&list)),
        _ => Err(wrong()),
    }
}

/// A list of operations. One that nobody knows, or that lacks something, is refused when its turn comes, and that is not
/// said. With it comes whether what they have twice is marked.
fn operations(call: &Call) -> Result<(json_patch::Patch, bool)> {
    let (body, looked_through) = (&call.body, is_looked_through(call));
    let (words, patch, operation) = if looked_through {
        ("error decoding patch: ", "[]handlers.jsonPatchOp", "handlers.jsonPatchOp")
    } else {
        ("", "jsonpatch.Patch", "jsonpatch.Operation")
    };
    let wrong = |why: String| ApiError::bad_request(format!("{words}{why}"));
    let mut list = match go_json::parse(body).map_err(wrong)? {
        Value::Array(list) => list,
        Value::Null => Vec::new(),
        other => {
            let found = go_json::kind_of(&other);
            return Err(wrong(format!("json: cannot unmarshal {found} into Go value of type {patch}")));
        }
    };
    if let Some(why) = too_large(body, "Go struct field jsonPatchOp.value").filter(|_| looked_through) {
        return Err(wrong(why));
    }
    if list.len() > MOST {
        let why = format!("The allowed maximum operations in a JSON patch is {MOST}, got {}", list.len());
        return Err(ApiError::too_large(&why));
    }
    for one in list.iter().filter(|one| looked_through || !one.is_null()) {
        let found = go_json::kind_of(one);
        let Value::Object(members) = one else {
            return Err(wrong(format!("json: cannot unmarshal {found} into Go value of type {operation}")));
        };
        if !looked_through {
            continue;
        }
        for field in ["op", "path", "from"] {
            if let Some(found) = members.get(field).filter(|value| !value.is_string() && !value.is_null()) {
                let found = go_json::kind_of(found);
                let place = format!("Go struct field jsonPatchOp.{field} of type string");
                return Err(wrong(format!("json: cannot unmarshal {found} into {place}")));
            }
        }
    }
    // Only a whole object can take the place of a whole object.
    let whole = |one: &Value| meta::text(one, "/op") == "replace" && one.get("value").is_some_and(Value::is_object);
    let placed = |one: &Value| {
        one.get("path").is_some_and(|path| path.as_str().is_some_and(|path| !path.is_empty() || whole(one)))
    };
    if !list.iter().all(|one| KNOWN.contains(&meta::text(one, "/op")) && placed(one)) {
        return Err(rejected());
    }
    for one in &mut list {
        for field in ["path", "from"] {
            if let Some(Value::String(path)) = one.get_mut(field) {
                *path = json_patch_paths::escaped(path);
            }
        }
        // A value that is left out is nothing.
        meta::members(one).entry("value").or_insert(Value::Null);
    }
    let odd = odd_members(body, As::Operations);
    json_patch_twice::mark(&mut list, &odd);
    let operations = serde_json::from_value(Value::Array(list)).map_err(|_| rejected())?;
    Ok((operations, !odd.is_empty()))
}

/// A few operations can build what no body could hold: lists in lists, copies of copies.
fn check_growth(object: &Value, operation: &PatchOperation, copied: &mut usize) -> Result<()> {
    let (path, value) = match operation {
        PatchOperation::Add(add) => (&add.path, Some(&add.value)),
        PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value)),
        PatchOperation::Move(moved) => (&moved.path, object.pointer(moved.from.as_str())),
        PatchOperation::Copy(copy) => (&copy.path, object.pointer(copy.from.as_str())),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
    };
    let Some(value) = value else { return Ok(()) };
    if path.as_str().matches('/').count() + depth(value) > go_json::DEPTH {
        let why = format!("the patch nests values more than {} levels deep, which drydock does not", go_json::DEPTH);
        return Err(ApiError::bad_request(why));
    }
    if matches!(operation, PatchOperation::Copy(_)) {
        *copied += value.to_string().len();
        if *copied > BODY_LIMIT {
            return Err(ApiError::too_large(&format!(
                "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit \
                 {BODY_LIMIT}"
            )));
        }
    }
    Ok(())
}

/// How many lists and objects are inside each other.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Whether an object that is there lacks a member: it is nothing, which can be tested.
fn is_absent(object: &Value, path: &PointerBuf) -> bool {
    let (holder, _) = path.as_str().rsplit_once('/').unwrap_or_default();
    object.pointer(path.as_str()).is_none() && object.pointer(holder).is_some_and(Value::is_object)
}

/// What an operation comes down to. To move something is to take it away and to add it again: where it goes is worked out
/// when it is gone.
fn steps(object: &Value, operation: PatchOperation) -> Result<Vec<PatchOperation>> {
    if let PatchOperation::Test(test) = &operation
        && test.value.is_null()
        && is_absent(object, &json_patch_paths::plain(object, &test.path, false))
    {
        return Ok(Vec::new());
    }
    if let PatchOperation::Copy(copy) = &operation
        && is_absent(object, &json_patch_paths::plain(object, &copy.from, false))
    {
        return Ok(vec![PatchOperation::Add(AddOperation { path: copy.path.clone(), value: Value::Null })]);
    }
    let PatchOperation::Move(moved) = operation else { return Ok(vec![operation]) };
    let from = json_patch_paths::plain(object, &moved.from, false);
    let value = object.pointer(from.as_str()).cloned().ok_or_else(rejected)?;
    let (gone, back) = (RemoveOperation { path: from }, AddOperation { path: moved.path, value });
    Ok(vec![PatchOperation::Remove(gone), PatchOperation::Add(back)])
}

/// The same operation with paths as everybody writes them.
fn located(object: &Value, mut operation: PatchOperation) -> PatchOperation {
    let plain = |path: &mut PointerBuf, adding| *path = json_patch_paths::plain(object, path, adding);
    match &mut operation {
        PatchOperation::Add(add) => plain(&mut add.path, true),
        PatchOperation::Copy(copy) => {
            plain(&mut copy.from, false);
            plain(&mut copy.path, true);
        }
        PatchOperation::Move(_) => {}
        PatchOperation::Remove(remove) => plain(&mut remove.path, false),
        PatchOperation::Replace(replace) => plain(&mut replace.path, false),
        PatchOperation::Test(test) => plain(&mut test.path, false),
    }
    operation
}

/// The real server's library lets `replace` add a member that is not there.
fn forgiving(object: &Value, operation: PatchOperation) -> PatchOperation {
    match operation {
        PatchOperation::Replace(replace) if object.pointer(replace.path.as_str()).is_none() => {
            let parent = replace.path.as_str().rsplit_once('/').map_or("", |(parent, _)| parent);
            if object.pointer(parent).is_some_and(Value::is_object) {
                PatchOperation::Add(AddOperation { path: replace.path, value: replace.value })
            } else {
                PatchOperation::Replace(replace)
            }
        }
        other => other,
    }
}

/// The real server does not say which operation failed either.
fn rejected() -> ApiError {
    ApiError::unprocessable("the server rejected our request due to an error in our request")
}

/// The languages a resource can be patched in.
pub(crate) fn languages(resource: &Resource) -> &'static [&'static str] {
    const ALL: &[&str] = &["application/json-patch+json", "application/merge-patch+json", APPLY, STRATEGIC];
    if resource.custom { ALL.get(..3).unwrap_or(ALL) } else { ALL }
}
