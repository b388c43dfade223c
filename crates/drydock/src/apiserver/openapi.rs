//! OpenAPI: what clients ask to learn the shape of a kind and which parameters its verbs take.
//!
//! Written from the same tables the server obeys, so it cannot say anything else. Version 3 has a document per group and
//! version, with the schemas of its kinds and the paths of single objects: that is where `kubectl` looks for
//! `fieldValidation` and for the languages an object can be patched in. Version 2 is the same in one document, as JSON
//! or in protobuf. Texts that describe built-in fields, bodies and answers are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::discovery::{GIT_VERSION, Page, groups, offers};
use super::error::{ApiError, Result};
use super::openapi_v2;
use super::patch;
use super::registry::{Registry, Resource, Shape, Version};
use super::request::{Params, media_type};
use super::schema;

const METADATA: &str = "meta.v1.ObjectMeta";

static TYPES: LazyLock<BTreeMap<String, Value>> =
    LazyLock::new(|| serde_json::from_str(schema::TABLE).unwrap_or_default());

/// What a document is written in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    V2,
    V3,
}

/// Answers a path below `/openapi`.
pub(crate) fn answer(registry: &Registry, path: &[&str], params: &Params, accept: &str) -> Result<Page> {
    let wanted = accept.split(',').map(media_type).find_map(|kind| match kind {
        "" | "application/json" | "application/*" | "*/*" => Some("application/json"),
        asked if path == ["v2"] && openapi_v2::ASKED.contains(&asked) => Some(openapi_v2::MEDIA_TYPE),
        _ => None,
    });
    let wanted = wanted.ok_or_else(ApiError::not_acceptable)?;
    if wanted == openapi_v2::MEDIA_TYPE {
        return Ok(Page { media_type: wanted, body: openapi_v2::encode(&everything(registry)), forever: false });
    }
    let (value, forever) = match path {
        ["v2"] => (everything(registry), false),
        ["v3"] => (index(registry), false),
        ["v3", "api", version] => document(registry, "", version, params)?,
        ["v3", "apis", group, version] => document(registry, group, version, params)?,
        _ => return Err(ApiError::no_route()),
    };
    Ok(Page { media_type: wanted, body: value.to_string().into_bytes(), forever })
}

/// Where the documents of version 3 are. Each is named by what is in it, so that clients may keep it.
fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for group in groups(registry) {
        for (version, offers) in group.versions {
            let path = root(group.name, version);
            let place = json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={}", digest(&offers))});
            paths.insert(path, place);
        }
    }
    json!({"paths": paths})
}

/// The document of a group and version, and whether it is the one that was asked for.
fn document(registry: &Registry, group: &str, version: &str, params: &Params) -> Result<(Value, bool)> {
    let offers = offers(registry, group, version).ok_or_else(ApiError::no_route)?;
    let mut parts = Parts::default();
    for (resource, version) in &offers {
        parts.take(Dialect::V3, resource, version);
    }
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": GIT_VERSION},
        "paths": parts.paths,
        "components": {"schemas": parts.schemas},
    });
    Ok((document, params.get("hash") == digest(&offers)))
}

/// The one document of version 2.
fn everything(registry: &Registry) -> Value {
    let mut parts = Parts::default();
    for group in groups(registry) {
        for (resource, version) in group.versions.iter().flat_map(|(_, offers)| offers) {
            parts.take(Dialect::V2, resource, version);
        }
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": GIT_VERSION},
        "paths": parts.paths,
        "definitions": parts.schemas,
    })
}

/// Names what a version of a group offers. Built-in types never change, so a list of them is enough.
fn digest(offers: &[(&Resource, &Version)]) -> String {
    let mut hasher = DefaultHasher::new();
    for (resource, version) in offers {
        (&resource.plural, &resource.verbs, &version.name).hash(&mut hasher);
        if let Shape::Custom(compiled) = &version.shape {
            compiled.digest.hash(&mut hasher);
        }
    }
    format!("{:016X}", hasher.finish())
}

fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// A document in the making.
#[derive(Default)]
struct Parts {
    schemas: BTreeMap<String, Value>,
    paths: Map<String, Value>,
}

impl Parts {
    /// Adds a resource, the paths of its objects and the types it needs.
    fn take(&mut self, dialect: Dialect, resource: &Resource, version: &Version) {
        let kind = json!({"group": resource.group, "version": version.name, "kind": resource.kind});
        let (name, mut schema) = component(resource, version);
        for needed in references(&schema) {
            self.add(dialect, &needed);
        }
        schema["x-kubernetes-group-version-kind"] = json!([kind]);
        self.schemas.insert(name, linked(dialect, schema));
        let namespace = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let path = format!("/{}{namespace}/{}/{{name}}", root(&resource.group, &version.name), resource.plural);
        self.paths.insert(path, operations(dialect, resource, &kind));
    }

    /// Adds a type of the tables and everything it refers to.
    fn add(&mut self, dialect: Dialect, name: &str) {
        let whole = whole_name(name);
        let Some(schema) = TYPES.get(name).filter(|_| !self.schemas.contains_key(&whole)) else { return };
        self.schemas.insert(whole, linked(dialect, schema.clone()));
        for needed in references(schema) {
            self.add(dialect, &needed);
        }
    }
}

/// The schema of a kind, with the name it has among the components.
fn component(resource: &Resource, version: &Version) -> (String, Value) {
    match &version.shape {
        Shape::Builtin(schema) => {
            let name = schema.type_name().unwrap_or_default();
            (whole_name(name), TYPES.get(name).cloned().unwrap_or_else(|| json!({"type": "object"})))
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

/// The name of a type of the tables as Kubernetes publishes it. The tables leave out what all names share.
fn whole_name(name: &str) -> String {
    let prefix = match name.split('.').next().unwrap_or_default() {
        "apiextensions" => "io.k8s.apiextensions-apiserver.pkg.apis.",
        "meta" => "io.k8s.apimachinery.pkg.apis.",
        "runtime" => "io.k8s.apimachinery.pkg.",
        "IntOrString" => "io.k8s.apimachinery.pkg.util.intstr.",
        "Quantity" => "io.k8s.apimachinery.pkg.api.resource.",
        _ => "io.k8s.api.",
    };
    format!("{prefix}{name}")
}

/// What can be done with one object.
fn operations(dialect: Dialect, resource: &Resource, kind: &Value) -> Value {
    let parameter = |name: &str, place: &str, required: bool| {
        let mut parameter = json!({"name": name, "in": place, "uniqueItems": true});
        match dialect {
            Dialect::V2 => parameter["type"] = "string".into(),
            Dialect::V3 => parameter["schema"] = json!({"type": "string", "uniqueItems": true}),
        }
        if required {
            parameter["required"] = true.into();
        }
        parameter
    };
    let mut operations = Map::new();
    for (method, verb, parameters) in [
        ("get", "get", &[][..]),
        ("put", "update", &["dryRun", "fieldManager", "fieldValidation"][..]),
        ("patch", "patch", &["dryRun", "fieldManager", "fieldValidation", "force"][..]),
        ("delete", "delete", &["dryRun", "gracePeriodSeconds", "propagationPolicy"][..]),
    ] {
        if !resource.verbs.iter().any(|offered| offered == verb) {
            continue;
        }
        let mut operation = json!({
            "x-kubernetes-action": method, "x-kubernetes-group-version-kind": kind,
            "parameters": parameters.iter().map(|name| parameter(name, "query", false)).collect::<Vec<_>>(),
            "responses": {"200": {"description": "OK"}},
        });
        if verb == "patch" {
            let languages = patch::languages(resource);
            match dialect {
                Dialect::V2 => operation["consumes"] = json!(languages),
                Dialect::V3 => {
                    let content: Map<_, _> =
                        languages.iter().map(|language| ((*language).to_owned(), json!({}))).collect();
                    operation["requestBody"] = json!({"content": content, "required": true});
                }
            }
        }
        operations.insert(method.to_owned(), operation);
    }
    let mut named = vec![parameter("name", "path", true)];
    named.extend(resource.namespaced.then(|| parameter("namespace", "path", true)));
    operations.insert("parameters".to_owned(), named.into());
    operations.into()
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

/// Keywords that version 2 does not have.
const ONLY_V3: &[&str] = &["anyOf", "nullable", "not", "oneOf"];

/// The schema with references as OpenAPI writes them, which may not have anything beside them.
fn linked(dialect: Dialect, schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(key, value)| {
                // A field may be called like a keyword; then its schema stands there, which is no list and no flag.
                dialect == Dialect::V3 || value.is_object() && key != "not" || !ONLY_V3.contains(&key.as_str())
            });
            let mut members: Map<String, Value> = kept.map(|(key, value)| (key, linked(dialect, value))).collect();
            let Some(name) = members.get("$ref").and_then(Value::as_str) else { return members.into() };
            let place = if dialect == Dialect::V2 { "definitions" } else { "components/schemas" };
            let target = Value::from(format!("#/{place}/{}", whole_name(name)));
            if members.len() == 1 || dialect == Dialect::V2 {
                members.insert("$ref".into(), target);
                return members.into();
            }
            members.shift_remove("$ref");
            members.insert("allOf".into(), json!([{"$ref": target}]));
            members.into()
        }
        Value::Array(items) => items.into_iter().map(|item| linked(dialect, item)).collect(),
        other => other,
    }
}
