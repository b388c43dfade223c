//! Deletion: preconditions, finalizers, grace, owners, namespaces.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy, WatchEvent, WatchParams,
};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::{config, refused, send_json, server, settle};

fn configs(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

async fn make(api: &Api<ConfigMap>, name: &str, metadata: Value) -> ConfigMap {
    let mut object = json!({"metadata": metadata});
    object["metadata"]["name"] = name.into();
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
}

fn owned_by(owner: &ConfigMap) -> Value {
    json!({"ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.uid(), "blockOwnerDeletion": true,
    }]})
}

async fn names(api: &Api<ConfigMap>) -> Vec<String> {
    api.list(&ListParams::default()).await.unwrap().items.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn preconditions_protect_against_deleting_another_object() {
    let api = configs(&server().client("test"));
    let made = api.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    for (uid, version) in [(Some("other".to_owned()), None), (None, Some("1".to_owned()))] {
        let params = DeleteParams::default().preconditions(Preconditions { uid, resource_version: version });
        let status = refused(api.delete("a", &params).await);
        assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
        assert!(status.message.contains("in the precondition"), "{}", status.message);
    }
    let right = Preconditions { uid: made.uid(), resource_version: made.resource_version() };
    let answer = api.delete("a", &DeleteParams::default().preconditions(right)).await.unwrap();
    let status = answer.right().unwrap();
    assert_eq!(status.details.unwrap().uid, made.uid().unwrap());
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_the_last_is_gone() {
    let server = server();
    let api = configs(&server.client("test"));
    make(&api, "a", json!({"finalizers": ["seaway.dev/hold", "seaway.dev/other"]})).await;
    let marked = api.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(marked.metadata.deletion_timestamp.is_some());
    let patch = Patch::Merge(json!({"metadata": {"finalizers": ["seaway.dev/other"]}}));
    api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_some());
    let patch = Patch::Merge(json!({"metadata": {"finalizers": ["seaway.dev/other", "seaway.dev/new"]}}));
    let status = refused(api.patch("a", &PatchParams::default(), &patch).await);
    assert!(status.message.contains("found new finalizers []string{\"seaway.dev/new\"}"), "{}", status.message);
    let mut events = api.watch(&WatchParams::default(), &server.revision().to_string()).await.unwrap().boxed();
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());
    assert!(matches!(events.try_next().await.unwrap(), Some(WatchEvent::Deleted(_))));
}

#[tokio::test(start_paused = true)]
async fn a_running_pod_gets_its_time() {
    let client = server().client("test");
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let pod = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "deck", "containers": [{"name": "main", "image": "podinfo:1"}]}});
    api.create(&PostParams::default(), &serde_json::from_value(pod.clone()).unwrap()).await.unwrap();
    let marked = api.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(marked.metadata.deletion_grace_period_seconds, Some(30));
    assert_eq!(marked.metadata.deletion_timestamp.unwrap().0.to_string(), "2026-01-01T00:00:30Z");
    assert_eq!(marked.metadata.generation, Some(2));
    let again = api.delete("a", &DeleteParams::default().grace_period(60)).await.unwrap().left().unwrap();
    assert_eq!(again.metadata.deletion_grace_period_seconds, Some(30), "time is never added");
    api.delete("a", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());
    api.create(&PostParams::default(), &serde_json::from_value(pod.clone()).unwrap()).await.unwrap();
    let patient = json!({"gracePeriodSeconds": i64::MAX});
    let path = "/api/v1/namespaces/default/pods/a";
    let marked = send_json(&client, "DELETE", path, &patient).await.unwrap();
    assert_eq!(marked["metadata"]["deletionTimestamp"], "9999-12-30T22:00:00Z", "the last moment there is");
    send_json(&client, "DELETE", path, &json!({"gracePeriodSeconds": 0})).await.unwrap();
    let mut waiting = pod;
    waiting["spec"]["nodeName"] = Value::Null;
    api.create(&PostParams::default(), &serde_json::from_value(waiting).unwrap()).await.unwrap();
    assert!(api.delete("a", &DeleteParams::default()).await.unwrap().is_left(), "the answer is the pod");
    assert!(api.get_opt("a").await.unwrap().is_none(), "nobody runs it");
}

#[tokio::test(start_paused = true)]
async fn dependents_follow_their_owner_in_the_background() {
    let server = server();
    let api = configs(&server.client("test"));
    let owner = make(&api, "owner", json!({})).await;
    let child = make(&api, "child", owned_by(&owner)).await;
    make(&api, "grandchild", owned_by(&child)).await;
    make(&api, "other", json!({})).await;
    api.delete("owner", &DeleteParams::default()).await.unwrap();
    settle().await;
    assert_eq!(names(&api).await, ["other"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_owner_never_was_goes() {
    let api = configs(&server().client("test"));
    let owner = make(&api, "owner", json!({})).await;
    api.delete("owner", &DeleteParams::default()).await.unwrap();
    make(&api, "late", owned_by(&owner)).await;
    settle().await;
    assert!(names(&api).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_living_owner_is_enough() {
    let api = configs(&server().client("test"));
    let (one, two) = (make(&api, "one", json!({})).await, make(&api, "two", json!({})).await);
    let mut owners = owned_by(&one);
    let second = owned_by(&two)["ownerReferences"][0].clone();
    owners["ownerReferences"].as_array_mut().unwrap().push(second);
    make(&api, "child", owners).await;
    api.delete("one", &DeleteParams::default()).await.unwrap();
    settle().await;
    let left = api.get("child").await.unwrap().metadata.owner_references.unwrap();
    assert_eq!(left.iter().map(|owner| owner.name.as_str()).collect::<Vec<_>>(), ["two"]);
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_waits_for_the_dependents() {
    let api = configs(&server().client("test"));
    let owner = make(&api, "owner", json!({})).await;
    let mut held = owned_by(&owner);
    held["finalizers"] = json!(["seaway.dev/hold"]);
    make(&api, "child", held).await;
    let marked = api.delete("owner", &DeleteParams::foreground()).await.unwrap().left().unwrap();
    assert_eq!(marked.finalizers(), ["foregroundDeletion"]);
    settle().await;
    assert!(api.get("child").await.unwrap().metadata.deletion_timestamp.is_some());
    assert_eq!(names(&api).await, ["child", "owner"]);
    api.patch("child", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
        .await
        .unwrap();
    settle().await;
    assert!(names(&api).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_and_forget_their_owner() {
    let api = configs(&server().client("test"));
    let owner = make(&api, "owner", json!({})).await;
    make(&api, "child", owned_by(&owner)).await;
    let params = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    api.delete("owner", &params).await.unwrap();
    settle().await;
    assert_eq!(names(&api).await, ["child"]);
    assert_eq!(api.get("child").await.unwrap().metadata.owner_references, None);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_selector() {
    let api = configs(&server().client("test"));
    for name in ["a", "b", "c"] {
        api.create(&PostParams::default(), &config(name, "1")).await.unwrap();
    }
    let list = api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("app!=b")).await.unwrap();
    assert_eq!(list.left().unwrap().items.len(), 2);
    assert_eq!(names(&api).await, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_collection_obeys_the_options_in_its_body() {
    let client = server().client("test");
    let api = configs(&client);
    let made = api.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    let other = api.create(&PostParams::default(), &config("b", "1")).await.unwrap();
    let delete = async |options: Value| {
        send_json(&client, "DELETE", "/api/v1/namespaces/default/configmaps?labelSelector=app", &options).await
    };
    let shown = delete(json!({"dryRun": ["All"]})).await.unwrap();
    assert_eq!((shown["items"].as_array().unwrap().len(), names(&api).await.len()), (2, 2));
    let status = refused(delete(json!({"preconditions": {"uid": made.uid()}})).await);
    assert_eq!((status.code, names(&api).await), (409, vec!["b".to_owned()]), "the first matched, the second did not");
    delete(json!({"preconditions": {"resourceVersion": other.resource_version()}})).await.unwrap();
    assert!(names(&api).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_everything_in_it() {
    let client = server().client("test");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let made = serde_json::from_value(json!({"metadata": {"name": "test"}})).unwrap();
    namespaces.create(&PostParams::default(), &made).await.unwrap();
    namespaces.replace("test", &PostParams::default(), &made).await.unwrap();
    let api: Api<ConfigMap> = Api::namespaced(client, "test");
    make(&api, "plain", json!({})).await;
    make(&api, "held", json!({"finalizers": ["seaway.dev/hold"]})).await;
    let marked = namespaces.delete("test", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(marked.status.unwrap().phase.as_deref(), Some("Terminating"));
    settle().await;
    assert_eq!(names(&api).await, ["held"]);
    let status = refused(api.create(&PostParams::default(), &config("new", "1")).await);
    assert_eq!(status.code, 403);
    assert!(status.message.contains("because it is being terminated"), "{}", status.message);
    api.patch("held", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}}))).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(namespaces.get_opt("test").await.unwrap().is_none());
}
