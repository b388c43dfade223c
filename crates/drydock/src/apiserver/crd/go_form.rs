//! Definitions as Go prints its own structs, which some refusals show: every field by its Go name, set or not.

use serde_json::{Map, Value, json};

use super::form::Form;
use crate::apiserver::error::Cause;

/// The fields of a schema in Go, in order: what Go calls them, what JSON does, and what they are when nobody set them.
const SCHEMA: &[(&str, &str, Unset)] = &[
    ("ID", "id", Unset::Text),
    ("Schema", "$schema", Unset::Text),
    ("Ref", "$ref", Unset::Nothing),
    ("Description", "description", Unset::Text),
    ("Type", "type", Unset::Text),
    ("Nullable", "nullable", Unset::No),
    ("Format", "format", Unset::Text),
    ("Title", "title", Unset::Text),
    ("Default", "default", Unset::Nothing),
    ("Maximum", "maximum", Unset::Nothing),
    ("ExclusiveMaximum", "exclusiveMaximum", Unset::No),
    ("Minimum", "minimum", Unset::Nothing),
    ("ExclusiveMinimum", "exclusiveMinimum", Unset::No),
    ("MaxLength", "maxLength", Unset::Nothing),
    ("MinLength", "minLength", Unset::Nothing),
    ("Pattern", "pattern", Unset::Text),
    ("MaxItems", "maxItems", Unset::Nothing),
    ("MinItems", "minItems", Unset::Nothing),
    ("UniqueItems", "uniqueItems", Unset::No),
    ("MultipleOf", "multipleOf", Unset::Nothing),
    ("Enum", "enum", Unset::Nothing),
    ("MaxProperties", "maxProperties", Unset::Nothing),
    ("MinProperties", "minProperties", Unset::Nothing),
    ("Required", "required", Unset::Nothing),
    ("Items", "items", Unset::Nothing),
    ("AllOf", "allOf", Unset::Nothing),
    ("OneOf", "oneOf", Unset::Nothing),
    ("AnyOf", "anyOf", Unset::Nothing),
    ("Not", "not", Unset::Nothing),
    ("Properties", "properties", Unset::Nothing),
    ("AdditionalProperties", "additionalProperties", Unset::Nothing),
    ("PatternProperties", "patternProperties", Unset::Nothing),
    ("Dependencies", "dependencies", Unset::Nothing),
    ("AdditionalItems", "additionalItems", Unset::Nothing),
    ("Definitions", "definitions", Unset::Nothing),
    ("ExternalDocs", "externalDocs", Unset::Nothing),
    ("Example", "example", Unset::Nothing),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Unset::Nothing),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Unset::No),
    ("XIntOrString", "x-kubernetes-int-or-string", Unset::No),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Unset::Nothing),
    ("XListType", "x-kubernetes-list-type", Unset::Nothing),
    ("XMapType", "x-kubernetes-map-type", Unset::Nothing),
    ("XValidations", "x-kubernetes-validations", Unset::Nothing),
];

const VERSION: &[(&str, &str, Unset)] = &[
    ("Name", "name", Unset::Text),
    ("Served", "served", Unset::No),
    ("Storage", "storage", Unset::No),
    ("Deprecated", "deprecated", Unset::No),
    ("DeprecationWarning", "deprecationWarning", Unset::Nothing),
    ("Schema", "schema", Unset::Nothing),
    ("Subresources", "subresources", Unset::Nothing),
    ("AdditionalPrinterColumns", "additionalPrinterColumns", Unset::Nothing),
    ("SelectableFields", "selectableFields", Unset::Nothing),
];

const RULE: &[(&str, &str, Unset)] = &[
    ("Rule", "rule", Unset::Text),
    ("Message", "message", Unset::Text),
    ("MessageExpression", "messageExpression", Unset::Text),
    ("Reason", "reason", Unset::Nothing),
    ("FieldPath", "fieldPath", Unset::Text),
    ("OptionalOldSelf", "optionalOldSelf", Unset::Nothing),
];

const COLUMN: &[(&str, &str, Unset)] = &[
    ("Name", "name", Unset::Text),
    ("Type", "type", Unset::Text),
    ("Format", "format", Unset::Text),
    ("Description", "description", Unset::Text),
    ("Priority", "priority", Unset::Zero),
    ("JSONPath", "jsonPath", Unset::Text),
];

const SCALE: &[(&str, &str, Unset)] = &[
    ("SpecReplicasPath", "specReplicasPath", Unset::Text),
    ("StatusReplicasPath", "statusReplicasPath", Unset::Text),
    ("LabelSelectorPath", "labelSelectorPath", Unset::Nothing),
];

/// What a field is in Go before anything is read into it.
#[derive(Clone, Copy)]
enum Unset {
    Text,
    No,
    Zero,
    /// A pointer, a list or a map.
    Nothing,
}

impl Unset {
    fn value(self) -> Value {
        match self {
            Self::Text => "".into(),
            Self::No => false.into(),
            Self::Zero => 0.into(),
            Self::Nothing => Value::Null,
        }
    }
}

fn fields(table: &[(&str, &str, Unset)], object: &Value, show: impl Fn(&str, &Value) -> Value) -> Value {
    let field = |&(go, name, unset): &(&str, &str, Unset)| {
        let value = object.get(name).filter(|value| !value.is_null()).map_or(unset.value(), |value| show(name, value));
        (go.to_owned(), value)
    };
    Value::Object(table.iter().map(field).collect())
}

/// A refusal that shows such a struct.
pub(super) fn invalid(field: impl Into<String>, shown: &Value, why: &str) -> Cause {
    let mut text = shown.to_string();
    // Go writes JSON so that it can stand in a web page.
    for (sign, escaped) in [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026")] {
        text = text.replace(sign, escaped);
    }
    Cause::invalid_unshown(field, &format!("{text}: {why}"))
}

fn as_is(_: &str, value: &Value) -> Value {
    value.clone()
}

/// The versions of a definition.
pub(super) fn versions(form: &Form<'_>) -> Value {
    form.versions().iter().map(|version| one_version(form, version)).collect()
}

fn one_version(form: &Form<'_>, version: &Value) -> Value {
    let mut own = version.clone();
    for part in ["schema", "subresources", "additionalPrinterColumns", "selectableFields"] {
        if form.common(part).is_some()
            && let Some(members) = own.as_object_mut()
        {
            members.shift_remove(part);
        }
    }
    fields(VERSION, &own, |name, value| match name {
        "schema" => json!({"OpenAPIV3Schema": value.get("openAPIV3Schema").map_or(Value::Null, schema)}),
        "subresources" => {
            let scale = value.get("scale").map_or(Value::Null, |scale| fields(SCALE, scale, as_is));
            json!({"Status": value.get("status").map(|_| json!({})), "Scale": scale})
        }
        "additionalPrinterColumns" => each(value, |column| fields(COLUMN, column, as_is)),
        "selectableFields" => {
            each(value, |field| json!({"JSONPath": field.get("jsonPath").cloned().unwrap_or_else(|| "".into())}))
        }
        _ => value.clone(),
    })
}

fn each(list: &Value, show: impl Fn(&Value) -> Value) -> Value {
    list.as_array().into_iter().flatten().map(show).collect()
}

/// A rule of a schema.
pub(super) fn rule(rule: &Value) -> Value {
    fields(RULE, rule, as_is)
}

/// A schema.
pub(super) fn schema(value: &Value) -> Value {
    fields(SCHEMA, value, |name, value| match name {
        "allOf" | "oneOf" | "anyOf" => each(value, schema),
        "not" => schema(value),
        "properties" | "patternProperties" | "definitions" => named(value),
        "items" => match value {
            Value::Array(_) => json!({"Schema": null, "JSONSchemas": each(value, schema)}),
            one => json!({"Schema": schema(one), "JSONSchemas": null}),
        },
        "additionalProperties" | "additionalItems" => match value {
            Value::Bool(allowed) => json!({"Allows": allowed, "Schema": null}),
            one => json!({"Allows": true, "Schema": schema(one)}),
        },
        "externalDocs" => {
            let text = |name: &str| value.get(name).cloned().unwrap_or_else(|| "".into());
            json!({"Description": text("description"), "URL": text("url")})
        }
        "x-kubernetes-validations" => each(value, rule),
        _ => value.clone(),
    })
}

/// Schemas by name, in the order of the names.
fn named(schemas: &Value) -> Value {
    let mut sorted: Vec<_> = schemas.as_object().into_iter().flatten().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    Value::Object(sorted.into_iter().map(|(name, value)| (name.clone(), schema(value))).collect::<Map<_, _>>())
}
