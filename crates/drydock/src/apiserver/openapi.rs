//! OpenAPI v3: what clients ask to learn the shape of a kind and which parameters its verbs take.
//!
//! Written from the same tables the server obeys, so it cannot say anything else. There is a document per group and
//! version with the schemas of its kinds and the paths of single objects, which is where `kubectl` looks for
//! `fieldValidation`. Descriptions, bodies and answers are left out. Version 2 is not served.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::discovery::{GIT_VERSION, groups};
use super::registry::{Registry, Resource, Shape, Version};
use super::schema;

const METADATA: &str = "meta.v1.ObjectMeta";

static TYPES: LazyLock<BTreeMap<String, Value>> =
    LazyLock::new(|| serde_json::from_str(schema::TABLE).unwrap_or_default());

/// Where the documents are.
pub(crate) fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for (group, versions) in groups(registry) {
        for (version, _) in versions {
            let path = root(group, version);
            let place = json!({"serverRelativeURL": format!("/openapi/v3/{path}")});
            paths.insert(path, place);
        }
    }
    json!({"paths": paths})
}

/// The document of a group and version.
pub(crate) fn document(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let groups = groups(registry);
    let (_, resources) = groups.get(group)?.iter().find(|(name, _)| *name == version)?;
    let mut schemas = BTreeMap::new();
    let mut paths = Map::new();
    for (resource, version) in resources {
        let kind = json!({"group": resource.group, "version": version.name, "kind": resource.kind});
        let (name, mut schema) = component(resource, version);
        for needed in references(&schema) {
            add(&mut schemas, &needed);
        }
        schema["x-kubernetes-group-version-kind"] = json!([kind]);
        schemas.insert(name, linked(schema));
        let namespace = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let path = format!("/{}{namespace}/{}/{{name}}", root(group, &version.name), resource.plural);
        paths.insert(path, operations(resource, &kind));
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": GIT_VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The schema of a kind, with the name it has among the components.
fn component(resource: &Resource, version: &Version) -> (String, Value) {
    match &version.shape {
        Shape::Builtin(schema) => {
            let name = schema.type_name().unwrap_or_default();
            (name.to_owned(), TYPES.get(name).cloned().unwrap_or_else(|| json!({"type": "object"})))
        }
        Shape::Custom(compiled) => {
            let mut schema = compiled.source.clone();
            let text = json!({"type": "string"});
            schema["properties"]["apiVersion"] = text.clone();
            schema["properties"]["kind"] = text;
            schema["properties"]["metadata"] = json!({"$ref": METADATA});
            let group: Vec<&str> = resource.group.rsplit('.').collect();
            (format!("{}.{}.{}", group.join("."), version.name, resource.kind), schema)
        }
    }
}

/// What can be done with one object.
fn operations(resource: &Resource, kind: &Value) -> Value {
    let query = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let path = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    let mut operations = Map::new();
    for (method, verb, parameters) in [
        ("get", "get", &[][..]),
        ("put", "update", &["dryRun", "fieldManager", "fieldValidation"][..]),
        ("patch", "patch", &["dryRun", "fieldManager", "fieldValidation", "force"][..]),
        ("delete", "delete", &["dryRun", "gracePeriodSeconds", "propagationPolicy"][..]),
    ] {
        if resource.verbs.iter().any(|offered| offered == verb) {
            let operation = json!({
                "x-kubernetes-action": method, "x-kubernetes-group-version-kind": kind,
                "parameters": parameters.iter().map(|name| query(name)).collect::<Vec<_>>(),
                "responses": {"200": {"description": "OK"}},
            });
            operations.insert(method.to_owned(), operation);
        }
    }
    let mut named = vec![path("name")];
    named.extend(resource.namespaced.then(|| path("namespace")));
    operations.insert("parameters".to_owned(), named.into());
    operations.into()
}

/// Adds a type of the tables and everything it refers to.
fn add(schemas: &mut BTreeMap<String, Value>, name: &str) {
    if schemas.contains_key(name) {
        return;
    }
    let Some(schema) = TYPES.get(name) else { return };
    schemas.insert(name.to_owned(), linked(schema.clone()));
    for needed in references(schema) {
        add(schemas, &needed);
    }
}

/// The names a schema refers to.
fn references(schema: &Value) -> BTreeSet<String> {
    match schema {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str).map(str::to_owned);
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => BTreeSet::new(),
    }
}

/// The schema with references as OpenAPI writes them, which may not have anything beside them.
fn linked(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let mut members: Map<String, Value> =
                members.into_iter().map(|(key, value)| (key, linked(value))).collect();
            let Some(name) = members.get("$ref").and_then(Value::as_str) else { return members.into() };
            let reference = json!({"$ref": format!("#/components/schemas/{name}")});
            members.shift_remove("$ref");
            if members.is_empty() {
                return reference;
            }
            members.insert("allOf".into(), json!([reference]));
            members.into()
        }
        Value::Array(items) => items.into_iter().map(linked).collect(),
        other => other,
    }
}
