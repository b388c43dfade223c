//! Requests that make no sense.

use serde_json::json;

use super::{Author, Body};

const JSON: &str = "application/json";

/// Bodies that are no JSON Patch, or one that cannot be carried out.
const NO_PATCHES: &[&str] = &[
    r#"[{"op":"nonsense","path":"/metadata"}]"#,
    r#"[{"path":"/metadata"}]"#,
    r#"[{"op":"add"}]"#,
    r#"[{"op":"add","path":"/metadata/labels/x"}]"#,
    r#"[{"op":"add","path":1}]"#,
    r#"[{"op":1,"path":"/x"}]"#,
    r#"[{"op":"remove","path":"no-slash"}]"#,
    r#"[{"op":"copy","path":"/metadata/labels/y"}]"#,
    r#"[{"op":"test","path":"/metadata/name"}]"#,
    "[1]",
    "1",
    "null",
    r#""x""#,
    r#"{"a"}"#,
    "",
];

/// Bodies that are no object, and most of them no JSON.
const NO_JSON: &[&str] =
    &[r#"{"a"}"#, r#"{"a":tru}"#, r#"{"a":1,}"#, r#"{"a":1} x"#, r#"{"a":"\q"}"#, r#"{"a":01}"#, "[1,]", r#""x""#, "1"];

pub(super) fn request(author: &mut Author) {
    let thing = author.thing();
    let kind = thing.kind;
    let (collection, place) = (kind.path(), format!("{}/{}", kind.path(), thing.name));
    let object = kind.object(if kind.is_cluster_wide() { "<<ns>>-bad" } else { "bad" });
    let text = |value: &serde_json::Value| Body::Text(value.to_string());
    let none = || Body::Text(String::new());
    match author.below(40) {
        0 => author.write("POST", collection, JSON, Body::Text("{".into())),
        1 => author.write("POST", collection, JSON, Body::Text("[]".into())),
        2 => author.write("POST", collection, JSON, none()),
        3 => author.write("POST", collection, "text/plain", text(&object)),
        4 => author.write("POST", collection, "", text(&object)),
        5 => {
            let mut object = object;
            object["kind"] = "Sandwich".into();
            author.write("POST", collection, JSON, text(&object))
        }
        6 => {
            let mut object = object;
            object["apiVersion"] = "v9".into();
            author.write("POST", collection, JSON, text(&object))
        }
        7 => author.write("POST", place, JSON, text(&object)),
        8 => author.write("PUT", collection, JSON, text(&object)),
        9 => author.write("PATCH", place, JSON, text(&json!({}))),
        10 => author.write("PATCH", place, "application/json-patch+json", text(&json!({"op": "add"}))),
        11 => author.write("PATCH", place, "application/merge-patch+json", Body::Text("[]".into())),
        12 => author.write("PATCH", place, "application/merge-patch+json", Body::Text("{".into())),
        13 => author.write("PATCH", place, "application/apply-patch+yaml", Body::Text("{".into())),
        14 => author.read(format!("{place}/nonsense")),
        15 => author.read("/api/v1/namespaces/<<ns>>/sandwiches".into()),
        16 => author.read("/apis/flagger.app/v1beta1/namespaces/<<ns>>/sandwiches".into()),
        17 => author.read("/apis/flagger.app/v9/namespaces/<<ns>>/canaries".into()),
        18 => author.read(kind.listing().replace("namespaces/<<ns>>", "namespaces/no-such-namespace")),
        19 => author.write("POST", collection.replace("<<ns>>", "no-such-namespace"), JSON, text(&object)),
        20 => author.read(format!("{}/{}", kind.everywhere(), thing.name)),
        21 => author.write("POST", kind.everywhere(), JSON, text(&object)),
        22 => author.send("GET", place, vec![("accept", "application/xml".into())], none()),
        23 => author.write("PATCH", place, "application/strategic-merge-patch+json", Body::Text("{".into())),
        24 => author.write("PATCH", place + "?force=true", "application/merge-patch+json", text(&json!({}))),
        25 => author.read(format!("{}limit=abc", kind.listing())),
        26..30 => {
            let body = author.word(NO_PATCHES);
            author.write("PATCH", place, "application/json-patch+json", Body::Text(body.into()))
        }
        30..33 => {
            let language = author.word(&["application/merge-patch+json", "application/strategic-merge-patch+json"]);
            let body = author.word(NO_JSON);
            author.write("PATCH", place, language, Body::Text(body.into()))
        }
        33..36 => {
            let body = author.word(NO_JSON);
            author.write("POST", collection, JSON, Body::Text(body.into()))
        }
        36 => author.write("PATCH", place + "?fieldManager=x", "application/apply-patch+yaml", Body::Text("[]".into())),
        _ => {
            let fault = author.word(kind.faults);
            author.write("PATCH", place, "application/strategic-merge-patch+json", Body::Text(fault.into()))
        }
    };
}
