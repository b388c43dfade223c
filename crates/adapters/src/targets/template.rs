//! The pod template of a primary, made from its target's.
//!
//! Everything is copied except what tells the two apart: the selector label, anti-affinity and spreading rules that speak
//! of the target's own pods, and references to tracked configs, which point to the primary's copies.

use std::collections::BTreeSet;

use seaway_api::canary::primary_name;
use serde_json::{Map, Value, json};

use super::{Conventions, Selector, config};
use crate::object::{at, is_flux, strings, text};

/// Annotation that names the revision a primary was given.
pub(crate) const FLAGGER_ID: &str = "flagger-id";

/// The template a primary should have; `tracked` are keys such as `configmap/settings`. Without `id` the template has no
/// `flagger-id`: for comparisons.
pub(crate) fn primary_template(
    target: &Value,
    selector: &Selector,
    tracked: &BTreeSet<String>,
    conventions: &Conventions,
    id: Option<&str>,
) -> Value {
    let mut labels = strings(target, "/spec/template/metadata/labels");
    labels.retain(|key, _| !is_flux(key));
    labels.insert(selector.label.clone(), selector.primary_value());
    let mut annotations = strings(target, "/spec/template/metadata/annotations");
    annotations.retain(|key, _| !is_flux(key) && key != FLAGGER_ID);
    if let Some(id) = id {
        annotations.insert(FLAGGER_ID.into(), id.into());
    }
    let mut spec = at(target, "/spec/template/spec").cloned().unwrap_or_else(|| json!({}));
    rename_own_pods(&mut spec, text(target, "/metadata/name"), conventions);
    config::rename_references(&mut spec, tracked);

    let mut metadata = Map::new();
    metadata.insert("labels".into(), json!(labels));
    if !annotations.is_empty() {
        metadata.insert("annotations".into(), json!(annotations));
    }
    json!({ "metadata": metadata, "spec": spec })
}

/// Rules about the target's own pods become rules about the primary's. As in Flagger, "own" means: a selector label with
/// the Deployment's name as its value, in spreading constraints and anti-affinity.
fn rename_own_pods(spec: &mut Value, name: &str, conventions: &Conventions) {
    let mut rename = |list: &str, selector: &str| {
        let entries = spec.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for entry in entries {
            if let Some(selector) = entry.pointer_mut(selector) {
                rename_selector(selector, name, conventions);
            }
        }
    };
    rename("/topologySpreadConstraints", "/labelSelector");
    let anti = "/affinity/podAntiAffinity";
    rename(&format!("{anti}/requiredDuringSchedulingIgnoredDuringExecution"), "/labelSelector");
    rename(&format!("{anti}/preferredDuringSchedulingIgnoredDuringExecution"), "/podAffinityTerm/labelSelector");
}

fn rename_selector(selector: &mut Value, name: &str, conventions: &Conventions) {
    for label in &conventions.selector_labels {
        if let Some(value) = selector.get_mut("matchLabels").and_then(|labels| labels.get_mut(label))
            && value == name
        {
            *value = primary_name(name).into();
        }
    }
    let expressions = selector.get_mut("matchExpressions").and_then(Value::as_array_mut).into_iter().flatten();
    for expression in expressions {
        if conventions.selector_labels.iter().any(|label| text(expression, "/key") == label) {
            let mut values = expression.get_mut("values").and_then(Value::as_array_mut).into_iter().flatten();
            if let Some(value) = values.find(|value| *value == name) {
                *value = primary_name(name).into();
            }
        }
    }
}
