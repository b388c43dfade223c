//! Fields without a value, which the API server drops before it looks at the rest.
//!
//! Tools write them all the time (`webhooks:` with nothing below it). The server removes them from objects unless the
//! schema allows null there, so they mean "not written": a required field is then missing. An empty entry of a list is
//! not removed, it is refused; the schema's check says so.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

use super::document::{Content, Node};
use crate::field::FieldError;

/// Removes what the API server removes; a warning for each.
pub(super) fn drop_from(root: &mut Node, schema: &JSONSchemaProps) -> Vec<FieldError> {
    let mut dropped = Vec::new();
    visit("", root, schema, &mut dropped);
    dropped
}

fn visit(path: &str, node: &mut Node, schema: &JSONSchemaProps, dropped: &mut Vec<FieldError>) {
    match &mut node.content {
        Content::Map(entries) => entries.retain_mut(|entry| {
            let Some(schema) = schema_of(&entry.key, schema) else { return true };
            let path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
            let null = matches!(entry.value.content, Content::Scalar(Value::Null));
            if null && schema.nullable != Some(true) {
                let problem = "is empty; it counts as not written";
                dropped.push(FieldError::new(path, problem, "write a value or remove the field"));
                return false;
            }
            visit(&path, &mut entry.value, schema, dropped);
            true
        }),
        Content::List(items) => {
            if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    visit(&format!("{path}[{index}]"), item, schema, dropped);
                }
            }
        }
        Content::Scalar(_) => {}
    }
}

fn schema_of<'a>(key: &str, schema: &'a JSONSchemaProps) -> Option<&'a JSONSchemaProps> {
    let known = schema.properties.as_ref().and_then(|properties| properties.get(key));
    known.or(match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(values)) => Some(values),
        _ => None,
    })
}
