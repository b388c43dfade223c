//! Bodies that are odd: too much data, keys that are there twice, patches that change what an object is.

use serde_json::{Value, json};

use super::change::{APPLY, JSON_PATCH, MERGE, STRATEGIC, patch};
use super::{Author, Body};

const YAML: &str = "application/yaml";

/// What a patch may make of an object.
const KINDS: &[&str] = &[
    r#"{"kind":"Secret"}"#,
    r#"{"kind":"Sandwich"}"#,
    r#"{"apiVersion":"v9"}"#,
    r#"{"apiVersion":"apps/v1"}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap"}"#,
    r#"{"kind":null}"#,
    r#"{"kind":""}"#,
    r#"{"apiVersion":null}"#,
    r#"{"apiVersion":"apps/v1beta1"}"#,
    r#"{"apiVersion":"apps/v1beta2"}"#,
    r#"{"apiVersion":"extensions/v1beta1"}"#,
    r#"{"apiVersion":"rbac.authorization.k8s.io/v1beta1"}"#,
    r#"{"apiVersion":"coordination.k8s.io/v1beta1"}"#,
];

/// New objects of which a server has much to say: Events under their newer name with what only old ones have, and Canaries
/// that are none and that no rule can be asked about.
const REFUSED: &[(&str, &str)] = &[
    ("events.k8s.io/v1/namespaces/<<ns>>/events", r#"{"regarding":{"namespace":"<<ns>>"},"type":"Normal"}"#),
    ("events.k8s.io/v1/namespaces/<<ns>>/events", r#"{"regarding":{"namespace":"elsewhere"},"type":"Odd"}"#),
    (
        "events.k8s.io/v1/namespaces/<<ns>>/events",
        r#"{"regarding":{"namespace":"<<ns>>"},"deprecatedCount":1,"deprecatedSource":{"component":"seaway"},"deprecatedLastTimestamp":"2026-01-02T03:04:05Z"}"#,
    ),
    ("flagger.app/v1beta1/namespaces/<<ns>>/canaries", r#"{"kind":"canary","spec":{}}"#),
    ("flagger.app/v1beta1/namespaces/<<ns>>/canaries", r#"{"kind":"canary","spec":{"analysis":{}}}"#),
    (
        "flagger.app/v1beta1/namespaces/<<ns>>/canaries",
        r#"{"kind":"canary","spec":{"targetRef":{"kind":"Deployment","name":"podinfo"}}}"#,
    ),
];

pub(super) fn request(author: &mut Author) {
    match author.below(6) {
        0 => too_much(author),
        1 => twice(author),
        2 => open_service(author),
        3 => refused(author),
        _ => another_kind(author),
    }
}

/// As many bytes as an object may have, or one more.
fn too_much(author: &mut Author) {
    let length = 1024 * 1024 + usize::from(author.once_in(2));
    let (plural, kind, data) = match author.below(3) {
        0 => ("configmaps", "ConfigMap", json!({"data": {"much": "x".repeat(length)}})),
        1 => ("secrets", "Secret", json!({"stringData": {"much": "x".repeat(length)}})),
        _ => (
            "configmaps",
            "ConfigMap",
            json!({"data": {"much": "x".repeat(length - 3)}, "binaryData": {"more": "AAEC"}}),
        ),
    };
    let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "much"}});
    json_patch::merge(&mut object, &data);
    let path = format!("/api/v1/namespaces/<<ns>>/{plural}?dryRun=All");
    author.write("POST", path, "application/json", Body::Text(object.to_string()));
}

/// An object in YAML, some of whose keys come again.
fn twice(author: &mut Author) {
    let (kind, name) = (author.kind(), author.name());
    let mut text = serde_json::to_string_pretty(&kind.object(&name)).unwrap();
    match author.below(4) {
        0 => text = text.replacen('{', "{\n  \"kind\": \"Sandwich\",", 1),
        1 => {
            text = text.replacen(
                "\"metadata\": {",
                "\"metadata\": {\n    \"name\": \"first\", \"labels\": {\"a\": \"1\",\n\"a\": \"2\"},",
                1,
            );
        }
        2 => text = text.replacen('{', "{\n  \"metadata\": {\n  \"name\": \"first\", \"name\": \"second\"},", 1),
        _ => {
            text = format!(
                "metadata:\n  name: {name}\n  labels:\n    a: b\n    a: c\n    a: d\nunknown: 1\nunknown: 2\napiVersion: {}\nkind: {}\n",
                kind.version, kind.kind
            );
        }
    }
    let check = author.word(&["", "?fieldValidation=Strict", "?fieldValidation=Ignore", "?fieldValidation=Warn"]);
    if author.once_in(3) {
        let joined = if check.is_empty() { "?" } else { "&" };
        let path = format!("{}/{name}{check}{joined}fieldManager=first&force=true", kind.path());
        author.write("PATCH", path, APPLY, Body::Text(text));
    } else {
        let step = author.write("POST", kind.path() + check, YAML, Body::Text(text));
        author.saw(kind, &name, step);
    }
}

/// A Service whose addresses somebody else will write. A real server breaks down when one that prefers two families becomes
/// one, so they are only created.
fn open_service(author: &mut Author) {
    let name = author.name();
    let mut object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"clusterIP": "None", "ports": [{"port": 80}]}});
    let spec = match author.below(5) {
        0 => json!({"ipFamilies": ["IPv6"]}),
        1 => json!({"ipFamilies": ["IPv6", "IPv4"], "ipFamilyPolicy": "SingleStack"}),
        2 => json!({"ipFamilyPolicy": "PreferDualStack"}),
        3 => json!({"ipFamilyPolicy": "SingleStack", "ports": null}),
        _ => json!({}),
    };
    json_patch::merge(&mut object["spec"], &spec);
    let path = "/api/v1/namespaces/<<ns>>/services".to_owned() + &author.options();
    author.write("POST", path, "application/json", Body::Text(object.to_string()));
}

fn refused(author: &mut Author) {
    let (path, rest) = REFUSED[author.below(REFUSED.len() as u64) as usize];
    let version = path.split("/namespaces").next().unwrap_or_default();
    let mut object = json!({"apiVersion": version, "kind": "Event", "metadata": {"name": author.name()}});
    json_patch::merge(&mut object, &serde_json::from_str(rest).unwrap());
    let path = format!("/apis/{path}{}", author.options());
    author.write("POST", path, "application/json", Body::Text(object.to_string()));
}

fn another_kind(author: &mut Author) {
    let thing = author.thing();
    // What is left of a custom resource without a kind is shown with its times.
    let known = if thing.kind.is_custom() { 5 } else { KINDS.len() };
    let mut change: Value = serde_json::from_str(author.word(&KINDS[..known])).unwrap();
    if author.once_in(3) {
        json_patch::merge(&mut change, &json!({"metadata": {"labels": {"kind": "changed"}}}));
    }
    let language = author.word(&[MERGE, STRATEGIC, JSON_PATCH, APPLY]);
    match language {
        JSON_PATCH => {
            let operations: Vec<_> = change
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(name, _)| *name != "metadata")
                .map(|(name, value)| json!({"op": "replace", "path": format!("/{name}"), "value": value}))
                .collect();
            patch(author, &thing, "", language, &Value::Array(operations));
        }
        APPLY => {
            let mut object = thing.kind.object(&thing.name);
            json_patch::merge(&mut object, &change);
            patch(author, &thing, "?fieldManager=first&force=true", language, &object);
        }
        _ => {
            let options = author.options();
            patch(author, &thing, &options, language, &change);
        }
    }
}
