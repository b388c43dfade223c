//! The rules a schema in a definition must obey.

use serde_json::{Value, json};

use super::flag;
use super::go_form;
use super::paths::follow;
use super::schema_defaults;
use super::structural;
use crate::apiserver::error::Cause;
use crate::apiserver::meta;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Keywords that the root of a schema may have beside a status of its own, by the names of Go.
const AT_THE_ROOT: [(&str, &str); 22] = [
    ("Description", "description"),
    ("Type", "type"),
    ("Format", "format"),
    ("Title", "title"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Required", "required"),
    ("Items", "items"),
    ("Properties", "properties"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"),
    ("XValidations", "x-kubernetes-validations"),
];

/// Whether any part of a schema has a default.
pub(super) fn has_defaults(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return false };
    members.get("default").is_some_and(|value| !value.is_null())
        || structural::below(members).into_iter().any(has_defaults)
}

/// Rules for a whole schema; `status` says whether objects have a status of their own.
pub(super) fn check(schema: &Value, status: bool, path: &str, causes: &mut Vec<Cause>) {
    let told = causes.len();
    if status {
        beside_a_status(schema, path, causes);
    }
    if flag(schema, "nullable") {
        causes.push(Cause::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    let unsupported = structural::unsupported(schema);
    let mut compiles = false;
    if unsupported.is_none() {
        let mut found = structural::check(schema, path);
        if found.is_empty() {
            found = schema_defaults::check(schema, path);
        }
        compiles = found.is_empty();
        causes.extend(found);
    }
    let mut walk = Walk { shape: Vec::new(), rules: Vec::new(), compiles };
    walk.visit(schema, path, &Place { root: true, ..Place::default() });
    causes.extend(walk.shape);
    causes.extend(walk.rules);
    if let Some(why) = unsupported.filter(|_| causes.len() == told) {
        causes.push(Cause::invalid(path, &"".into(), &why));
    }
}

/// The status is cut out of a schema to judge it alone, so what stands beside it must not be about it.
fn beside_a_status(schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let kind = meta::text(schema, "/type");
    let set = |value: &Value| !value.is_null() && *value != Value::Bool(false) && *value != "";
    let other = schema
        .as_object()
        .into_iter()
        .flatten()
        .find(|(name, value)| set(value) && !AT_THE_ROOT.iter().any(|(_, known)| *known == name.as_str()));
    if !kind.is_empty() && kind != "object" {
        let why =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        causes.push(Cause::invalid(format!("{path}.type"), &kind.into(), why));
    } else if other.is_some() {
        let allowed = AT_THE_ROOT.map(|(go, _)| go).join(" ");
        let why = format!(
            "only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
        );
        causes.push(go_form::invalid(path, &go_form::schema(schema), &why));
    }
}

/// What is known about a part of a schema from the parts around it.
#[derive(Clone, Default)]
struct Place {
    root: bool,
    /// Inside the fields that every object has.
    in_metadata: bool,
    /// Why there must be no defaults.
    no_defaults: Option<String>,
    /// The part in which what was before cannot be told from what is now.
    uncorrelated: Option<String>,
    /// Inside a condition, where rules are not compiled.
    conditional: bool,
}

struct Walk {
    shape: Vec<Cause>,
    rules: Vec<Cause>,
    /// Whether rules make sense at all.
    compiles: bool,
}

impl Walk {
    fn visit(&mut self, schema: &Value, path: &str, place: &Place) {
        if !schema.is_object() {
            return;
        }
        let told = self.shape.len();
        self.keywords(schema, path, place);
        self.parts(schema, path, place);
        self.lists(schema, path);
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (at, rule) in rules.iter().enumerate() {
            self.rule(schema, rule, &format!("{path}.x-kubernetes-validations[{at}]"));
        }
        // A rule about something that is wrong itself says nothing that helps.
        if self.shape.len() == told && self.compiles && !place.conditional {
            for (at, rule) in rules.iter().enumerate() {
                self.compile(rule, &format!("{path}.x-kubernetes-validations[{at}]"), place);
            }
        }
    }

    fn forbid(&mut self, place: String, why: &str) {
        self.shape.push(Cause::forbidden(place, why));
    }

    /// Keywords that are not supported, or not here.
    fn keywords(&mut self, schema: &Value, path: &str, place: &Place) {
        let kind = meta::text(schema, "/type");
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.shape.push(Cause::unsupported(&format!("{path}.type"), &kind.into(), &TYPES.map(Value::from)));
        }
        if let Some(why) = place.no_defaults.as_ref().filter(|_| schema.get("default").is_some()) {
            self.forbid(format!("{path}.default"), &format!("must not be set {why}"));
        }
        let filled = |name: &str| match schema.get(name) {
            Some(Value::Object(members)) => !members.is_empty(),
            Some(Value::String(text)) => !text.is_empty(),
            _ => false,
        };
        for (name, there) in [
            ("id", filled("id")),
            ("additionalItems", schema.get("additionalItems").is_some()),
            ("patternProperties", filled("patternProperties")),
            ("definitions", filled("definitions")),
            ("dependencies", schema.get("dependencies").is_some()),
            ("$ref", schema.get("$ref").is_some()),
        ] {
            if there {
                self.forbid(format!("{path}.{name}"), &format!("{name} is not supported"));
            }
        }
        if kind == "null" {
            self.forbid(format!("{path}.type"), "type cannot be set to null, use nullable as an alternative");
        }
        if schema.get("items").and_then(Value::as_array).is_some_and(|items| !items.is_empty()) {
            self.forbid(format!("{path}.items"), "items must be a schema object and not an array");
        }
        if place.in_metadata && flag(schema, "x-kubernetes-embedded-resource") {
            self.forbid(format!("{path}.x-kubernetes-embedded-resource"), "must not be used inside of resource meta");
        }
        if flag(schema, "uniqueItems") {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(format!("{path}.uniqueItems"), why);
        }
    }

    /// Everything below.
    fn parts(&mut self, schema: &Value, path: &str, place: &Place) {
        let inner = Place { root: false, ..place.clone() };
        let named = |name: &str| schema.get(name).and_then(Value::as_object).into_iter().flatten();
        if let Some(values) = schema.get("additionalProperties") {
            if named("properties").next().is_some() && *values != Value::Bool(true) {
                let why = "additionalProperties and properties are mutual exclusive";
                self.forbid(format!("{path}.additionalProperties"), why);
            }
            let mut inner = inner.clone();
            if place.in_metadata {
                inner.no_defaults = Some("inside additionalProperties applying to object metadata".into());
            }
            self.visit(values, &format!("{path}.additionalProperties"), &inner);
        }
        for (name, property) in named("properties") {
            let mut inner = inner.clone();
            if meta::text(schema, "/x-kubernetes-map-type") == "atomic" {
                inner.uncorrelated.get_or_insert_with(|| path.to_owned());
            }
            let whole = place.root || flag(schema, "x-kubernetes-embedded-resource");
            if whole && ["metadata", "kind", "apiVersion"].contains(&name.as_str()) {
                inner.in_metadata = true;
                if place.root {
                    inner.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.visit(property, &format!("{path}.properties[{name}]"), &inner);
        }
        let conditional = Place { conditional: true, ..inner.clone() };
        if let Some(not) = schema.get("not") {
            self.visit(not, &format!("{path}.not"), &conditional);
        }
        for name in ["allOf", "oneOf", "anyOf"] {
            for (at, part) in schema.get(name).and_then(Value::as_array).into_iter().flatten().enumerate() {
                self.visit(part, &format!("{path}.{name}[{at}]"), &conditional);
            }
        }
        for keyword in ["definitions", "dependencies"] {
            for (name, part) in named(keyword) {
                self.visit(part, &format!("{path}.{keyword}[{name}]"), &conditional);
            }
        }
        let mut inner = inner;
        // Only the items of a map can be found again after a change.
        if meta::text(schema, "/x-kubernetes-list-type") != "map" {
            inner.uncorrelated.get_or_insert_with(|| path.to_owned());
        }
        match schema.get("items") {
            Some(Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    self.visit(item, &format!("{path}.items[{at}]"), &inner);
                }
            }
            Some(items) => self.visit(items, &format!("{path}.items"), &inner),
            None => {}
        }
    }

    /// How lists and maps merge.
    fn lists(&mut self, schema: &Value, path: &str) {
        let kind = meta::text(schema, "/type");
        let keyword = |name: &str| schema.get(name).and_then(Value::as_str);
        let (list, map) = (keyword("x-kubernetes-list-type"), keyword("x-kubernetes-map-type"));
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let place = format!("{path}.x-kubernetes-preserve-unknown-fields");
            self.shape.push(Cause::invalid(place, &false.into(), "must be true or undefined"));
        }
        if map.is_some() && kind != "object" {
            self.other_type(path, kind, "must be object if x-kubernetes-map-type is specified");
        }
        if let Some(map) = map.filter(|map| !["atomic", "granular"].contains(map)) {
            let allowed = ["atomic", "granular"].map(Value::from);
            self.shape.push(Cause::unsupported(&format!("{path}.x-kubernetes-map-type"), &map.into(), &allowed));
        }
        let item = schema.get("items").filter(|items| items.is_object());
        if list.is_some() && kind != "array" {
            self.other_type(path, kind, "must be array if x-kubernetes-list-type is specified");
        } else if let (Some("set"), Some(item)) = (list, item) {
            let own = |name: &str| meta::text(item, &format!("/x-kubernetes-{name}-type"));
            let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
            // The real server shows the type of a list here too.
            let shown = item.get("x-kubernetes-list-type").cloned().unwrap_or_default();
            match meta::text(item, "/type") {
                "array" if !["", "atomic"].contains(&own("list")) => {
                    self.shape.push(Cause::invalid(format!("{path}.items.x-kubernetes-list-type"), &shown, why));
                }
                "object" if own("map") != "atomic" => {
                    self.shape.push(Cause::invalid(format!("{path}.items.x-kubernetes-map-type"), &shown, why));
                }
                _ => {}
            }
        }
        if let Some(list) = list.filter(|list| !["atomic", "set", "map"].contains(list)) {
            let allowed = ["atomic", "set", "map"].map(Value::from);
            self.shape.push(Cause::unsupported(&format!("{path}.x-kubernetes-list-type"), &list.into(), &allowed));
        }
        self.keys(schema, list, path);
    }

    fn other_type(&mut self, path: &str, kind: &str, why: &str) {
        let place = format!("{path}.type");
        self.shape.push(if kind.is_empty() {
            Cause::required(place, why)
        } else {
            Cause::invalid(place, &kind.into(), why)
        });
    }

    /// The fields that tell the items of a list apart.
    fn keys(&mut self, schema: &Value, list: Option<&str>, path: &str) {
        let keys = meta::strings(schema.get("x-kubernetes-list-map-keys"));
        let place = format!("{path}.x-kubernetes-list-map-keys");
        if !keys.is_empty() && list != Some("map") {
            let (place, why) =
                (format!("{path}.x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty");
            self.shape.push(match list {
                None => Cause::required(place, why),
                Some(list) => Cause::invalid(place, &list.into(), why),
            });
        }
        let items = schema.get("items");
        if list == Some("map") {
            if keys.is_empty() {
                self.shape.push(Cause::required(&place, "must not be empty if x-kubernetes-list-type is map"));
            }
            let kind = items.map_or("", |items| meta::text(items, "/type"));
            match items {
                None => {
                    let why = "must have a schema if x-kubernetes-list-type is map";
                    self.shape.push(Cause::required(format!("{path}.items"), why));
                }
                Some(Value::Array(_)) => {
                    let why = "must only have a single schema if x-kubernetes-list-type is map";
                    let shown = go_form::schema(&json!({"items": items}))["Items"].clone();
                    self.shape.push(go_form::invalid(format!("{path}.items"), &shown, why));
                }
                Some(_) if kind != "object" => {
                    let why = "must be object if parent array's x-kubernetes-list-type is map";
                    self.shape.push(Cause::invalid(format!("{path}.items.type"), &kind.into(), why));
                }
                Some(items) => self.key_fields(items, &keys, path),
            }
        }
        if let (Some(list @ ("map" | "set")), Some(items)) = (list, items.filter(|items| items.is_object())) {
            if flag(items, "nullable") {
                let why = format!("cannot be nullable when x-kubernetes-list-type is {list}");
                self.forbid(format!("{path}.items.nullable"), &why);
            }
            let required = meta::strings(items.get("required"));
            for key in keys.iter().filter(|_| list == "map") {
                let Some(field) = items.get("properties").and_then(|fields| fields.get(*key)) else { continue };
                let place = format!("{path}.items.properties[{key}]");
                if !required.contains(key) && field.get("default").is_none() {
                    let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                    self.shape.push(Cause::required(format!("{place}.default"), why));
                }
                if flag(field, "nullable") {
                    let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                    self.forbid(format!("{place}.nullable"), why);
                }
            }
        }
    }

    fn key_fields(&mut self, items: &Value, keys: &[&str], path: &str) {
        let place = format!("{path}.x-kubernetes-list-map-keys");
        for (at, key) in keys.iter().enumerate() {
            match items.get("properties").and_then(|fields| fields.get(*key)) {
                None => {
                    let why = "entries must all be names of item properties";
                    self.shape.push(Cause::invalid(&place, &json!(keys), why));
                }
                Some(field) if ["array", "object"].contains(&meta::text(field, "/type")) => {
                    let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    let place = format!("{path}.items.properties[{key}].type");
                    self.shape.push(Cause::invalid(place, &meta::text(items, "/type").into(), why));
                }
                Some(_) => {}
            }
            if keys[..at].contains(key) {
                self.shape.push(Cause::invalid(&place, &json!(keys), "must not contain duplicate entries"));
            }
        }
    }

    /// A rule in CEL, as far as it can be judged without reading it.
    fn rule(&mut self, schema: &Value, rule: &Value, path: &str) {
        let text = |name: &str| meta::text(rule, &format!("/{name}"));
        let lines = |text: &str| text.contains(['\n', '\r']);
        let (message, message_path) = (text("message"), format!("{path}.message"));
        if text("rule").trim().is_empty() {
            self.shape.push(Cause::required(format!("{path}.rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            self.shape.push(Cause::invalid(message_path, &message.into(), "must be non-empty if specified"));
        } else if lines(message.trim()) {
            self.shape.push(Cause::invalid(message_path, &message.into(), "must not contain line breaks"));
        } else if lines(text("rule").trim()) && message.trim().is_empty() {
            self.shape.push(Cause::required(message_path, "message must be specified if rule contains line breaks"));
        }
        if !text("messageExpression").is_empty() && text("messageExpression").trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            self.shape.push(Cause::required(format!("{path}.messageExpression"), why));
        }
        if let Some(reason) = rule.get("reason").filter(|reason| !REASONS.iter().any(|known| *reason == known)) {
            self.shape.push(Cause::unsupported(&format!("{path}.reason"), reason, &REASONS.map(Value::from)));
        }
        let field = text("fieldPath");
        let place = format!("{path}.fieldPath");
        if !field.is_empty() && field.trim().is_empty() {
            self.shape.push(Cause::invalid(&place, &field.into(), "must be non-empty if specified"));
        }
        if lines(field) {
            self.shape.push(Cause::invalid(&place, &field.into(), "must not contain line breaks"));
        }
        if !field.is_empty() && !field.contains('[') && follow(schema, field).is_err() {
            self.shape.push(Cause::invalid(&place, &field.into(), "must be a valid path"));
        }
    }

    /// What the compiler of CEL says about a rule.
    fn compile(&mut self, rule: &Value, path: &str, place: &Place) {
        use std::error::Error;
        let compiled = kube_cel::compile_schema(&json!({"x-kubernetes-validations": [rule]}));
        for error in compiled.compilation_errors() {
            let field = match error {
                kube_cel::CompilationError::MessageExpressionParse { .. } => "messageExpression",
                _ => "rule",
            };
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            // Go sets the line off by one more space.
            let why = format!("compilation failed: {}", why.replace("\n|", "\n |"));
            self.rules.push(go_form::invalid(format!("{path}.{field}"), &go_form::rule(rule), &why));
        }
        let text = meta::text(rule, "/rule");
        if let Some(part) = place.uncorrelated.as_ref().filter(|_| text.contains("oldSelf")) {
            let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {part}");
            self.rules.push(Cause::invalid(format!("{path}.rule"), &text.into(), &why));
        }
        if let Some(asked) = rule.get("optionalOldSelf").filter(|_| !text.contains("oldSelf")) {
            let why = "may not be set if oldSelf is not used in rule";
            self.rules.push(Cause::invalid(format!("{path}.optionalOldSelf"), asked, why));
        }
    }
}
