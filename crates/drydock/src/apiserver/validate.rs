//! Validation of objects against their schema, and of names and labels.
//!
//! Texts follow the real server's, since people and tests read them. CEL rules are evaluated by `kube-cel`.

use std::collections::{BTreeSet, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::{Map, Value};

use super::dns_names::{LABEL_TEXT, SUBDOMAIN_TEXT, is_label};
use super::error::Cause;
use super::go_regex;
use super::meta;
use super::schema::{Kind, ListType, Schema, join};
use super::zero::zero;

/// What a name must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// A DNS subdomain, as most names are.
    Subdomain,
    /// A DNS label: no dots.
    Label,
    /// Anything that can stand in a path, as names of roles do.
    PathSegment,
}

/// Whether a text matches a schema's pattern; one that is no pattern matches nothing. Compiling one takes longer than a
/// whole request, so each is compiled once per process.
fn is_match(pattern: &str, text: &str) -> bool {
    static KNOWN: LazyLock<Mutex<HashMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if !known.contains_key(pattern) {
        known.insert(pattern.to_owned(), go_regex::compile(pattern).ok());
    }
    known.get(pattern).is_some_and(|pattern| pattern.as_ref().is_some_and(|pattern| pattern.is_match(text)))
}

/// How strictly missing fields are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// As a CRD's author wrote it.
    Declared,
    /// As Go's decoder takes built-in kinds: zero values stand for missing status fields.
    Builtin,
}

/// Everything that is wrong with a value.
pub(crate) fn validate(schema: &Schema, value: &Value, path: &str, strictness: Strictness, causes: &mut Vec<Cause>) {
    let node = schema.resolve();
    if value.is_null() {
        if !schema.nullable && !node.nullable && node.kind != Kind::Any && strictness == Strictness::Declared {
            causes.push(Cause::wrong_type(path, kind_name(node.kind), "null"));
        }
        return;
    }
    if !fits(node.kind, value) {
        // A format is told instead of the type where both are not met, but not of texts and lists.
        let format =
            node.rules.get("format").and_then(Value::as_str).filter(|_| value.is_object() || value.is_boolean());
        let (wanted, found) = format.map_or((kind_name(node.kind), type_name(value)), |format| (format, ""));
        causes.push(Cause::wrong_type(path, wanted, found));
        if strictness == Strictness::Declared {
            check_misfit(node, value, path, causes);
        }
        return;
    }
    if strictness == Strictness::Declared {
        check_rules(&node.rules, value, path, causes);
    }
    match value {
        Value::Object(members) => {
            let missing = |causes: &mut Vec<Cause>| {
                for name in &node.required {
                    // Workloads have a rule of their own for it.
                    let own_rule = strictness == Strictness::Builtin && name == "selector";
                    if !members.contains_key(name) && !own_rule {
                        causes.push(Cause::required(join(path, name), ""));
                    }
                }
            };
            if strictness == Strictness::Builtin {
                missing(causes);
            }
            for (name, value) in members {
                // Controllers write status; Go fills its missing fields with zeroes.
                if strictness == Strictness::Builtin && path.is_empty() && name == "status" {
                    continue;
                }
                // Metadata has rules of its own.
                if path.is_empty() && name == "metadata" {
                    continue;
                }
                if let Some(schema) = node.member(name) {
                    validate(schema, value, &join(path, name), strictness, causes);
                }
            }
            // What validates custom resources looks first at what is there.
            if strictness == Strictness::Declared {
                missing(causes);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                validate(schema.item(), item, &format!("{path}[{at}]"), strictness, causes);
            }
            // Built-in kinds have rules of their own for what must not be there twice.
            if strictness == Strictness::Declared {
                unique(schema, items, path, causes);
            }
        }
        _ => {}
    }
}

/// What is told of a value beside its having the wrong type.
fn check_misfit(node: &Schema, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(Value::Array(allowed)) = node.rules.get("enum").filter(|_| !value.is_null()) {
        causes.push(Cause::unsupported(path, value, allowed));
    }
    if node.kind == Kind::Integer && value.is_number() {
        let format = node.rules.get("format").and_then(Value::as_str);
        let wanted = format.map_or_else(|| "(default format)".to_owned(), |format| format!("with format {format}"));
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: \"\": Checked value must be of type integer {wanted} in {path}"),
            field: "<nil>".to_owned(),
        });
    }
}

/// `1 item`, `2 items`.
fn counted(count: &Value, word: &str) -> String {
    if *count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

/// Items of sets and maps must be distinct.
fn unique(schema: &Schema, items: &[Value], path: &str, causes: &mut Vec<Cause>) {
    let node = schema.resolve();
    let mut seen = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let key = match &node.list {
            ListType::Atomic => return,
            ListType::Set => item.clone(),
            ListType::Map(keys) => {
                Value::Object(keys.iter().map(|key| (key.clone(), key_of(schema.item(), item, key))).collect())
            }
        };
        if !seen.insert(key.to_string()) {
            causes.push(Cause::duplicate(format!("{path}[{at}]"), &key));
        }
    }
}

/// A key field of a list item, or its default. Go's types have one for every key: nothing.
pub(crate) fn key_of(item_schema: &Schema, item: &Value, key: &str) -> Value {
    let found = item.get(key).filter(|value| !value.is_null()).or_else(|| item_schema.default_of(key));
    let typed = item_schema.type_name().and_then(|_| item_schema.member(key));
    found.cloned().or_else(|| typed.map(zero)).unwrap_or_default()
}

fn check_rules(rules: &Map<String, Value>, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let invalid = |why: String| Cause::invalid(path, value, &format!("{path} in body {why}"));
    for (rule, argument) in rules {
        let bound = argument.as_f64().unwrap_or_default();
        let exclusive = |name: &str| rules.get(name).and_then(Value::as_bool).unwrap_or(false);
        let length = value.as_str().map(|text| text.chars().count() as f64);
        let items = value.as_array().map(|items| items.len() as f64);
        let count = value.as_object().map(|members| members.len() as f64);
        let limit = |name: &str| rules.get(name).and_then(Value::as_f64);
        // Of a text only the first complaint is told.
        let too_long = length.zip(limit("maxLength")).is_some_and(|(length, most)| length > most);
        let too_short = length.zip(limit("minLength")).is_some_and(|(length, least)| length < least);
        match (rule.as_str(), value.as_f64()) {
            ("enum", _) => {
                let allowed = argument.as_array().map_or(&[][..], Vec::as_slice);
                if !allowed.contains(value) {
                    causes.push(Cause::unsupported(path, value, allowed));
                }
            }
            ("minimum", Some(number)) if exclusive("exclusiveMinimum") && number <= bound => {
                causes.push(invalid(format!("should be greater than {bound}")));
            }
            ("minimum", Some(number)) if number < bound => {
                causes.push(invalid(format!("should be greater than or equal to {bound}")));
            }
            ("maximum", Some(number)) if exclusive("exclusiveMaximum") && number >= bound => {
                causes.push(invalid(format!("should be less than {bound}")));
            }
            ("maximum", Some(number)) if number > bound => {
                causes.push(invalid(format!("should be less than or equal to {bound}")));
            }
            ("multipleOf", Some(number)) if bound > 0.0 && (number / bound).fract() != 0.0 => {
                causes.push(invalid(format!("should be a multiple of {bound}")));
            }
            ("minLength", _) if too_short && !too_long => {
                causes.push(invalid(format!("should be at least {argument} chars long")));
            }
            ("maxLength", _) if too_long => causes.push(Cause {
                reason: "FieldValueTooLong",
                message: format!("Too long: may not be more than {}", counted(argument, "byte")),
                field: path.to_owned(),
            }),
            ("pattern", _) if !too_long && !too_short => {
                let pattern = argument.as_str().unwrap_or_default();
                if value.as_str().is_some_and(|text| !is_match(pattern, text)) {
                    causes.push(invalid(format!("should match '{pattern}'")));
                }
            }
            ("minItems", _) if items.is_some_and(|items| items < bound) => {
                let found = Value::from(items.unwrap_or_default() as u64);
                causes.push(Cause::invalid(
                    path,
                    &found,
                    &format!("{path} in body should have at least {argument} items"),
                ));
            }
            ("maxItems", _) if items.is_some_and(|items| items > bound) => causes.push(Cause {
                reason: "FieldValueTooMany",
                message: format!(
                    "Too many: {}: must have at most {}",
                    items.unwrap_or_default(),
                    counted(argument, "item")
                ),
                field: path.to_owned(),
            }),
            ("minProperties", _) if count.is_some_and(|count| count < bound) => {
                causes.push(invalid(format!("should have at least {argument} properties")));
            }
            ("maxProperties", _) if count.is_some_and(|count| count > bound) => causes.push(Cause {
                reason: "FieldValueTooMany",
                message: format!(
                    "Too many: {}: must have at most {}",
                    count.unwrap_or_default(),
                    counted(argument, "item")
                ),
                field: path.to_owned(),
            }),
            ("format", _) if !has_format(argument.as_str().unwrap_or_default(), value) => {
                let format = argument.as_str().unwrap_or_default();
                // A text of another form is of another type.
                causes.push(match value.as_str() {
                    Some(text) => Cause::wrong_type(path, format, text),
                    None => invalid(format!("must be of type {format}: {value}")),
                });
            }
            ("allOf", _) => {
                for part in argument.as_array().into_iter().flatten() {
                    causes.extend(against(part, value, path));
                }
            }
            ("anyOf", _) if matching(argument, value, path) == 0 => {
                causes.push(Cause::ambiguous(path, "must validate at least one schema (anyOf)"));
                causes.extend(nearest(argument, value, path));
            }
            ("oneOf", _) if matching(argument, value, path) != 1 => {
                let which = if matching(argument, value, path) == 0 {
                    "Found none valid"
                } else {
                    "Found 2 valid alternatives"
                };
                let why = format!("must validate one and only one schema (oneOf). {which}");
                causes.push(Cause::ambiguous(path, &why));
                if matching(argument, value, path) == 0 {
                    causes.extend(nearest(argument, value, path));
                }
            }
            ("not", _) if against(argument, value, path).is_empty() => {
                causes.push(Cause::ambiguous(path, "must not validate the schema (not)"));
            }
            _ => {}
        }
    }
}

/// What is wrong by the first of several schemas, where none fits.
fn nearest(schemas: &Value, value: &Value, path: &str) -> Vec<Cause> {
    schemas.get(0).map(|schema| against(schema, value, path)).unwrap_or_default()
}

fn matching(schemas: &Value, value: &Value, path: &str) -> usize {
    schemas.as_array().into_iter().flatten().filter(|schema| against(schema, value, path).is_empty()).count()
}

fn against(schema: &Value, value: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    validate(&Schema::parse(schema), value, path, Strictness::Declared, &mut causes);
    causes
}

fn has_format(format: &str, value: &Value) -> bool {
    match (format, value) {
        ("date-time", Value::String(text)) => is_date_time(text),
        ("int32", Value::Number(number)) => {
            number.is_f64() || number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
        }
        ("int64", Value::Number(number)) => number.is_f64() || number.is_i64(),
        ("byte", Value::String(text)) => STANDARD.decode(text).is_ok(),
        ("ipv4", Value::String(text)) => text.parse::<std::net::Ipv4Addr>().is_ok(),
        ("ipv6", Value::String(text)) => text.parse::<std::net::Ipv6Addr>().is_ok(),
        ("uri", Value::String(text)) => url::Url::parse(text).is_ok(),
        _ => true,
    }
}

/// A day, a `T` and a time of day with its zone. The real server does not look behind a second `T`.
fn is_date_time(text: &str) -> bool {
    const DAY: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$";
    const TIME: &str = "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$";
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let is_day = |day: &str| is_match(DAY, day) && day.parse::<jiff::civil::Date>().is_ok();
    parts.next().is_some_and(is_day) && parts.next().is_some_and(|time| is_match(TIME, time))
}

fn fits(kind: Kind, value: &Value) -> bool {
    match kind {
        Kind::Any => true,
        Kind::Object => value.is_object(),
        Kind::Array => value.is_array(),
        Kind::String => value.is_string(),
        Kind::Integer => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Kind::Number => value.is_number(),
        Kind::Boolean => value.is_boolean(),
        Kind::IntOrString => value.is_string() || value.is_i64() || value.is_u64(),
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Any => "any",
        Kind::Object => "object",
        Kind::Array => "array",
        Kind::String => "string",
        Kind::Integer => "integer",
        Kind::Number => "number",
        Kind::Boolean => "boolean",
        Kind::IntOrString => "integer,string",
    }
}

pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What is wrong with an object's name.
pub(crate) fn name(rule: NameRule, name: &str) -> Option<Cause> {
    if name.is_empty() {
        return Some(Cause::required("metadata.name", "name or generateName is required"));
    }
    let (limit, right, text) = match rule {
        NameRule::Subdomain => (253, name.split('.').all(is_label), SUBDOMAIN_TEXT),
        NameRule::Label if name.split('.').all(is_label) => (63, !name.contains('.'), "must not contain dots"),
        NameRule::Label => (63, false, LABEL_TEXT),
        NameRule::PathSegment => {
            let forbidden = [("/", "may not contain '/'"), ("%", "may not contain '%'")];
            let found = forbidden.iter().find(|(sign, _)| name.contains(sign)).map(|(_, why)| *why);
            let dots = [(".", "may not be '.'"), ("..", "may not be '..'")];
            let dots = dots.iter().find(|(dots, _)| *dots == name).map(|(_, why)| *why);
            let why = dots.or(found);
            (usize::MAX, why.is_none(), why.unwrap_or_default())
        }
    };
    let value = Value::from(name);
    if name.len() > limit {
        return Some(Cause::invalid("metadata.name", &value, &format!("must be no more than {limit} characters")));
    }
    (!right).then(|| Cause::invalid("metadata.name", &value, text))
}

const WORD_TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// Everything that is wrong with a name that may say whose it is.
pub(crate) fn unqualified(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let word = match key.split('/').collect::<Vec<_>>().as_slice() {
        [word] => *word,
        [prefix, word] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else if prefix.len() > 253 {
                wrong.push("prefix part must be no more than 253 bytes".to_owned());
            }
            if !prefix.is_empty() && !prefix.split('.').all(is_label) {
                wrong.push(format!("prefix part {SUBDOMAIN_TEXT}"));
            }
            *word
        }
        _ => {
            let why = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {WORD_TEXT} {why}")];
        }
    };
    if word.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if word.len() > 63 {
        wrong.push("name part must be no more than 63 bytes".to_owned());
    }
    if word.is_empty() || !is_word(word) {
        wrong.push(format!("name part {WORD_TEXT}"));
    }
    wrong
}

/// What is wrong with a key of labels or annotations.
pub(crate) fn qualified_key(key: &str, path: &str, causes: &mut Vec<Cause>) {
    causes.extend(unqualified(key).iter().map(|why| Cause::invalid(path, &Value::from(key), why)));
}

/// The most all annotations of an object may take, keys and values together.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// What is wrong with annotations. Upper case is fine everywhere in their keys.
pub(crate) fn annotations(annotations: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
    let mut size = 0;
    for (key, value) in annotations.and_then(Value::as_object).into_iter().flatten() {
        let wrong = unqualified(&key.to_ascii_lowercase());
        causes.extend(wrong.iter().map(|why| Cause::invalid(path, &Value::from(key.as_str()), why)));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_LIMIT {
        causes.push(Cause {
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {ANNOTATIONS_LIMIT} bytes"),
            field: path.into(),
        });
    }
}

/// What is wrong with a map of labels.
pub(crate) fn labels(labels: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        qualified_key(key, path, causes);
        for why in value.as_str().map(no_label_value).unwrap_or_default() {
            causes.push(Cause::invalid(path, value, why));
        }
    }
}

const LABEL_VALUE_TEXT: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Everything that keeps a text from being the value of a label.
pub(crate) fn no_label_value(text: &str) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push("must be no more than 63 bytes");
    }
    if !is_word(text) {
        wrong.push(LABEL_VALUE_TEXT);
    }
    wrong
}

/// What is wrong with finalizers of any object.
pub(crate) fn finalizer_list(object: &Value, causes: &mut Vec<Cause>) {
    let all = meta::finalizers(object);
    for name in &all {
        qualified_key(name, "metadata.finalizers", causes);
    }
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(Cause::invalid("metadata.finalizers", &Value::from(all), why));
    }
}

/// Finalizers are named by who takes them away.
pub(crate) fn finalizer_names(object: &Value, causes: &mut Vec<Cause>) {
    for (at, name) in meta::finalizers(object).into_iter().enumerate() {
        finalizer_name(name, &format!("metadata.finalizers[{at}]"), causes);
    }
}

/// The same of one.
pub(crate) fn finalizer_name(name: &str, path: &str, causes: &mut Vec<Cause>) {
    if !name.contains('/') && !["foregroundDeletion", "kubernetes", "orphan"].contains(&name) {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        causes.push(Cause::invalid(path, &Value::from(name), why));
    }
}

/// An object that is being deleted can only lose finalizers.
pub(crate) fn finalizers(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let held = meta::finalizers(old);
    let added: BTreeSet<_> = meta::finalizers(new).into_iter().filter(|finalizer| !held.contains(finalizer)).collect();
    if !added.is_empty() {
        let list = added.iter().map(|finalizer| format!("{finalizer:?}")).collect::<Vec<_>>().join(", ");
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{list}}}"
        );
        causes.push(Cause::forbidden("metadata.finalizers", &why));
    }
}

/// What is wrong with a list of owners.
pub(crate) fn owners(object: &Value, causes: &mut Vec<Cause>) {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let mut controller: Option<&Value> = None;
    for owner in owners.into_iter().flatten() {
        let (version, text) = (version_of(meta::text(owner, "/apiVersion")), |field: &str| meta::text(owner, field));
        for (field, empty, why) in [
            ("apiVersion", version.is_empty(), "version must not be empty"),
            ("kind", text("/kind").is_empty(), "must not be empty"),
            ("name", text("/name").is_empty(), "must not be empty"),
            ("uid", text("/uid").is_empty(), "must not be empty"),
        ] {
            if empty {
                let value = owner.get(field).cloned().unwrap_or_else(|| Value::from(""));
                causes.push(Cause::invalid(format!("metadata.ownerReferences.{field}"), &value, why));
            }
        }
        if text("/kind") == "Event" && text("/apiVersion") == "v1" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid("metadata.ownerReferences", &as_in_go(owner), why));
        }
        if owner.get("controller").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        let Some(first) = controller else {
            controller = Some(owner);
            continue;
        };
        let show = |owner: &Value| format!("{}/{}", meta::text(owner, "/kind"), meta::text(owner, "/name"));
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
            show(first),
            show(owner)
        );
        let all: Vec<_> = owners.into_iter().flatten().map(as_in_go).collect();
        causes.push(Cause::invalid("metadata.ownerReferences", &Value::Array(all), &why));
    }
}

/// An owner with its fields in the order of Go's struct.
fn as_in_go(owner: &Value) -> Value {
    let order = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    Value::Object(order.iter().filter_map(|name| Some(((*name).to_owned(), owner.get(*name)?.clone()))).collect())
}

/// The version in `group/version`; empty where that is not what it is.
fn version_of(api_version: &str) -> &str {
    match api_version.split('/').collect::<Vec<_>>().as_slice() {
        [version] | [_, version] => version,
        _ => "",
    }
}

fn is_word(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}
