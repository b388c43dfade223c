//! All rules an object must obey, in the order in which the real server asks for them.
//!
//! A new object is looked at once. A changed one is looked at by the machinery that all kinds share and then by its own
//! kind, which begin alike: the same complaint about metadata comes up to four times.

use serde_json::Value;

use super::builtin::Second;
use super::crd::Rules;
use super::dns_names::no_subdomain;
use super::error::{ApiError, Cause, Result};
use super::meta;
use super::plain_numbers::Pointed;
use super::ratchet::forgive;
use super::registry::Resource;
use super::request::Call;
use super::rules::{in_newer_words, new_event, told_event};
use super::scale;
use super::validate::{self, Strictness};

/// What is known about a change beside the object it leaves.
pub(crate) struct Change<'a> {
    pub(crate) live: &'a Value,
    /// What the client says about metadata that nobody can change, and that is not so.
    pub(crate) fixed: &'a [(&'static str, Value)],
}

/// Refuses an object that breaks a rule. Some rules see that a whole number came with a point.
pub(crate) fn judge(call: &Call, object: &Value, pointed: &[Pointed], change: Option<&Change<'_>>) -> Result<()> {
    let resource = &call.served.resource;
    let behaviour = resource.behaviour;
    let mut causes = Vec::new();
    match change {
        None => {
            causes.extend(validate::name(behaviour.name, meta::name(object)));
            let nowhere = call.namespace.as_ref().is_some_and(String::is_empty);
            // Events of the core group say it in words of their own.
            let is_event = &*resource.id == "events" && resource.lens.is_none();
            if nowhere && !is_event {
                causes.push(Cause::required("metadata.namespace", ""));
            }
            whole_metadata(object, &mut causes);
            finalizer_names(resource, object, &mut causes);
            own_rules(call, object, pointed, None, &mut causes);
            if nowhere && is_event {
                let wrong = no_subdomain("").into_iter();
                causes.extend(wrong.map(|why| Cause::invalid("namespace", &Value::from(""), why)));
            }
        }
        Some(change) if behaviour.second == Second::AllBeforeTheChange && call.subresource.is_empty() => {
            whole_metadata(object, &mut causes);
            changed_metadata(change, object, &mut causes);
            whole_metadata(object, &mut causes);
            finalizer_names(resource, object, &mut causes);
            own_rules(call, object, pointed, Some(change.live), &mut causes);
            changed_metadata(change, object, &mut causes);
            finalizer_names(resource, object, &mut causes);
            (behaviour.check_update)(change.live, object, &mut causes);
        }
        Some(change) => {
            // Through its status, the metadata of a custom resource cannot be changed.
            if !(resource.custom && call.subresource == "status") {
                whole_metadata(object, &mut causes);
                changed_metadata(change, object, &mut causes);
                // Nobody looks at Events a second time.
                if !behaviour.owns_nothing && !behaviour.fixed_once {
                    changed_metadata(change, object, &mut causes);
                    finalizer_names(resource, object, &mut causes);
                }
            }
            let whole = call.subresource.is_empty();
            if behaviour.second == Second::AfterTheChange {
                (behaviour.check_update)(change.live, object, &mut causes);
            }
            if behaviour.second != Second::Never && whole {
                whole_metadata(object, &mut causes);
                finalizer_names(resource, object, &mut causes);
            }
            own_rules(call, object, pointed, Some(change.live), &mut causes);
        }
    }
    if causes.is_empty() { Ok(()) } else { Err(ApiError::invalid(resource, meta::name(object), &causes)) }
}

/// Refuses a new custom resource that says it is of another kind. Nobody knows the defaults of that, so rules that count on
/// them fail too.
pub(crate) fn of_another_kind(call: &Call, object: &Value) -> ApiError {
    let resource = &call.served.resource;
    let kind = meta::text(object, "/kind");
    let mut causes = vec![Cause::invalid("kind", &Value::from(kind), &format!("must be {}", resource.kind))];
    if let Some(rules) = call.served.version().rules()
        && let Err(errors) = kube_cel::validate_compiled(&rules.without_defaults(), object, None)
    {
        causes.extend(errors.into_vec().iter().map(|error| cel_cause(rules, error, object)));
    }
    ApiError::wrong_kind(&resource.group, kind, meta::name(object), &causes)
}

/// Labels, annotations and owners.
fn metadata(object: &Value, causes: &mut Vec<Cause>) {
    validate::labels(object.pointer("/metadata/labels"), "metadata.labels", causes);
    validate::annotations(object.pointer("/metadata/annotations"), "metadata.annotations", causes);
    validate::owners(object, causes);
}

/// All of it, as whoever sees an object for the first time looks at it.
fn whole_metadata(object: &Value, causes: &mut Vec<Cause>) {
    metadata(object, causes);
    validate::finalizer_list(object, causes);
}

/// What of the metadata may change.
fn changed_metadata(change: &Change<'_>, object: &Value, causes: &mut Vec<Cause>) {
    if meta::deleting(change.live) {
        validate::finalizers(change.live, object, causes);
    }
    for (field, said) in change.fixed {
        causes.push(Cause::invalid(format!("metadata.{field}"), said, "field is immutable"));
    }
    metadata(object, causes);
}

/// Only the older kinds insist on names that say whose a finalizer is.
fn finalizer_names(resource: &Resource, object: &Value, causes: &mut Vec<Cause>) {
    let insisting = ["", "apps", "autoscaling", "discovery.k8s.io", "rbac.authorization.k8s.io"];
    let old = insisting.contains(&resource.group.as_str());
    if old && !resource.custom && !resource.behaviour.owns_nothing {
        validate::finalizer_names(object, causes);
    }
}

/// The rules of the kind itself.
fn own_rules(call: &Call, object: &Value, pointed: &[Pointed], old: Option<&Value>, causes: &mut Vec<Cause>) {
    let resource = &call.served.resource;
    let behaviour = resource.behaviour;
    let version = call.served.version();
    let told = causes.len();
    let strictness = if resource.custom { Strictness::Declared } else { Strictness::Builtin };
    let complaints = |object: &Value| {
        let mut causes = Vec::new();
        validate::validate(call.served.stored_schema(), object, "", strictness, &mut causes);
        if resource.custom { told_once(causes) } else { causes }
    };
    if !behaviour.complete_rules {
        let mut shape = complaints(object);
        if let Some(old) = old.filter(|_| resource.custom && !shape.is_empty()) {
            forgive(&mut shape, &complaints(old), version.schema(), old, object);
        }
        causes.extend(shape);
    }
    if let Some(paths) = version.scale.as_ref().filter(|_| resource.custom) {
        scale::check_custom(paths, object, pointed, call.subresource == "status", causes);
    }
    // Rules over values make no sense on an object of the wrong shape.
    let blocked = causes.iter().any(Cause::blocks_rules);
    if causes.len() == told {
        (behaviour.check)(object, causes);
        if resource.lens.is_some() {
            in_newer_words(causes);
            match old {
                None => new_event(object, causes),
                Some(old) => told_event(old, object, causes),
            }
        }
        if call.subresource == "status" {
            (behaviour.check_status)(object, causes);
        } else {
            (behaviour.check_whole)(old, object, causes);
        }
        let later = [Second::AfterTheChange, Second::AllBeforeTheChange].contains(&behaviour.second);
        if let Some(old) = old.filter(|_| !later) {
            (behaviour.check_update)(old, object, causes);
        }
    }
    match version.rules() {
        Some(_) if blocked => causes.push(Cause::unchecked()),
        Some(rules) if old.is_some_and(|old| rules.have_judged(old, object)) => {}
        Some(rules) => {
            let mut broken = cel_causes(rules, object, pointed, old);
            if let Some(old) = old.filter(|_| !broken.is_empty()) {
                // Rules about a change are not asked here, so they are never forgiven.
                forgive(&mut broken, &cel_causes(rules, old, &[], None), version.schema(), old, object);
            }
            causes.extend(broken);
        }
        None => {}
    }
    if call.subresource == "status" && resource.custom {
        // Only the status is looked at, and that is where the names begin.
        for cause in causes {
            let short = cause.field.strip_prefix("status.").unwrap_or_default();
            cause.message = cause.message.replace(&format!("{} in body", cause.field), &format!("{short} in body"));
        }
    }
}

/// A custom resource may break one rule in two ways, as by a schema and by one that it must match too; it is told once.
fn told_once(causes: Vec<Cause>) -> Vec<Cause> {
    let mut told: Vec<Cause> = Vec::new();
    for cause in causes {
        if !told.contains(&cause) {
            told.push(cause);
        }
    }
    told
}

fn cel_causes(rules: &Rules, object: &Value, pointed: &[Pointed], old: Option<&Value>) -> Vec<Cause> {
    let spoilt = spoil(object, pointed);
    let judged = spoilt.as_ref().unwrap_or(object);
    let Err(errors) = kube_cel::validate_compiled(&rules.compiled, judged, old) else { return Vec::new() };
    let mut errors = errors.into_vec();
    for error in errors.iter_mut().filter(|error| error.kind == kube_cel::ErrorKind::EvaluationError) {
        let scope = pointer_of(&error.field_path);
        let about = |one: &Pointed| one.integer && one.place.starts_with(&scope);
        if !error.message.contains("No such key") && pointed.iter().any(about) {
            "invalid data, expected int, got float64".clone_into(&mut error.message);
        }
    }
    errors.iter().map(|error| cel_cause(rules, error, object)).collect()
}

/// Puts something that nobody can calculate with where a rule expects an integer and a number with a point was written.
fn spoil(object: &Value, pointed: &[Pointed]) -> Option<Value> {
    let mut spoilt = None;
    for one in pointed.iter().filter(|one| one.integer) {
        if let Some(number) = spoilt.get_or_insert_with(|| object.clone()).pointer_mut(&one.place) {
            *number = Value::Array(Vec::new());
        }
    }
    spoilt
}

fn pointer_of(field_path: &str) -> String {
    format!("/{}", field_path.replace(['.', '['], "/").replace(']', ""))
}

/// The first member that a rule asks for in vain. Where several are missing the evaluator may name any of them. One of which
/// a rule asks whether it is there may be missing.
fn first_missing<'a>(rule: &'a str, value: &Value) -> Option<&'a str> {
    let items = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
    rule.split('.').skip(1).find_map(|part| {
        let end = part.find(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let missing = items.iter().any(|item| item.is_object() && item.get(name).is_none());
        let asked = rule.contains(&format!("has(self.{name})"));
        (missing && !asked && !rest.starts_with('(')).then_some(name)
    })
}

/// A broken rule, with the value it is about.
fn cel_cause(rules: &Rules, error: &kube_cel::ValidationError, object: &Value) -> Cause {
    let value = object.pointer(&pointer_of(&error.field_path)).unwrap_or(&Value::Null);
    if error.kind == kube_cel::ErrorKind::EvaluationError {
        let why = error.message.trim_start_matches("rule evaluation error: ");
        let missing = first_missing(&error.rule, value);
        let why = match (why.strip_prefix("No such key: "), missing) {
            (Some(key), missing) => format!("no such key: {}", missing.unwrap_or(key)),
            // So the evaluator calls a call whose argument has no value.
            (None, Some(key)) if why == "Missing argument or target" => format!("no such key: {key}"),
            (None, _) => why.to_owned(),
        };
        let why = format!("{why} evaluating rule: {}", rules.says(&error.rule));
        return Cause::invalid(&error.field_path, &Value::from(validate::type_name(value)), &why);
    }
    match error.reason.as_deref() {
        Some("FieldValueForbidden") => Cause::forbidden(&error.field_path, &error.message),
        Some("FieldValueRequired") => Cause::required(&error.field_path, &error.message),
        _ if value.is_null() || value.is_object() || value.is_array() => {
            Cause::invalid_unshown(&error.field_path, &error.message)
        }
        _ => Cause::invalid(&error.field_path, value, &error.message),
    }
}
