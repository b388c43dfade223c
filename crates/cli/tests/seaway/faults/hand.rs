//! Somebody with a way to the API server: the person of the story, a GitOps tool, an autoscaler.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use seaway_drydock::apiserver::ApiServer;
use serde_json::{Value, json};
use tower::Service;

/// Writes under a name. What is refused stays undone: people live with that too.
#[derive(Clone)]
pub struct Hand {
    api: ApiServer,
    user: &'static str,
}

/// Where the objects of the stories are.
pub const CANARIES: &str = "/apis/flagger.app/v1beta1/namespaces/test/canaries";
pub const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/test/deployments";
pub const ROUTES: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/test/httproutes";
pub const SERVICES: &str = "/api/v1/namespaces/test/services";
pub const CONFIG_MAPS: &str = "/api/v1/namespaces/test/configmaps";
pub const PODS: &str = "/api/v1/namespaces/test/pods";

impl Hand {
    /// The hand of a user.
    pub fn of(api: &ApiServer, user: &'static str) -> Self {
        Self { api: api.clone(), user }
    }

    async fn send(&self, method: Method, path: &str, media: &str, body: &Value) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path).header("content-type", media);
        let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
        let response = self.api.as_user(self.user).call(request).await.unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Creates an object; says whether that worked.
    pub async fn create(&self, collection: &str, object: &Value) -> bool {
        self.send(Method::POST, collection, "application/json", object).await.0 == 201
    }

    /// Creates an object that must be possible.
    pub async fn found(&self, collection: &str, object: &Value) {
        let (code, answer) = self.send(Method::POST, collection, "application/json", object).await;
        assert!(code == 201, "{collection}: {answer}");
    }

    /// Merges into an object.
    pub async fn merge(&self, path: &str, patch: &Value) -> bool {
        self.send(Method::PATCH, path, "application/merge-patch+json", patch).await.0 == 200
    }

    /// Changes an object by JSON Patch.
    pub async fn edit(&self, path: &str, operations: &Value) -> bool {
        self.send(Method::PATCH, path, "application/json-patch+json", operations).await.0 == 200
    }

    /// Deletes an object, at once if it is a pod.
    pub async fn delete(&self, path: &str) -> bool {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        let options = if path.starts_with(PODS) { options } else { json!({}) };
        self.send(Method::DELETE, path, "application/json", &options).await.0 < 300
    }

    /// As `kubectl set image`, with or without a wish to crash as primary.
    pub async fn set_image(&self, tag: &str, crash_as: &str) -> bool {
        let template = json!([
            {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image(tag)},
            {"op": "replace", "path": "/spec/template/spec/containers/0/env/0/value", "value": crash_as},
        ]);
        self.edit(&format!("{DEPLOYMENTS}/podinfo"), &template).await
    }
}

/// The app's image in a version.
pub fn image(tag: &str) -> String {
    format!("ghcr.io/stefanprodan/podinfo:{tag}")
}
