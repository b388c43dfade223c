//! The API server, asked by a real `kube::Client`: one test per behaviour a client can see.

mod crds;
mod deletion;
mod edges;
mod kubectl;
mod objects;
mod patches;
mod pods;
mod reading;
mod spelling;
mod tables;
mod writing;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::{ApiResource, DynamicObject, Status};
use kube::{Api, Client};
use seaway_drydock::apiserver::ApiServer;
use seaway_drydock::{Clock, Seed};
use serde_json::{Value, json};

pub(crate) fn server() -> ApiServer {
    ApiServer::start(Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap(), 1), Seed::new(1))
}

pub(crate) fn config(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": name}}, "data": {"key": value}}))
        .unwrap()
}

pub(crate) fn deployment(name: &str) -> Deployment {
    serde_json::from_value(deployment_json(name)).unwrap()
}

pub(crate) fn deployment_json(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "podinfo:6.0.0", "ports": [{"containerPort": 9898}]}]},
            },
        },
    })
}

/// The Status of a refused request.
pub(crate) fn refused<T: std::fmt::Debug>(result: kube::Result<T>) -> Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// A resource without a Rust type.
pub(crate) fn dynamic(client: &Client, group: &str, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let resource = ApiResource {
        group: group.into(),
        version: version.into(),
        api_version,
        kind: kind.into(),
        plural: plural.into(),
    };
    Api::default_namespaced_with(client.clone(), &resource)
}

/// Lets the garbage collector, which runs after the commit that wakes it, finish.
pub(crate) async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// A GET with an Accept header of one's own.
pub(crate) async fn get(client: &Client, path: &str, accept: &str) -> Value {
    let request = http::Request::get(path).header("accept", accept).body(Vec::new()).unwrap();
    serde_json::from_str(&client.request_text(request).await.unwrap()).unwrap()
}

/// Any request, with a body of any type.
pub(crate) async fn send(
    client: &Client,
    method: &str,
    path: &str,
    content_type: &str,
    body: impl Into<Vec<u8>>,
) -> kube::Result<Value> {
    let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
    client.request(request.body(body.into()).unwrap()).await
}

/// A POST or PUT of JSON.
pub(crate) async fn send_json(client: &Client, method: &str, path: &str, body: &Value) -> kube::Result<Value> {
    send(client, method, path, "application/json", body.to_string()).await
}
