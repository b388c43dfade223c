//! Structural schemas: whether a schema says once, and outside of all conditions, what every part of an object is.

use serde_json::{Map, Value};

use super::flag;
use crate::apiserver::error::Cause;
use crate::apiserver::go_regex;
use crate::apiserver::meta;

/// Where a part of a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Everything that keeps a schema from being structural, in the order of its texts.
pub(super) fn check(schema: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    invariants(schema, Level::Root, path, &mut causes);
    complete(schema, Some(schema), path, path, &mut causes);
    causes.sort_by_key(Cause::line);
    causes
}

/// Why a schema cannot even be looked at in this way.
pub(super) fn unsupported(schema: &Value) -> Option<String> {
    let own = schema.as_object()?;
    let filled = |name: &str| own.get(name).is_some_and(|value| !is_nothing(value));
    if own.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        return Some("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".into());
    }
    for (name, called) in [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("additionalItems", "additionalItems"),
        ("definitions", "definitions"),
    ] {
        if filled(name) || name == "additionalItems" && own.contains_key(name) {
            return Some(format!("OpenAPIV3Schema '{called}' is not supported"));
        }
    }
    if own.get("items").is_some_and(Value::is_array) {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".into());
    }
    below(own).into_iter().find_map(unsupported)
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The schemas right below one.
pub(super) fn below(schema: &Map<String, Value>) -> Vec<&Value> {
    let mut found = Vec::new();
    for (name, value) in schema {
        match (name.as_str(), value) {
            ("items" | "allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => found.extend(schemas),
            ("items" | "not" | "additionalProperties" | "additionalItems", Value::Object(_)) => found.push(value),
            ("properties" | "patternProperties" | "definitions" | "dependencies", Value::Object(schemas)) => {
                found.extend(schemas.values().filter(|schema| schema.is_object()));
            }
            _ => {}
        }
    }
    found
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// What must be so in every part that stands outside of conditions.
fn invariants(schema: &Value, level: Level, path: &str, causes: &mut Vec<Cause>) {
    let kind = meta::text(schema, "/type");
    let (embedded, preserving, int_or_string) = (
        flag(schema, "x-kubernetes-embedded-resource"),
        flag(schema, "x-kubernetes-preserve-unknown-fields"),
        flag(schema, "x-kubernetes-int-or-string"),
    );
    if kind == "array" && schema.get("items").is_none() {
        causes.push(Cause::required(format!("{path}.items"), "must be specified"));
    }
    if let Some(items) = schema.get("items") {
        invariants(items, Level::Item, &format!("{path}.items"), causes);
    }
    for (name, property) in properties(schema) {
        invariants(property, Level::Field, &format!("{path}.properties[{name}]"), causes);
    }
    let additional = schema.get("additionalProperties");
    if let Some(values) = additional {
        if level == Level::Root {
            causes.push(Cause::forbidden(format!("{path}.additionalProperties"), "must not be used at the root"));
        }
        if values.is_object() {
            invariants(values, Level::Field, &format!("{path}.additionalProperties"), causes);
        }
    }
    for (other, name) in
        [(preserving, "x-kubernetes-preserve-unknown-fields"), (embedded, "x-kubernetes-embedded-resource")]
    {
        if int_or_string && other {
            let why = "must be false if x-kubernetes-int-or-string is true";
            causes.push(Cause::invalid(format!("{path}.{name}"), &true.into(), why));
        }
    }
    let plain = is_int_or_string(schema.get("anyOf"));
    let wrapped = is_int_or_string(schema.pointer("/allOf/0/anyOf"));
    conditions(schema, (plain, wrapped), path, causes);
    if embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        causes.push(if kind.is_empty() {
            Cause::required(format!("{path}.type"), why)
        } else {
            Cause::invalid(format!("{path}.type"), &kind.into(), why)
        });
    } else if kind.is_empty() && !int_or_string && !preserving {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        causes.push(Cause::required(format!("{path}.type"), why));
    }
    if embedded && additional.is_some() {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        causes.push(Cause::forbidden(format!("{path}.additionalProperties"), why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        causes.push(Cause::invalid(format!("{path}.type"), &kind.into(), "must be object at the root"));
    }
    of_every_object(schema, level, embedded, path, causes);
    if embedded && !preserving && properties(schema).next().is_none() {
        let why =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        causes.push(Cause::required(format!("{path}.properties"), why));
    }
}

/// The fields that every object has are not the schema's to define.
fn of_every_object(schema: &Value, level: Level, embedded: bool, path: &str, causes: &mut Vec<Cause>) {
    let whole = level == Level::Root || embedded;
    for name in ["kind", "apiVersion"] {
        let found = schema.get("properties").and_then(|properties| properties.get(name));
        if let Some(kind) = found.map(|found| meta::text(found, "/type")).filter(|kind| whole && *kind != "string") {
            causes.push(Cause::invalid(format!("{path}.properties[{name}].type"), &kind.into(), "must be string"));
        }
    }
    let Some(metadata) = schema.pointer("/properties/metadata") else { return };
    let (path, kind) = (format!("{path}.properties[metadata]"), meta::text(metadata, "/type"));
    if whole && kind != "object" {
        causes.push(Cause::invalid(format!("{path}.type"), &kind.into(), "must be object"));
    }
    let names_only = properties(metadata).all(|(name, _)| ["name", "generateName"].contains(&name.as_str()));
    let more = metadata.as_object().into_iter().flatten().any(|(key, value)| {
        !["type", "default", "properties"].contains(&key.as_str()) && !is_nothing(value) && *value != Value::Bool(false)
    });
    if level == Level::Root && (more || !names_only) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        causes.push(Cause::forbidden(path, why));
    }
}

/// Whether conditions are just those that a number or a text needs.
fn is_int_or_string(conditions: Option<&Value>) -> bool {
    let either = serde_json::json!([{"type": "integer"}, {"type": "string"}]);
    conditions == Some(&either)
}

/// Conditions (`anyOf` and its like) restrict values and do not say what there is. Those of a number or a text are an
/// exception, by themselves or as the first of several.
fn conditions(schema: &Value, (plain, wrapped): (bool, bool), path: &str, causes: &mut Vec<Cause>) {
    let list = |name: &str| schema.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (at, part) in list("anyOf").iter().enumerate().filter(|_| !plain) {
        condition(part, false, &format!("{path}.anyOf[{at}]"), causes);
    }
    for (at, part) in list("allOf").iter().enumerate() {
        condition(part, wrapped && at == 0, &format!("{path}.allOf[{at}]"), causes);
    }
    for (at, part) in list("oneOf").iter().enumerate() {
        condition(part, false, &format!("{path}.oneOf[{at}]"), causes);
    }
    if let Some(not) = schema.get("not") {
        condition(not, false, &format!("{path}.not"), causes);
    }
    let pattern = meta::text(schema, "/pattern");
    if let Err(error) = go_regex::compile(pattern) {
        let why = format!("must be a valid regular expression, but isn't: {error}");
        causes.push(Cause::invalid(format!("{path}.pattern"), &pattern.into(), &why));
    }
}

fn condition(schema: &Value, plain: bool, path: &str, causes: &mut Vec<Cause>) {
    conditions(schema, (plain, false), path, causes);
    if let Some(items) = schema.get("items") {
        condition(items, false, &format!("{path}.items"), causes);
    }
    for (name, property) in properties(schema) {
        condition(property, false, &format!("{path}.properties[{name}]"), causes);
    }
    let has = |name: &str| schema.get(name).is_some_and(|value| !is_nothing(value) && *value != Value::Bool(false));
    for (name, why) in [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ] {
        // Nothing at all can be said by default too.
        if has(name) || name == "default" && schema.get(name).is_some_and(|value| !value.is_null()) {
            causes.push(Cause::forbidden(format!("{path}.{name}"), why));
        }
    }
    if schema.pointer("/properties/metadata").is_some() {
        let why = "must not be specified in a nested context";
        causes.push(Cause::forbidden(format!("{path}.properties[metadata]"), why));
    }
}

/// What a condition is about must be there outside of it: `outer` is the part that it restricts.
fn complete(schema: &Value, outer: Option<&Value>, outer_path: &str, path: &str, causes: &mut Vec<Cause>) {
    let list = |name: &str| schema.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if let Some(not) = schema.get("not") {
        restricts(not, outer, outer_path, &format!("{path}.not"), causes);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (at, part) in list(name).iter().enumerate() {
            restricts(part, outer, outer_path, &format!("{path}.{name}[{at}]"), causes);
        }
    }
}

fn restricts(part: &Value, outer: Option<&Value>, outer_path: &str, path: &str, causes: &mut Vec<Cause>) {
    let Some(outer) = outer else {
        return causes.push(Cause::required(outer_path, &format!("because it is defined in {path}")));
    };
    complete(part, Some(outer), outer_path, path, causes);
    if let Some(items) = part.get("items") {
        restricts(items, outer.get("items"), &format!("{outer_path}.items"), &format!("{path}.items"), causes);
    }
    for (name, property) in properties(part) {
        let (outside, inside) = (format!("{outer_path}.properties[{name}]"), format!("{path}.properties[{name}]"));
        let known = outer.get("properties").and_then(|properties| properties.get(name));
        restricts(property, known, &outside, &inside, causes);
    }
}
