//! What kubectl and charts ask for besides objects: reviews, the second face of events, roles, options, pages.

use kube::Client;
use serde_json::{Value, json};

use super::{get, refused, send, send_json, server};

const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";
const EVENTS: &str = "/api/v1/namespaces/default/events";
const NEW_EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

async fn text(client: &Client, path: &str) -> String {
    client.request_text(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn everybody_may_do_everything_and_is_told_why() {
    let client = server().client("test");
    let ask = async |path: &str, spec: Value| {
        send_json(&client, "POST", &format!("/apis/authorization.k8s.io/v1/{path}"), &json!({"spec": spec})).await
    };
    let get_pods = json!({"verb": "get", "resource": "pods", "namespace": "default"});
    let own = ask("selfsubjectaccessreviews", json!({"resourceAttributes": get_pods})).await.unwrap();
    assert_eq!((&own["kind"], &own["status"]["allowed"]), (&json!("SelfSubjectAccessReview"), &json!(true)));
    assert!(own["status"]["reason"].as_str().unwrap().contains("does not authorise"));
    let other = json!({"user": "ann", "nonResourceAttributes": {"verb": "get", "path": "/healthz"}});
    assert_eq!(ask("subjectaccessreviews", other).await.unwrap()["status"]["allowed"], true);
    let rules = ask("selfsubjectrulesreviews", json!({"namespace": "default"})).await.unwrap();
    assert_eq!(rules["status"]["resourceRules"][0]["verbs"], json!(["*"]));

    for (path, spec, expected) in [
        ("selfsubjectaccessreviews", json!({}), "exactly one of nonResourceAttributes or resourceAttributes"),
        ("subjectaccessreviews", json!({"resourceAttributes": get_pods}), "at least one of user or group"),
        (
            "namespaces/kube-system/localsubjectaccessreviews",
            json!({"user": "ann", "resourceAttributes": get_pods}),
            "spec.resourceAttributes.namespace: Invalid value: \"default\": must match metadata.namespace",
        ),
        ("selfsubjectrulesreviews", json!({}), "no namespace on request"),
    ] {
        let status = refused(ask(path, spec).await);
        assert!(status.message.contains(expected), "{}", status.message);
    }
    let who =
        send_json(&client, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({})).await.unwrap();
    assert_eq!(who["status"]["userInfo"]["username"], "system:anonymous");
    let request = http::Request::get("/apis/authorization.k8s.io/v1/subjectaccessreviews").body(Vec::new()).unwrap();
    assert_eq!(refused(client.request::<Value>(request).await).code, 405, "a review is not kept");
}

#[tokio::test(start_paused = true)]
async fn roles_are_kept_and_said_to_mean_nothing() {
    let client = server().client("test");
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"});
    let binding =
        json!({"metadata": {"name": "Ann:readers"}, "roleRef": role, "subjects": [{"kind": "User", "name": "ann"}]});
    let body = serde_json::to_vec(&binding).unwrap();
    let request = http::Request::post(path).header("content-type", JSON).body(kube::client::Body::from(body)).unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.status(), 201);
    assert!(response.headers()["warning"].to_str().unwrap().contains("does not enforce"));
    let patch = json!({"roleRef": {"name": "writer"}}).to_string();
    let status = refused(send(&client, "PATCH", &format!("{path}/Ann:readers"), MERGE, patch).await);
    assert!(status.message.contains("roleRef: Invalid value"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn an_event_has_two_faces() {
    let client = server().client("test");
    let about = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "harbour", "namespace": "default"});
    let old = json!({"metadata": {"name": "ebb"}, "involvedObject": about, "message": "the water goes", "reason": "Ebb",
        "count": 3, "source": {"component": "moon"}, "firstTimestamp": "2026-01-01T00:00:00Z"});
    send_json(&client, "POST", EVENTS, &old).await.unwrap();
    let new = json!({"metadata": {"name": "flood"}, "regarding": about, "note": "the water comes", "reason": "Flood",
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "moon", "reportingInstance": "moon-1",
        "action": "Pull", "type": "Normal"});
    let made = send_json(&client, "POST", NEW_EVENTS, &new).await.unwrap();
    assert_eq!((&made["apiVersion"], &made["note"]), (&json!("events.k8s.io/v1"), &json!("the water comes")));

    let list = get(&client, NEW_EVENTS, JSON).await;
    assert_eq!(list["apiVersion"], "events.k8s.io/v1");
    let ebb = &list["items"][0];
    assert_eq!((&ebb["note"], &ebb["deprecatedCount"]), (&json!("the water goes"), &json!(3)));
    assert_eq!((&ebb["regarding"]["name"], &ebb["deprecatedSource"]["component"]), (&json!("harbour"), &json!("moon")));
    let flood = get(&client, &format!("{EVENTS}/flood"), JSON).await;
    assert_eq!((&flood["apiVersion"], &flood["message"]), (&json!("v1"), &json!("the water comes")));
    assert_eq!((&flood["involvedObject"]["name"], &flood["reportingComponent"]), (&json!("harbour"), &json!("moon")));

    let chosen =
        get(&client, &format!("{NEW_EVENTS}?fieldSelector=regarding.name%3Dharbour,reason%3DFlood"), JSON).await;
    assert_eq!(chosen["items"].as_array().unwrap().len(), 1);
    let status = refused(
        client
            .request::<Value>(
                http::Request::get(format!("{NEW_EVENTS}?fieldSelector=involvedObject.name%3Da"))
                    .body(Vec::new())
                    .unwrap(),
            )
            .await,
    );
    assert_eq!(status.message, "field label not supported: involvedObject.name");

    let patch = json!({"deprecatedCount": 4}).to_string();
    let status = refused(send(&client, "PATCH", &format!("{NEW_EVENTS}/ebb"), MERGE, patch).await);
    assert_eq!(status.message, "Event \"ebb\" is invalid: count: Invalid value: 4: field is immutable");
    let patch = json!({"series": {"count": 4, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}}).to_string();
    send(&client, "PATCH", &format!("{NEW_EVENTS}/ebb"), MERGE, patch).await.unwrap();
    assert_eq!(get(&client, &format!("{EVENTS}/ebb"), JSON).await["series"]["count"], 4);
    let status = refused(send_json(&client, "POST", NEW_EVENTS, &new).await);
    assert_eq!(status.message, "events.events.k8s.io \"flood\" already exists");
    send(&client, "DELETE", &format!("{NEW_EVENTS}/flood"), JSON, "").await.unwrap();
    assert_eq!(get(&client, EVENTS, JSON).await["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn options_that_make_no_sense_are_named() {
    let client = server().client("test");
    send_json(&client, "POST", CONFIGS, &json!({"metadata": {"name": "a"}})).await.unwrap();
    for (method, path, content_type, body, expected) in [
        (
            "GET",
            "?resourceVersionMatch=Exact",
            JSON,
            "",
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch",
        ),
        ("GET", "?resourceVersion=x", JSON, "", "invalid resource version: resourceVersion: Invalid value: \"x\""),
        ("GET", "?labelSelector=a%3D(", JSON, "", "unable to parse requirement: found '(', expected: identifier"),
        ("GET", "?fieldSelector=data.a%3Db", JSON, "", "\"data.a\" is not a known field selector: only"),
        (
            "POST",
            "?dryRun=Some",
            JSON,
            "{}",
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]",
        ),
        ("POST", "?fieldValidation=Hard", JSON, "{}", "fieldValidation: Unsupported value: \"Hard\""),
        ("PATCH", "/a?force=true", MERGE, "{}", "force: Forbidden: may not be specified for non-apply patch"),
        ("PATCH", "/a", APPLY, "{}", "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value"),
        ("DELETE", "/a?dryRun=Some", JSON, "", "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun"),
    ] {
        let status = refused(send(&client, method, &format!("{CONFIGS}{path}"), content_type, body).await);
        assert!(status.message.contains(expected), "{}", status.message);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_out_is_said_so_and_what_never_was_is_just_missing() {
    let client = server().client("test");
    let status = refused(send_json(&client, "POST", "/api/v1/namespaces/default/resourcequotas", &json!({})).await);
    assert_eq!((status.code, status.reason.as_str()), (404, "NotFound"));
    assert_eq!(status.message, "drydock does not offer resourcequotas (v1)");
    let token = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let status = refused(send_json(&client, "POST", token, &json!({})).await);
    assert_eq!(status.message, "drydock does not offer serviceaccounts/token (v1)");
    let proxied = "/api/v1/namespaces/default/services/web/proxy/healthz";
    let status = refused(send_json(&client, "POST", proxied, &json!({})).await);
    assert_eq!(status.message, "drydock does not offer services/proxy (v1)");
    for nowhere in ["/apis/example.com/v1/ships", "/apis/ships.k8s.io/v1", "/ships", "/apiships", "/openapi"] {
        let status = refused(send_json(&client, "POST", nowhere, &json!({})).await);
        assert_eq!(status.message, "404 page not found", "{nowhere}");
    }
    for unknown in ["/api/v1/ships", "/api/v9", "/apis/apps/v9", "/apis/storage.k8s.io/v9", "/version/ships"] {
        let status = refused(send_json(&client, "POST", unknown, &json!({})).await);
        assert_eq!(status.message, "the server could not find the requested resource", "{unknown}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_is_well_and_says_where_to_look() {
    let client = server().client("test");
    for probe in ["healthz", "livez", "readyz"] {
        assert_eq!(text(&client, &format!("/{probe}")).await, "ok");
        assert_eq!(text(&client, &format!("/{probe}/ping")).await, "ok");
        let verbose = text(&client, &format!("/{probe}?verbose")).await;
        assert!(
            verbose.starts_with("[+]ping ok\n") && verbose.ends_with(&format!("{probe} check passed\n")),
            "{verbose}"
        );
    }
    let paths = get(&client, "/", JSON).await;
    assert!(paths["paths"].as_array().unwrap().contains(&json!("/apis/apps/v1")));
    let groups = get(&client, "/apis", JSON).await;
    let names: Vec<_> = groups["groups"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names.first(), Some(&"apps"), "the most important first");
    assert_eq!(names.last(), Some(&"gateway.networking.k8s.io"), "custom ones last");
}

#[tokio::test(start_paused = true)]
async fn openapi_is_named_by_what_is_in_it() {
    let client = server().client("test");
    let index = get(&client, "/openapi/v3", JSON).await;
    let place = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
    assert!(place.starts_with("/openapi/v3/apis/apps/v1?hash="), "{place}");
    let kept = async |path: &str| {
        let request = http::Request::get(path).body(kube::client::Body::empty()).unwrap();
        client.send(request).await.unwrap().headers().contains_key("cache-control")
    };
    assert!(kept(place).await && !kept("/openapi/v3/apis/apps/v1?hash=0").await);
    let document = get(&client, place, JSON).await;
    let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert!(patch["requestBody"]["content"]["application/strategic-merge-patch+json"].is_object(), "{patch}");
    assert!(document["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"].is_object());

    let all = get(&client, "/openapi/v2", JSON).await;
    assert_eq!(all["swagger"], "2.0");
    let route = &all["paths"]["/apis/gateway.networking.k8s.io/v1/namespaces/{namespace}/httproutes/{name}"]["patch"];
    assert_eq!(route["consumes"].as_array().unwrap().len(), 3, "no strategic merge for custom kinds");
    let definitions = all["definitions"].as_object().unwrap();
    let text = all.to_string();
    for reference in text.split("\"$ref\":\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let name = reference.strip_prefix("#/definitions/").unwrap();
        assert!(definitions.contains_key(name), "{name} is missing");
    }
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let request = http::Request::get("/openapi/v2").header("accept", protobuf);
    let answer = client.send(request.body(kube::client::Body::empty()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"].to_str().unwrap(), protobuf.replace('@', "."));
    let request = http::Request::get("/openapi/v3").header("accept", protobuf).body(Vec::new()).unwrap();
    assert_eq!(refused(client.request::<Value>(request).await).code, 406);
}

/// A field of a protobuf message that holds bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut sent = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
    sent.extend(content);
    sent
}

#[tokio::test(start_paused = true)]
async fn typed_go_clients_send_protobuf_and_take_json() {
    let client = server().client("test");
    let protobuf = "application/vnd.kubernetes.protobuf";
    let body = |api_version: &[u8], kind: &[u8], content: &[u8]| {
        let header = [field(1, api_version), field(2, kind)].concat();
        [b"k8s\0".to_vec(), field(1, &header), field(2, content)].concat()
    };
    let entry = [field(1, b"key"), field(2, b"value")].concat();
    let config = [field(1, &[field(1, b"a"), field(6, b"")].concat()), field(2, &entry)].concat();
    let made = send(&client, "POST", CONFIGS, protobuf, body(b"v1", b"ConfigMap", &config)).await.unwrap();
    assert_eq!((&made["metadata"]["name"], &made["data"]), (&json!("a"), &json!({"key": "value"})));
    let options = body(b"v1", b"DeleteOptions", &field(5, b"All"));
    send(&client, "DELETE", &format!("{CONFIGS}/a"), protobuf, options).await.unwrap();
    assert_eq!(get(&client, CONFIGS, JSON).await["items"].as_array().unwrap().len(), 1, "that was a dry run");
    let status = refused(send(&client, "POST", CONFIGS, protobuf, "k8s\0\x0a").await);
    assert_eq!(status.code, 400);
    let routes = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes";
    let status = refused(send(&client, "POST", routes, protobuf, "k8s\0").await);
    assert_eq!(status.code, 415, "custom kinds have no numbers");
}

#[tokio::test(start_paused = true)]
async fn a_client_may_say_who_owns_what() {
    let client = server().client("test");
    let path = format!("{CONFIGS}/a");
    let made = format!("{CONFIGS}?fieldManager=one");
    send_json(&client, "POST", &made, &json!({"metadata": {"name": "a"}, "data": {"x": "1"}})).await.unwrap();
    let managers = async || {
        let object = get(&client, &path, JSON).await;
        let entries = object["metadata"]["managedFields"].as_array().unwrap().clone();
        entries.iter().map(|entry| entry["manager"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let mut object = get(&client, &path, JSON).await;
    object["metadata"]["managedFields"][0]["manager"] = json!("two");
    send_json(&client, "PUT", &format!("{path}?fieldManager=mover"), &object).await.unwrap();
    assert_eq!(managers().await, ["two"]);
    object["metadata"]["managedFields"] = json!([{"manager": "nobody"}]);
    object["metadata"]["resourceVersion"] = json!("");
    send_json(&client, "PUT", &format!("{path}?fieldManager=mover"), &object).await.unwrap();
    assert_eq!(managers().await, ["two"], "that was no list of owners");
    let patch = json!({"metadata": {"managedFields": [{}]}}).to_string();
    send(&client, "PATCH", &path, MERGE, patch).await.unwrap();
    assert!(get(&client, &path, JSON).await["metadata"].get("managedFields").is_none_or(|it| it == &json!([])));
}

#[tokio::test(start_paused = true)]
async fn who_applied_on_the_client_before_is_no_stranger_on_the_server() {
    let client = server().client("test");
    let path = format!("{CONFIGS}/a");
    let record = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}});
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let object = json!({"metadata": {"name": "a", "annotations": {annotation: record.to_string()}}, "data": {"x": "1", "y": "1"}});
    send_json(&client, "POST", &format!("{CONFIGS}?fieldManager=kubectl-client-side-apply"), &object).await.unwrap();
    let apply = async |manager: &str, data: Value| {
        let body =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}).to_string();
        send(&client, "PATCH", &format!("{path}?fieldManager={manager}"), APPLY, body).await
    };
    assert_eq!(refused(apply("stranger", json!({"x": "2"})).await).code, 409);
    let status = refused(apply("kubectl", json!({"x": "2", "y": "2"})).await);
    assert!(status.message.contains(".data.y") && !status.message.contains(".data.x"), "{}", status.message);
    let applied = apply("kubectl", json!({"x": "2"})).await.unwrap();
    assert_eq!(applied["data"], json!({"x": "2", "y": "1"}));
    let kept = applied["metadata"]["annotations"][annotation].as_str().unwrap();
    assert_eq!(
        kept,
        "{\"apiVersion\":\"v1\",\"data\":{\"x\":\"2\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_admitted_as_everywhere() {
    let client = server().client("test");
    let anything = json!([{"operator": "Exists"}]);
    for (name, tolerations, expected) in [("plain", json!([]), 2), ("patient", anything, 1)] {
        let spec = json!({"containers": [{"name": "main", "image": "podinfo:1"}], "tolerations": tolerations});
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        let made = send_json(&client, "POST", "/api/v1/namespaces/default/pods", &pod).await.unwrap();
        assert_eq!(
            (&made["spec"]["priority"], made["spec"]["tolerations"].as_array().unwrap().len()),
            (&json!(0), expected)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_scale_has_columns_of_its_own() {
    let client = server().client("test");
    let path = "/apis/apps/v1/namespaces/default/deployments";
    send_json(&client, "POST", path, &super::deployment_json("podinfo")).await.unwrap();
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let shown = get(&client, &format!("{path}/podinfo/scale"), table).await;
    assert_eq!(shown["rows"][0]["cells"], json!(["podinfo", 1, 0, "0s"]));
    assert_eq!(get(&client, &format!("{path}/podinfo/scale"), JSON).await["kind"], "Scale");
}
