//! A cluster without pods: an API server whose Deployments are ready and whose routes are taken up at once, and a
//! Prometheus for which everything is always well.
//!
//! What is left is the operator and the API, so thousands of canaries fit: the scale benchmark and the leak test stand
//! on it. Whether traffic is safe cannot be seen here; the scenarios on a whole drydock show that.

use std::io;

use axum::Router;
use axum::http::Uri;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use seaway_adapters::http::{Dial, Stream};
use seaway_drydock::apiserver::{ApiServer, Commit};
use seaway_drydock::{Clock, Seed};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tower::ServiceExt;

/// Where every app of the scripted cluster lives: one namespace, the harder case.
pub const NAMESPACE: &str = "shop";

/// An API server that tells of its writes.
pub trait Server: Clone + Send + Sync + 'static {
    /// How many of the controllers' answers may be on their way at once. One keeps their order.
    const AT_ONCE: usize = 1;

    /// Answers a request of this user with a code and an object.
    fn call(&self, user: &str, request: Request<Full<Bytes>>) -> impl Future<Output = (u16, Value)> + Send;

    /// Calls `hook` with every write from now on.
    fn hear(&self, hook: impl Fn(&Commit) + Send + Sync + 'static);
}

impl Server for ApiServer {
    async fn call(&self, user: &str, request: Request<Full<Bytes>>) -> (u16, Value) {
        let answer = self.as_user(user).oneshot(request).await.unwrap();
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    fn hear(&self, hook: impl Fn(&Commit) + Send + Sync + 'static) {
        self.on_commit(hook);
    }
}

/// An API server with the namespace and custom resources, and the scripted controllers at work.
#[derive(Clone)]
pub struct Scripted<S = ApiServer> {
    pub api: S,
}

impl Scripted {
    /// One of drydock's. Must be called inside a tokio runtime.
    pub async fn start(clock: Clock) -> Self {
        Self::on(ApiServer::start(clock, Seed::new(1))).await
    }
}

impl<S: Server> Scripted<S> {
    /// Somebody's, which has the kinds of the Gateway API already.
    pub async fn on(api: S) -> Self {
        let cluster = Self { api };
        for crd in seaway_api::crds::crds() {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            cluster.send("kubectl", Method::POST, path, &serde_json::to_value(&crd).unwrap()).await;
        }
        cluster.send("kubectl", Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}})).await;
        let (commits, waiting) = unbounded_channel();
        cluster.api.hear(move |commit| {
            if let Some(answer) = answer(commit) {
                let _ = commits.send(answer);
            }
        });
        tokio::spawn(cluster.clone().control(waiting));
        cluster
    }

    /// Sends the answers of the controllers, in the order of what they answer.
    async fn control(self, mut waiting: UnboundedReceiver<(String, Value)>) {
        let answers = futures::stream::poll_fn(move |context| waiting.poll_recv(context));
        let cluster = &self;
        let all = answers.for_each_concurrent(S::AT_ONCE, async |(path, status)| {
            // What is gone by now needs no status.
            let _ = cluster.try_send("kube-controller-manager", Method::PATCH, &path, &status).await;
        });
        all.await;
    }

    /// Sends a request that must succeed.
    pub async fn send(&self, user: &str, method: Method, path: &str, body: &Value) -> Value {
        let (code, answer) = self.try_send(user, method.clone(), path, body).await;
        assert!((200..300).contains(&code), "{method} {path}: {code} {answer}");
        answer
    }

    /// Sends a request, `Null` for no body; a PATCH is a merge patch.
    pub async fn try_send(&self, user: &str, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let media = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, media);
        let request =
            request.body(Full::new(if body.is_null() { Bytes::new() } else { body.to_string().into() })).unwrap();
        self.api.call(user, request).await
    }

    /// Creates the ConfigMap and the Deployment of an app.
    pub async fn create_app(&self, name: &str) {
        let config = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": config_name(name), "namespace": NAMESPACE},
            "data": {"COLOR": "blue", "GREETING": format!("hello from {name}")},
        });
        self.send("kubectl", Method::POST, &format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), &config).await;
        let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
        self.send("kubectl", Method::POST, &path, &deployment(name)).await;
    }

    /// Deletes what [`Scripted::create_app`] created.
    pub async fn delete_app(&self, name: &str) {
        let deployment = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}");
        let config = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{}", config_name(name));
        for path in [deployment, config] {
            self.send("kubectl", Method::DELETE, &path, &Value::Null).await;
        }
    }

    /// Creates a Canary, see [`canary`].
    pub async fn create_canary(&self, canary: &Value) {
        self.send("kubectl", Method::POST, &canaries(), canary).await;
    }

    /// Deletes the Canary of an app.
    pub async fn delete_canary(&self, name: &str) {
        self.send("kubectl", Method::DELETE, &format!("{}/{name}", canaries()), &Value::Null).await;
    }

    /// As `kubectl set image`.
    pub async fn set_image(&self, name: &str, tag: &str) {
        let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}");
        let mut containers = deployment(name)["spec"]["template"]["spec"]["containers"].clone();
        containers[0]["image"] = image(tag).into();
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        self.send("kubectl", Method::PATCH, &path, &patch).await;
    }

    /// Names of the objects of a collection.
    pub async fn names(&self, collection: &str) -> Vec<String> {
        let list = self.send("kubectl", Method::GET, collection, &Value::Null).await;
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// What the analysis of a Canary looks like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub interval_seconds: u64,
    pub step_weight: u32,
    pub max_weight: u32,
}

/// Path of the Canaries.
fn canaries() -> String {
    format!("/apis/flagger.app/v1beta1/namespaces/{NAMESPACE}/canaries")
}

fn config_name(app: &str) -> String {
    format!("{app}-settings")
}

fn image(tag: &str) -> String {
    format!("ghcr.io/stefanprodan/podinfo:{tag}")
}

/// A Deployment of ordinary size.
fn deployment(name: &str) -> Value {
    let probe =
        |path: &str| json!({"httpGet": {"path": path, "port": 9898}, "initialDelaySeconds": 5, "timeoutSeconds": 5});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
        "spec": {
            "replicas": 1,
            "minReadySeconds": 5,
            "progressDeadlineSeconds": 60,
            "revisionHistoryLimit": 5,
            "strategy": {"rollingUpdate": {"maxUnavailable": 0}, "type": "RollingUpdate"},
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {
                    "labels": {"app": name},
                    "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9797"},
                },
                "spec": {"containers": [{
                    "name": "podinfod",
                    "image": image("6.0.0"),
                    "imagePullPolicy": "IfNotPresent",
                    "ports": [
                        {"name": "http", "containerPort": 9898, "protocol": "TCP"},
                        {"name": "http-metrics", "containerPort": 9797, "protocol": "TCP"},
                    ],
                    "command": ["./podinfo", "--port=9898", "--port-metrics=9797", "--level=info"],
                    "env": [{"name": "PODINFO_UI_COLOR", "value": "#34577c"}],
                    "envFrom": [{"configMapRef": {"name": config_name(name)}}],
                    "livenessProbe": probe("/healthz"),
                    "readinessProbe": probe("/readyz"),
                    "resources": {
                        "limits": {"cpu": "2000m", "memory": "512Mi"},
                        "requests": {"cpu": "100m", "memory": "64Mi"},
                    },
                }]},
            },
        },
    })
}

/// A Canary that tracks one ConfigMap and asks one metric.
pub fn canary(name: &str, shape: Shape) -> Value {
    json!({
        "apiVersion": "flagger.app/v1beta1", "kind": "Canary",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "progressDeadlineSeconds": 60,
            "service": {
                "port": 9898,
                "targetPort": 9898,
                "hosts": [format!("{name}.example.com")],
                "gatewayRefs": [{"name": "gateway", "namespace": "ingress"}],
            },
            "analysis": {
                "interval": format!("{}s", shape.interval_seconds),
                "threshold": 5,
                "maxWeight": shape.max_weight,
                "stepWeight": shape.step_weight,
                "metrics": [{"name": "request-success-rate", "thresholdRange": {"min": 99}, "interval": "1m"}],
            },
        },
    })
}

/// What the controllers say to a write: where, and which status.
fn answer(commit: &Commit) -> Option<(String, Value)> {
    if !commit.subresource.is_empty() && commit.subresource != "scale" {
        return None;
    }
    let object = commit.after.as_deref()?;
    let name = object["metadata"]["name"].as_str()?;
    let generation = object["metadata"]["generation"].as_i64()?;
    match commit.resource.as_str() {
        "deployments" if object.pointer("/status/observedGeneration") != Some(&generation.into()) => {
            let replicas = object.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
            let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}/status");
            Some((path, json!({"status": ready(generation, replicas)})))
        }
        "httproutes"
            if object.pointer("/status/parents/0/conditions/0/observedGeneration") != Some(&generation.into()) =>
        {
            let conditions = ["Accepted", "ResolvedRefs"].map(|kind| {
                json!({"type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": generation,
                    "lastTransitionTime": "2026-01-01T00:00:00Z"})
            });
            let parents = object.pointer("/spec/parentRefs").and_then(Value::as_array)?.iter();
            let parents: Vec<Value> = parents
                .map(|parent| json!({"parentRef": parent, "controllerName": "example.com/scripted", "conditions": conditions}))
                .collect();
            let path = format!("/apis/gateway.networking.k8s.io/v1/namespaces/{NAMESPACE}/httproutes/{name}/status");
            Some((path, json!({"status": {"parents": parents}})))
        }
        _ => None,
    }
}

/// The status of a Deployment whose pods are all there.
fn ready(generation: i64, replicas: u64) -> Value {
    let count = if replicas == 0 { Value::Null } else { replicas.into() };
    let condition = |kind: &str, reason: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    json!({
        "observedGeneration": generation,
        "replicas": count, "readyReplicas": count, "availableReplicas": count, "updatedReplicas": count,
        "conditions": [
            condition("Available", "MinimumReplicasAvailable"),
            condition("Progressing", "NewReplicaSetAvailable"),
        ],
    })
}

/// A Prometheus for which every query of an analysis gives 100.
pub fn prometheus() -> Router {
    Router::new().fallback(async |uri: Uri| {
        let query = uri.query().unwrap_or_default();
        let value = if query.contains("vector%281%29") || query.contains("vector(1)") { "1" } else { "100" };
        let answer = json!({"status": "success", "data": {"resultType": "vector",
            "result": [{"metric": {}, "value": [0, value]}]}});
        ([(header::CONTENT_TYPE, "application/json")], answer.to_string())
    })
}

/// Serves one connection to [`prometheus`].
pub async fn serve_prometheus(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    let service = TowerToHyperService::new(prometheus());
    // A client that leaves early is no trouble.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// A network on which every name is [`prometheus`].
pub struct AllPrometheus;

impl Dial for AllPrometheus {
    fn dial(&self, _: &str, _: u16) -> BoxFuture<'static, io::Result<Stream>> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(serve_prometheus(theirs));
        Box::pin(async move {
            let stream: Stream = Box::new(ours);
            Ok(stream)
        })
    }
}
