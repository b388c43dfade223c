//! The API server, asked by a real `kube::Client`.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::watcher;
use kube::{Client, ResourceExt};
use seaway_drydock::apiserver::ApiServer;
use seaway_drydock::{Clock, Seed};
use serde_json::{Value, json};

fn server() -> ApiServer {
    ApiServer::start(Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap(), 1), Seed::new(1))
}

fn config(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": name}}, "data": {"key": value}}))
        .unwrap()
}

fn deployment(name: &str) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "podinfo:6.0.0", "ports": [{"containerPort": 9898}]}]},
            },
        },
    }))
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_read_listed_replaced_and_deleted() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().client("test"));
    let made = api.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    assert!(made.uid().is_some() && made.creation_timestamp().is_some());
    assert_eq!(api.get("a").await.unwrap(), made);
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let mut changed = made.clone();
    changed.data = Some([("key".to_owned(), "2".to_owned())].into());
    let changed = api.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(changed.resource_version(), made.resource_version());
    let stale = api.replace("a", &PostParams::default(), &made).await.unwrap_err();
    assert!(stale.to_string().contains("Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"), "{stale}");
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let gone = api.get("a").await.unwrap_err();
    assert!(gone.to_string().contains("configmaps \"a\" not found"), "{gone}");
}

#[tokio::test(start_paused = true)]
async fn watchers_of_kube_runtime_follow_in_both_modes() {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let server = server();
        let api: Api<ConfigMap> = Api::default_namespaced(server.client("test"));
        api.create(&PostParams::default(), &self::config("a", "1")).await.unwrap();
        let mut events = watcher(api.clone(), config).boxed();
        assert!(matches!(events.try_next().await.unwrap(), Some(watcher::Event::Init)));
        assert!(
            matches!(events.try_next().await.unwrap(), Some(watcher::Event::InitApply(object)) if object.name_any() == "a")
        );
        assert!(matches!(events.try_next().await.unwrap(), Some(watcher::Event::InitDone)));
        api.create(&PostParams::default(), &self::config("b", "1")).await.unwrap();
        assert!(
            matches!(events.try_next().await.unwrap(), Some(watcher::Event::Apply(object)) if object.name_any() == "b")
        );
        api.delete("b", &DeleteParams::default()).await.unwrap();
        assert!(
            matches!(events.try_next().await.unwrap(), Some(watcher::Event::Delete(object)) if object.name_any() == "b")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_gets_its_defaults_and_counts_generations() {
    let api: Api<Deployment> = Api::default_namespaced(server().client("test"));
    let made = api.create(&PostParams::default(), &deployment("podinfo")).await.unwrap();
    let spec = made.spec.clone().unwrap();
    assert_eq!(
        (spec.replicas, spec.revision_history_limit, spec.progress_deadline_seconds),
        (Some(1), Some(10), Some(600))
    );
    assert_eq!(made.metadata.generation, Some(1));
    let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    assert_eq!(api.patch("podinfo", &PatchParams::default(), &patch).await.unwrap().metadata.generation, Some(1));
    let patch = Patch::Merge(json!({"spec": {"replicas": 2}}));
    assert_eq!(api.patch("podinfo", &PatchParams::default(), &patch).await.unwrap().metadata.generation, Some(2));
    let patch = Patch::Merge(json!({"status": {"replicas": 2}, "spec": {"replicas": 9}}));
    let seen = api.patch_status("podinfo", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(seen.metadata.generation, Some(2));
    assert_eq!(seen.spec.unwrap().replicas, Some(2));
    assert_eq!(seen.status.unwrap().replicas, Some(2));
}
