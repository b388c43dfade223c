//! What is wrong with files that a volume shows: keys of objects, fields of the pod, tokens.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::downward_rules::{self, IN_FILES};
use super::error::Cause;
use super::meta;
use super::path_rules::unreserved;
use super::pod_rules::{given, list, required};

/// Rules for who may do what with a file.
pub(super) fn mode(holder: &Value, path: &str, field: &str, causes: &mut Vec<Cause>) {
    let mode = holder.get(field).filter(|mode| mode.as_i64().is_some_and(|mode| !(0..=0o777).contains(&mode)));
    if let Some(mode) = mode {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        causes.push(Cause::invalid(format!("{path}.{field}"), mode, why));
    }
}

/// Rules for which keys are shown, and where.
pub(super) fn keys_to_paths(source: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (at, item) in list(source, "items").iter().enumerate() {
        key_to_path(item, &format!("{path}.items[{at}]"), causes);
    }
}

fn key_to_path(item: &Value, path: &str, causes: &mut Vec<Cause>) {
    required(item, path, "key", causes);
    required(item, path, "path", causes);
    unreserved(meta::text(item, "/path"), &format!("{path}.path"), causes);
    mode(item, path, "mode", causes);
}

/// Rules for fields of the pod as files. The real server does not say which file it means.
pub(super) fn downward(source: &Value, path: &str, causes: &mut Vec<Cause>) {
    for file in list(source, "items") {
        downward_file(file, path, causes);
    }
}

fn downward_file(file: &Value, path: &str, causes: &mut Vec<Cause>) {
    required(file, path, "path", causes);
    unreserved(meta::text(file, "/path"), &format!("{path}.path"), causes);
    match (given(file, "fieldRef"), given(file, "resourceFieldRef")) {
        (Some(field), other) => {
            downward_rules::field(field, &format!("{path}.fieldRef"), IN_FILES, causes);
            if other.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                causes.push(Cause::invalid(path, &json!("resource"), why));
            }
        }
        (None, Some(resource)) => {
            downward_rules::resource(resource, &format!("{path}.resourceFieldRef"), true, causes);
        }
        (None, None) => causes.push(Cause::required(path, "one of fieldRef and resourceFieldRef is required")),
    }
    mode(file, path, "mode", causes);
}

/// Rules for a volume of several sources, which do not share paths.
pub(super) fn projected(volume: &Value, path: &str, causes: &mut Vec<Cause>) {
    mode(volume, path, "defaultMode", causes);
    let mut taken = BTreeSet::new();
    for (at, source) in list(volume, "sources").iter().enumerate() {
        let place = format!("{path}.sources[{at}]");
        let mut claim = |file: &Value, owner: &str, causes: &mut Vec<Cause>| {
            let file = meta::text(file, "/path");
            if !file.is_empty() && !taken.insert(file.to_owned()) {
                causes.push(Cause::invalid(path, &json!(owner), "conflicting duplicate paths"));
            }
        };
        let mut count = 0;
        for kind in ["secret", "configMap"] {
            let Some(keys) = given(source, kind) else { continue };
            count += 1;
            let place = format!("{place}.{kind}");
            required(keys, &place, "name", causes);
            for (at, item) in list(keys, "items").iter().enumerate() {
                key_to_path(item, &format!("{place}.items[{at}]"), causes);
                claim(item, meta::text(keys, "/name"), causes);
            }
        }
        if let Some(fields) = given(source, "downwardAPI") {
            count += 1;
            for file in list(fields, "items") {
                downward_file(file, &format!("{place}.downwardAPI"), causes);
                claim(file, meta::text(file, "/path"), causes);
            }
        }
        if let Some(token) = given(source, "serviceAccountToken") {
            count += 1;
            self::token(token, path, &format!("{place}.serviceAccountToken"), causes);
        }
        if count > 1 {
            causes.push(Cause::forbidden(place, "may not specify more than 1 volume type per source"));
        }
    }
}

/// Rules for a token that lasts some time.
fn token(token: &Value, volume: &str, path: &str, causes: &mut Vec<Cause>) {
    let seconds = token.get("expirationSeconds").and_then(Value::as_i64).unwrap_or(3600);
    let place = format!("{path}.expirationSeconds");
    if seconds < 600 {
        causes.push(Cause::invalid(place, &json!(seconds), "may not specify a duration less than 10 minutes"));
    } else if seconds > 1 << 32 {
        causes.push(Cause::invalid(place, &json!(seconds), "may not specify a duration larger than 2^32 seconds"));
    }
    required(token, volume, "path", causes);
    unreserved(meta::text(token, "/path"), &format!("{volume}.path"), causes);
}
