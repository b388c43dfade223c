//! Get, list, watch, selectors, paging, discovery.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::{config, refused, server};

fn configs(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

async fn make(api: &Api<ConfigMap>, names: &[&str]) {
    for name in names {
        api.create(&PostParams::default(), &config(name, "1")).await.unwrap();
    }
}

fn names(list: &[ConfigMap]) -> Vec<String> {
    list.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_a_not_found_status() {
    let status = refused(configs(&server().client("test")).get("a").await);
    assert_eq!((status.code, status.reason.as_str()), (404, "NotFound"));
    assert_eq!(status.message, "configmaps \"a\" not found");
    let details = status.details.unwrap();
    assert_eq!((details.name.as_str(), details.kind.as_str()), ("a", "configmaps"));
}

#[tokio::test(start_paused = true)]
async fn lists_are_sorted_selected_and_paged_at_one_revision() {
    let server = server();
    let api = configs(&server.client("test"));
    make(&api, &["c", "a", "b", "d"]).await;
    assert_eq!(names(&api.list(&ListParams::default()).await.unwrap().items), ["a", "b", "c", "d"]);
    assert_eq!(names(&api.list(&ListParams::default().labels("app in (a,d)")).await.unwrap().items), ["a", "d"]);
    assert_eq!(
        names(&api.list(&ListParams::default().fields("metadata.name!=b")).await.unwrap().items),
        ["a", "c", "d"]
    );
    let first = api.list(&ListParams::default().limit(3)).await.unwrap();
    assert_eq!((names(&first.items).len(), first.metadata.remaining_item_count), (3, Some(1)));
    make(&api, &["z"]).await;
    let token = first.metadata.continue_.unwrap();
    let rest = api.list(&ListParams::default().limit(3).continue_token(&token)).await.unwrap();
    assert_eq!(names(&rest.items), ["d"], "the second page shows the revision of the first");
    assert_eq!(rest.metadata.resource_version, first.metadata.resource_version);
    make(&api, &["y"]).await;
    server.compact();
    let status = refused(api.list(&ListParams::default().continue_token(&token)).await);
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
}

#[tokio::test(start_paused = true)]
async fn events_and_pods_are_selected_by_their_fields() {
    let client = server().client("test");
    let events: Api<Event> = Api::default_namespaced(client.clone());
    for (name, reason, kind) in [("a", "Synced", "Normal"), ("b", "Failed", "Warning")] {
        let event = json!({
            "metadata": {"name": name}, "reason": reason, "type": kind,
            "involvedObject": {"kind": "Canary", "name": "podinfo", "namespace": "default"},
        });
        events.create(&PostParams::default(), &serde_json::from_value(event).unwrap()).await.unwrap();
    }
    let found = events.list(&ListParams::default().fields("involvedObject.name=podinfo,type=Warning")).await.unwrap();
    assert_eq!(found.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["b"]);
    let pods: Api<Pod> = Api::default_namespaced(client);
    assert!(
        pods.list(&ListParams::default().fields("spec.nodeName=,status.phase=Running")).await.unwrap().items.is_empty()
    );
    let status = refused(pods.list(&ListParams::default().fields("spec.image=x")).await);
    assert_eq!((status.code, status.message.as_str()), (400, "field label not supported: spec.image"));
}

#[tokio::test(start_paused = true)]
async fn watchers_of_kube_runtime_follow_in_both_modes() {
    for mode in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let api = configs(&server().client("test"));
        make(&api, &["a"]).await;
        let mut events = watcher(api.clone(), mode).boxed();
        assert!(matches!(events.try_next().await.unwrap(), Some(watcher::Event::Init)));
        assert!(
            matches!(events.try_next().await.unwrap(), Some(watcher::Event::InitApply(it)) if it.name_any() == "a")
        );
        assert!(matches!(events.try_next().await.unwrap(), Some(watcher::Event::InitDone)));
        make(&api, &["b"]).await;
        assert!(matches!(events.try_next().await.unwrap(), Some(watcher::Event::Apply(it)) if it.name_any() == "b"));
        api.delete("b", &DeleteParams::default()).await.unwrap();
        assert!(matches!(events.try_next().await.unwrap(), Some(watcher::Event::Delete(it)) if it.name_any() == "b"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_metadata_watcher_sees_metadata_only() {
    let client = server().client("test");
    make(&configs(&client), &["a"]).await;
    let api: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client);
    let mut events = watcher(api, watcher::Config::default()).boxed();
    assert!(matches!(events.try_next().await.unwrap(), Some(watcher::Event::Init)));
    assert!(matches!(events.try_next().await.unwrap(), Some(watcher::Event::InitApply(it)) if it.name_any() == "a"));
}

#[tokio::test(start_paused = true)]
async fn an_idle_watcher_outlives_compaction_and_costs_only_its_renewals() {
    let server = server();
    let api = configs(&server.client("test"));
    let mut events = watcher(api.clone(), watcher::Config::default()).boxed();
    for _ in 0..2 {
        events.try_next().await.unwrap();
    }
    server.log().clear();
    let waiting = tokio::time::timeout(Duration::from_secs(600), events.try_next()).await;
    assert!(waiting.is_err(), "nothing happened, so nothing is seen");
    let asked: Vec<_> = server.log().snapshot();
    assert!(asked.len() <= 3 && asked.iter().all(|request| request.verb == "watch"), "{asked:?}");
    server.compact();
    make(&api, &["a"]).await;
    assert!(matches!(events.try_next().await.unwrap(), Some(watcher::Event::Apply(it)) if it.name_any() == "a"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_starts_where_it_is_told() {
    let server = server();
    let api = configs(&server.client("test"));
    make(&api, &["a"]).await;
    let from = server.revision();
    make(&api, &["b"]).await;
    for (version, expected) in [(from.to_string(), "b"), ("0".to_owned(), "a"), (String::new(), "a")] {
        let mut events = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();
        let first = events.try_next().await.unwrap();
        assert!(
            matches!(&first, Some(WatchEvent::Added(it)) if it.name_any() == expected),
            "from {version:?}: {first:?}"
        );
    }
    server.compact();
    let mut events = api.watch(&WatchParams::default(), &from.to_string()).await.unwrap().boxed();
    let first = events.try_next().await.unwrap();
    assert!(
        matches!(&first, Some(WatchEvent::Error(status)) if status.code == 410 && status.reason == "Expired"),
        "{first:?}"
    );
    assert!(events.try_next().await.unwrap().is_none(), "the watch ends");
}

#[tokio::test(start_paused = true)]
async fn a_selected_watch_shows_objects_come_and_go() {
    let server = server();
    let api = configs(&server.client("test"));
    let params = WatchParams::default().labels("tier=web");
    let mut events = api.watch(&params, &server.revision().to_string()).await.unwrap().boxed();
    make(&api, &["a"]).await;
    for labels in [json!({"tier": "web"}), json!({"tier": "web", "x": "y"}), json!({"tier": "db"})] {
        let patch = json!({"metadata": {"labels": labels}});
        api.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
    assert!(matches!(events.try_next().await.unwrap(), Some(WatchEvent::Added(_))));
    assert!(matches!(events.try_next().await.unwrap(), Some(WatchEvent::Modified(_))));
    let Some(WatchEvent::Deleted(last)) = events.try_next().await.unwrap() else { panic!("it left the selection") };
    assert_eq!(last.labels()["tier"], "web", "the state that was last seen");
    assert_eq!(last.resource_version().unwrap(), server.revision().to_string(), "at the version at which it left");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_in_time_and_sends_bookmarks() {
    let server = server();
    let api = configs(&server.client("test"));
    let start = tokio::time::Instant::now();
    let params = WatchParams::default().timeout(130);
    let mut events = api.watch(&params, &server.revision().to_string()).await.unwrap().boxed();
    let namespaces: Api<Namespace> = Api::all(server.client("test"));
    let other = serde_json::from_value(json!({"metadata": {"name": "other"}})).unwrap();
    namespaces.create(&PostParams::default(), &other).await.unwrap();
    let current = server.revision().to_string();
    let mut bookmarks = 0;
    while let Some(event) = events.try_next().await.unwrap() {
        assert!(matches!(event, WatchEvent::Bookmark(mark) if mark.metadata.resource_version == current));
        bookmarks += 1;
    }
    assert_eq!(bookmarks, 3, "every minute and at the end");
    assert_eq!(start.elapsed().as_secs(), 130);
}

#[tokio::test(start_paused = true)]
async fn a_watch_may_be_asked_to_last_longer_than_time() {
    let server = server();
    let client = server.client("test");
    let path = format!("/api/v1/configmaps?watch=true&timeoutSeconds={}", i64::MAX);
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let mut events = client.request_events::<ConfigMap>(request).await.unwrap().boxed();
    make(&configs(&client), &["a"]).await;
    assert!(matches!(events.try_next().await.unwrap(), Some(WatchEvent::Added(it)) if it.name_any() == "a"));
}

#[tokio::test(start_paused = true)]
async fn a_version_from_the_future_is_a_timeout() {
    let server = server();
    let status = refused(configs(&server.client("test")).list(&ListParams::default().at("999999")).await);
    assert_eq!((status.code, status.reason.as_str()), (504, "Timeout"));
}

#[tokio::test(start_paused = true)]
async fn discovery_knows_every_resource_in_both_forms() {
    let client = server().client("test");
    assert_eq!(client.apiserver_version().await.unwrap().minor, "36");
    for aggregated in [false, true] {
        let discovery = kube::discovery::Discovery::new(client.clone());
        let discovery =
            if aggregated { discovery.run_aggregated().await.unwrap() } else { discovery.run().await.unwrap() };
        for (group, kind) in [("apps", "Deployment"), ("", "Pod"), ("gateway.networking.k8s.io", "HTTPRoute")] {
            let found =
                discovery.groups().filter(|known| known.name() == group).find_map(|known| known.recommended_kind(kind));
            assert!(found.is_some(), "{group} {kind} aggregated={aggregated}");
        }
    }
    let deployments = super::get(&client, "/apis/apps/v1", "application/json").await;
    let names: Vec<_> =
        deployments["resources"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"deployments/scale") && names.contains(&"deployments/status"), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn the_server_describes_itself_in_openapi() {
    let client = server().client("test");
    let index = super::get(&client, "/openapi/v3", "application/json").await;
    let place = |path: &str| index["paths"][path]["serverRelativeURL"].as_str().unwrap().to_owned();
    for (path, kind, object, field) in [
        ("api/v1", ("", "v1", "ConfigMap"), "/api/v1/namespaces/{namespace}/configmaps/{name}", "data"),
        (
            "apis/apps/v1",
            ("apps", "v1", "Deployment"),
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
            "spec",
        ),
        (
            "apis/gateway.networking.k8s.io/v1",
            ("gateway.networking.k8s.io", "v1", "GatewayClass"),
            "/apis/gateway.networking.k8s.io/v1/gatewayclasses/{name}",
            "spec",
        ),
    ] {
        let document = super::get(&client, &place(path), "application/json").await;
        let kind = json!({"group": kind.0, "version": kind.1, "kind": kind.2});
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let shown = schemas.values().find(|it| it["x-kubernetes-group-version-kind"] == json!([kind])).unwrap();
        assert!(shown["properties"][field].is_object() && shown["properties"]["metadata"].is_object(), "{shown}");
        let patch = &document["paths"][object]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"], kind);
        assert!(patch["parameters"].as_array().unwrap().iter().any(|it| it["name"] == "fieldValidation"));
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let name = reference.strip_prefix("#/components/schemas/").unwrap();
            assert!(schemas.contains_key(name), "{name} is missing");
        }
    }
}

#[tokio::test]
async fn other_processes_are_served_over_tcp() {
    let server = server();
    let address = server.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    let api = configs(&Client::try_from(config).unwrap());
    let mut events = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    make(&api, &["a"]).await;
    assert!(matches!(events.try_next().await.unwrap(), Some(WatchEvent::Added(it)) if it.name_any() == "a"));
    assert!(server.log().snapshot().iter().all(|request| request.code < 300));
    drop(server);
    assert!(!matches!(events.try_next().await, Ok(Some(_))), "the watch ends with the server");
    assert!(api.get("a").await.is_err());
}
