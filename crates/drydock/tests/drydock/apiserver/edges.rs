//! Requests at the edge of what makes sense, each with the answer of a real kube-apiserver 1.36.

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};

use super::server;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";
const CONFIG: &str = "/api/v1/namespaces/default/configmaps/a";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// What the server said: the code, the warnings, the body.
struct Said(u16, Vec<String>, Value);

async fn ask(client: &Client, method: &str, path: &str, language: &str, body: impl ToString) -> Said {
    let request = Request::builder().method(method).uri(path).header("content-type", language);
    let response = client.send(request.body(body.to_string().into_bytes().into()).unwrap()).await.unwrap();
    let (head, body) = response.into_parts();
    let warnings = head.headers.get_all("warning").iter().map(|text| text.to_str().unwrap().to_owned()).collect();
    let body = body.collect().await.unwrap().to_bytes();
    Said(head.status.as_u16(), warnings, serde_json::from_slice(&body).unwrap_or_default())
}

/// The code and the message.
async fn refusal(client: &Client, method: &str, path: &str, language: &str, body: impl ToString) -> (u16, String) {
    let Said(code, _, body) = ask(client, method, path, language, body).await;
    (code, body["message"].as_str().unwrap_or_default().to_owned())
}

fn config(data: &Value, metadata: &Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    json_patch::merge(&mut object["metadata"], metadata);
    object
}

/// A server with a ConfigMap.
async fn with_config() -> Client {
    let client = server().client("test");
    let Said(code, ..) =
        ask(&client, "POST", CONFIGS, JSON, config(&json!({"k": "v"}), &json!({"labels": {"x": "y"}}))).await;
    assert_eq!(code, 201);
    client
}

fn deployment(container: &Value, pod: &Value) -> Value {
    let mut main = json!({"name": "m", "image": "i"});
    json_patch::merge(&mut main, container);
    let mut spec = json!({"containers": [main]});
    json_patch::merge(&mut spec, pod);
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec},
    }})
}

#[tokio::test(start_paused = true)]
async fn what_is_copied_from_nowhere_is_nothing() {
    let client = with_config().await;
    let copy = json!([{"op": "copy", "from": "/metadata/none", "path": "/metadata/labels/new"}]);
    let Said(code, _, body) = ask(&client, "PATCH", CONFIG, JSON_PATCH, copy).await;
    assert_eq!((code, &body["metadata"]["labels"]), (200, &json!({"x": "y", "new": ""})));
    let copy = json!([{"op": "copy", "from": "/nowhere/none", "path": "/data/new"}]);
    assert_eq!(refusal(&client, "PATCH", CONFIG, JSON_PATCH, copy).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn a_whole_object_can_be_replaced_by_a_patch() {
    let client = with_config().await;
    let whole = |value: Value| json!([{"op": "replace", "path": "", "value": value}]);
    let Said(code, _, body) =
        ask(&client, "PATCH", CONFIG, JSON_PATCH, whole(config(&json!({"k": "w"}), &json!({})))).await;
    assert_eq!((code, &body["data"], body["metadata"].get("labels")), (200, &json!({"k": "w"}), None));
    let (code, why) = refusal(&client, "PATCH", CONFIG, JSON_PATCH, whole(json!({}))).await;
    assert_eq!((code, why.contains("name must be provided")), (400, true), "{why}");
    assert_eq!(refusal(&client, "PATCH", CONFIG, JSON_PATCH, whole(json!(5))).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_twice_or_to_nobody_is_noticed() {
    let client = with_config().await;
    let twice = r#"{"data": {"k": "1", "k": "2"}}"#;
    let patch = r#"[{"op": "add", "path": "/data/z", "value": "1", "note": 1}]"#;
    let object = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1","k":"2"},"odd":1}"#;
    for (method, path, language, body, complaint, refused) in [
        ("PATCH", CONFIG, MERGE, twice, "duplicate field \\\"data.k\\\"", 422),
        ("PATCH", CONFIG, STRATEGIC, twice, "duplicate field \\\"data.k\\\"", 422),
        ("PATCH", CONFIG, JSON_PATCH, patch, "json patch unknown field \\\"[0].note\\\"", 422),
        ("PUT", CONFIG, JSON, &object.replace(",\"odd\":1", ""), "duplicate field \\\"data.k\\\"", 400),
    ] {
        let Said(code, warnings, _) = ask(&client, method, path, language, body).await;
        assert_eq!((code, warnings), (200, vec![format!("299 - \"{complaint}\"")]), "{language}");
        let Said(code, warnings, _) =
            ask(&client, method, &format!("{path}?fieldValidation=Ignore"), language, body).await;
        assert_eq!((code, warnings.len()), (200, 0), "{language}");
        let (code, why) = refusal(&client, method, &format!("{path}?fieldValidation=Strict"), language, body).await;
        let told = format!("strict decoding error: {}", complaint.replace('\\', ""));
        assert_eq!((code, why.ends_with(&told)), (refused, true), "{why}");
    }
    let strict = format!("{CONFIGS}?fieldValidation=Strict");
    let (code, why) = refusal(&client, "POST", &strict, JSON, object).await;
    let told = "strict decoding error: duplicate field \"data.k\", unknown field \"odd\"";
    assert_eq!((code, why.ends_with(told)), (400, true), "{why}");
    let applied = object.replace(",\"odd\":1", "");
    let place = format!("{CONFIG}?fieldManager=m&force=true");
    let Said(code, warnings, _) = ask(&client, "PATCH", &place, APPLY, &applied).await;
    assert_eq!((code, warnings), (200, vec![r#"299 - "line 1: key \"k\" already set in map""#.to_owned()]));
    let (code, why) = refusal(&client, "PATCH", &format!("{place}&fieldValidation=Strict"), APPLY, &applied).await;
    assert_eq!((code, why.starts_with("error strict decoding YAML")), (400, true), "{why}");
}

#[tokio::test(start_paused = true)]
async fn metadata_is_checked_as_a_real_server_does() {
    let client = with_config().await;
    let owner = |change: Value| {
        let mut owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"});
        json_patch::merge(&mut owner, &change);
        owner
    };
    let two = json!([owner(json!({"controller": true})), owner(json!({"controller": true, "uid": "v"}))]);
    let key = "name part must be no more than 63 bytes";
    for (metadata, why) in [
        (
            json!({"ownerReferences": [owner(json!({"apiVersion": "a/b/c"}))]}),
            "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty",
        ),
        (
            json!({"ownerReferences": two}),
            "metadata.ownerReferences: Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"o\",\
             \"uid\":\"u\",\"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"o\",\"uid\":\"v\",\
             \"controller\":true}]: Only one reference can have Controller set to true. Found \"true\" in references for \
             ConfigMap/o and ConfigMap/o",
        ),
        (
            json!({"finalizers": ["orphan", "foregroundDeletion"]}),
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and \
             foregroundDeletion cannot be both set",
        ),
        (json!({"labels": {"x".repeat(64): ""}}), key),
        (
            json!({"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5}),
            "[metadata.deletionTimestamp: Invalid value: \"2020-01-01T00:00:00Z\": field is immutable, \
             metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable]",
        ),
    ] {
        let (code, said) = refusal(&client, "PATCH", CONFIG, MERGE, json!({"metadata": metadata})).await;
        assert_eq!((code, said.ends_with(why)), (422, true), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn managers_have_names_that_can_be_read() {
    let client = with_config().await;
    let place = format!("{CONFIG}?fieldManager=a%00b");
    let (code, why) = refusal(&client, "PATCH", &place, MERGE, json!({"data": {"k": "1"}})).await;
    assert_eq!(code, 422);
    assert!(
        why.ends_with(r#"fieldManager: Invalid value: "a\x00b": invalid character U+0000 (at position 1)"#),
        "{why}"
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_applies_a_scale_meets_the_owners_of_the_replicas() {
    let client = server().client("test");
    assert_eq!(ask(&client, "POST", DEPLOYMENTS, JSON, deployment(&json!({}), &json!({}))).await.0, 201);
    let scale = |replicas: i64| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": replicas}});
    let place = |query: &str| format!("{DEPLOYMENTS}/d/scale?{query}");
    let (code, why) = refusal(&client, "PATCH", &place("fieldManager=z"), APPLY, scale(3)).await;
    let told = "Apply failed with 1 conflict: conflict with \"test\" using autoscaling/v1: .spec.replicas";
    assert_eq!((code, why.as_str()), (409, told));
    assert_eq!(refusal(&client, "PATCH", &place("fieldManager=z&force=true"), APPLY, scale(3)).await.0, 200);
    let (code, why) = refusal(&client, "PATCH", &place("fieldManager=y"), APPLY, scale(4)).await;
    let told = "Apply failed with 1 conflict: conflict with \"z\" with subresource \"scale\": .spec.replicas";
    assert_eq!((code, why.as_str()), (409, told));
    // Two may want the same.
    assert_eq!(refusal(&client, "PATCH", &place("fieldManager=y"), APPLY, scale(3)).await.0, 200);
    assert_eq!(refusal(&client, "PATCH", &place("fieldManager=z"), APPLY, scale(5)).await.0, 409);
}

#[tokio::test(start_paused = true)]
async fn collisions_are_not_taken_back() {
    let client = server().client("test");
    assert_eq!(ask(&client, "POST", DEPLOYMENTS, JSON, deployment(&json!({}), &json!({}))).await.0, 201);
    let place = format!("{DEPLOYMENTS}/d/status");
    let count = |count: Value| json!({"status": {"collisionCount": count}});
    assert_eq!(refusal(&client, "PATCH", &place, MERGE, count(json!(3))).await.0, 200);
    for (fewer, shown) in [(json!(2), "2"), (Value::Null, "0")] {
        let (code, why) = refusal(&client, "PATCH", &place, MERGE, count(fewer)).await;
        let told = format!("status.collisionCount: Invalid value: {shown}: cannot be decremented");
        assert_eq!((code, why.ends_with(&told)), (422, true), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn options_of_a_deletion_are_options_of_a_deletion() {
    let client = with_config().await;
    let (code, why) = refusal(&client, "DELETE", CONFIG, JSON, config(&json!({}), &json!({}))).await;
    assert_eq!((code, why.starts_with("no kind \"ConfigMap\" is registered for version \"v1\"")), (400, true), "{why}");
    let place = format!("{CONFIG}?propagationPolicy=Orphan&orphanDependents=true");
    let (code, why) = refusal(&client, "DELETE", &place, JSON, "").await;
    assert_eq!(
        (code, why.ends_with("orphanDependents and deletionPropagation cannot be both set")),
        (422, true),
        "{why}"
    );
    assert_eq!(refusal(&client, "DELETE", &format!("{CONFIG}?propagationPolicy=Odd"), JSON, "").await.0, 422);
    assert_eq!(refusal(&client, "DELETE", &format!("{CONFIG}?gracePeriodSeconds=-1"), JSON, "").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn numbers_of_a_query_are_numbers() {
    let client = with_config().await;
    for (query, code) in
        [("limit=-1", 200), ("limit=abc", 400), ("timeoutSeconds=abc", 400), ("timeoutSeconds=-1", 200)]
    {
        assert_eq!(ask(&client, "GET", &format!("{CONFIGS}?{query}"), JSON, "").await.0, code, "{query}");
    }
    let (_, why) = refusal(&client, "GET", &format!("{CONFIGS}?limit=99999999999999999999"), JSON, "").await;
    assert!(why.ends_with("value out of range"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn changes_can_be_asked_for_by_the_path() {
    let client = with_config().await;
    let start =
        ask(&client, "GET", CONFIG, JSON, "").await.2["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    assert_eq!(ask(&client, "PATCH", CONFIG, MERGE, json!({"data": {"k": "w"}})).await.0, 200);
    for end in ["configmaps", "configmaps/a"] {
        let place = format!("/api/v1/watch/namespaces/default/{end}?timeoutSeconds=1&resourceVersion={start}");
        let Said(code, _, event) = ask(&client, "GET", &place, JSON, "").await;
        assert_eq!((code, &event["type"], &event["object"]["data"]), (200, &json!("MODIFIED"), &json!({"k": "w"})));
    }
}

#[tokio::test(start_paused = true)]
async fn keys_of_configuration_are_names_of_files() {
    let client = with_config().await;
    let long = "x".repeat(254);
    for (key, why) in [
        (".", "must not be '.'"),
        ("..", "must not be '..'"),
        ("..a", "must not start with '..'"),
        (long.as_str(), "must be no more than 253 characters"),
    ] {
        let (code, said) = refusal(&client, "PATCH", CONFIG, MERGE, json!({"data": {key: "x"}})).await;
        assert_eq!((code, said.ends_with(why)), (422, true), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_have_time_to_stop_and_one_volume_at_a_place() {
    let client = server().client("test");
    let sleep = |seconds: i64| json!({"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}});
    let five = json!({"terminationGracePeriodSeconds": 5});
    let mounts = json!({"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}]});
    let volumes = json!({"volumes": [{"name": "v", "emptyDir": {}}]});
    for (container, pod, why) in [
        (
            sleep(31),
            json!({}),
            "preStop.sleep: Invalid value: 31: must be non-negative and less than \
                                terminationGracePeriodSeconds (30)",
        ),
        (
            sleep(6),
            five.clone(),
            "preStop.sleep: Invalid value: 6: must be non-negative and less than \
                                  terminationGracePeriodSeconds (5)",
        ),
        (mounts, volumes, "volumeMounts[1].mountPath: Invalid value: \"/a\": must be unique"),
    ] {
        let (code, said) = refusal(&client, "POST", DEPLOYMENTS, JSON, deployment(&container, &pod)).await;
        assert_eq!((code, said.ends_with(why)), (422, true), "{said}");
    }
    assert_eq!(refusal(&client, "POST", DEPLOYMENTS, JSON, deployment(&sleep(5), &five)).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn an_apply_takes_what_held_its_fields() {
    let client = server().client("test");
    let probe = json!({"readinessProbe": {"grpc": {"port": 9999}}});
    let place = format!("{DEPLOYMENTS}/d?fieldManager=m");
    assert_eq!(ask(&client, "PATCH", &place, APPLY, deployment(&probe, &json!({}))).await.0, 201);
    let Said(code, _, body) = ask(&client, "PATCH", &place, APPLY, deployment(&json!({}), &json!({}))).await;
    assert_eq!((code, body.pointer("/spec/template/spec/containers/0/readinessProbe")), (200, None));
}

#[tokio::test(start_paused = true)]
async fn an_empty_map_is_a_change_of_what_cannot_change() {
    let client = with_config().await;
    assert_eq!(refusal(&client, "PATCH", CONFIG, MERGE, json!({"immutable": true})).await.0, 200);
    let (code, why) = refusal(&client, "PATCH", CONFIG, MERGE, json!({"binaryData": {}})).await;
    assert_eq!((code, why.ends_with("binaryData: Forbidden: field is immutable when `immutable` is set")), (422, true));
}
