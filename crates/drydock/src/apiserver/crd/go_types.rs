//! What the tables of types leave out about definitions: Go's types for them are not among the messages of protobuf.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::apiserver::schema::Schema;

/// Members that Go does not write to JSON when they are zero, by type.
const OMITTED: &[(&str, &[&str])] = &[
    ("CustomResourceDefinitionSpec", &["preserveUnknownFields"]),
    ("CustomResourceDefinitionNames", &["singular", "listKind"]),
    ("CustomResourceDefinitionVersion", &["deprecated"]),
    ("CustomResourceColumnDefinition", &["format", "description", "priority"]),
    ("CustomResourceDefinitionCondition", &["reason", "message", "observedGeneration"]),
    ("CustomResourceDefinitionStatus", &["observedGeneration"]),
    ("ExternalDocumentation", &["description", "url"]),
    (
        "JSONSchemaProps",
        &[
            "id",
            "$schema",
            "description",
            "type",
            "format",
            "title",
            "exclusiveMaximum",
            "exclusiveMinimum",
            "pattern",
            "uniqueItems",
            "nullable",
            "x-kubernetes-embedded-resource",
            "x-kubernetes-int-or-string",
        ],
    ),
    ("ValidationRule", &["message", "messageExpression", "fieldPath"]),
];

/// The members of a type that are left out when they are zero.
pub(crate) fn omitted(name: &str) -> BTreeSet<&'static str> {
    let short = name.strip_prefix("apiextensions.v1.").unwrap_or_default();
    let found = OMITTED.iter().find(|(known, _)| *known == short);
    found.into_iter().flat_map(|(_, members)| members.iter().copied()).collect()
}

/// Brings schemas into Go's form where the tables do not follow them: behind a keyword that may also be a list, or true.
/// What is not known there goes without a word.
pub(super) fn tidy(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    let known = Schema::named("apiextensions.v1.JSONSchemaProps");
    for (name, value) in members {
        match (name.as_str(), value) {
            ("items" | "additionalProperties" | "additionalItems", value @ Value::Object(_)) => {
                known.drop_nulls(value);
                known.prune(value, "", &mut Vec::new());
                known.drop_empty(value);
                tidy(value);
            }
            ("not", value) => tidy(value),
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => schemas.iter_mut().for_each(tidy),
            ("properties" | "patternProperties" | "definitions", Value::Object(schemas)) => {
                schemas.values_mut().for_each(tidy);
            }
            _ => {}
        }
    }
}
