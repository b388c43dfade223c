//! What is wrong with a selector of labels, of objects or of nodes.

use serde_json::{Value, json};

use super::dns_names;
use super::error::Cause;
use super::meta;
use super::pod_rules::list;
use super::validate;

/// Rules for a selector of objects.
pub(super) fn selector(selector: &Value, path: &str, causes: &mut Vec<Cause>) {
    validate::labels(selector.get("matchLabels"), &format!("{path}.matchLabels"), causes);
    for (at, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{at}]");
        operator(expression, &path, false, causes);
        key(expression, &path, causes);
        values(expression, &path, causes);
    }
}

/// Rules for one selector of nodes among several. Values do not matter where the node is only preferred.
pub(super) fn node_term(term: &Value, path: &str, strict: bool, causes: &mut Vec<Cause>) {
    for (at, expression) in list(term, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{at}]");
        operator(expression, &path, true, causes);
        key(expression, &path, causes);
        if strict {
            values(expression, &path, causes);
        }
    }
    for (at, expression) in list(term, "matchFields").iter().enumerate() {
        node_field(expression, &format!("{path}.matchFields[{at}]"), causes);
    }
}

/// How many values there are follows from the operator.
fn operator(expression: &Value, path: &str, with_order: bool, causes: &mut Vec<Cause>) {
    let count = list(expression, "values").len();
    let place = format!("{path}.values");
    match meta::text(expression, "/operator") {
        "In" | "NotIn" if count == 0 => {
            causes.push(Cause::required(place, "must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if count > 0 => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.push(Cause::forbidden(place, why));
        }
        "Gt" | "Lt" if with_order && count != 1 => {
            causes.push(Cause::required(place, "must be specified single value when `operator` is 'Lt' or 'Gt'"));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        "Gt" | "Lt" if with_order => {}
        other => {
            let why = "not a valid selector operator";
            causes.push(Cause::invalid(format!("{path}.operator"), &json!(other), why));
        }
    }
}

fn key(expression: &Value, path: &str, causes: &mut Vec<Cause>) {
    validate::qualified_key(meta::text(expression, "/key"), &format!("{path}.key"), causes);
}

fn values(expression: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (at, value) in list(expression, "values").iter().enumerate() {
        for why in value.as_str().map(validate::no_label_value).unwrap_or_default() {
            causes.push(Cause::invalid(format!("{path}.values[{at}]"), value, why));
        }
    }
}

/// Nodes have one field to select by: their name.
fn node_field(expression: &Value, path: &str, causes: &mut Vec<Cause>) {
    match meta::text(expression, "/operator") {
        "In" | "NotIn" if list(expression, "values").len() != 1 => {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            causes.push(Cause::required(format!("{path}.values"), why));
        }
        "In" | "NotIn" => {}
        other => {
            let why = "not a valid selector operator";
            causes.push(Cause::invalid(format!("{path}.operator"), &json!(other), why));
        }
    }
    let key = meta::text(expression, "/key");
    if key != "metadata.name" {
        causes.push(Cause::invalid(format!("{path}.key"), &json!(key), "not a valid field selector key"));
        return;
    }
    for (at, value) in list(expression, "values").iter().enumerate() {
        for why in value.as_str().map(dns_names::no_subdomain).unwrap_or_default() {
            causes.push(Cause::invalid(format!("{path}.values[{at}]"), value, why));
        }
    }
}
