//! From a map of anything to a Go struct: the way objects take that were patched strategically or applied, and what Go
//! says when a value does not fit. (What arrives as JSON takes another way, with other words: see `decode`.)

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine};
use serde_json::{Number, Value};

use super::decode::{format, precision, structure_of};
use super::go_json::kind_of;
use super::go_names::named_type;
use super::moment;
use super::quantity::Quantity;
use super::schema::{Kind, Schema};

/// Checks a value and brings it into the form that Go's type gives it. The error is Go's.
pub(crate) fn convert(schema: &Schema, value: &mut Value) -> Result<(), String> {
    walk(schema, value, ("", ""))
}

/// `place` is the Go struct and its field whose value this is, or is part of.
fn walk(schema: &Schema, value: &mut Value, place: (&str, &str)) -> Result<(), String> {
    let node = schema.resolve();
    if value.is_null() || schema.is_raw() {
        return Ok(());
    }
    if schema.type_name() == Some("Quantity") {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        return Quantity::parse(&text).map(drop).map_err(str::to_owned);
    }
    match node.kind {
        Kind::Any => Ok(()),
        Kind::IntOrString => int_or_string(value),
        Kind::String if format(node) == "date-time" => time(schema, value),
        Kind::String if format(node) == "byte" => bytes(value),
        Kind::String if value.is_string() => Ok(()),
        Kind::String if value.is_i64() => {
            let named = named_type(place.0, place.1).unwrap_or("string").trim_start_matches("[]");
            Err(format!("cannot convert int64 to {named}"))
        }
        Kind::String => Err("unrecognized type: string".to_owned()),
        Kind::Boolean if value.is_boolean() => Ok(()),
        Kind::Boolean => Err("unrecognized type: bool".to_owned()),
        Kind::Number if value.is_number() => Ok(()),
        Kind::Number => Err("unrecognized type: float64".to_owned()),
        Kind::Integer => integer(format(node), value),
        Kind::Array => match value {
            Value::Array(items) => items.iter_mut().try_for_each(|item| walk(node.item(), item, place)),
            other => Err(format!("cannot restore slice from {}", source_of(other))),
        },
        Kind::Object => {
            let structure = structure_of(schema);
            match value {
                Value::Object(members) => members.iter_mut().try_for_each(|(name, value)| match node.member(name) {
                    Some(schema) => walk(schema, value, structure.map_or(place, |structure| (structure, name))),
                    None => Ok(()),
                }),
                other if !node.properties.is_empty() => {
                    Err(format!("cannot restore struct from: {}", source_of(other)))
                }
                other => Err(format!("cannot restore map from {}", source_of(other))),
            }
        }
    }
}

/// What Go calls a value that has been read into anything.
fn source_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "interface",
        Value::Bool(_) => "bool",
        Value::Number(number) if !number.is_i64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// Whole numbers are cut to size, as Go does; what is too large comes out as something else.
fn integer(format: &str, value: &mut Value) -> Result<(), String> {
    let wanted = if format == "int32" { "int32" } else { "int64" };
    match value {
        Value::Number(number) if !number.is_i64() => {
            // What is beyond all integers becomes the least of them.
            let whole = number
                .as_f64()
                .filter(|number| number.fract() == 0.0)
                .map(|number| if number.abs() < -(i64::MIN as f64) { number as i64 } else { i64::MIN });
            let whole = whole.map(|whole| if wanted == "int32" { i64::from(whole as i32) } else { whole });
            *number = whole.map(Number::from).ok_or_else(|| format!("cannot convert float64 to {wanted}"))?;
            Ok(())
        }
        Value::Number(number) => {
            if let (Some(long), "int32") = (number.as_i64(), wanted) {
                *number = Number::from(long as i32);
            }
            Ok(())
        }
        _ => Err(format!("unrecognized type: {wanted}")),
    }
}

fn int_or_string(value: &Value) -> Result<(), String> {
    match value {
        Value::String(_) => Ok(()),
        Value::Number(number) if number.as_i64().is_some_and(|it| i32::try_from(it).is_ok()) => Ok(()),
        Value::Number(number) => Err(format!("json: cannot unmarshal number {number} into Go value of type int32")),
        other => Err(format!("json: cannot unmarshal {} into Go value of type int32", kind_of(other))),
    }
}

fn time(schema: &Schema, value: &Value) -> Result<(), String> {
    match value.as_str() {
        Some(text) => moment::normal(text, precision(schema)).map(drop),
        None => Err(format!("json: cannot unmarshal {} into Go value of type string", kind_of(value))),
    }
}

fn bytes(value: &Value) -> Result<(), String> {
    if value.as_array().is_some_and(Vec::is_empty) {
        return Ok(());
    }
    let Some(text) = value.as_str() else { return Err(format!("cannot restore slice from {}", source_of(value))) };
    let text: String = text.chars().filter(|sign| !matches!(sign, '\r' | '\n')).collect();
    STANDARD
        .decode(text.as_bytes())
        .map(drop)
        .map_err(|error| format!("error decoding from json: {}", wrong_at(&error, &text)))
}

/// Where a text stops to be base64.
pub(crate) fn wrong_at(error: &DecodeError, text: &str) -> String {
    let at = match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => *at,
        _ if text.contains('=') => text.len(),
        // What is left over at the end is a beginning.
        _ => text.len() / 4 * 4,
    };
    format!("illegal base64 data at input byte {at}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(mut value: Value) -> String {
        convert(&Schema::named("apps.v1.Deployment"), &mut value).err().unwrap_or_default()
    }

    #[test]
    fn what_does_not_fit_is_refused_with_words_of_go() {
        assert_eq!(said(json!({"spec": {"replicas": 2}})), "");
        assert_eq!(said(json!({"spec": {"replicas": "two"}})), "unrecognized type: int32");
        assert_eq!(said(json!({"spec": {"replicas": 1.5}})), "cannot convert float64 to int32");
        assert_eq!(said(json!({"spec": "x"})), "cannot restore struct from: string");
        assert_eq!(said(json!({"metadata": {"labels": ["x"]}})), "cannot restore map from slice");
        assert_eq!(said(json!({"metadata": {"labels": {"x": 1}}})), "cannot convert int64 to string");
        assert_eq!(said(json!({"metadata": {"uid": 1}})), "cannot convert int64 to types.UID");
        assert_eq!(
            said(json!({"spec": {"strategy": {"type": 1}}})),
            "cannot convert int64 to v1.DeploymentStrategyType"
        );
        assert_eq!(
            said(json!({"spec": {"template": {"spec": {"containers": "x"}}}})),
            "cannot restore slice from string"
        );
    }

    #[test]
    fn a_number_that_is_too_large_is_cut() {
        for (sent, kept) in [(json!(3_000_000_000_i64), -1_294_967_296), (json!(u64::MAX), 0), (json!(1e30), 0)] {
            let mut value = json!({"spec": {"replicas": sent}});
            convert(&Schema::named("apps.v1.Deployment"), &mut value).unwrap();
            assert_eq!(value, json!({"spec": {"replicas": kept}}));
        }
    }
}
