//! What is wrong with where a pod wants to be: on which nodes, near which pods and spread over what.

use serde_json::{Value, json};

use super::dns_names;
use super::error::Cause;
use super::meta;
use super::pod_rules::{given, list, supported};
use super::selector_rules::{node_term, selector};
use super::validate;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Rules for what draws a pod to nodes and other pods, and away from them.
pub(super) fn affinity(affinity: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(nodes) = given(affinity, "nodeAffinity") {
        node_affinity(nodes, &format!("{path}.nodeAffinity"), causes);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = given(affinity, kind) else { continue };
        for (at, term) in list(pods, REQUIRED).iter().enumerate() {
            pod_term(term, &format!("{path}.{kind}.{REQUIRED}[{at}]"), causes);
        }
        for (at, weighted) in list(pods, PREFERRED).iter().enumerate() {
            let path = format!("{path}.{kind}.{PREFERRED}[{at}]");
            weight(weighted, &path, causes);
            let nothing = json!({});
            pod_term(weighted.get("podAffinityTerm").unwrap_or(&nothing), &format!("{path}.podAffinityTerm"), causes);
        }
    }
}

fn node_affinity(nodes: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(required) = given(nodes, REQUIRED) {
        let path = format!("{path}.{REQUIRED}.nodeSelectorTerms");
        let terms = list(required, "nodeSelectorTerms");
        if terms.is_empty() {
            causes.push(Cause::required(path.clone(), "must have at least one node selector term"));
        }
        for (at, term) in terms.iter().enumerate() {
            node_term(term, &format!("{path}[{at}]"), true, causes);
        }
    }
    for (at, weighted) in list(nodes, PREFERRED).iter().enumerate() {
        let path = format!("{path}.{PREFERRED}[{at}]");
        weight(weighted, &path, causes);
        let nothing = json!({});
        node_term(weighted.get("preference").unwrap_or(&nothing), &format!("{path}.preference"), false, causes);
    }
}

fn weight(weighted: &Value, path: &str, causes: &mut Vec<Cause>) {
    let weight = weighted.get("weight").and_then(Value::as_i64).unwrap_or(0);
    if !(1..=100).contains(&weight) {
        causes.push(Cause::invalid(format!("{path}.weight"), &json!(weight), "must be in the range 1-100"));
    }
}

/// Other pods, and what counts as near.
fn pod_term(term: &Value, path: &str, causes: &mut Vec<Cause>) {
    for field in ["labelSelector", "namespaceSelector"] {
        if let Some(wanted) = given(term, field) {
            selector(wanted, &format!("{path}.{field}"), causes);
        }
    }
    for name in meta::strings(term.get("namespaces")) {
        let wrong = dns_names::no_label(name);
        causes.extend(wrong.iter().map(|why| Cause::invalid(format!("{path}.namespace"), &json!(name), why)));
    }
    label_keys(term, path, causes);
    let key = meta::text(term, "/topologyKey");
    if key.is_empty() {
        causes.push(Cause::required(format!("{path}.topologyKey"), "can not be empty"));
    }
    validate::qualified_key(key, &format!("{path}.topologyKey"), causes);
}

/// Labels whose value in the new pod is looked for, or shunned, in others.
fn label_keys(term: &Value, path: &str, causes: &mut Vec<Cause>) {
    let selector = given(term, "labelSelector");
    let keys = |field: &str| meta::strings(term.get(field));
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let place = format!("{path}.{field}");
        if !keys(field).is_empty() && selector.is_none() {
            causes.push(Cause::forbidden(place, "must not be specified when labelSelector is not set"));
            continue;
        }
        for (at, key) in keys(field).iter().enumerate() {
            validate::qualified_key(key, &format!("{place}[{at}]"), causes);
        }
    }
    // A pod has by now got the expressions that its keys stand for: a key that comes up again was there before.
    let mut seen: Vec<_> = selector
        .and_then(|selector| selector.get("matchLabels"))
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect();
    for expression in selector.map(|selector| list(selector, "matchExpressions")).unwrap_or_default() {
        let key = meta::text(expression, "/key");
        if let Some(at) = keys("matchLabelKeys").iter().rposition(|other| *other == key).filter(|_| seen.contains(&key))
        {
            let why = "exists in both matchLabelKeys and labelSelector";
            causes.push(Cause::invalid(format!("{path}[{at}]"), &json!(key), why));
        }
        seen.push(key);
    }
    for (at, key) in keys("matchLabelKeys").iter().enumerate() {
        if keys("mismatchLabelKeys").contains(key) {
            let why = "exists in both matchLabelKeys and mismatchLabelKeys";
            causes.push(Cause::invalid(format!("{path}.matchLabelKeys[{at}]"), &json!(key), why));
        }
    }
}

/// Rules for over what pods are spread, and how evenly.
pub(super) fn spread(constraints: &[Value], path: &str, causes: &mut Vec<Cause>) {
    for (at, one) in constraints.iter().enumerate() {
        let path = format!("{path}[{at}]");
        let positive = |field: &str, causes: &mut Vec<Cause>| {
            let number = one.get(field).and_then(Value::as_i64).unwrap_or(0);
            if number <= 0 {
                causes.push(Cause::invalid(format!("{path}.{field}"), &json!(number), "must be greater than zero"));
            }
        };
        positive("maxSkew", causes);
        let (key, action) = (meta::text(one, "/topologyKey"), meta::text(one, "/whenUnsatisfiable"));
        if key.is_empty() {
            causes.push(Cause::required(format!("{path}.topologyKey"), "can not be empty"));
        }
        if !["DoNotSchedule", "ScheduleAnyway"].contains(&action) {
            let allowed = [json!("DoNotSchedule"), json!("ScheduleAnyway")];
            causes.push(Cause::unsupported(&format!("{path}.whenUnsatisfiable"), &json!(action), &allowed));
        }
        let again = |other: &Value| {
            meta::text(other, "/topologyKey") == key && meta::text(other, "/whenUnsatisfiable") == action
        };
        if constraints.iter().skip(at + 1).any(again) {
            let place = format!("{path}.{{topologyKey, whenUnsatisfiable}}");
            causes.push(Cause::duplicate(place, &json!(format!("{{{key}, {action}}}"))));
        }
        if let Some(domains) = given(one, "minDomains") {
            positive("minDomains", causes);
            if action != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                causes.push(Cause::invalid(format!("{path}.minDomains"), domains, &why));
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            supported(one, &path, field, &["Honor", "Ignore"], causes);
        }
        label_keys(one, &path, causes);
        if let Some(wanted) = given(one, "labelSelector") {
            selector(wanted, &format!("{path}.labelSelector"), causes);
        }
    }
}

/// Writes the labels of a new pod into the selectors that name their keys.
pub(super) fn resolve_label_keys(pod: &mut Value) {
    let labels = pod.pointer("/metadata/labels").cloned().unwrap_or_default();
    let mut resolve = |term: &mut Value| {
        for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
            let keys = meta::strings(term.get(field)).into_iter();
            let found =
                keys.filter_map(|key| Some(json!({"key": key, "operator": operator, "values": [labels.get(key)?]})));
            let found: Vec<_> = found.collect();
            let Some(Value::Object(selector)) = term.get_mut("labelSelector").filter(|_| !found.is_empty()) else {
                continue;
            };
            if let Value::Array(all) = selector.entry("matchExpressions").or_insert_with(|| json!([])) {
                all.extend(found);
            }
        }
    };
    let terms = |pod: &mut Value, pointer: &str, resolve: &mut dyn FnMut(&mut Value)| {
        pod.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten().for_each(resolve);
    };
    for kind in ["podAffinity", "podAntiAffinity"] {
        terms(pod, &format!("/spec/affinity/{kind}/{REQUIRED}"), &mut resolve);
        terms(pod, &format!("/spec/affinity/{kind}/{PREFERRED}"), &mut |weighted| {
            if let Some(term) = weighted.get_mut("podAffinityTerm") {
                resolve(term);
            }
        });
    }
    terms(pod, "/spec/topologySpreadConstraints", &mut resolve);
}
