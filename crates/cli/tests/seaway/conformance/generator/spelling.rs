//! Bodies as no library writes them: members that are there twice, numbers of any form, letters as escapes; and paths that
//! leave a namespace out.

use std::sync::LazyLock;

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};
use serde_json::json;

use super::change::{JSON_PATCH, MERGE, STRATEGIC};
use super::{Author, Body, KINDS, Thing};

const JSON: &str = "application/json";

/// JSON Patches that say something twice.
const TWICE: &[&str] = &[
    r#"[{"op":"add","path":"/metadata/labels","value":{"a":"1","a":"2"}}]"#,
    r#"[{"op":"replace","path":"/metadata","value":{"name":"a","labels":{"a":"1","a":"2"}}}]"#,
    r#"[{"op":"add","path":"/metadata/annotations","value":{"a":"1","a":"2"}},{"op":"add","path":"/metadata/annotations/b","value":"x"}]"#,
    r#"[{"op":"add","path":"/metadata/annotations","value":{"a":"1","a":"2"}},{"op":"copy","from":"/metadata/annotations","path":"/metadata/labels"}]"#,
    r#"[{"op":"add","path":"/metadata/annotations","value":{"a":"1","a":"2"}},{"op":"move","from":"/metadata/annotations","path":"/metadata/labels"}]"#,
    r#"[{"op":"add","path":"/metadata/annotations","value":{"a":"1","a":"2"}},{"op":"test","path":"/metadata/annotations","value":{"a":"2"}}]"#,
    r#"[{"op":"add","path":"/metadata/annotations","value":{"a":"1","a":"2"}},{"op":"remove","path":"/metadata/annotations"}]"#,
    r#"[{"op":"add","path":"/odd","value":{"a":"1","a":"2"}},{"op":"add","op":"add","path":"/metadata/labels","value":{"b":"1","b":"2"},"more":{"x":1,"x":2}}]"#,
    r#"[{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","name":"y","uid":"u"}]}]"#,
];

/// What annotations are before they are tested for, and tests.
const NOTED: &str = r#"{"metadata":{"annotations":{"u":"a&b<c>","n":"A"}}}"#;
const TESTS: &[&str] = &[
    r#"[{"op":"test","path":"/metadata/annotations/u","value":"a&b<c>"}]"#,
    r#"[{"op":"test","path":"/metadata/annotations/u","value":"a\u0026b\u003cc\u003e"}]"#,
    r#"[{"op":"test","path":"/metadata/annotations/u","value":"a\u0026b\u003Cc\u003e"}]"#,
    r#"[{"op":"test","path":"/metadata/annotations/n","value":"A"}]"#,
    r#"[{"op":"test","path":"/metadata/annotations/n","value":"\u0041"}]"#,
    r#"[{"op":"test","path":"/metadata/annotations/n","value": "A" }]"#,
    r#"[{"op":"add","path":"/metadata/annotations/v","value":"a&b"},{"op":"test","path":"/metadata/annotations/v","value":"a&b"}]"#,
    r#"[{"op":"test","path":"/metadata/annotations","value":{"u":"a&b<c>","n":"A"}}]"#,
    r#"[{"op":"test","path":"/metadata/annotations","value":{"\u0075":"a\u0026b\u003cc\u003e","n":"A"}}]"#,
];

/// Numbers in the forms that JSON has.
const NUMBERS: &[&str] = &[
    "2",
    "2.0",
    "2.50",
    "2e0",
    "-0",
    "1e30",
    "1E30",
    "-1.50",
    "3000000000",
    "99999999999999999999",
    "9223372036854775808",
    "18446744073709551615",
    "1e400",
    "-1e400",
];

/// A certificate and a key that is the one to it, of each kind.
static PAIRS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let pair = |algorithm| {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let certificate = CertificateParams::new(["podinfo".to_owned()]).unwrap().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519].map(pair).to_vec()
});

pub(super) fn request(author: &mut Author) {
    match author.below(8) {
        0 | 1 => patch(author, TWICE),
        2 => {
            let thing = author.thing();
            patch_of(author, &thing, MERGE, NOTED);
            let test = author.word(TESTS);
            patch_of(author, &thing, JSON_PATCH, test);
        }
        3 | 4 => number(author),
        5 => nowhere(author),
        6 => pair(author),
        _ => twice(author),
    }
}

fn patch(author: &mut Author, bodies: &[&'static str]) {
    let (thing, body) = (author.thing(), author.word(bodies));
    patch_of(author, &thing, JSON_PATCH, body);
}

fn patch_of(author: &mut Author, thing: &Thing, language: &str, body: &str) {
    let path = format!("{}/{}{}", thing.kind.path(), thing.name, author.options());
    let dry = path.contains("dryRun");
    let step = author.write("PATCH", path, language, Body::Text(body.to_owned()));
    if !dry {
        author.saw(thing.kind, &thing.name, step);
    }
}

/// A number where a whole one must be.
fn number(author: &mut Author) {
    let number = author.word(NUMBERS);
    let (plural, field) = *author.pick(&[("deployments", "replicas"), ("canaries", "progressDeadlineSeconds")]);
    let kind = KINDS.iter().find(|kind| kind.plural == plural).unwrap();
    let name = author.name();
    let mut object = kind.object(&name);
    object["spec"][field] = json!("NUMBER");
    let object = object.to_string().replace("\"NUMBER\"", number);
    let created = author.write("POST", kind.path() + &author.options(), JSON, Body::Text(object));
    author.saw(kind, &name, created);
    let number = author.word(NUMBERS);
    let thing = Thing { kind, name, seen: created };
    let (language, body) = match author.below(4) {
        0 => (MERGE, format!(r#"{{"spec":{{"{field}":{number}}}}}"#)),
        1 if !kind.is_custom() => (STRATEGIC, format!(r#"{{"spec":{{"{field}":{number}}}}}"#)),
        2 => (JSON_PATCH, format!(r#"[{{"op":"test","path":"/spec/{field}","value":{number}}}]"#)),
        _ => (JSON_PATCH, format!(r#"[{{"op":"replace","path":"/spec/{field}","value":{number}}}]"#)),
    };
    patch_of(author, &thing, language, &body);
}

/// A path that does not say in which namespace.
fn nowhere(author: &mut Author) {
    let (kind, name) = (author.kind(), author.name());
    if kind.is_cluster_wide() {
        return;
    }
    let path = kind.path().replace("<<ns>>", "");
    let mut object = kind.object(&name);
    if author.once_in(3) {
        object["metadata"]["namespace"] = author.word(&["<<ns>>", "default", "no-such"]).into();
    }
    let none = || Body::Text(String::new());
    match author.below(8) {
        0 => author.send("GET", format!("{path}/{name}"), vec![("accept", JSON.into())], none()),
        1 => author.send("GET", format!("{path}?labelSelector=no%3Dsuch"), vec![("accept", JSON.into())], none()),
        2 => author.write("DELETE", format!("{path}/{name}"), "", none()),
        3 => author.write("PUT", format!("{path}/{name}"), JSON, Body::Text(object.to_string())),
        4 => author.write("PATCH", format!("{path}/{name}"), MERGE, Body::Text("{}".into())),
        _ => author.write("POST", path, JSON, Body::Text(object.to_string())),
    };
}

/// A certificate, and a key that may be the one to another.
fn pair(author: &mut Author) {
    let (certificate, key) = (&author.pick(&PAIRS).0, &author.pick(&PAIRS).1);
    let data = json!({"tls.crt": certificate, "tls.key": key});
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": author.name()},
        "type": "kubernetes.io/tls", "stringData": data});
    let path = format!("/api/v1/namespaces/<<ns>>/secrets{}", author.options());
    author.write("POST", path, JSON, Body::Text(object.to_string()));
}

/// A new object that says something twice, or something that nobody knows.
fn twice(author: &mut Author) {
    let (version, plural, rest) = *author.pick(&[
        ("v1", "configmaps", r#""data":{"a":"1","a":"2"},"data":{"b":"1","b":"2"}"#),
        ("v1", "configmaps", r#""odd":{"a":1,"a":2},"odd":{}"#),
        ("apps/v1", "controllerrevisions", r#""revision":1,"data":{"a":1,"a":2},"data":{"a":3,"a":4}"#),
    ]);
    let root = if version.contains('/') { "apis" } else { "api" };
    let path = format!("/{root}/{version}/namespaces/<<ns>>/{plural}{}", author.options());
    let body = format!(r#"{{"metadata":{{"name":"{}"}},{rest}}}"#, author.name());
    author.write("POST", path, JSON, Body::Text(body));
}
