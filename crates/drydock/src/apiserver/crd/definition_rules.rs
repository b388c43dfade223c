//! The rules a definition must obey, in the order and with the words of the real server.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::{Value, json};

use super::flag;
use super::form::Form;
use super::go_form;
use super::paths::{column_path, scale_paths, selectable_fields};
use super::schema_rules;
use crate::apiserver::dns_names::{dns_label, is_subdomain};
use crate::apiserver::error::Cause;
use crate::apiserver::meta;

const COLUMN_TYPES: &str = "must be one of boolean,date,integer,number,string";
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Rules for a whole definition; `old` is what it replaces.
pub(super) fn check(definition: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    if old.is_none() {
        let required = format!("{}.{}", text(definition, "/spec/names/plural"), text(definition, "/spec/group"));
        if meta::name(definition) != required {
            let why = "must be spec.names.plural+\".\"+spec.group";
            causes.push(Cause::invalid("metadata.name", &meta::name(definition).into(), why));
        }
    }
    spec(definition, causes);
    if let Some(old) = old {
        fixed(old, definition, causes);
    }
    status(definition, causes);
    stored_versions(definition, causes);
    approval(definition, old, causes);
    if flag(&definition["spec"], "preserveUnknownFields") {
        let why =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        causes.push(Cause::invalid("spec.preserveUnknownFields", &true.into(), why));
    }
}

/// Rules for a status.
pub(super) fn status(definition: &Value, causes: &mut Vec<Cause>) {
    names(&definition["status"]["acceptedNames"], "status.acceptedNames", causes);
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    meta::text(value, pointer)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text that must be one of a few.
fn one_of(path: &str, found: &str, allowed: &[&str], causes: &mut Vec<Cause>) {
    if found.is_empty() {
        causes.push(Cause::required(path, ""));
    } else if !allowed.contains(&found) {
        let allowed: Vec<Value> = allowed.iter().copied().map(Value::from).collect();
        causes.push(Cause::unsupported(path, &found.into(), &allowed));
    }
}

fn spec(definition: &Value, causes: &mut Vec<Cause>) {
    let (spec, form) = (&definition["spec"], Form::of(definition));
    let group = text(spec, "/group");
    if group.is_empty() {
        causes.push(Cause::required("spec.group", ""));
    } else if let Err(why) = is_subdomain(group) {
        causes.push(Cause::invalid("spec.group", &group.into(), &why));
    } else if !group.contains('.') {
        causes.push(Cause::invalid("spec.group", &group.into(), "should be a domain with at least one dot"));
    }
    one_of("spec.scope", text(spec, "/scope"), &["Cluster", "Namespaced"], causes);
    if form.common("schema").and_then(|shared| shared.get("openAPIV3Schema")).is_none() {
        for (at, version) in form.versions().iter().enumerate() {
            if form.own(version, "schema").and_then(|own| own.get("openAPIV3Schema")).is_none() {
                causes.push(Cause::required(format!("spec.versions[{at}].schema.openAPIV3Schema"), ""));
            }
        }
    }
    let defaults =
        form.versions().iter().any(|version| schema_rules::has_defaults(&version["schema"]["openAPIV3Schema"]));
    if defaults && flag(spec, "preserveUnknownFields") {
        let why = "must be false in order to use defaults in the schema";
        causes.push(Cause::invalid("spec.preserveUnknownFields", &true.into(), why));
    }
    for (at, version) in form.versions().iter().enumerate() {
        self::version(&form, version, &format!("spec.versions[{at}]"), causes);
    }
    versions_together(&form, spec.get("versions").is_none(), causes);
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(spec, &format!("/names/{name}")).is_empty() {
            causes.push(Cause::required(format!("spec.names.{name}"), ""));
        }
    }
    names(&spec["names"], "spec.names", causes);
    let any_status = form.versions().iter().any(|version| version.pointer("/subresources/status").is_some());
    schema(form.common("schema"), any_status, "spec.validation", causes);
    if let Some(subresources) = form.common("subresources") {
        scale_paths(subresources, "spec.subresources", causes);
    }
    for (at, column) in list(form.common("additionalPrinterColumns")).iter().enumerate() {
        self::column(column, &format!("spec.additionalPrinterColumns[{at}]"), causes);
    }
    let selectable = list(form.common("selectableFields"));
    match form.common("schema") {
        _ if selectable.is_empty() => {}
        None => {
            let why = "may only be set when validations.schema is included";
            causes.push(Cause::invalid("spec.selectableFields", &"".into(), why));
        }
        Some(shared) => {
            selectable_fields(selectable, &shared["openAPIV3Schema"], "spec.selectableFields", causes);
        }
    }
    conversion(spec, causes);
}

fn version(form: &Form<'_>, version: &Value, path: &str, causes: &mut Vec<Cause>) {
    let name = text(version, "/name");
    if let Err(why) = dns_label(name) {
        causes.push(Cause::invalid(format!("{path}.name"), &name.into(), &why));
    }
    if let Some(warning) = version.get("deprecationWarning") {
        let place = format!("{path}.deprecationWarning");
        if !flag(version, "deprecated") {
            causes.push(Cause::invalid(place, warning, "can only be set for deprecated versions"));
        } else if warning == "" {
            causes.push(Cause::invalid(place, warning, "must not be an empty string"));
        } else if warning.as_str().is_some_and(|text| text.len() > 256) {
            causes.push(Cause::invalid(place, warning, "must be <= 256 characters long"));
        }
    }
    let status = version.pointer("/subresources/status").is_some();
    schema(form.own(version, "schema"), status, &format!("{path}.schema"), causes);
    if let Some(subresources) = form.own(version, "subresources") {
        scale_paths(subresources, &format!("{path}.subresources"), causes);
    }
    for (at, column) in list(form.own(version, "additionalPrinterColumns")).iter().enumerate() {
        self::column(column, &format!("{path}.additionalPrinterColumns[{at}]"), causes);
    }
    let selectable = list(form.own(version, "selectableFields"));
    match form.own(version, "schema").and_then(|own| own.get("openAPIV3Schema")) {
        _ if selectable.is_empty() => {}
        None => {
            let why = "may only be set when `version.schema.openAPIV3Schema` is not included";
            causes.push(Cause::invalid(format!("{path}.selectableFields"), &"".into(), why));
        }
        Some(schema) => selectable_fields(selectable, schema, &format!("{path}.selectableFields"), causes),
    }
}

fn schema(validation: Option<&Value>, status: bool, path: &str, causes: &mut Vec<Cause>) {
    // Rules are slow to compile and tests start many clusters, so what was found good is not looked at again.
    static GOOD: LazyLock<Mutex<HashSet<(bool, String)>>> = LazyLock::new(Mutex::default);
    let Some(schema) = validation.and_then(|validation| validation.get("openAPIV3Schema")) else { return };
    let key = (status, schema.to_string());
    if GOOD.lock().unwrap_or_else(PoisonError::into_inner).contains(&key) {
        return;
    }
    let told = causes.len();
    schema_rules::check(schema, status, &format!("{path}.openAPIV3Schema"), causes);
    if causes.len() == told {
        GOOD.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
    }
}

fn versions_together(form: &Form<'_>, missing: bool, causes: &mut Vec<Cause>) {
    let versions = form.versions();
    let mut seen = Vec::new();
    let twice = versions.iter().any(|version| {
        let name = text(version, "/name");
        seen.contains(&name) || {
            seen.push(name);
            false
        }
    });
    // Nothing at all is what Go shows of a list that is not there.
    let shown = if missing { Value::Null } else { go_form::versions(form) };
    if twice {
        causes.push(go_form::invalid("spec.versions", &shown, "must contain unique version names"));
    }
    if versions.iter().filter(|version| flag(version, "storage")).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(go_form::invalid("spec.versions", &shown, why));
    }
    // The first version was once the only one, and has kept that place too.
    let first = versions.first().map_or("", |version| text(version, "/name"));
    if let Err(why) = dns_label(first)
        && !first.is_empty()
    {
        causes.push(Cause::invalid("spec.version", &first.into(), &why));
    }
}

/// Names that are there must be good ones.
fn names(names: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (name, mixed) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        let found = text(names, &format!("/{name}"));
        let judged = if mixed { found.to_lowercase() } else { found.to_owned() };
        if let Err(why) = dns_label(&judged)
            && !found.is_empty()
        {
            let why = if mixed { format!("may have mixed case, but should otherwise match: {why}") } else { why };
            causes.push(Cause::invalid(format!("{path}.{name}"), &found.into(), &why));
        }
    }
    let each = |list_name: &str, causes: &mut Vec<Cause>| {
        for (at, name) in list(names.get(list_name)).iter().enumerate() {
            if let Err(why) = dns_label(name.as_str().unwrap_or_default()) {
                causes.push(Cause::invalid(format!("{path}.{list_name}[{at}]"), name, &why));
            }
        }
    };
    each("shortNames", causes);
    let (kind, list_kind) = (text(names, "/kind"), text(names, "/listKind"));
    if !kind.is_empty() && kind == list_kind {
        let why = "kind and listKind may not be the same";
        causes.push(Cause::invalid(format!("{path}.listKind"), &list_kind.into(), why));
    }
    each("categories", causes);
}

fn column(column: &Value, path: &str, causes: &mut Vec<Cause>) {
    let (kind, format) = (text(column, "/type"), text(column, "/format"));
    if text(column, "/name").is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    }
    if kind.is_empty() {
        causes.push(Cause::required(format!("{path}.type"), COLUMN_TYPES));
    } else if !["integer", "number", "string", "boolean", "date"].contains(&kind) {
        causes.push(Cause::invalid(format!("{path}.type"), &kind.into(), COLUMN_TYPES));
    }
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
        causes.push(Cause::invalid(format!("{path}.format"), &format.into(), &why));
    }
    column_path(text(column, "/jsonPath"), &format!("{path}.JSONPath"), causes);
}

fn conversion(spec: &Value, causes: &mut Vec<Cause>) {
    let Some(conversion) = spec.get("conversion") else { return };
    let strategy = text(conversion, "/strategy");
    if strategy != "None" && flag(spec, "preserveUnknownFields") {
        let why = "must be None if spec.preserveUnknownFields is true";
        causes.push(Cause::invalid("spec.conversion.strategy", &strategy.into(), why));
    }
    one_of("spec.conversion.strategy", strategy, &["None", "Webhook"], causes);
    let client = conversion.pointer("/webhook/clientConfig");
    let reviews = list(conversion.pointer("/webhook/conversionReviewVersions"));
    let (client_path, reviews_path) =
        ("spec.conversion.webhookClientConfig", "spec.conversion.conversionReviewVersions");
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            causes.push(Cause::forbidden(client_path, why));
        }
        if !reviews.is_empty() {
            causes.push(Cause::forbidden(reviews_path, why));
        }
        return;
    }
    match client {
        None => causes.push(Cause::required(client_path, "required when strategy is set to Webhook")),
        Some(client) if client.get("url").is_some() == client.get("service").is_some() => {
            causes.push(Cause::required(client_path, "exactly one of url or service is required"));
        }
        Some(_) => {}
    }
    if reviews.is_empty() {
        return causes.push(Cause::required(reviews_path, ""));
    }
    for (at, version) in reviews.iter().enumerate() {
        let place = format!("{reviews_path}[{at}]");
        if reviews[..at].contains(version) {
            causes.push(Cause::invalid(place, version, "duplicate version"));
        } else if let Err(why) = dns_label(version.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid(place, version, &why));
        }
    }
    if !reviews.iter().any(|version| version == "v1" || version == "v1beta1") {
        causes.push(Cause::invalid(reviews_path, &json!(reviews), "must include at least one of v1, v1beta1"));
    }
}

/// What can never change, or not once objects may be stored.
fn fixed(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let established = super::establish::has_condition(old, "Established");
    for (pointer, always) in
        [("/spec/scope", false), ("/spec/names/kind", false), ("/spec/group", true), ("/spec/names/plural", true)]
    {
        if (always || established) && text(old, pointer) != text(new, pointer) {
            let field = pointer[1..].replace('/', ".");
            causes.push(Cause::invalid(field, &text(new, pointer).into(), "field is immutable"));
        }
    }
}

/// Versions in which objects may be stored cannot go.
fn stored_versions(definition: &Value, causes: &mut Vec<Cause>) {
    let stored = meta::strings(definition.pointer("/status/storedVersions"));
    let path = "status.storedVersions";
    if stored.is_empty() {
        return causes.push(Cause::invalid(path, &Value::Null, "must have at least one stored version"));
    }
    let form = Form::of(definition);
    for version in form.versions().iter().filter(|version| flag(version, "storage")) {
        let name = text(version, "/name");
        if !stored.contains(&name) {
            causes.push(Cause::invalid(path, &json!(stored), &format!("must have the storage version {name}")));
        }
    }
    for (at, name) in stored.iter().enumerate() {
        if !form.versions().iter().any(|version| text(version, "/name") == *name) {
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            causes.push(Cause::invalid(format!("{path}[{at}]"), &(*name).into(), &why));
        }
    }
}

/// Groups of Kubernetes are for definitions that its people have looked at.
fn approval(definition: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    const NOTE: &str = "api-approved.kubernetes.io";
    let group = text(definition, "/spec/group");
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')));
    let note = |definition: &Value| {
        let notes = definition.pointer("/metadata/annotations");
        notes.and_then(|notes| notes.get(NOTE)).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let found = note(definition);
    if protected && found.is_empty() && old.is_none_or(|old| !note(old).is_empty()) {
        let why = "protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111";
        causes.push(Cause::required(format!("metadata.annotations[{NOTE}]"), why));
    }
}
