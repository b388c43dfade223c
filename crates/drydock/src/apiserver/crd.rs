//! Custom resource definitions: how a resource comes to be at run time.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jiff::Timestamp;
use kube_cel::CompiledSchema;
use serde_json::{Value, json};

use super::builtin::CUSTOM;
use super::error::Cause;
use super::meta;
use super::registry::{Resource, ScalePaths, Shape, Version, resource_id};
use super::schema::Schema;
use super::server::Server;
use super::store::{Change, Id, State};

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

/// Completes a new definition. Names are accepted and established at once: there is no one to compete with.
pub(crate) fn prepare(definition: &mut Value, _: &State, now: Timestamp) {
    complete_names(definition);
    meta::set_finalizers(definition, &[CLEANUP.to_owned()]);
    let time = meta::seconds(now);
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "lastTransitionTime": time, "reason": reason, "message": message});
    let status = json!({
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "acceptedNames": definition.pointer("/spec/names"),
        "storedVersions": stored_version(definition).into_iter().collect::<Vec<_>>(),
    });
    meta::members(definition).insert("status".into(), status);
}

/// Completes a changed definition.
pub(crate) fn prepare_update(definition: &mut Value, _: &Value, _: &State, _: Timestamp) {
    complete_names(definition);
    let names = definition.pointer("/spec/names").cloned();
    let stored = stored_version(definition).map(str::to_owned);
    let status = meta::child(definition, "status");
    meta::set(status, "acceptedNames", names);
    if let (Some(stored), Some(Value::Array(versions))) = (stored, status.get_mut("storedVersions"))
        && !versions.iter().any(|version| *version == stored.as_str())
    {
        versions.push(stored.into());
    }
}

fn complete_names(definition: &mut Value) {
    let kind = meta::text(definition, "/spec/names/kind").to_owned();
    let spec = meta::child(definition, "spec");
    spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    let names = meta::members(spec.entry("names").or_insert_with(|| json!({})));
    names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
    names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
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
pub(crate) fn check(definition: &Value, causes: &mut Vec<Cause>) {
    let (group, plural) = (meta::text(definition, "/spec/group"), meta::text(definition, "/spec/names/plural"));
    let name = meta::name(definition);
    if name != format!("{plural}.{group}") {
        causes.push(Cause::invalid("metadata.name", &json!(name), "must be spec.names.plural+\".\"+spec.group"));
    }
    if versions(definition).iter().filter(|version| flag(version, "storage")).count() != 1 {
        causes.push(Cause::invalid_unshown("spec.versions", "must have exactly one version marked as storage version"));
    }
    if flag(&definition["spec"], "preserveUnknownFields") {
        causes.push(Cause::invalid("spec.preserveUnknownFields", &json!(true), "must be false"));
    }
    for (at, version) in versions(definition).iter().enumerate() {
        let path = format!("spec.versions[{at}].schema.openAPIV3Schema");
        match version.pointer("/schema/openAPIV3Schema") {
            None => causes.push(Cause::required(path, "schemas are required")),
            Some(schema) => {
                if meta::text(schema, "/type") != "object" {
                    causes.push(Cause::invalid(format!("{path}.type"), &schema["type"], "must be object at the root"));
                }
                check_structure(schema, &path, causes);
                let compiled = compile(schema);
                for error in compiled.rules.iter().flat_map(|rules| rules.compiled.compilation_errors()) {
                    causes.push(Cause::invalid_unshown(format!("{path}.x-kubernetes-validations"), &error.to_string()));
                }
            }
        }
    }
}

/// A schema is structural when every part of it has a type.
fn check_structure(schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let free = flag(schema, "x-kubernetes-preserve-unknown-fields") || flag(schema, "x-kubernetes-int-or-string");
    if meta::text(schema, "/type").is_empty() && !free {
        causes.push(Cause::required(format!("{path}.type"), "must not be empty for specified object fields"));
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        check_structure(property, &format!("{path}.properties[{name}]"), causes);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        check_structure(items, &format!("{path}.items"), causes);
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        check_structure(values, &format!("{path}.additionalProperties"), causes);
    }
}

/// The objects of the resource a definition makes.
pub(crate) fn instances(state: &State, definition: &Value) -> Vec<Id> {
    let id = resource_id(meta::text(definition, "/spec/names/plural"), meta::text(definition, "/spec/group"));
    state.list(&id, None).map(|(key, _)| (id.clone(), key.clone())).collect()
}

/// Offers, changes or withdraws the resource.
pub(crate) fn committed(server: &Server, state: &mut State, change: &Arc<Change>) {
    let resource = resource(&change.after);
    let mut registry = server.registry.write().unwrap_or_else(PoisonError::into_inner);
    if change.deleted {
        registry.uninstall(&resource.id);
        state.forget(&resource.id);
    } else {
        registry.install(resource);
    }
}

fn resource(definition: &Value) -> Resource {
    let name = |field: &str| meta::text(definition, &format!("/spec/names/{field}")).to_owned();
    let list = |field: &str| {
        let list = meta::strings(definition.pointer(&format!("/spec/names/{field}")));
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
        versions: versions(definition).iter().map(version).collect(),
        custom: true,
        behaviour: &CUSTOM,
        lens: None,
    }
}

fn version(version: &Value) -> Version {
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
    }
}
