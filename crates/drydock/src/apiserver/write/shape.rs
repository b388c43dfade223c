//! From what a client sent to the form in which objects are stored.

use serde_json::Value;

use crate::apiserver::decode::decode;
use crate::apiserver::error::{ApiError, Result, unregistered};
use crate::apiserver::go_json;
use crate::apiserver::go_numbers::{as_sent, as_written};
use crate::apiserver::judge::of_another_kind;
use crate::apiserver::meta;
use crate::apiserver::patch::{APPLY, STRATEGIC};
use crate::apiserver::plain_numbers::write_plainly;
use crate::apiserver::protobuf;
use crate::apiserver::registry::Resource;
use crate::apiserver::repeated::{As, odd_members};
use crate::apiserver::repeated_yaml::repeated_keys;
use crate::apiserver::request::{Call, media_type};

use super::identity::check_place;

const YAML: &str = "application/yaml";

/// Brings what a client sent into the form objects are stored in. Returns warnings about what was dropped. `twice` are the
/// members that a JSON Patch has left there twice.
pub(crate) fn shape(call: &Call, object: &mut Value, twice: &[String]) -> Result<Vec<String>> {
    let resource = &call.served.resource;
    let expected = call.served.api_version();
    let sent = meta::text(object, "/apiVersion");
    if !resource.custom && !sent.is_empty() && sent != expected && !is_known_version(&resource.group, sent) {
        let kind = &resource.kind;
        let sent_kind = if meta::text(object, "/kind").is_empty() { kind } else { meta::text(object, "/kind") };
        return Err(other_kind(resource, sent, sent_kind));
    }
    if !sent.is_empty() && sent != expected {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({sent}) does not match the expected API version ({expected})"
        )));
    }
    let kind = meta::text(object, "/kind");
    if !kind.is_empty() && kind != resource.kind && !resource.custom {
        return Err(other_kind(resource, &expected, kind));
    }
    if !kind.is_empty() && kind != resource.kind && resource.custom && call.verb == "create" {
        return Err(of_another_kind(call, object));
    }
    if !kind.is_empty() && kind != resource.kind {
        // Whoever replaces an object is asked for its place first.
        if call.verb == "update" {
            check_place(call, object)?;
        }
        return Err(ApiError::bad_request(format!(
            "the kind in the data ({kind}) does not match the expected kind ({})",
            resource.kind
        )));
    }
    let members = meta::members(object);
    members.insert("apiVersion".into(), expected.into());
    members.insert("kind".into(), resource.kind.clone().into());
    let schema = call.served.version().schema();
    if resource.custom && call.verb == "patch" && media_type(&call.content_type) == APPLY {
        // Whoever applies nothing means it, and is told when that cannot be.
        if let (Some(schema), Some(metadata)) = (schema.member("metadata"), object.get_mut("metadata")) {
            schema.drop_nulls(metadata);
            // Nobody reads a time that only the server can know.
            if let Value::Object(members) = metadata {
                members.shift_remove("creationTimestamp");
                let is_time =
                    |value: &Value| value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok());
                members.retain(|field, value| field != "deletionTimestamp" || is_time(value));
            }
        }
    } else {
        schema.drop_nulls(object);
    }
    let mut dropped = Vec::new();
    schema.prune(object, "", &mut dropped);
    if !resource.custom {
        decode(schema, object).map_err(|why| unreadable(call, &why))?;
        let empty = take_empty(call, object);
        schema.drop_empty(object);
        put_empty(&empty, object);
    } else if let (Some(schema), Some(metadata)) = (schema.member("metadata"), object.get_mut("metadata")) {
        decode(schema, metadata).map_err(|why| unreadable(call, &why))?;
        schema.drop_empty(metadata);
    }
    if resource.custom {
        // YAML is made JSON first, and that writes whole numbers without a point.
        if media_type(&call.content_type) == YAML {
            write_plainly(schema, object);
        }
        dropped.sort_unstable();
    }
    if let Some(lens) = resource.lens {
        lens.store(object);
    }
    let mut unknown = said_twice(call);
    // What YAML has twice is one complaint where it is one too many.
    if media_type(&call.content_type) == YAML && call.params.get("fieldValidation") == "Strict" && !unknown.is_empty() {
        unknown = vec![format!("yaml: unmarshal errors:\n  {}", unknown.join("\n  "))];
    }
    unknown.extend(twice.iter().map(|path| format!("duplicate field {path:?}")));
    unknown.extend(dropped.iter().map(|path| format!("unknown field {path:?}")));
    match call.params.get("fieldValidation") {
        "Strict" if !unknown.is_empty() && call.verb == "patch" && media_type(&call.content_type) != APPLY => {
            let why = format!("strict decoding error: {}", unknown.join(", "));
            Err(match go_json::parse(&call.body) {
                Ok(patch) if media_type(&call.content_type) == STRATEGIC => ApiError::unfitting_patch(&patch, &why),
                _ => ApiError::unreadable_patch(object, &why),
            })
        }
        "Strict" if !unknown.is_empty() => {
            Err(unreadable(call, &format!("strict decoding error: {}", unknown.join(", "))))
        }
        "Ignore" => Ok(Vec::new()),
        _ => Ok(unknown),
    }
    .map(|mut warnings| {
        // Of what a patch leaves it is said after everybody has had a look.
        let when = if call.verb == "patch" { " after mutating admission happens" } else { "" };
        warnings.extend(meta::distinct_owners(object, when));
        warnings.extend((!resource.behaviour.notice.is_empty()).then(|| resource.behaviour.notice.to_owned()));
        warnings
    })
}

/// Takes out the empty maps that only rules may see, and says which there were.
pub(super) fn take_empty(call: &Call, object: &mut Value) -> Vec<&'static str> {
    let empty = |field: &&str| object.get(*field).and_then(Value::as_object).is_some_and(serde_json::Map::is_empty);
    let fields: Vec<_> = call.served.resource.behaviour.told_apart.iter().copied().filter(empty).collect();
    for field in &fields {
        meta::members(object).shift_remove(*field);
    }
    fields
}

/// Puts them back where nothing else is by now.
pub(super) fn put_empty(fields: &[&str], object: &mut Value) {
    for field in fields {
        meta::members(object).entry(*field).or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
}

/// An object of another kind than its place is for.
fn other_kind(resource: &Resource, api_version: &str, kind: &str) -> ApiError {
    let version = api_version.rsplit('/').next().unwrap_or(api_version);
    ApiError::cannot_be(version, kind, &resource.kind, &why_no(resource, api_version, kind))
}

/// Why an object of one kind is not one of a resource. Go knows the kinds of Kubernetes, and cannot make one of the other.
pub(crate) fn why_no(resource: &Resource, api_version: &str, kind: &str) -> String {
    if !protobuf::is_known(api_version, kind) {
        return unregistered(api_version, kind);
    }
    let (version, wanted) = (api_version.rsplit('/').next().unwrap_or(api_version), &resource.kind);
    let group = resource.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    format!("converting ({version}.{kind}) to ({group}.{wanted}): unknown conversion")
}

/// What a client that looked twice at its body would not have sent.
fn said_twice(call: &Call) -> Vec<String> {
    let told = |read_as: As<'_>, before: &str| {
        let odd = odd_members(&call.body, read_as).into_iter();
        let word = |known| if known { "duplicate" } else { "unknown" };
        odd.map(|odd| format!("{before}{} field {:?}", word(odd.known), odd.path)).collect::<Vec<_>>()
    };
    match media_type(&call.content_type) {
        "application/json-patch+json" => told(As::Operations, "json patch "),
        // Server-side apply refuses it itself.
        APPLY if call.params.get("fieldValidation") == "Strict" => Vec::new(),
        APPLY | YAML => repeated_keys(&call.body),
        protobuf::MEDIA_TYPE => Vec::new(),
        // Go reads a whole object into its types, and a patch or a custom resource into anything.
        _ if call.verb == "patch" || call.subresource == "scale" || call.served.resource.custom => {
            told(As::Anything, "")
        }
        _ => told(As::Known(call.served.version().schema()), ""),
    }
}

/// Whether a version is one of the group's: the real server would try to convert it.
pub(crate) fn is_known_version(group: &str, version: &str) -> bool {
    version.rsplit_once('/').map_or("", |(group, _)| group) == group && version.contains("v1")
}

/// What was sent is not of the kind it should be.
fn unreadable(call: &Call, why: &str) -> ApiError {
    let kind = &call.served.resource.kind;
    // YAML is made JSON first, and that writes numbers anew.
    let why = match media_type(&call.content_type) {
        YAML => why.to_owned(),
        _ if call.served.resource.custom => as_written(why.to_owned()),
        _ => as_sent(&call.body, why.to_owned()),
    };
    ApiError::cannot_be(&call.served.version().name, kind, kind, &why)
}
