//! How bodies are written, and what is told about it: each with the answer of a real kube-apiserver 1.36.

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};

use super::{deployment_json, get, server};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";
const CONFIG: &str = "/api/v1/namespaces/default/configmaps/a";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// The code, the warnings and the object or the refusal.
async fn said(client: &Client, method: &str, path: &str, language: &str, body: &str) -> (u16, Vec<String>, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", language);
    let response = client.send(request.body(body.as_bytes().to_vec().into()).unwrap()).await.unwrap();
    let (head, body) = response.into_parts();
    let warnings = head.headers.get_all("warning").iter().map(|text| text.to_str().unwrap().to_owned()).collect();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status.as_u16(), warnings, serde_json::from_slice(&body).unwrap_or_default())
}

async fn refusal(client: &Client, path: &str, body: &str) -> (u16, String) {
    let (code, _, body) = said(client, "POST", path, JSON, body).await;
    (code, body["message"].as_str().unwrap_or_default().to_owned())
}

async fn with_config() -> Client {
    let client = server().client("test");
    let body = r#"{"metadata":{"name":"a"},"data":{"u":"a&b","n":"A"}}"#;
    assert_eq!(said(&client, "POST", CONFIGS, JSON, body).await.0, 201);
    client
}

#[tokio::test(start_paused = true)]
async fn what_a_json_patch_leaves_there_twice_is_told_where_it_is() {
    let client = with_config().await;
    let once = r#"[{"op":"add","path":"/data","value":{"a":"1","a":"2"}},{"op":"add","path":"/data/b","value":"x"}]"#;
    let in_patch = r#"299 - "json patch duplicate field \"[0].value.a\"""#.to_owned();
    assert_eq!(said(&client, "PATCH", CONFIG, JSON_PATCH, once).await.1, std::slice::from_ref(&in_patch));
    let twice = r#"[{"op":"add","path":"/data","value":{"a":"1","a":"2"}}]"#;
    let in_object = r#"299 - "duplicate field \"data.a\"""#.to_owned();
    assert_eq!(said(&client, "PATCH", CONFIG, JSON_PATCH, twice).await.1, [in_patch, in_object]);
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_tests_for_what_go_writes() {
    let client = with_config().await;
    for (path, value, code) in [
        ("/data/n", r#""A""#, 200),
        ("/data/n", r#""\u0041""#, 422),
        ("/data/u", r#""a&b""#, 422),
        ("/data/u", r#""a\u0026b""#, 200),
        ("/data", r#"{"n": "A", "u": "a\u0026b"}"#, 200),
    ] {
        let patch = format!(r#"[{{"op":"test","path":"{path}","value":{value}}}]"#);
        assert_eq!(said(&client, "PATCH", CONFIG, JSON_PATCH, &patch).await.0, code, "{patch}");
    }
    let own = r#"[{"op":"add","path":"/data/x","value":"<"},{"op":"test","path":"/data/x","value":"<"}]"#;
    assert_eq!(said(&client, "PATCH", CONFIG, JSON_PATCH, own).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_refused_number_is_shown_as_it_was_sent() {
    let client = server().client("test");
    for number in ["1e30", "5.0", "99999999999999999999", "1e400"] {
        let body = format!(r#"{{"metadata":{{"name":"n"}},"spec":{{"replicas":{number}}}}}"#);
        let (code, message) = refusal(&client, DEPLOYMENTS, &body).await;
        let why =
            format!("cannot unmarshal number {number} into Go struct field DeploymentSpec.spec.replicas of type int32");
        assert!(code == 400 && message.ends_with(&why), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_created_nowhere_lacks_a_namespace() {
    let client = with_config().await;
    let (nowhere, named) = ("/api/v1/namespaces//configmaps", "/api/v1/namespaces//configmaps/a");
    let refused = refusal(&client, nowhere, r#"{"metadata":{"name":"b","namespace":"default"}}"#).await;
    assert_eq!(refused, (422, "ConfigMap \"b\" is invalid: metadata.namespace: Required value".to_owned()));
    let (code, _, body) = said(&client, "PATCH", named, MERGE, "{}").await;
    assert_eq!((code, body["message"].as_str()), (400, Some("Namespace parameter required.")));
    assert_eq!(get(&client, nowhere, JSON).await["items"][0]["metadata"]["name"], "a");
    assert_eq!(said(&client, "GET", "/api/v1//namespaces/default/configmaps", JSON, "").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_patch_may_name_a_version_that_is_served_no_longer() {
    let client = server().client("test");
    let object = deployment_json("d").to_string();
    assert_eq!(said(&client, "POST", DEPLOYMENTS, JSON, &object).await.0, 201);
    let one = format!("{DEPLOYMENTS}/d");
    let (code, _, body) =
        said(&client, "PATCH", &one, MERGE, r#"{"apiVersion":"apps/v1beta1","spec":{"paused":true}}"#).await;
    assert_eq!((code, &body["apiVersion"], &body["spec"]["paused"]), (200, &json!("apps/v1"), &json!(true)));
    for (version, code) in [("extensions/v1beta1", 200), ("extensions/v1", 422)] {
        let patch = format!(r#"{{"apiVersion":"{version}"}}"#);
        assert_eq!(said(&client, "PATCH", &one, MERGE, &patch).await.0, code, "{version}");
    }
    let set = object.replace("Deployment", "ReplicaSet");
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    assert_eq!(said(&client, "POST", sets, JSON, &set).await.0, 201);
    for (version, code) in [("apps/v1beta2", 200), ("apps/v1beta1", 422)] {
        let patch = format!(r#"{{"apiVersion":"{version}"}}"#);
        let (answered, _, body) = said(&client, "PATCH", &format!("{sets}/d"), MERGE, &patch).await;
        assert_eq!(answered, code, "{version}: {}", body["message"]);
    }
}

#[tokio::test(start_paused = true)]
async fn statuses_show_the_times_and_states_that_nobody_gave() {
    let client = server().client("test");
    let pods = "/api/v1/namespaces/default/pods";
    let pod = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"x:1"}]}}"#;
    assert_eq!(said(&client, "POST", pods, JSON, pod).await.0, 201);
    let status = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"c","ready":true,"image":"x:1","imageID":"","restartCount":0}]}}"#;
    let (_, _, pod) = said(&client, "PATCH", &format!("{pods}/p/status"), MERGE, status).await;
    let condition = &pod["status"]["conditions"][0];
    assert!(condition.get("lastProbeTime").is_some_and(Value::is_null), "{condition}");
    assert_eq!(pod["status"]["containerStatuses"][0]["lastState"], json!({}));
    assert!(pod["metadata"]["managedFields"].to_string().contains("f:lastProbeTime"), "{pod}");
}

#[tokio::test(start_paused = true)]
async fn who_writes_events_under_their_newer_name_owns_fields_by_their_newer_names() {
    let client = server().client("test");
    let event = |note: &str| {
        json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "note": note,
            "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}, "reason": "R", "action": "A", "type": "Normal",
            "reportingController": "c", "reportingInstance": "i", "eventTime": "2026-01-02T03:04:05.000000Z"})
        .to_string()
    };
    let path = |manager: &str| format!("/apis/events.k8s.io/v1/namespaces/default/events/e?fieldManager={manager}");
    let (code, _, made) = said(&client, "PATCH", &path("first"), APPLY, &event("one")).await;
    let entry = &made["metadata"]["managedFields"][0];
    assert_eq!((code, &entry["apiVersion"]), (201, &json!("events.k8s.io/v1")));
    assert_eq!((&entry["fieldsV1"]["f:note"], entry["fieldsV1"].get("f:message")), (&json!({}), None));
    let (code, _, refused) = said(&client, "PATCH", &path("second"), APPLY, &event("two")).await;
    let message = refused["message"].as_str().unwrap();
    assert!(code == 409 && message.ends_with("conflict with \"first\": .note"), "{message}");
    // Who writes under the older name does not know them.
    let older = "/api/v1/namespaces/default/events/e?fieldManager=third";
    let (_, _, changed) = said(&client, "PATCH", older, MERGE, r#"{"metadata":{"labels":{"a":"b"}}}"#).await;
    let owners = changed["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!((owners.len(), &owners[0]["manager"]), (1, &json!("third")));
    // Who applies under the other name meets no owner, not even a nameless one from before.
    let labels =
        json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e", "labels": {"a": "c"}}});
    let (code, _, applied) = said(&client, "PATCH", &path("first"), APPLY, &labels.to_string()).await;
    let owners = applied["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!((code, owners.len(), &owners[0]["manager"]), (200, 1, &json!("first")));
}

#[tokio::test(start_paused = true)]
async fn who_wants_no_advice_is_refused_later_and_in_other_words() {
    let client = with_config().await;
    let read_into =
        |what: &str, operation: &str| format!("json: cannot unmarshal {what} into Go value of type {operation}");
    let list = "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct";
    for (language, patch, code, why) in [
        (MERGE, "nojson", 400, "Invalid JSON Patch"),
        (MERGE, "[]", 422, list),
        (JSON_PATCH, "nojson", 400, "invalid character 'o' in literal null (expecting 'u')"),
        (JSON_PATCH, "{}", 400, &read_into("object", "jsonpatch.Patch")),
        (JSON_PATCH, "[1]", 400, &read_into("number", "jsonpatch.Operation")),
        (JSON_PATCH, "[null]", 422, "the server rejected our request due to an error in our request"),
        (
            JSON_PATCH,
            r#"[{"op":1,"path":"/data"}]"#,
            422,
            "the server rejected our request due to an error in our request",
        ),
    ] {
        let (_, _, looked_through) = said(&client, "PATCH", CONFIG, language, patch).await;
        let message = looked_through["message"].as_str().unwrap();
        assert!(message.starts_with("error decoding patch: "), "{patch}: {message}");
        let path = format!("{CONFIG}?fieldValidation=Ignore");
        let (refused, _, body) = said(&client, "PATCH", &path, language, patch).await;
        let message = body["message"].as_str().unwrap();
        assert!(refused == code && message.contains(why), "{patch}: {refused} {message}");
    }
    let endless = r#"[{"op":"add","path":"/unknown","value":1e400}]"#;
    assert_eq!(said(&client, "PATCH", CONFIG, JSON_PATCH, endless).await.0, 400);
    assert_eq!(said(&client, "PATCH", &format!("{CONFIG}?fieldValidation=Ignore"), JSON_PATCH, endless).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_taken_although_another_might_do() {
    let client = with_config().await;
    let (code, _, refused) =
        said(&client, "POST", CONFIGS, JSON, r#"{"metadata":{"name":"a","generateName":"a-"}}"#).await;
    let why = r#"configmaps "a" already exists, the server was not able to generate a unique name for the object"#;
    assert_eq!((code, &refused["message"], &refused["details"]["retryAfterSeconds"]), (409, &json!(why), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_at_once_what_reading_hides() {
    let client = server().client("test");
    let services = "/api/v1/namespaces/default/services";
    let service = r#"{"metadata":{"name":"s"},"spec":{"selector":{"a":"b"},"ports":[{"port":80}]}}"#;
    let (_, _, made) = said(&client, "POST", services, JSON, service).await;
    let watch = format!("{services}?watch=1&timeoutSeconds=1&resourceVersion={}", made["metadata"]["resourceVersion"]);
    let watch = watch.replace('"', "");
    let policy = |event: &str| {
        let event: Value = serde_json::from_str(event).unwrap();
        event["object"]["spec"]["internalTrafficPolicy"].clone()
    };
    let changed = async |change: &str| {
        let (_, _, changed) = said(&client, "PATCH", &format!("{services}/s"), MERGE, change).await;
        changed["spec"]["internalTrafficPolicy"].clone()
    };
    let watching = async || client.send(Request::get(&watch).body(Vec::new().into()).unwrap()).await.unwrap();
    let told = async |events: http::Response<kube::client::Body>| {
        policy(std::str::from_utf8(&events.into_body().collect().await.unwrap().to_bytes()).unwrap())
    };
    let live = watching().await;
    let answered = changed(r#"{"spec":{"type":"ExternalName","externalName":"example.com"}}"#).await;
    assert_eq!((told(live).await, answered), (json!("Cluster"), Value::Null));
    assert_eq!(told(watching().await).await, Value::Null, "who comes later reads it");
}

#[tokio::test(start_paused = true)]
async fn owners_that_a_patch_has_twice_are_told_after_everybody_had_a_look() {
    let client = with_config().await;
    let owner = r#"{"apiVersion":"v1","kind":"ConfigMap","name":"y","uid":"u"}"#;
    let twice = format!(r#"{{"metadata":{{"name":"b","ownerReferences":[{owner},{owner}]}}}}"#);
    let (_, warnings, _) = said(&client, "POST", CONFIGS, JSON, &twice).await;
    assert!(warnings[0].contains("contains duplicate entries; API server"), "{warnings:?}");
    let patch = format!(r#"{{"metadata":{{"ownerReferences":[{owner},{owner}]}}}}"#);
    let (_, warnings, _) = said(&client, "PATCH", CONFIG, MERGE, &patch).await;
    assert!(warnings[0].contains("contains duplicate entries after mutating admission happens; API"), "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn a_binding_replaces_labels() {
    let client = server().client("test");
    let pods = "/api/v1/namespaces/default/pods";
    let pod = r#"{"metadata":{"name":"p","labels":{"app":"x"}},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    assert_eq!(said(&client, "POST", pods, JSON, pod).await.0, 201);
    let binding = r#"{"metadata":{"name":"p","labels":{"app":"taken"}},"target":{"kind":"Node","name":"n"}}"#;
    assert_eq!(said(&client, "POST", &format!("{pods}/p/binding"), JSON, binding).await.0, 201);
    let (_, _, bound) = said(&client, "GET", &format!("{pods}/p"), JSON, "").await;
    assert_eq!((&bound["metadata"]["labels"], &bound["spec"]["nodeName"]), (&json!({"app": "taken"}), &json!("n")));
}

#[tokio::test(start_paused = true)]
async fn whoever_empties_the_rules_of_a_role_that_has_none_owns_them() {
    let client = server().client("test");
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let role = r#"{"metadata":{"name":"r","labels":{"a":"b"}}}"#;
    assert_eq!(said(&client, "POST", roles, JSON, role).await.0, 201);
    let by = |manager: &str| format!("{roles}/r?fieldManager={manager}");
    let owners = |role: &Value| role["metadata"]["managedFields"].to_string().matches("f:rules").count();
    assert_eq!(owners(&said(&client, "PATCH", &by("a"), MERGE, r#"{"rules":null}"#).await.2), 0);
    assert_eq!(owners(&said(&client, "PATCH", &by("a"), MERGE, r#"{"rules":[]}"#).await.2), 1);
    let patch = r#"[{"op":"replace","path":"/rules","value":[]}]"#;
    let (_, _, role) = said(&client, "PATCH", &by("b"), JSON_PATCH, patch).await;
    let fields = role["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(fields.iter().filter(|entry| entry["fieldsV1"].get("f:rules").is_some()).count(), 1, "{fields:?}");
    assert!(fields.iter().any(|entry| entry["manager"] == "b"), "{fields:?}");
}
