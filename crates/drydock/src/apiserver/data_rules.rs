//! What is right and wrong about the data of ConfigMaps and Secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::error::Cause;
use super::go_json;
use super::meta;
use super::rules::immutable;
use super::tls_pair;

/// So many bytes may the data of one object have.
const MOST: usize = 1024 * 1024;

const DOCKERCFG: (&str, &str) = ("kubernetes.io/dockercfg", ".dockercfg");
const DOCKER_CONFIG: (&str, &str) = ("kubernetes.io/dockerconfigjson", ".dockerconfigjson");
const SERVICE_ACCOUNT: &str = "kubernetes.io/service-account.name";
const CERTIFICATE: &str = "tls.crt";
const PRIVATE_KEY: &str = "tls.key";

/// Why no file of a mounted volume could have a name.
fn no_file(name: &str) -> Option<&'static str> {
    match name {
        "." => Some("must not be '.'"),
        ".." => Some("must not be '..'"),
        _ if name.starts_with("..") => Some("must not start with '..'"),
        _ => None,
    }
}

/// Everything that keeps a text from being a key of data.
pub(super) fn no_key(key: &str) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    if key.len() > 253 {
        wrong.push("must be no more than 253 characters");
    }
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        wrong.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        );
    }
    wrong.extend(no_file(key));
    wrong
}

/// Keys are names of files, and no two files have the same.
fn keys(object: &Value, causes: &mut Vec<Cause>) {
    let text = |field: &str| object.get(field).and_then(Value::as_object);
    for field in ["data", "binaryData"] {
        for key in text(field).into_iter().flatten().map(|(key, _)| key) {
            let place = format!("{field}[{key}]");
            causes.extend(no_key(key).iter().map(|why| Cause::invalid(place.clone(), &json!(key), why)));
            if field == "data" && text("binaryData").is_some_and(|binary| binary.contains_key(key)) {
                causes.push(Cause::invalid(place, &json!(key), "duplicate of key present in binaryData"));
            }
        }
    }
}

/// Rules for one state of a ConfigMap.
pub(super) fn config_map(object: &Value, causes: &mut Vec<Cause>) {
    keys(object, causes);
    let values =
        |field: &str| object.get(field).and_then(Value::as_object).into_iter().flatten().map(|(_, value)| value);
    let plain: usize = values("data").filter_map(Value::as_str).map(str::len).sum();
    let binary: usize = values("binaryData").map(decoded_length).sum();
    if plain + binary > MOST {
        // The path of the whole object, as Go writes it.
        causes.push(too_big("[]"));
    }
}

/// Rules for one state of a Secret.
pub(super) fn secret(object: &Value, causes: &mut Vec<Cause>) {
    keys(object, causes);
    let data = object.get("data").and_then(Value::as_object);
    if data.into_iter().flatten().map(|(_, value)| decoded_length(value)).sum::<usize>() > MOST {
        causes.push(too_big("data"));
    }
    let has = |key: &str| data.is_some_and(|data| data.contains_key(key));
    let missing = |key: &str| Cause::required(format!("data[{key}]"), "");
    match meta::text(object, "/type") {
        "kubernetes.io/service-account-token" => {
            let named = object.pointer("/metadata/annotations").and_then(|notes| notes.get(SERVICE_ACCOUNT)?.as_str());
            if named.is_none_or(str::is_empty) {
                causes.push(Cause::required(format!("metadata.annotations[{SERVICE_ACCOUNT}]"), ""));
            }
        }
        kind if [DOCKERCFG.0, DOCKER_CONFIG.0].contains(&kind) => {
            let key = if kind == DOCKERCFG.0 { DOCKERCFG.1 } else { DOCKER_CONFIG.1 };
            match data.and_then(|data| data.get(key)) {
                None => causes.push(missing(key)),
                Some(value) => causes.extend(
                    no_json_object(value)
                        .map(|why| Cause::invalid(format!("data[{key}]"), &json!("<secret contents redacted>"), &why)),
                ),
            }
        }
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            causes.extend(["username", "password"].map(missing));
        }
        "kubernetes.io/ssh-auth" => {
            let key = "ssh-privatekey";
            causes.extend((decoded(object, key).is_empty()).then(|| missing(key)));
        }
        "kubernetes.io/tls" => {
            causes.extend([CERTIFICATE, PRIVATE_KEY].into_iter().filter(|key| !has(key)).map(missing));
        }
        _ => {}
    }
}

/// Rules for a change of a Secret.
pub(super) fn changed_secret(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    immutable(old, new, "/type", causes);
    immutable_data(old, new, causes);
}

pub(super) fn immutable_data(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    for field in ["immutable", "data", "binaryData"] {
        if old.get(field) != new.get(field) {
            causes.push(Cause::forbidden(field, "field is immutable when `immutable` is set"));
        }
    }
}

/// What whoever writes a Secret should know: a key that does not go with its certificate is stored all the same.
pub(super) fn unusable_secret(_: Option<&Value>, secret: &Value) -> Vec<String> {
    if meta::text(secret, "/type") != "kubernetes.io/tls" {
        return Vec::new();
    }
    tls_pair::unusable(&decoded(secret, CERTIFICATE), &decoded(secret, PRIVATE_KEY)).into_iter().collect()
}

pub(super) fn encode_strings(secret: &mut Value) {
    let Some(Value::Object(strings)) = meta::members(secret).shift_remove("stringData") else { return };
    let data = meta::child(secret, "data");
    for (key, value) in strings {
        data.insert(key, STANDARD.encode(value.as_str().unwrap_or_default()).into());
    }
}

fn too_big(field: &str) -> Cause {
    Cause::too_long(field, &format!("may not be more than {MOST} bytes"))
}

fn decoded(secret: &Value, key: &str) -> Vec<u8> {
    let value = secret.get("data").and_then(|data| data.get(key)?.as_str());
    value.and_then(|value| STANDARD.decode(value).ok()).unwrap_or_default()
}

/// How many bytes a text in base64 stands for.
fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    (text.len() / 4 * 3).saturating_sub(text.bytes().rev().take_while(|byte| *byte == b'=').count())
}

/// What Go says about a value in base64 that is not a JSON object.
fn no_json_object(value: &Value) -> Option<String> {
    let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
    match go_json::parse(&bytes) {
        Ok(Value::Object(_) | Value::Null) => None,
        Ok(other) => Some(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go_json::kind_of(&other)
        )),
        Err(why) => Some(why),
    }
}
