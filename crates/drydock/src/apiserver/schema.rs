//! Structural schemas: what an object may look like, and how its lists and maps merge.
//!
//! One form serves both worlds: the generated tables of built-in kinds and the `openAPIV3Schema` of CRDs. Everything
//! that depends on an object's shape reads it: pruning and defaulting (here), validation, strategic merge and
//! server-side apply (in their own modules).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::crd;
use super::defaults;
use super::protobuf;

/// The JSON type of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No type given: anything goes.
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    /// A port or a percentage: a whole number or a string.
    IntOrString,
}

/// How a list merges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    /// As one value.
    #[default]
    Atomic,
    /// As a set of scalars.
    Set,
    /// As a map from these fields of each item to the item.
    Map(Vec<String>),
}

/// One node of a schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    reference: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional: Option<Box<Schema>>,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) required: Vec<String>,
    pub(crate) nullable: bool,
    pub(crate) preserve_unknown: bool,
    pub(crate) embedded: bool,
    default: Option<Value>,
    /// Members that Go leaves out of JSON when they are zero, and so cannot tell from ones that were never given.
    omitted: BTreeSet<&'static str>,
    pub(crate) list: ListType,
    pub(crate) atomic_map: bool,
    /// `x-kubernetes-patch-merge-key`: the one field strategic merge patches identify items by.
    pub(crate) merge_key: Option<String>,
    /// `x-kubernetes-patch-strategy` has `merge`.
    pub(crate) merge: bool,
    /// The keywords that only validation reads, as they were written.
    pub(crate) rules: Map<String, Value>,
}

/// Keywords that say which values are allowed, not what shape they have.
const RULES: &[&str] = &[
    "allOf",
    "anyOf",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "uniqueItems",
];

/// The types of built-in kinds, by name, as they were generated.
pub(crate) const TABLE: &str = include_str!("../schema/types.json");

static TYPES: LazyLock<BTreeMap<String, Schema>> = LazyLock::new(|| {
    // The table is generated and checked by a test; a broken one would leave built-in kinds without a schema.
    let table: BTreeMap<String, Value> = serde_json::from_str(TABLE).unwrap_or_default();
    let omitted = |name: &str| protobuf::omitted(name).into_iter().chain(crd::omitted(name)).collect();
    let read = |name: &str, schema| Schema { omitted: omitted(name), ..Schema::parse(schema).opened() };
    table.iter().map(|(name, schema)| (name.clone(), read(name, schema))).collect()
});

static ANYTHING: LazyLock<Schema> = LazyLock::new(|| Schema { preserve_unknown: true, ..Schema::default() });

impl Schema {
    /// Reads one node and everything below it.
    pub(crate) fn parse(schema: &Value) -> Self {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
        let inner =
            |key: &str| schema.get(key).filter(|inner| inner.is_object()).map(|inner| Box::new(Self::parse(inner)));
        let names = |key: &str| {
            let list = schema.get(key).and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        let strategy = text("x-kubernetes-patch-strategy").unwrap_or_default();
        let int_or_string = flag("x-kubernetes-int-or-string") || text("format") == Some("int-or-string");
        let kind = match text("type") {
            _ if int_or_string => Kind::IntOrString,
            Some("object") => Kind::Object,
            Some("array") => Kind::Array,
            Some("string") => Kind::String,
            Some("integer") => Kind::Integer,
            Some("number") => Kind::Number,
            Some("boolean") => Kind::Boolean,
            _ => Kind::Any,
        };
        let list = match text("x-kubernetes-list-type") {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(names("x-kubernetes-list-map-keys")),
            _ => ListType::Atomic,
        };
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let members = schema.as_object().into_iter().flatten();
        Self {
            reference: text("$ref").map(str::to_owned),
            kind,
            properties: properties.map(|(name, schema)| (name.clone(), Self::parse(schema))).collect(),
            additional: inner("additionalProperties"),
            items: inner("items"),
            required: names("required"),
            nullable: flag("nullable"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields")
                || schema.get("additionalProperties") == Some(&Value::Bool(true)),
            embedded: flag("x-kubernetes-embedded-resource"),
            default: schema.get("default").cloned(),
            omitted: BTreeSet::new(),
            list,
            atomic_map: text("x-kubernetes-map-type") == Some("atomic"),
            merge_key: text("x-kubernetes-patch-merge-key").map(str::to_owned),
            merge: strategy.split(',').any(|part| part == "merge"),
            rules: members
                .filter(|(key, _)| RULES.contains(&key.as_str()))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        }
    }

    /// A type of the generated tables that names no members (`RawExtension`) takes any.
    fn opened(mut self) -> Self {
        let opaque = self.kind == Kind::Object && self.properties.is_empty() && self.additional.is_none();
        self.preserve_unknown |= opaque;
        // Nobody can own a part of what has no known parts.
        self.atomic_map |= opaque;
        self
    }

    /// A type of the generated tables.
    pub(crate) fn named(name: &str) -> Self {
        Self { reference: Some(name.to_owned()), ..Self::default() }
    }

    /// The schema of a custom resource: what its author wrote, with the fields every object has.
    pub(crate) fn of_custom_resource(schema: &Value) -> Self {
        let mut root = Self::parse(schema);
        root.kind = Kind::Object;
        root.give_metadata();
        root
    }

    fn give_metadata(&mut self) {
        let text = || Self { kind: Kind::String, ..Self::default() };
        self.properties.insert("apiVersion".into(), text());
        self.properties.insert("kind".into(), text());
        self.properties.insert("metadata".into(), Self::named("meta.v1.ObjectMeta"));
    }

    /// The name of the type a reference stands for.
    pub(crate) fn type_name(&self) -> Option<&str> {
        self.reference.as_deref()
    }

    /// Whether it takes any JSON as it is.
    pub(crate) fn is_raw(&self) -> bool {
        self.reference.as_deref().is_some_and(|name| name.ends_with("RawExtension"))
    }

    /// What Go's maps hold where nothing was given: they cannot say that.
    fn nothing(&self) -> Option<Value> {
        let bytes = self.rules.get("format").is_some_and(|format| format == "byte");
        match self.kind {
            _ if self.reference.as_deref() == Some("Quantity") => Some(Value::from("0")),
            Kind::String if self.rules.is_empty() || bytes => Some(Value::from("")),
            _ => None,
        }
    }

    /// The node a reference stands for. Only the generated tables have references.
    pub(crate) fn resolve(&self) -> &Self {
        match &self.reference {
            Some(name) => TYPES.get(name).unwrap_or(&ANYTHING),
            None => self,
        }
    }

    /// The schema of a member; `None` when the schema does not know it.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        let node = self.resolve();
        if node.embedded && matches!(name, "apiVersion" | "kind" | "metadata") {
            return Some(&ANYTHING);
        }
        match node.properties.get(name).or(node.additional.as_deref()) {
            Some(schema) => Some(schema),
            None if node.is_opaque() => Some(&ANYTHING),
            None => None,
        }
    }

    /// The schema of a list's items.
    pub(crate) fn item(&self) -> &Self {
        self.resolve().items.as_deref().unwrap_or(&ANYTHING)
    }

    /// Whether members it does not name are kept.
    fn is_opaque(&self) -> bool {
        self.preserve_unknown || self.kind == Kind::Any
    }

    /// The default of a key field, which stands for it where an item leaves it out.
    pub(crate) fn default_of(&self, member: &str) -> Option<&Value> {
        self.resolve().properties.get(member).and_then(|schema| schema.default.as_ref())
    }

    /// Drops members the schema does not know and reports their paths.
    pub(crate) fn prune(&self, value: &mut Value, path: &str, dropped: &mut Vec<String>) {
        let node = self.resolve();
        match value {
            Value::Object(members) => {
                members.retain(|name, value| {
                    let place = join(path, name);
                    match node.member(name) {
                        Some(schema) => schema.prune(value, &place, dropped),
                        None => dropped.push(place),
                    }
                    node.member(name).is_some()
                });
            }
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.item().prune(item, &format!("{path}[{at}]"), dropped);
                }
            }
            _ => {}
        }
    }

    /// Removes the `null` members of fields that cannot be null: they mean "not given". Free-form parts keep theirs, and in
    /// Go's maps of texts they are empty ones.
    pub(crate) fn drop_nulls(&self, value: &mut Value) {
        self.drop_nulls_in(value, false);
    }

    /// `typed` says whether the value is part of one of Go's types.
    fn drop_nulls_in(&self, value: &mut Value, typed: bool) {
        let (node, typed) = (self.resolve(), typed || self.reference.is_some());
        match value {
            Value::Object(members) => {
                if let Some(nothing) = node.additional.as_ref().filter(|_| typed).and_then(|values| values.nothing()) {
                    for value in members.values_mut().filter(|value| value.is_null()) {
                        *value = nothing.clone();
                    }
                }
                members.retain(|name, value| {
                    let known = node.properties.get(name).or(node.additional.as_deref());
                    !value.is_null() || known.is_none_or(|schema| schema.nullable || schema.resolve().nullable)
                });
                for (name, value) in members {
                    if let Some(schema) = node.member(name) {
                        schema.drop_nulls_in(value, typed);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.item().drop_nulls_in(item, typed)),
            _ => {}
        }
    }

    /// Removes empty maps and lists and zeros, which Go leaves out of JSON. A list that must be there stays, and so do those
    /// of which the real server knows whether they were given: the owners of fields, and the policies of an autoscaler.
    pub(crate) fn drop_empty(&self, value: &mut Value) {
        let node = self.resolve();
        match value {
            Value::Object(members) => {
                members.retain(|name, value| {
                    let known = node.properties.get(name).filter(|schema| !schema.is_raw());
                    let Some(schema) = known.map(Self::resolve) else { return true };
                    match value {
                        Value::Object(inner) => {
                            !inner.is_empty() || schema.additional.is_none() || !schema.properties.is_empty()
                        }
                        Value::Array(items) => {
                            let told_apart = ["managedFields", "policies"].contains(&name.as_str());
                            let free = schema.kind == Kind::Any;
                            !items.is_empty() || node.required.contains(name) || told_apart || free
                        }
                        scalar => !node.omitted.contains(name.as_str()) || !protobuf::is_zero(scalar),
                    }
                });
                for (name, value) in members {
                    if let Some(schema) = node.member(name) {
                        schema.drop_empty(value);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.item().drop_empty(item)),
            _ => {}
        }
    }

    /// Fills in what is left out: defaults of the schema, then those that are known by the type's name.
    pub(crate) fn fill(&self, value: &mut Value) {
        let node = self.resolve();
        match value {
            Value::Object(members) => {
                for (name, schema) in &node.properties {
                    let Some(default) = &schema.default else { continue };
                    let absent = members.get(name).is_none_or(|value| value.is_null() && !schema.nullable);
                    if absent {
                        members.insert(name.clone(), default.clone());
                    }
                }
                if let Some(name) = &self.reference {
                    defaults::fill(name, members);
                }
                for (name, value) in members {
                    if let Some(schema) = node.member(name) {
                        schema.fill(value);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.item().fill(item)),
            _ => {}
        }
    }
}

/// A path and one more step.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
