//! The scale sub-resource: replicas of anything that has them, in one shape.

use serde_json::{Map, Value, json};

use super::columns;
use super::decode::decode;
use super::error::{ApiError, Cause, Result};
use super::meta;
use super::patch::{APPLY, patched};
use super::registry::ScalePaths;
use super::request::{Call, media_type, parse_body};
use super::schema::Schema;
use super::selector::label_selector_text;
use super::server::{Answer, Reply, Server};
use super::write::{Ownership, check_place};

/// Every verb of the sub-resource.
pub(crate) fn scale(server: &Server, call: &Call) -> Result<Reply> {
    let paths = call.served.version().scale.clone().ok_or_else(ApiError::no_route)?;
    let sent = if call.verb == "update" { Some(read(call)?) } else { None };
    let mut state = server.store.lock();
    let live = call.live(&state)?;
    let shown = show(&paths, &live);
    let wanted = match call.verb {
        "get" => return Ok(Answer::Other(200, shown, columns::SCALES).into()),
        "update" => sent.unwrap_or_default(),
        "patch" if media_type(&call.content_type) == APPLY => {
            let mut scale = shown.clone();
            json_patch::merge(&mut scale, &parse_body(&call.body)?);
            scale
        }
        _ => patched(call, &shown, &Schema::named("autoscaling.v1.Scale"))?,
    };
    let replicas = wanted.pointer("/spec/replicas").cloned().unwrap_or(json!(0));
    if replicas.as_i64().is_none_or(|replicas| replicas < 0) {
        let cause = Cause::invalid("spec.replicas", &replicas, "must be greater than or equal to 0");
        return Err(ApiError::invalid_scale(&call.name, &[cause]));
    }
    let mut new = call.versioned(&live);
    set(&mut new, &paths.spec_replicas, replicas);
    // The version the client read, so that the usual conflict check applies.
    let version = meta::field(&wanted, "resourceVersion");
    if !version.is_empty() {
        meta::metadata(&mut new).insert("resourceVersion".into(), version.into());
    }
    let written = server.replace(&mut state, call, &live, new, Ownership::Written)?;
    Ok(Answer::Other(200, show(&paths, &written.object), columns::SCALES).into())
}

/// The scale that a client sends.
fn read(call: &Call) -> Result<Value> {
    let mut scale = call.object()?;
    let (version, kind) = (meta::text(&scale, "/apiVersion"), meta::text(&scale, "/kind"));
    if !kind.is_empty() && !version.is_empty() && (version, kind) != ("autoscaling/v1", "Scale") {
        return Err(ApiError::unregistered(version, kind, "Scale"));
    }
    decode(&Schema::named("autoscaling.v1.Scale"), &mut scale)
        .map_err(|why| ApiError::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {why}")))?;
    check_place(call, &scale)?;
    Ok(scale)
}

fn show(paths: &ScalePaths, object: &Value) -> Value {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let selector = match paths.selector.as_ref().and_then(|path| object.pointer(path)) {
        Some(Value::String(text)) => text.clone(),
        Some(selector) => label_selector_text(selector),
        None => String::new(),
    };
    let metadata: Map<String, Value> = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"]
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), object.get("metadata")?.get(field)?.clone())))
        .collect();
    let mut status = json!({"replicas": number(&paths.status_replicas)});
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    let replicas = number(&paths.spec_replicas);
    let spec = if replicas == 0 { json!({}) } else { json!({"replicas": replicas}) };
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

/// Sets the value at a pointer and makes the objects on the way.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for step in pointer.split('/').skip(1) {
        place = meta::members(place).entry(step).or_insert(Value::Null);
    }
    *place = value;
}
