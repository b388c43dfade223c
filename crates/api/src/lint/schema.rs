//! A document against the CRD's schema, as the API server checks it, plus the fields it would silently drop.
//!
//! CEL rules are not run: everything they say is said by `validate` too.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;
use serde_json::Value;

use super::document::{Content, Entry, Node};
use super::nearest::nearest;
use crate::field::FieldError;
use crate::number::go_float;

/// What the API server would refuse or drop.
pub(super) fn check(root: &Node, schema: &JSONSchemaProps) -> Vec<FieldError> {
    let mut check = Check { root: schema, errors: Vec::new() };
    check.node("", root, schema);
    check.errors
}

struct Check<'a> {
    root: &'a JSONSchemaProps,
    errors: Vec<FieldError>,
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl Check<'_> {
    fn error(&mut self, path: &str, problem: impl Into<String>, remedy: impl Into<String>) {
        self.errors.push(FieldError::new(path, problem, remedy));
    }

    fn node(&mut self, path: &str, node: &Node, schema: &JSONSchemaProps) {
        if schema.x_kubernetes_int_or_string == Some(true) {
            if !matches!(&node.content, Content::Scalar(Value::String(_))) && !is_integer(node) {
                self.error(
                    path,
                    format!("is {}, not a number or a text", name_of(node)),
                    "write a port number or name",
                );
            }
            return;
        }
        let expected = schema.type_.as_deref().unwrap_or_default();
        match (&node.content, expected) {
            (Content::Map(entries), "object") => self.object(path, node, entries, schema),
            (Content::List(items), "array") => self.list(path, items, schema),
            (Content::Scalar(Value::String(text)), "string") => self.text(path, text, schema),
            (Content::Scalar(Value::Number(number)), "number" | "integer")
                if expected == "number" || is_integer(node) =>
            {
                self.number(path, number.as_f64().unwrap_or_default(), schema);
            }
            (Content::Scalar(Value::Bool(_)), "boolean") | (_, "") => {}
            (_, expected) => {
                let remedy = remedy_for(node, expected);
                self.error(path, format!("is {}, not {}", name_of(node), with_article(expected)), remedy);
            }
        }
    }

    fn object(&mut self, path: &str, node: &Node, entries: &[Entry], schema: &JSONSchemaProps) {
        for entry in entries {
            let path = join(path, &entry.key);
            let known = schema.properties.as_ref().and_then(|properties| properties.get(&entry.key));
            match (known, &schema.additional_properties) {
                (Some(schema), _) => self.node(&path, &entry.value, schema),
                (None, Some(JSONSchemaPropsOrBool::Schema(values))) => self.node(&path, &entry.value, values),
                (None, None) if schema.properties.is_some() && !is_open(schema) => {
                    self.unknown(&path, &entry.key, schema);
                }
                _ => {}
            }
        }
        for name in schema.required.iter().flatten().filter(|name| node.entry(name).is_none()) {
            self.error(&join(path, name), "is missing", "add it");
        }
        if let Some(alternatives) = &schema.one_of {
            let fitting = alternatives.iter().filter(|alternative| fits(node, alternative)).count();
            if fitting != 1 {
                let sets: Vec<_> =
                    alternatives.iter().filter_map(|set| set.required.as_ref()).map(|set| set.join(" + ")).collect();
                let problem = if fitting == 0 { "something is missing" } else { "these exclude each other" };
                self.error(path, problem, format!("write exactly one of: {}", sets.join(", or ")));
            }
        }
    }

    /// A field that would be dropped: say which one was meant, or where it belongs.
    fn unknown(&mut self, path: &str, key: &str, schema: &JSONSchemaProps) {
        let siblings = schema.properties.iter().flat_map(|properties| properties.keys().map(String::as_str));
        let remedy = if key == "canaryAnalysis" {
            "rename it to analysis".to_owned()
        } else if let Some(meant) = nearest(key, siblings) {
            format!("did you mean \"{meant}\"?")
        } else if let Some(place) = place_of(key, "", self.root) {
            format!("it belongs to {place}")
        } else {
            "remove it".to_owned()
        };
        self.error(path, "there is no such field; the API server would drop it", remedy);
    }

    fn list(&mut self, path: &str, items: &[Node], schema: &JSONSchemaProps) {
        if let Some(most) = schema.max_items.and_then(|most| usize::try_from(most).ok())
            && items.len() > most
        {
            self.error(path, format!("has {} entries", items.len()), format!("write at most {most}"));
        }
        if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
            for (index, item) in items.iter().enumerate() {
                self.node(&format!("{path}[{index}]"), item, schema);
            }
        }
    }

    fn text(&mut self, path: &str, text: &str, schema: &JSONSchemaProps) {
        if let Some(choices) = &schema.enum_ {
            let choices: Vec<_> = choices.iter().filter_map(|choice| choice.0.as_str()).collect();
            if !choices.contains(&text) {
                let remedy = match nearest(text, choices.iter().copied()) {
                    Some(meant) if !meant.is_empty() => format!("did you mean \"{meant}\"?"),
                    _ => format!(
                        "use one of {}",
                        choices.iter().filter(|choice| !choice.is_empty()).copied().collect::<Vec<_>>().join(", ")
                    ),
                };
                self.error(path, format!("\"{text}\" is not allowed"), remedy);
                return;
            }
        }
        let length = text.chars().count();
        if schema.min_length.and_then(|least| usize::try_from(least).ok()).is_some_and(|least| length < least) {
            self.error(path, "is empty", "write a value");
        } else if let Some(most) =
            schema.max_length.and_then(|most| usize::try_from(most).ok()).filter(|most| length > *most)
        {
            self.error(path, format!("has {length} characters"), format!("write at most {most}"));
        } else if let Some(pattern) = &schema.pattern
            && Regex::new(pattern).is_ok_and(|pattern| !pattern.is_match(text))
        {
            let remedy =
                if pattern.contains("(m|s)") { "write minutes or seconds: 1m, 30s" } else { "write a valid name" };
            self.error(path, format!("\"{text}\" does not match {pattern}"), remedy);
        }
    }

    fn number(&mut self, path: &str, number: f64, schema: &JSONSchemaProps) {
        let low = schema.minimum.filter(|least| number < *least);
        let high = schema.maximum.filter(|most| number > *most);
        if let Some(bound) = low.or(high) {
            let side = if low.is_some() { "at least" } else { "at most" };
            self.error(path, format!("is {}", go_float(number)), format!("write {side} {}", go_float(bound)));
        }
    }
}

fn is_open(schema: &JSONSchemaProps) -> bool {
    schema.x_kubernetes_preserve_unknown_fields == Some(true)
}

fn is_integer(node: &Node) -> bool {
    matches!(&node.content, Content::Scalar(Value::Number(number)) if number.is_i64() || number.is_u64())
}

/// Whether an alternative holds. Alternatives of structural schemas only ask which properties are there.
fn fits(node: &Node, schema: &JSONSchemaProps) -> bool {
    let required = schema.required.iter().flatten().all(|name| node.entry(name).is_some());
    let not = schema.not.as_ref().is_none_or(|schema| !fits(node, schema));
    let any = schema.any_of.as_ref().is_none_or(|any| any.iter().any(|schema| fits(node, schema)));
    let one = schema.one_of.as_ref().is_none_or(|one| one.iter().filter(|schema| fits(node, schema)).count() == 1);
    let properties = schema.properties.iter().flatten();
    let inner =
        properties.into_iter().all(|(name, schema)| node.entry(name).is_none_or(|entry| fits(&entry.value, schema)));
    required && not && any && one && inner
}

/// The object that has a field of this name, nearest to the root. Lists are not looked into: their place is no path.
fn place_of(key: &str, path: &str, schema: &JSONSchemaProps) -> Option<String> {
    let properties = schema.properties.as_ref()?;
    if properties.contains_key(key) && !path.is_empty() {
        return Some(path.to_owned());
    }
    properties
        .iter()
        .filter(|(name, _)| *name != "status")
        .find_map(|(name, schema)| place_of(key, &join(path, name), schema))
}

fn name_of(node: &Node) -> String {
    match &node.content {
        Content::Scalar(Value::Null) => "empty".into(),
        Content::Scalar(Value::Bool(value)) => format!("the boolean {value}"),
        Content::Scalar(Value::Number(number)) => format!("the number {number}"),
        Content::Scalar(Value::String(text)) => format!("the text \"{text}\""),
        Content::Scalar(_) => "something else".into(),
        Content::List(_) => "a list".into(),
        Content::Map(_) => "an object".into(),
    }
}

fn with_article(type_: &str) -> &str {
    match type_ {
        "object" => "an object",
        "array" => "a list",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        _ => "a text",
    }
}

fn remedy_for(node: &Node, expected: &str) -> &'static str {
    match (&node.content, expected) {
        (Content::Scalar(Value::String(text)), "number" | "integer") if text.parse::<f64>().is_ok() => {
            "remove the quotes"
        }
        (Content::Scalar(Value::String(_)), "boolean") => "write true or false without quotes",
        (Content::Scalar(Value::Null), _) => "write a value or remove the field",
        (Content::Scalar(_), "string") => "put it in quotes",
        (_, "array") => "write a list: a dash before each entry",
        (_, "object") => "write its fields, indented below it",
        _ => "write a value of that type",
    }
}
