//! Formats that values of a schema may have. Others are allowed and mean nothing, which whoever writes them is told.

use serde_json::Value;

use super::structural::below;

/// What texts may look like.
const TEXTS: &[&str] = &[
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Warnings about formats that were not there before.
pub(crate) fn unrecognized_formats(old: Option<&Value>, new: &Value) -> Vec<String> {
    let known = old.map(formats).unwrap_or_default();
    let found = formats(new).into_iter().filter(|format| !known.contains(format));
    found.map(|format| format!("unrecognized format {format:?}")).collect()
}

fn formats(definition: &Value) -> Vec<String> {
    let form = super::form::Form::of(definition);
    let common = form.common("schema");
    let own = form.versions().iter().filter_map(|version| form.own(version, "schema"));
    let mut found = Vec::new();
    for schema in common.into_iter().chain(own) {
        collect(&schema["openAPIV3Schema"], &mut found);
    }
    found
}

fn collect(schema: &Value, found: &mut Vec<String>) {
    let Some(members) = schema.as_object() else { return };
    let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
    let format = text("format");
    let known = match text("type") {
        "" | "string" => TEXTS.contains(&format.replace('-', "").as_str()),
        "integer" => ["int32", "int64"].contains(&format),
        "number" => ["float", "double"].contains(&format),
        _ => false,
    };
    if !format.is_empty() && !known {
        found.push(format.to_owned());
    }
    for part in below(members) {
        collect(part, found);
    }
}
