//! The four patch languages, and who owns what after them.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::{config, deployment, deployment_json, refused, server};

fn deployments(client: &Client) -> Api<Deployment> {
    Api::default_namespaced(client.clone())
}

fn applied(spec: &Value) -> Patch<Value> {
    let mut object = deployment_json("podinfo");
    json_patch::merge(&mut object["spec"], spec);
    Patch::Apply(object)
}

fn image(deployment: &Deployment) -> String {
    deployment.spec.as_ref().unwrap().template.spec.as_ref().unwrap().containers[0].image.clone().unwrap()
}

/// Lists in lists, copies of copies, and more operations than anybody needs.
#[tokio::test(start_paused = true)]
async fn a_json_patch_does_not_grow_without_bounds() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().client("test"));
    api.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    let begin = json!({"op": "add", "path": "/q", "value": ["x".repeat(1000)]});
    let patch = |more: Vec<Value>| {
        let operations = std::iter::once(begin.clone()).chain(more).collect();
        Patch::<()>::Json(serde_json::from_value(Value::Array(operations)).unwrap())
    };
    let mut deeper = vec![json!({"op": "copy", "from": "/r", "path": "/r/a"}); 9_000];
    deeper.insert(0, json!({"op": "add", "path": "/r", "value": {}}));
    let wider = vec![json!({"op": "copy", "from": "/q", "path": "/q/-"}); 30];
    let longer = vec![json!({"op": "test", "path": "/kind", "value": "ConfigMap"}); 10_000];
    let chained = (0..80).map(|link| {
        let path = format!("/q{}", "/0".repeat(100 * link));
        let value: Value = serde_json::from_str(&format!("{}{}", "[".repeat(101), "]".repeat(101))).unwrap();
        json!({"op": "add", "path": path, "value": value})
    });
    for (operations, code, why) in [
        (deeper, 400, "more than 127 levels deep"),
        (wider, 413, "Unable to complete the copy, the accumulated size increase of copy is"),
        (longer, 413, "The allowed maximum operations in a JSON patch is 10000, got 10001"),
        (chained.collect(), 400, "more than 127 levels deep"),
    ] {
        let status = refused(api.patch("a", &PatchParams::default(), &patch(operations)).await);
        assert!(status.code == code && status.message.contains(why), "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_is_guarded_by_its_tests() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().client("test"));
    let made = api.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    let patch = |version: &str, value: &str| {
        let operations = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": "/data/key", "value": value},
        ]);
        Patch::<()>::Json(serde_json::from_value(operations).unwrap())
    };
    let version = made.metadata.resource_version.unwrap();
    let changed = api.patch("a", &PatchParams::default(), &patch(&version, "2")).await.unwrap();
    assert_eq!(changed.data.unwrap()["key"], "2");
    let status = refused(api.patch("a", &PatchParams::default(), &patch(&version, "3")).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(status.message, "the server rejected our request due to an error in our request");
    let missing = Patch::<()>::Json(serde_json::from_value(json!([{"op": "remove", "path": "/data/none"}])).unwrap());
    assert_eq!(refused(api.patch("a", &PatchParams::default(), &missing).await).code, 422);
}

#[tokio::test(start_paused = true)]
async fn a_merge_patch_with_a_version_is_a_compare_and_swap() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().client("test"));
    let made = api.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    let patch =
        Patch::Merge(json!({"metadata": {"resourceVersion": made.metadata.resource_version}, "data": {"other": "x"}}));
    let changed = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(changed.data.unwrap().len(), 2);
    assert_eq!(refused(api.patch("a", &PatchParams::default(), &patch).await).code, 409);
}

#[tokio::test(start_paused = true)]
async fn a_strategic_patch_merges_containers_by_name() {
    let api = deployments(&server().client("test"));
    api.create(&PostParams::default(), &deployment("podinfo")).await.unwrap();
    let patch = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "main", "image": "podinfo:6.0.1"}, {"name": "sidecar", "image": "proxy:1"},
    ]}}}});
    let changed = api.patch("podinfo", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    let containers = changed.spec.unwrap().template.spec.unwrap().containers;
    assert_eq!(containers.len(), 2);
    assert_eq!(containers[0].image.as_deref(), Some("podinfo:6.0.1"));
    assert!(containers[0].ports.is_some(), "what the patch does not mention stays");
    assert_eq!(containers[1].image_pull_policy.as_deref(), Some("IfNotPresent"));
}

#[tokio::test(start_paused = true)]
async fn apply_creates_changes_and_removes_what_it_no_longer_says() {
    let server = server();
    let api = deployments(&server.client("test"));
    let params = PatchParams::apply("seaway");
    let made = api.patch("podinfo", &params, &applied(&json!({"minReadySeconds": 5, "paused": true}))).await.unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    let entry = &made.metadata.managed_fields.as_ref().unwrap()[0];
    assert_eq!((entry.manager.as_deref(), entry.operation.as_deref()), (Some("seaway"), Some("Apply")));
    let fields = &entry.fields_v1.as_ref().unwrap().0["f:spec"];
    assert_eq!(fields["f:minReadySeconds"], json!({}));
    assert_eq!(fields.get("f:replicas"), None, "defaults belong to nobody");
    assert_eq!(
        fields["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"main\"}"]["f:ports"],
        json!({"k:{\"containerPort\":9898,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}})
    );
    let revision = server.revision();
    api.patch("podinfo", &params, &applied(&json!({"minReadySeconds": 5, "paused": true}))).await.unwrap();
    assert_eq!(server.revision(), revision, "applying the same again is no write");
    let changed = api.patch("podinfo", &params, &applied(&json!({"paused": true}))).await.unwrap();
    assert_eq!(changed.spec.as_ref().unwrap().min_ready_seconds, None);
    assert_eq!((changed.spec.unwrap().paused, changed.metadata.generation), (Some(true), Some(2)));
}

#[tokio::test(start_paused = true)]
async fn apply_refuses_to_take_fields_unless_forced() {
    let api = deployments(&server().client("test"));
    let replicas = |count: i32| applied(&json!({"replicas": count}));
    api.patch("podinfo", &PatchParams::apply("alice"), &replicas(1)).await.unwrap();
    api.patch("podinfo", &PatchParams::apply("bob"), &replicas(1)).await.unwrap();
    let status = refused(api.patch("podinfo", &PatchParams::apply("bob"), &replicas(2)).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"alice\": .spec.replicas");
    let cause = status.details.unwrap().causes.remove(0);
    assert_eq!((cause.reason.as_str(), cause.field.as_str()), ("FieldManagerConflict", ".spec.replicas"));
    assert_eq!(cause.message, "conflict with \"alice\"");
    let forced = api.patch("podinfo", &PatchParams::apply("bob").force(), &replicas(2)).await.unwrap();
    assert_eq!(forced.spec.unwrap().replicas, Some(2));
    let kept = api.patch("podinfo", &PatchParams::apply("alice"), &applied(&json!({}))).await.unwrap();
    assert_eq!(kept.spec.unwrap().replicas, Some(2), "alice lost the field, so she cannot remove it");
    let status = refused(api.patch("podinfo", &PatchParams::default(), &applied(&json!({}))).await);
    assert!(status.message.contains("fieldManager: Required value"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn a_plain_write_takes_fields_without_asking() {
    let api = deployments(&server().client("scaler/1.0"));
    let params = PatchParams::apply("seaway");
    api.patch("podinfo", &params, &applied(&json!({"replicas": 1}))).await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"replicas": 4}}));
    api.patch_scale("podinfo", &PatchParams::default(), &patch).await.unwrap();
    let status = refused(api.patch("podinfo", &params, &applied(&json!({"replicas": 1}))).await);
    assert_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"scaler\" with subresource \"scale\" using apps/v1: .spec.replicas"
    );
    let kept = api.patch("podinfo", &params, &applied(&json!({}))).await.unwrap();
    assert_eq!(kept.spec.unwrap().replicas, Some(4), "an apply without replicas leaves them to the scaler");
}

#[tokio::test(start_paused = true)]
async fn appliers_share_lists_of_named_items() {
    let client = server().client("test");
    let api: Api<Service> = Api::default_namespaced(client);
    let ports = |ports: Value| {
        Patch::Apply(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": ports}}),
        )
    };
    let (http, grpc) = (json!({"name": "http", "port": 80}), json!({"name": "grpc", "port": 9999}));
    api.patch("a", &PatchParams::apply("one"), &ports(json!([http]))).await.unwrap();
    let both = api.patch("a", &PatchParams::apply("two"), &ports(json!([grpc]))).await.unwrap();
    assert_eq!(both.spec.unwrap().ports.unwrap().len(), 2);
    let left = api.patch("a", &PatchParams::apply("one"), &ports(json!([]))).await.unwrap();
    let left: Vec<_> = left.spec.unwrap().ports.unwrap().into_iter().filter_map(|port| port.name).collect();
    assert_eq!(left, ["grpc"]);
}

#[tokio::test(start_paused = true)]
async fn labels_and_owners_of_others_survive_an_apply() {
    let api = deployments(&server().client("test"));
    api.create(&PostParams::default(), &deployment("podinfo")).await.unwrap();
    let patch = Patch::Merge(json!({"metadata": {"labels": {"team": "web"}, "annotations": {"note": "x"}}}));
    api.patch("podinfo", &PatchParams::default(), &patch).await.unwrap();
    let mut object = deployment_json("podinfo");
    object["metadata"]["labels"] = json!({"by": "seaway"});
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("podinfo:6.0.1");
    let changed =
        api.patch("podinfo", &PatchParams::apply("seaway").force(), &Patch::Apply(object.clone())).await.unwrap();
    assert_eq!(image(&changed), "podinfo:6.0.1");
    let labels = changed.metadata.labels.unwrap();
    assert_eq!((labels["team"].as_str(), labels["by"].as_str()), ("web", "seaway"));
    object["metadata"]["labels"] = Value::Null;
    let changed = api.patch("podinfo", &PatchParams::apply("seaway").force(), &Patch::Apply(object)).await.unwrap();
    assert_eq!(changed.metadata.labels.unwrap().into_keys().collect::<Vec<_>>(), ["team"]);
}

#[tokio::test(start_paused = true)]
async fn status_is_applied_on_its_own_endpoint() {
    let api = deployments(&server().client("test"));
    api.create(&PostParams::default(), &deployment("podinfo")).await.unwrap();
    let status = json!({"apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 3}});
    let changed = api.patch_status("podinfo", &PatchParams::apply("controller"), &Patch::Apply(status)).await.unwrap();
    assert_eq!(changed.status.unwrap().replicas, Some(3));
    let entry = changed.metadata.managed_fields.unwrap().remove(0);
    assert_eq!((entry.operation.as_deref(), entry.subresource.as_deref()), (Some("Apply"), Some("status")));
    assert_eq!(entry.fields_v1.unwrap().0, json!({"f:status": {"f:replicas": {}}}));
}

#[tokio::test(start_paused = true)]
async fn a_replacement_adds_a_member_that_is_not_there_but_never_an_item() {
    let client = server().client("test");
    let path = "/api/v1/namespaces/default/configmaps";
    super::send_json(&client, "POST", path, &json!({"metadata": {"name": "a"}})).await.unwrap();
    let patch = |body: serde_json::Value| {
        let request = http::Request::patch(format!("{path}/a")).header("content-type", "application/json-patch+json");
        client.request::<serde_json::Value>(request.body(body.to_string().into_bytes()).unwrap())
    };
    let made = patch(json!([{"op": "replace", "path": "/data", "value": {"x": "1"}}])).await.unwrap();
    assert_eq!(made["data"]["x"], "1");
    let status = refused(patch(json!([{"op": "replace", "path": "/metadata/finalizers/0", "value": "x/y"}])).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
}

/// Go cannot tell what is zero from what was never given, unless a pointer leads to it.
#[tokio::test(start_paused = true)]
async fn a_patch_to_zero_of_what_go_leaves_out_changes_nothing() {
    let api = deployments(&server().client("test"));
    let made = api.create(&PostParams::default(), &deployment("podinfo")).await.unwrap();
    let nothing = json!({"spec": {
        "paused": false, "minReadySeconds": 0,
        "template": {"spec": {"hostNetwork": false, "hostname": "", "containers": [
            {"name": "main", "workingDir": "", "tty": false},
        ]}},
    }});
    let patched = api.patch("podinfo", &PatchParams::default(), &Patch::Strategic(&nothing)).await.unwrap();
    assert_eq!(patched, made);
    let params = PatchParams::apply("somebody").force();
    let applied = api.patch("podinfo", &params, &applied(&json!({"paused": false, "replicas": 0}))).await.unwrap();
    let spec = applied.spec.unwrap();
    assert_eq!((spec.paused, spec.replicas), (None, Some(0)));
    assert_eq!(applied.metadata.generation, Some(2));
}
