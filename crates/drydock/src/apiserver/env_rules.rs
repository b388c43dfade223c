//! What is wrong with the environment of a container, in the order in which the real server looks.

use serde_json::{Value, json};

use super::data_rules::no_key;
use super::dns_names;
use super::downward_rules::{self, IN_VARIABLES};
use super::error::Cause;
use super::meta;
use super::path_rules::no_backsteps;
use super::pod_rules::{given, list};

const VARIABLE: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";

/// Rules for the variables of a container, and for where more of them come from.
pub(super) fn environment(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (at, variable) in list(container, "env").iter().enumerate() {
        let path = format!("{path}.env[{at}]");
        variable_name(variable, &path, "name", causes);
        if meta::text(variable, "/name").is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        }
        if let Some(from) = given(variable, "valueFrom") {
            value_from(from, &format!("{path}.valueFrom"), !meta::text(variable, "/value").is_empty(), causes);
        }
    }
    let path = format!("{path}.envFrom");
    for (at, source) in list(container, "envFrom").iter().enumerate() {
        variable_name(source, &format!("{path}[{at}]"), "prefix", causes);
        let mut count = 0;
        for kind in ["configMapRef", "secretRef"] {
            let Some(reference) = given(source, kind) else { continue };
            count += 1;
            let place = format!("{path}[{at}].{kind}.name");
            let name = meta::text(reference, "/name");
            if name.is_empty() {
                causes.push(Cause::required(place, ""));
            } else {
                let wrong = dns_names::no_subdomain(&as_prefix(name));
                causes.extend(wrong.iter().map(|why| Cause::invalid(place.clone(), &json!(name), why)));
            }
        }
        let why = match count {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        causes.push(Cause::invalid(path.clone(), &json!(""), why));
    }
}

/// These names are looked at as if something was still to be added to them.
fn as_prefix(name: &str) -> String {
    let masked = name.strip_suffix('-').and_then(|rest| rest.get(..rest.len().checked_sub(1)?));
    masked.map_or_else(|| name.to_owned(), |rest| format!("{rest}a"))
}

fn variable_name(holder: &Value, path: &str, field: &str, causes: &mut Vec<Cause>) {
    let name = holder.get(field).and_then(Value::as_str).unwrap_or_default();
    if name.bytes().any(|byte| !(b' '..=b'~').contains(&byte) || byte == b'=') {
        causes.push(Cause::invalid(format!("{path}.{field}"), &json!(name), VARIABLE));
    }
}

fn value_from(from: &Value, path: &str, has_value: bool, causes: &mut Vec<Cause>) {
    let mut count = 0;
    for kind in ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"] {
        let Some(selector) = given(from, kind) else { continue };
        count += 1;
        let path = format!("{path}.{kind}");
        match kind {
            "fieldRef" => downward_rules::field(selector, &path, IN_VARIABLES, causes),
            "resourceFieldRef" => downward_rules::resource(selector, &path, false, causes),
            "fileKeyRef" => key_of_file(selector, &path, causes),
            _ => key_of_object(selector, &path, causes),
        }
    }
    let why = match (count, has_value) {
        (0, _) => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        (_, true) => "may not be specified when `value` is not empty",
        (1, false) => return,
        (_, false) => "may not have more than one field specified at a time",
    };
    causes.push(Cause::invalid(path, &json!(""), why));
}

fn key_of_object(selector: &Value, path: &str, causes: &mut Vec<Cause>) {
    let (name, key) = (meta::text(selector, "/name"), meta::text(selector, "/key"));
    for why in dns_names::no_subdomain(name) {
        causes.push(Cause::invalid(format!("{path}.name"), &json!(name), why));
    }
    if key.is_empty() {
        causes.push(Cause::required(format!("{path}.key"), ""));
        return;
    }
    for why in no_key(key) {
        causes.push(Cause::invalid(format!("{path}.key"), &json!(key), why));
    }
}

fn key_of_file(selector: &Value, path: &str, causes: &mut Vec<Cause>) {
    let required = |field: &str, causes: &mut Vec<Cause>| {
        let missing = selector.get(field).and_then(Value::as_str).is_none_or(str::is_empty);
        causes.extend(missing.then(|| Cause::required(format!("{path}.{field}"), "")));
    };
    required("key", causes);
    variable_name(selector, path, "key", causes);
    required("volumeName", causes);
    let volume = meta::text(selector, "/volumeName");
    if !volume.is_empty() {
        let wrong = dns_names::no_label(volume);
        causes.extend(wrong.iter().map(|why| Cause::invalid(format!("{path}.volumeName"), &json!(volume), why)));
    }
    required("path", causes);
    no_backsteps(meta::text(selector, "/path"), &format!("{path}.path"), causes);
}

/// Files that variables are read from are in volumes of the pod that begin empty.
pub(super) fn files_of_variables(containers: &[(String, &Value)], volumes: &[Value], causes: &mut Vec<Cause>) {
    for (path, container) in containers {
        for (at, variable) in list(container, "env").iter().enumerate() {
            let Some(file) = variable.pointer("/valueFrom/fileKeyRef").filter(|file| file.is_object()) else {
                continue;
            };
            let place = format!("{path}.env[{at}].valueFrom.fileKeyRef.volumeName");
            let name = meta::text(file, "/volumeName");
            match volumes.iter().rfind(|volume| meta::text(volume, "/name") == name) {
                None => causes.push(Cause::missing(place, &json!(name))),
                Some(volume) if given(volume, "emptyDir").is_none() => {
                    causes.push(Cause::invalid(place, &json!(name), "referenced volume must be of type emptyDir"));
                }
                Some(_) => {}
            }
        }
    }
}
