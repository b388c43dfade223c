//! What is right and wrong about roles and their bindings. They are judged although nobody enforces them: a chart whose
//! grants a real cluster refuses should not pass here.

use serde_json::{Value, json};

use super::dns_names;
use super::error::Cause;
use super::meta;
use super::pod_rules::list;
use super::selector_rules::selector;
use super::validate::{self, NameRule};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Go writes out a role that has no rules.
pub(super) fn show_rules(role: &mut Value) {
    meta::members(role).entry("rules").or_insert(Value::Null);
}

/// Rules for what is granted within a namespace.
pub(super) fn role(role: &Value, causes: &mut Vec<Cause>) {
    grants(role, true, causes);
}

/// Rules for what is granted everywhere.
pub(super) fn cluster_role(role: &Value, causes: &mut Vec<Cause>) {
    grants(role, false, causes);
    let Some(aggregation) = role.get("aggregationRule") else { return };
    let path = "aggregationRule.clusterRoleSelectors";
    if list(aggregation, "clusterRoleSelectors").is_empty() {
        causes.push(Cause::required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"));
    }
    for (at, one) in list(aggregation, "clusterRoleSelectors").iter().enumerate() {
        let (path, before) = (format!("{path}[{at}]"), causes.len());
        selector(one, &path, causes);
        if causes.len() > before {
            causes.push(Cause::invalid(path, &Value::Null, "invalid label selector."));
        }
    }
}

fn grants(role: &Value, namespaced: bool, causes: &mut Vec<Cause>) {
    for (at, rule) in list(role, "rules").iter().enumerate() {
        let path = |field: &str| format!("rules[{at}].{field}");
        let none = |field: &str| list(rule, field).is_empty();
        if none("verbs") {
            causes.push(Cause::required(path("verbs"), "verbs must contain at least one value"));
        }
        if !none("nonResourceURLs") {
            let urls = &rule["nonResourceURLs"];
            if namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                causes.push(Cause::invalid(path("nonResourceURLs"), urls, why));
            }
            if !["apiGroups", "resources", "resourceNames"].into_iter().all(none) {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                causes.push(Cause::invalid(path("nonResourceURLs"), urls, why));
            }
            continue;
        }
        if none("apiGroups") {
            causes.push(Cause::required(path("apiGroups"), "resource rules must supply at least one api group"));
        }
        if none("resources") {
            causes.push(Cause::required(path("resources"), "resource rules must supply at least one resource"));
        }
    }
}

/// Rules for who has a role within a namespace.
pub(super) fn role_binding(binding: &Value, causes: &mut Vec<Cause>) {
    bound(binding, &["Role", "ClusterRole"], true, causes);
}

/// Rules for who has a role everywhere.
pub(super) fn cluster_role_binding(binding: &Value, causes: &mut Vec<Cause>) {
    bound(binding, &["ClusterRole"], false, causes);
}

/// A binding is for one role as long as it is there.
pub(super) fn role_stays(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if old.get("roleRef") != new.get("roleRef") {
        let part = |name: &str| meta::text(new, &format!("/roleRef/{name}"));
        // Go shows its own names.
        let shown = json!({"APIGroup": part("apiGroup"), "Kind": part("kind"), "Name": part("name")});
        causes.push(Cause::invalid("roleRef", &shown, "cannot change roleRef"));
    }
}

fn one_of(path: &str, value: &str, known: &[&str], causes: &mut Vec<Cause>) {
    if !known.contains(&value) {
        let known: Vec<_> = known.iter().map(|known| Value::from(*known)).collect();
        causes.push(Cause::unsupported(path, &json!(value), &known));
    }
}

fn bound(binding: &Value, kinds: &[&str], namespaced: bool, causes: &mut Vec<Cause>) {
    let part = |name: &str| meta::text(binding, &format!("/roleRef/{name}"));
    one_of("roleRef.apiGroup", part("apiGroup"), &[GROUP], causes);
    one_of("roleRef.kind", part("kind"), kinds, causes);
    if part("name").is_empty() {
        causes.push(Cause::required("roleRef.name", ""));
    } else if let Some(mut wrong) = validate::name(NameRule::PathSegment, part("name")) {
        "roleRef.name".clone_into(&mut wrong.field);
        causes.push(wrong);
    }
    for (at, subject) in list(binding, "subjects").iter().enumerate() {
        let path = |field: &str| format!("subjects[{at}].{field}");
        let part = |name: &str| subject.get(name).and_then(Value::as_str).unwrap_or_default();
        if part("name").is_empty() {
            causes.push(Cause::required(path("name"), ""));
        }
        match part("kind") {
            "ServiceAccount" => {
                if !part("name").is_empty() {
                    let wrong = dns_names::no_subdomain(part("name"));
                    causes.extend(wrong.iter().map(|why| Cause::invalid(path("name"), &subject["name"], why)));
                }
                one_of(&path("apiGroup"), part("apiGroup"), &[""], causes);
                if !namespaced && part("namespace").is_empty() {
                    causes.push(Cause::required(path("namespace"), ""));
                }
            }
            "User" | "Group" => one_of(&path("apiGroup"), part("apiGroup"), &[GROUP], causes),
            other => one_of(&path("kind"), other, &["ServiceAccount", "User", "Group"], causes),
        }
    }
}

/// Whose a subject is, where nobody says so.
pub(super) fn complete_binding(binding: &mut Value) {
    let fill = |place: &mut Value| {
        if let Value::Object(members) = place
            && members.get("apiGroup").and_then(Value::as_str).unwrap_or_default().is_empty()
        {
            members.insert("apiGroup".into(), GROUP.into());
        }
    };
    for subject in binding.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if ["User", "Group"].contains(&meta::text(subject, "/kind")) {
            fill(subject);
        }
    }
    fill(meta::members(binding).entry("roleRef").or_insert_with(|| json!({})));
}
