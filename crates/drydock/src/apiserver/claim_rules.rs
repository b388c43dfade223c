//! What is wrong with the template of a claim that a volume brings along.

use serde_json::{Value, json};

use super::dns_names;
use super::error::Cause;
use super::meta;
use super::pod_rules::{given, supported};
use super::quantity::Quantity;
use super::selector_rules::selector;
use super::validate;

const ACCESS: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) fn claim_template(template: &Value, path: &str, causes: &mut Vec<Cause>) {
    let metadata = format!("{path}.metadata");
    validate::annotations(template.pointer("/metadata/annotations"), &format!("{metadata}.annotations"), causes);
    validate::labels(template.pointer("/metadata/labels"), &format!("{metadata}.labels"), causes);
    for field in ["name", "generateName", "namespace"] {
        if !meta::field(template, field).is_empty() {
            causes.push(Cause::forbidden(format!("{metadata}.{field}"), "cannot be set"));
        }
    }
    let nothing = json!({});
    let (spec, path) = (template.get("spec").unwrap_or(&nothing), format!("{path}.spec"));
    access(&meta::strings(spec.get("accessModes")), spec, &path, causes);
    storage(spec, &format!("{path}.resources[storage]"), causes);
    class(spec, &path, "storageClassName", causes);
    supported(spec, &path, "volumeMode", &["Block", "Filesystem"], causes);
    class(spec, &path, "volumeAttributesClassName", causes);
}

fn class(spec: &Value, path: &str, field: &str, causes: &mut Vec<Cause>) {
    let name = spec.get(field).and_then(Value::as_str).unwrap_or_default();
    if !name.is_empty() {
        let wrong = dns_names::no_subdomain(name);
        causes.extend(wrong.iter().map(|why| Cause::invalid(format!("{path}.{field}"), &json!(name), why)));
    }
}

/// Who may use a volume at once.
fn access(modes: &[&str], spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let place = format!("{path}.accessModes");
    if modes.is_empty() {
        causes.push(Cause::required(place.clone(), "at least 1 access mode is required"));
    }
    if let Some(wanted) = given(spec, "selector") {
        selector(wanted, &format!("{path}.selector"), causes);
    }
    for mode in modes.iter().filter(|mode| !ACCESS.contains(mode)) {
        causes.push(Cause::unsupported(&place, &json!(mode), &ACCESS.map(|mode| json!(mode))));
    }
    if modes.contains(&"ReadWriteOncePod") && modes.iter().any(|mode| ACCESS[..3].contains(mode)) {
        causes.push(Cause::forbidden(place, "may not use ReadWriteOncePod with other access modes"));
    }
}

fn storage(spec: &Value, place: &str, causes: &mut Vec<Cause>) {
    let Some(asked) = spec.pointer("/resources/requests/storage").and_then(Value::as_str) else {
        causes.push(Cause::required(place, ""));
        return;
    };
    let Ok(asked) = Quantity::parse(asked) else { return };
    if !asked.is_positive() {
        causes.push(Cause::invalid(place, &json!(asked.canonical()), "must be greater than zero"));
    }
}
