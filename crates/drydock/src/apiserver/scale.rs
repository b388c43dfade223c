//! The scale sub-resource: replicas of anything that has them, in one shape.

use serde_json::{Map, Value, json};

use super::columns;
use super::decode::decode;
use super::error::{ApiError, Cause, Result, unregistered};
use super::fields::Fields;
use super::fields::type_of;
use super::go_json::shown;
use super::managed::{Managed, Operation};
use super::meta;
use super::patch::{APPLY, patched};
use super::plain_numbers::Pointed;
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
    let current = show(&paths, &live);
    let columns = if call.served.resource.custom { columns::CUSTOM_SCALES } else { columns::SCALES };
    let wanted = match call.verb {
        "get" => return Ok(Answer::Other(200, current, columns).into()),
        "update" => sent.unwrap_or_default(),
        "patch" if media_type(&call.content_type) == APPLY => {
            let mut scale = current.clone();
            json_patch::merge(&mut scale, &parse_body(&call.body)?);
            scale
        }
        _ => patched(call, &current, &Schema::named("autoscaling.v1.Scale"))?.object,
    };
    let replicas = wanted.pointer("/spec/replicas").cloned().unwrap_or(json!(0));
    // Custom resources have rules of their own about it.
    if !call.served.resource.custom && replicas.as_i64().is_none_or(|replicas| replicas < 0) {
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
    let mut ownership = Ownership::Written;
    if call.verb == "patch" && media_type(&call.content_type) == APPLY {
        let mut managed = Managed::of(&live);
        let numbers = [&live, &new].map(|object| object.pointer(&paths.spec_replicas).and_then(Value::as_i64));
        // Who says nothing about replicas changes nothing, not even whose they are.
        if parse_body(&call.body)?.pointer("/spec/replicas").is_some() {
            let asked = (numbers[0] != numbers[1], call.params.flag("force"));
            let writer = call.field_manager(Operation::Apply);
            managed.rescale_applied(&Fields::at(&paths.spec_replicas), asked, &writer)?;
        }
        ownership = Ownership::Applied { managed, untidy: false };
    }
    let written = server.replace(&mut state, call, &live, (new, &[]), ownership)?;
    Ok(Reply { answer: Answer::Other(200, show(&paths, &written.object), columns), warnings: written.warnings })
}

/// The scale that a client sends.
fn read(call: &Call) -> Result<Value> {
    let mut scale = call.object()?;
    let (version, kind) = (meta::text(&scale, "/apiVersion"), meta::text(&scale, "/kind"));
    if !kind.is_empty() && !version.is_empty() && (version, kind) != ("autoscaling/v1", "Scale") {
        return Err(if call.served.resource.custom {
            unreadable_custom()
        } else {
            let short = version.rsplit('/').next().unwrap_or(version);
            ApiError::cannot_be(short, kind, "Scale", &unregistered(version, kind))
        });
    }
    decode(&Schema::named("autoscaling.v1.Scale"), &mut scale).map_err(|why| {
        if call.served.resource.custom {
            return unreadable_custom();
        }
        ApiError::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {why}"))
    })?;
    check_place(call, &scale)?;
    Ok(scale)
}

/// Who reads scales of custom resources does not know what it is that it cannot read.
fn unreadable_custom() -> ApiError {
    ApiError::bad_request("no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:110\"")
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

/// What is wrong with the numbers that a custom resource would show as its scale.
pub(crate) fn check_custom(
    paths: &ScalePaths,
    object: &Value,
    pointed: &[Pointed],
    status_only: bool,
    causes: &mut Vec<Cause>,
) {
    let numbers = [(&paths.spec_replicas, status_only), (&paths.status_replicas, false)];
    for (pointer, _) in numbers.into_iter().filter(|(_, skipped)| !skipped) {
        let path = pointer.replace('/', ".");
        let value = match nested(object, pointer) {
            Ok(None) => continue,
            Ok(Some(value)) => value,
            Err(why) => {
                causes.push(Cause::invalid(&path, &json!(0), &format!("{path} accessor error: {why}")));
                continue;
            }
        };
        let pointed = pointed.iter().any(|one| one.place == *pointer);
        match value.as_i64().filter(|_| !pointed) {
            None => {
                let kind = if pointed { "float64" } else { type_of(value) };
                let why = format!("{path} accessor error: {} is of the type {kind}, expected int64", shown(value));
                causes.push(Cause::invalid(path, &json!(0), &why));
            }
            Some(number) if number < 0 => {
                causes.push(Cause::invalid(path, value, "should be a non-negative integer"));
            }
            Some(number) if number > i64::from(i32::MAX) => {
                causes.push(Cause::invalid(path, value, &format!("should be less than or equal to {}", i32::MAX)));
            }
            Some(_) => {}
        }
    }
    if let Some(pointer) = &paths.selector
        && let Ok(Some(value)) = nested(object, pointer)
        && !value.is_string()
    {
        let path = pointer.replace('/', ".");
        let why = format!("{path} accessor error: {} is of the type {}, expected string", shown(value), type_of(value));
        causes.push(Cause::invalid(path, &json!(""), &why));
    }
}

/// The value at a pointer, which leads through objects only.
fn nested<'a>(object: &'a Value, pointer: &str) -> std::result::Result<Option<&'a Value>, String> {
    let mut place = object;
    for step in pointer.split('/').skip(1) {
        if place.is_null() {
            return Ok(None);
        }
        let Value::Object(members) = place else {
            return Err(format!(
                "{} is of the type {}, expected map[string]interface{{}}",
                shown(place),
                type_of(place)
            ));
        };
        match members.get(step) {
            None => return Ok(None),
            Some(found) => place = found,
        }
    }
    Ok(Some(place))
}
