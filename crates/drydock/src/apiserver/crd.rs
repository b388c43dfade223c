//! Custom resource definitions: how a resource comes to be at run time.

mod definition_rules;
mod establish;
mod form;
mod formats;
mod go_form;
mod go_types;
mod paths;
mod schema_defaults;
mod schema_rules;
mod structural;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jiff::Timestamp;
use kube_cel::CompiledSchema;
use serde_json::{Value, json};

use super::builtin::CUSTOM;
use super::discovery::priority;
use super::error::Cause;
use super::meta;
use super::registry::{Resource, ScalePaths, Shape, Version, resource_id};
use super::schema::Schema;
use super::server::Server;
use super::store::{Change, Id, Key, State};
pub(crate) use establish::{followed, instance_followed, mark};
pub(crate) use formats::unrecognized_formats;
pub(crate) use go_types::omitted;

/// The resource that defines resources.
pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// Finalizer that keeps a definition until its instances are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// The definitions of the Gateway API, which every drydock cluster has.
pub(crate) fn gateway_api() -> Vec<Value> {
    static PARSED: LazyLock<Vec<Value>> =
        LazyLock::new(|| serde_json::from_str(include_str!("../schema/gateway.json")).unwrap_or_default());
    PARSED.clone()
}

/// A schema made ready for use. CEL rules are slow to compile and tests start many clusters, so every distinct schema is
/// compiled once per process.
pub(crate) struct Compiled {
    /// As the definition's author wrote it.
    pub(crate) source: Value,
    /// Tells schemas apart.
    pub(crate) digest: u64,
    pub(crate) schema: Schema,
    /// `None` where the schema has no rules.
    pub(crate) rules: Option<Rules>,
}

/// The CEL rules of a schema.
pub(crate) struct Rules {
    pub(crate) compiled: CompiledSchema,
    /// The members of an object that they are about; all if it cannot be told.
    about: Option<Vec<String>>,
    /// What each rule says when it is broken.
    messages: BTreeMap<String, String>,
    /// The schema without its defaults.
    bare: Value,
}

/// The keyword of rules.
const RULES: &str = "x-kubernetes-validations";

/// Collects what the rules of a schema say.
fn messages(schema: &Value, found: &mut BTreeMap<String, String>) {
    for rule in schema.get(RULES).and_then(Value::as_array).into_iter().flatten() {
        let text = |field: &str| rule.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        if !text("message").is_empty() {
            found.insert(text("rule"), text("message"));
        }
    }
    match schema {
        Value::Object(members) => members.values().for_each(|member| messages(member, found)),
        Value::Array(items) => items.iter().for_each(|item| messages(item, found)),
        _ => {}
    }
}

/// Takes the defaults out of a schema.
fn forget_defaults(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    members.shift_remove("default");
    for key in ["items", "additionalProperties"] {
        members.get_mut(key).into_iter().for_each(forget_defaults);
    }
    for member in members.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        forget_defaults(member.1);
    }
}

impl Rules {
    /// The rules as they are asked about an object whose defaults nobody knows. That is so rare that they are not kept.
    pub(crate) fn without_defaults(&self) -> CompiledSchema {
        kube_cel::compile_schema(&self.bare)
    }

    /// What a rule says when it is broken: its message, or else itself.
    pub(crate) fn says<'a>(&'a self, rule: &'a str) -> &'a str {
        self.messages.get(rule).map_or(rule, String::as_str)
    }

    fn of(schema: &Value, text: &str) -> Option<Self> {
        if !text.contains(RULES) {
            return None;
        }
        // A rule about the change itself may forbid that nothing changes.
        let whole = schema.get(RULES).is_some() || text.contains("oldSelf");
        let members = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let ruled = members.filter(|(_, member)| member.to_string().contains(RULES));
        let about = (!whole).then(|| ruled.map(|(name, _)| name.clone()).collect());
        let mut said = BTreeMap::new();
        messages(schema, &mut said);
        let mut bare = schema.clone();
        forget_defaults(&mut bare);
        Some(Self { compiled: kube_cel::compile_schema(schema), about, messages: said, bare })
    }

    /// Whether nothing that the rules are about differs from what was judged before: most writes are of a status.
    pub(crate) fn have_judged(&self, old: &Value, new: &Value) -> bool {
        self.about.as_ref().is_some_and(|members| members.iter().all(|member| old.get(member) == new.get(member)))
    }
}

fn compile(schema: &Value) -> Arc<Compiled> {
    static KNOWN: LazyLock<Mutex<BTreeMap<String, Arc<Compiled>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let text = schema.to_string();
    let make = || {
        let rules = Rules::of(schema, &text);
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let (source, digest) = (schema.clone(), hasher.finish());
        Arc::new(Compiled { source, digest, schema: Schema::of_custom_resource(schema), rules })
    };
    known.entry(text.clone()).or_insert_with(make).clone()
}

/// Completes a definition as it is read.
pub(crate) fn complete(definition: &mut Value) {
    let kind = meta::text(definition, "/spec/names/kind").to_owned();
    let stored = stored_version(definition).map(str::to_owned);
    let empty = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().is_empty();
    if let Some(Value::Object(spec)) = definition.get_mut("spec") {
        spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
        if let Some(service) = spec["conversion"].pointer_mut("/webhook/clientConfig/service") {
            meta::members(service).entry("port").or_insert_with(|| 443.into());
        }
        for version in spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(version) = version {
                for flag in ["served", "storage"] {
                    version.entry(flag).or_insert(Value::Bool(false));
                }
            }
            if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
                go_types::tidy(schema);
            }
        }
        let names = meta::members(spec.entry("names").or_insert_with(|| json!({})));
        if empty(names.get("singular")) && !kind.is_empty() {
            names.insert("singular".into(), kind.to_lowercase().into());
        }
        if empty(names.get("listKind")) && !kind.is_empty() {
            names.insert("listKind".into(), format!("{kind}List").into());
        }
    }
    let status = meta::child(definition, "status");
    status.entry("conditions").or_insert(Value::Null);
    let names = meta::members(status.entry("acceptedNames").or_insert_with(|| json!({})));
    for field in ["plural", "kind"] {
        names.entry(field).or_insert_with(|| "".into());
    }
    if status.get("storedVersions").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        status.insert("storedVersions".into(), stored.map_or(Value::Null, |stored| json!([stored])));
    }
}

/// Gives a new definition a status that says nothing yet.
pub(crate) fn prepare(definition: &mut Value, _: &State, _: Timestamp) {
    meta::members(definition).shift_remove("status");
    complete(definition);
}

/// Remembers that objects may be stored in another version from now on.
pub(crate) fn prepare_update(definition: &mut Value, _: &Value, subresource: &str) {
    // Whoever writes the status says so there.
    if subresource == "status" {
        return;
    }
    let stored = stored_version(definition).map(str::to_owned);
    let versions = meta::child(definition, "status").entry("storedVersions").or_insert_with(|| json!([]));
    if let (Some(stored), Value::Array(versions)) = (stored, versions)
        && !versions.iter().any(|version| *version == stored.as_str())
    {
        versions.push(stored.into());
    }
}

fn versions(definition: &Value) -> &[Value] {
    definition.pointer("/spec/versions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn stored_version(definition: &Value) -> Option<&str> {
    versions(definition).iter().find(|version| flag(version, "storage")).map(|version| meta::text(version, "/name"))
}

/// The rules a definition must obey.
pub(crate) fn check(old: Option<&Value>, definition: &Value, causes: &mut Vec<Cause>) {
    definition_rules::check(definition, old, causes);
}

/// The rules the status of a definition must obey.
pub(crate) fn check_status(definition: &Value, causes: &mut Vec<Cause>) {
    definition_rules::status(definition, causes);
}

/// The objects of the resource a definition makes.
pub(crate) fn instances(state: &State, definition: &Value) -> Vec<Id> {
    let id = resource_id(meta::text(definition, "/spec/names/plural"), meta::text(definition, "/spec/group"));
    state.list(&id, None).map(|(key, _)| (id.clone(), key.clone())).collect()
}

/// Offers, changes or withdraws the resource, once it is established.
pub(crate) fn committed(server: &Server, state: &mut State, change: &Arc<Change>) {
    let resource = resource(&change.after);
    let mut registry = server.registry.write().unwrap_or_else(PoisonError::into_inner);
    if change.deleted {
        registry.uninstall(&resource.id);
        state.forget(&resource.id);
    } else if establish::has_condition(&change.after, "Established") {
        let since = match registry.get(&resource.id) {
            Some(before) if have_same_schemas(before, &resource) => before.since,
            Some(_) => change.revision,
            // There may be objects of a resource that was taken away and is here again.
            None if state.list(&resource.id, None).next().is_some() => change.revision,
            None => 0,
        };
        registry.install(Resource { since, ..resource });
    }
}

/// Whether objects are read in the same way.
fn have_same_schemas(one: &Resource, other: &Resource) -> bool {
    let schemas = |resource: &Resource| {
        let versions = resource.versions.iter();
        versions.map(|version| (version.name.clone(), version.digest())).collect::<Vec<_>>()
    };
    schemas(one) == schemas(other)
}

/// Whether the definition of a resource is on its way out.
pub(crate) fn is_going(state: &State, resource: &str) -> bool {
    let key = Key { namespace: String::new(), name: resource.to_owned() };
    state.get(DEFINITIONS, &key).is_some_and(|definition| establish::has_condition(definition, "Terminating"))
}

fn resource(definition: &Value) -> Resource {
    // Those that are wanted may belong to somebody else.
    let accepted = !meta::text(definition, "/status/acceptedNames/plural").is_empty();
    let names = if accepted { "/status/acceptedNames" } else { "/spec/names" };
    let name = |field: &str| meta::text(definition, &format!("{names}/{field}")).to_owned();
    let list = |field: &str| {
        let list = meta::strings(definition.pointer(&format!("{names}/{field}")));
        list.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let group = meta::text(definition, "/spec/group").to_owned();
    Resource {
        id: resource_id(&name("plural"), &group),
        group,
        kind: name("kind"),
        list_kind: name("listKind"),
        plural: name("plural"),
        singular: name("singular"),
        namespaced: meta::text(definition, "/spec/scope") == "Namespaced",
        short_names: list("shortNames"),
        categories: list("categories"),
        verbs: VERBS.map(str::to_owned).to_vec(),
        versions: versions(definition).iter().map(|one| version(definition, one)).collect(),
        custom: true,
        since: 0,
        behaviour: &CUSTOM,
        lens: None,
    }
}

fn version(definition: &Value, version: &Value) -> Version {
    let empty = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = version.pointer("/schema/openAPIV3Schema").unwrap_or(&empty);
    let mut subresources = BTreeMap::new();
    for name in ["status", "scale"] {
        if version.pointer(&format!("/subresources/{name}")).is_some() {
            subresources.insert(name.to_owned(), ["get", "patch", "update"].map(str::to_owned).to_vec());
        }
    }
    let path = |scale: &Value, field: &str| meta::text(scale, &format!("/{field}")).replace('.', "/");
    let scale = version.pointer("/subresources/scale").map(|scale| ScalePaths {
        spec_replicas: path(scale, "specReplicasPath"),
        status_replicas: path(scale, "statusReplicasPath"),
        selector: Some(path(scale, "labelSelectorPath")).filter(|path| !path.is_empty()),
    });
    let fields = version.get("selectableFields").and_then(Value::as_array).into_iter().flatten();
    Version {
        name: meta::text(version, "/name").to_owned(),
        served: flag(version, "served"),
        storage: flag(version, "storage"),
        shape: Shape::Custom(compile(schema)),
        stored: None,
        subresources,
        scale,
        columns: version.get("additionalPrinterColumns").and_then(Value::as_array).cloned().unwrap_or_default(),
        selectable: fields.map(|field| meta::text(field, "/jsonPath").trim_start_matches('.').to_owned()).collect(),
        deprecation: deprecation(definition, version),
    }
}

/// What whoever uses a version that is to go is told: what its definition says, or which one is better.
fn deprecation(definition: &Value, version: &Value) -> Option<String> {
    if !flag(version, "deprecated") {
        return None;
    }
    if let Some(text) = version.get("deprecationWarning").and_then(Value::as_str) {
        return Some(text.to_owned());
    }
    let name = |version: &Value| meta::text(version, "/name").to_owned();
    let full = |name: &str| {
        let (group, kind) = (meta::text(definition, "/spec/group"), meta::text(definition, "/spec/names/kind"));
        format!("{group}/{name} {kind}")
    };
    let all = versions(definition);
    let lasting = all.iter().filter(|other| flag(other, "served") && !flag(other, "deprecated")).map(name);
    let better = lasting.filter(|other| priority(other) > priority(&name(version)));
    let instead = better.max_by_key(|other| priority(other)).map(|better| format!("; use {}", full(&better)));
    Some(format!("{} is deprecated{}", full(&name(version)), instead.unwrap_or_default()))
}
