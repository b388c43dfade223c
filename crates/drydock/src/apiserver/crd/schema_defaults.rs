//! Defaults in a schema must themselves be what the schema asks for.

use serde_json::Value;

use crate::apiserver::error::Cause;
use crate::apiserver::schema::Schema;
use crate::apiserver::validate::{Strictness, validate};

const EMBEDDED: &str = "x-kubernetes-embedded-resource";

/// Everything that is wrong with the defaults of a schema, whose root is an object of its own.
pub(super) fn check(schema: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut root = schema.clone();
    if let Value::Object(members) = &mut root {
        members.insert(EMBEDDED.into(), true.into());
    }
    walk(&root, path, &mut causes);
    causes
}

fn walk(schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        one(schema, default, &format!("{path}.default"), causes);
    }
    if let Some(items) = schema.get("items") {
        walk(items, &format!("{path}.items"), causes);
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        walk(property, &format!("{path}.properties[{name}]"), causes);
    }
}

fn one(schema: &Value, default: &Value, path: &str, causes: &mut Vec<Cause>) {
    let (shape, mut pruned, mut dropped) = (Schema::parse(schema), default.clone(), Vec::new());
    shape.prune(&mut pruned, "", &mut dropped);
    if !dropped.is_empty() {
        causes.push(Cause::invalid(path, default, "must not have unknown fields"));
    }
    let missing = |name: &&str| default.get(*name).is_none();
    let whole = schema.get(EMBEDDED) == Some(&Value::Bool(true));
    let missing: Vec<_> = ["apiVersion", "kind"].into_iter().filter(|name| whole && missing(name)).collect();
    if !missing.is_empty() {
        return causes.extend(missing.iter().map(|name| Cause::required(format!("{path}.{name}"), "")));
    }
    let mut wrong = Vec::new();
    validate(&shape, default, "", Strictness::Declared, &mut wrong);
    for cause in &mut wrong {
        cause.field = if cause.field.is_empty() { path.to_owned() } else { format!("{path}.{}", cause.field) };
    }
    let right = wrong.is_empty();
    causes.extend(wrong);
    if !right || schema.get("x-kubernetes-validations").is_none() {
        return;
    }
    if let Err(errors) = kube_cel::validate_compiled(&kube_cel::compile_schema(schema), default, None) {
        for error in errors.into_vec() {
            let place =
                if error.field_path.is_empty() { path.to_owned() } else { format!("{path}.{}", error.field_path) };
            causes.push(Cause::invalid(place, default, &error.message));
        }
    }
}
