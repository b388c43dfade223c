//! Reading built-in kinds as Go's decoder does: every value has the type and the format its field has in Go.
//!
//! What gets through can be read by every typed client, status included. What does not is a bad request, not an invalid
//! object: the real server cannot even look at it. Custom resources have no Go types and are only validated.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::convert::wrong_at;
use super::go_json::kind_of;
use super::go_names::named_type;
use super::moment::{self, Precision};
use super::quantity::stored;
use super::schema::{Kind, Schema, join};
use super::zero::zero;

/// Checks a value and brings it into the form in which Go would write it again. The error is Go's.
pub(crate) fn decode(schema: &Schema, value: &mut Value) -> Result<(), String> {
    walk(schema, value, "", "")
}

/// `structure` is the Go struct whose field is being read, `path` that field's path; lists and maps add nothing to it.
fn walk(schema: &Schema, value: &mut Value, structure: &str, path: &str) -> Result<(), String> {
    let node = schema.resolve();
    if schema.type_name() == Some("Quantity") && !value.is_null() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        *value = stored(&text, false)?.into();
        return Ok(());
    }
    if schema.is_raw() {
        return Ok(());
    }
    if format(node) == "byte" && value.as_array().is_some_and(Vec::is_empty) {
        *value = Value::from("");
    }
    let wrong = |found: String| {
        let field = path.rsplit('.').next().unwrap_or_default();
        let wanted = match (named_type(structure, field), node.kind) {
            (Some(list), Kind::Array) if list.starts_with("[]") => list.to_owned(),
            (Some(named), Kind::String | Kind::Object) => named.trim_start_matches("[]").to_owned(),
            _ => go_type(schema),
        };
        let place = if path.is_empty() { "Go value".to_owned() } else { format!("Go struct field {structure}.{path}") };
        Err(format!("json: cannot unmarshal {found} into {place} of type {wanted}"))
    };
    let right = match (node.kind, &*value) {
        (Kind::Any, _) | (_, Value::Null) => true,
        (Kind::Object, value) => value.is_object(),
        (Kind::Array, value) => value.is_array(),
        (Kind::String, value) => value.is_string(),
        (Kind::Boolean, value) => value.is_boolean(),
        (Kind::Integer | Kind::Number, value) => value.is_number(),
        (Kind::IntOrString, value) => value.is_string() || value.is_number(),
    };
    if !right {
        return wrong(kind_of(value).to_owned());
    }
    match value {
        Value::Number(number) => {
            let fits = match (node.kind, format(node)) {
                (Kind::IntOrString, _) | (_, "int32") => number.as_i64().is_some_and(|it| i32::try_from(it).is_ok()),
                (Kind::Integer, _) => number.as_i64().is_some(),
                _ => true,
            };
            if fits { Ok(()) } else { wrong(format!("number {number}")) }
        }
        Value::String(text) if format(node) == "byte" => {
            text.retain(|character| !matches!(character, '\r' | '\n'));
            STANDARD.decode(text.as_bytes()).map(drop).map_err(|error| wrong_at(&error, text))
        }
        Value::String(text) if format(node) == "date-time" => {
            *value = moment::normal(text, precision(schema))?.map_or(Value::Null, Value::from);
            Ok(())
        }
        Value::Object(members) => {
            let structure = structure_of(schema).unwrap_or(structure);
            for (name, value) in members {
                let Some(schema) = node.member(name) else { continue };
                let own = node.properties.contains_key(name);
                let below = if own { &join(path, name) } else { path };
                walk(schema, value, structure, below)?;
                // Amounts by name are resources.
                if let (false, Some("Quantity"), Value::String(text)) = (own, schema.type_name(), &mut *value) {
                    *text = stored(text, true)?;
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| {
            // Go has no null in a list of structs or texts.
            if item.is_null() && matches!(node.item().resolve().kind, Kind::Object | Kind::String) {
                *item = zero(node.item());
            }
            walk(node.item(), item, structure, path)
        }),
        _ => Ok(()),
    }
}

/// How fine the times of a field are.
pub(crate) fn precision(schema: &Schema) -> Precision {
    let precise = schema.type_name().is_some_and(|name| name.ends_with("MicroTime"));
    if precise { Precision::Microseconds } else { Precision::Seconds }
}

pub(crate) fn format(node: &Schema) -> &str {
    node.rules.get("format").and_then(Value::as_str).unwrap_or_default()
}

/// The name of the Go struct that a schema describes.
pub(crate) fn structure_of(schema: &Schema) -> Option<&str> {
    let name = schema.type_name().filter(|_| !schema.resolve().properties.is_empty())?;
    name.rsplit('.').next()
}

/// The Go type of a field, as far as the tables tell.
fn go_type(schema: &Schema) -> String {
    let node = schema.resolve();
    // Types that read themselves name what they tried to read.
    if node.kind == Kind::IntOrString {
        return "int32".to_owned();
    }
    if format(node) == "date-time" {
        return "string".to_owned();
    }
    if let Some(name) = schema.type_name() {
        let mut parts = name.rsplit('.');
        let (kind, version) = (parts.next().unwrap_or_default(), parts.next());
        return version.map_or_else(|| kind.to_owned(), |version| format!("{version}.{kind}"));
    }
    match (schema.kind, format(schema)) {
        (Kind::Array, _) => format!("[]{}", go_type(schema.item())),
        (Kind::Object, _) => {
            let values = schema.additional.as_deref().map_or_else(|| "interface {}".to_owned(), go_type);
            format!("map[string]{values}")
        }
        (Kind::String, "byte") => "[]uint8".to_owned(),
        (Kind::String, _) => "string".to_owned(),
        (Kind::Integer, "") => "int64".to_owned(),
        (Kind::Integer, format) => format.to_owned(),
        (Kind::Number, _) => "float64".to_owned(),
        (Kind::Boolean, _) => "bool".to_owned(),
        (Kind::IntOrString, _) => "int32".to_owned(),
        (Kind::Any, _) => "interface {}".to_owned(),
    }
}
