//! What few clients ask: paths with too much in them, selectors with escapes, orders that fit no list, halves of signs. Most
//! of it is refused, and in which words is for a real server to say.

use serde_json::json;

use super::change::{APPLY, JSON_PATCH, MERGE, STRATEGIC, patch};
use super::{Author, Body};

/// What follows the path of a collection.
const PATHS: &[&str] = &[
    "/..",
    "/.",
    "//a",
    "/a%2Fb",
    "/../configmaps",
    "/./a",
    "/%2e%2e/configmaps",
    "/",
    "?limit=",
    "?timeoutSeconds=",
    "?fieldSelector=metadata.name%3D%20a",
    "?fieldSelector=metadata.name%20%3Da",
    "?fieldSelector=metadata.name%3D%5Ca",
    "?fieldSelector=metadata.name%3D%5C%2Ca",
    "?fieldSelector=metadata.name%3Da%5C",
    "?fieldSelector=metadata.name%3Da%3Db",
    "?fieldSelector=metadata.name%3D%3D%3Da",
    "?fieldSelector=metadata.name!%3D%3Da",
    "?fieldSelector=metadata.name%3Da%2C",
    "?fieldSelector=metadata.name%3Da%2C%20metadata.namespace%3D<<ns>>",
    "?fieldSelector=%20",
    "?fieldSelector=metadata.name",
];

/// Groups that are offered whole.
const GROUPS: &[&str] = &[
    "apps/v1",
    "autoscaling/v2",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
];

/// Strategic merge patches whose orders do not fit, and one that does.
const ORDERS: &[&str] = &[
    r#"{"$setElementOrder/containers":[{"name":"z"}],"containers":[{"name":"podinfod","image":"x:2"}]}"#,
    r#"{"$setElementOrder/containers":[{"name":"podinfod"},{"name":"z"}],"containers":[{"name":"podinfod","image":"x:3"}]}"#,
    r#"{"$setElementOrder/containers":[{"name":"podinfod"},{"name":"y"}],"containers":[{"name":"y","image":"x:3"},{"name":"podinfod","image":"x:4"}]}"#,
    r#"{"$setElementOrder/containers":[{"image":"c"}],"containers":[{"name":"podinfod","image":"x:4"}]}"#,
    r#"{"$setElementOrder/containers":"c","containers":[{"name":"podinfod","image":"x:4"}]}"#,
];

/// Who owns what, as nobody should say it.
const MANAGERS: &[&str] = &[
    r#"[{"manager":"x","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}]"#,
    r#"[{"manager":"x","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}}}},{"manager":"y","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1"}]"#,
    r#"[{"manager":"x","operation":"Update","apiVersion":"v1"}]"#,
];

/// Events as they are applied under their newer name.
const APPLIED: &[&str] = &[
    r#"{"note":"one","reason":"R","action":"A","type":"Normal","reportingController":"c","reportingInstance":"i","eventTime":"2026-01-02T03:04:05.000000Z"}"#,
    r#"{"note":"two","reason":"R","action":"A","type":"Normal","reportingController":"c","reportingInstance":"i","eventTime":"2026-01-02T03:04:05.000000Z"}"#,
    r#"{"note":"one"}"#,
    r#"{"deprecatedCount":3}"#,
];

/// What an Event that is told does not let go of.
const TOLD: &[&str] = &[
    r#"{"note":"other"}"#,
    r#"{"deprecatedCount":5}"#,
    r#"{"regarding":{"name":"else"},"reason":"Other"}"#,
    r#"{"type":"Odd","action":"B","reportingInstance":"j"}"#,
];

pub(super) fn request(author: &mut Author) {
    let maps = "/api/v1/namespaces/<<ns>>/configmaps";
    match author.below(8) {
        0 | 1 => {
            let path = format!("{maps}{}", author.word(PATHS));
            // Forms of answers are for what is there.
            author.send("GET", path, vec![("accept", "application/json".into())], Body::Text(String::new()));
        }
        2 => {
            let path = format!("/apis/{}", author.word(GROUPS));
            author.send("GET", path, vec![("accept", "application/json".into())], Body::Text(String::new()));
        }
        3 => {
            let text = author.word(&[r"x\ud800y", r"\udc00\ud83d\ude00\ud800\ud800", r"\\ud800\ud83d\ude00"]);
            let object = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME"},"data":{"a":"TEXT"}}"#;
            let object = object.replace("NAME", &author.name()).replace("TEXT", text);
            author.write("POST", maps.into(), "application/json", Body::Text(object));
        }
        4 => {
            let options =
                author.word(&[r#"{"preconditions":[]}"#, r#"{"preconditions":["x","y"]}"#, r#"{"preconditions":1}"#]);
            let path = format!("{maps}/{}", author.name());
            author.write("DELETE", path, "application/json", Body::Text(options.into()));
        }
        5 => {
            let (name, managers) = (author.name(), author.word(MANAGERS));
            let body = format!(r#"{{"metadata":{{"managedFields":{managers}}}}}"#);
            author.write("PATCH", format!("{maps}/{name}"), MERGE, Body::Text(body));
        }
        6 if author.once_in(2) => {
            let name = author.name();
            let path = format!("/apis/events.k8s.io/v1/namespaces/<<ns>>/events/{name}");
            author.write("PATCH", path, MERGE, Body::Text(author.word(TOLD).into()));
        }
        6 => apply_events(author),
        _ => orders(author),
    }
}

/// An Event that is applied twice, perhaps by another, and perhaps read or patched under its older name.
fn apply_events(author: &mut Author) {
    let name = author.name();
    let metadata = json!({"name": name});
    for _ in 0..2 {
        let mut event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": metadata,
            "regarding": {"kind": "Pod", "name": "p", "namespace": "<<ns>>"}});
        json_patch::merge(&mut event, &serde_json::from_str(author.word(APPLIED)).unwrap());
        let manager = author.word(&["first", "first&force=true", "second", "second&force=true"]);
        let path = format!("/apis/events.k8s.io/v1/namespaces/<<ns>>/events/{name}?fieldManager={manager}");
        author.write("PATCH", path, APPLY, Body::Text(event.to_string()));
    }
    let path = format!("/api/v1/namespaces/<<ns>>/events/{name}");
    if author.once_in(2) {
        author.write("PATCH", path, MERGE, Body::Text(r#"{"message":"three","count":7}"#.into()));
    } else {
        author.read(path);
    }
}

fn orders(author: &mut Author) {
    let workloads = |kind: &str| ["deployments", "replicasets"].contains(&kind);
    let workload = author.things.iter().find(|thing| workloads(thing.kind.plural)).cloned();
    let Some(workload) = workload else {
        let thing = author.thing();
        let order = json!({"metadata": {"$setElementOrder/finalizers": ["a/b"], "finalizers": ["c/d"]}});
        let language = if thing.kind.is_custom() { JSON_PATCH } else { STRATEGIC };
        patch(author, &thing, "", language, &order);
        return;
    };
    let order: serde_json::Value = serde_json::from_str(author.word(ORDERS)).unwrap();
    patch(author, &workload, "", STRATEGIC, &json!({"spec": {"template": {"spec": order}}}));
}
