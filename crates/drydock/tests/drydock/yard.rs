//! An API server, names and a gateway, with pods that a test sets up by hand: no controllers, no surprises.

#![allow(clippy::needless_pass_by_value)]

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body as AxumBody;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use seaway_drydock::apiserver::ApiServer;
use seaway_drydock::gateway::Gateway;
use seaway_drydock::names::Names;
use seaway_drydock::proxy::{self, Body};
use seaway_drydock::{Clock, Net, Seed, Wire};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// A small cluster under a test's full control.
pub struct Yard {
    pub api: ApiServer,
    pub client: Client,
    pub net: Net,
    pub names: Names,
    pub clock: Clock,
    pub seen: Seen,
    pub servers: JoinSet<()>,
    pub gateway: Gateway,
}

/// What pods were asked, as `pod method target`.
pub type Seen = Arc<Mutex<Vec<String>>>;

/// An answer read to its end.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub async fn read(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        Self { status: head.status, headers: head.headers, body: body.collect().await.unwrap().to_bytes() }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The request as the pod saw it.
    pub fn echo(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Yard {
    pub async fn start() -> Self {
        Self::on(Wire::Memory).await
    }

    pub async fn on(wire: Wire) -> Self {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap(), 1);
        let api = ApiServer::start(clock, Seed::new(1));
        let net = Net::new(wire);
        let names = Names::start(&api.client("names"), net.clone());
        let gateway = Gateway::start(api.client("gateway"), names.clone(), clock).await.unwrap();
        let client = api.client("test");
        let (seen, servers) = (Seen::default(), JoinSet::new());
        let yard = Self { api, client, net, names, clock, seen, servers, gateway };
        for (name, labels) in [("test", json!({"team": "a"})), ("other", json!({})), ("istio-ingress", json!({}))] {
            let namespace = json!({"metadata": {"name": name, "labels": labels}});
            let namespace: Namespace = serde_json::from_value(namespace).unwrap();
            Api::all(yard.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        }
        yard
    }

    /// The tutorial's Gateway.
    pub async fn with_gateway() -> Self {
        let yard = Self::start().await;
        yard.gateway(json!([{
            "name": "default", "hostname": "*.example.com", "port": 80, "protocol": "HTTP",
            "allowedRoutes": {"namespaces": {"from": "All"}},
        }]))
        .await;
        yard
    }

    pub async fn gateway(&self, listeners: Value) {
        let spec = json!({"gatewayClassName": "istio", "listeners": listeners});
        self.create("v1", "Gateway", "istio-ingress", "gateway", spec).await;
    }

    /// Creates an object of the Gateway API.
    pub async fn create(&self, version: &str, kind: &str, namespace: &str, name: &str, spec: Value) -> DynamicObject {
        let resource = resource(version, kind);
        let mut object = DynamicObject::new(name, &resource).within(namespace);
        object.data = json!({"spec": spec});
        self.dynamic(version, kind, namespace).create(&PostParams::default(), &object).await.unwrap()
    }

    pub fn dynamic(&self, version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &resource(version, kind))
    }

    /// Creates a route on the tutorial's Gateway for www.example.com and waits until it is live.
    pub async fn route(&self, name: &str, rules: Value) {
        let spec = json!({
            "parentRefs": [{"name": "gateway", "namespace": "istio-ingress"}],
            "hostnames": ["www.example.com"],
            "rules": rules,
        });
        self.create("v1", "HTTPRoute", "test", name, spec).await;
        self.observed(name).await;
    }

    /// Waits until the gateway has written the route's newest generation into its status, and returns the conditions.
    pub async fn observed(&self, name: &str) -> Vec<Value> {
        let routes = self.dynamic("v1", "HTTPRoute", "test");
        for _ in 0..2_000 {
            let route = routes.get(name).await.unwrap();
            let conditions = route.data["status"]["parents"][0]["conditions"].as_array().cloned().unwrap_or_default();
            let generation = json!(route.metadata.generation);
            let current = |condition: &Value| condition["observedGeneration"] == generation;
            if !conditions.is_empty() && conditions.iter().all(current) {
                return conditions;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("the gateway does not observe {name}");
    }

    pub async fn patch_route(&self, name: &str, patch: Value) {
        let routes = self.dynamic("v1", "HTTPRoute", "test");
        routes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        self.observed(name).await;
    }

    /// A Service with so many pods of a version behind it: `{name}-0`, `{name}-1`, at port 9898.
    pub async fn app(&mut self, namespace: &str, name: &str, subnet: u8, pods: u8) {
        let ips: Vec<IpAddr> = (0..pods).map(|index| IpAddr::from([10, 244, subnet, index])).collect();
        let services: Api<Service> = Api::namespaced(self.client.clone(), namespace);
        let service =
            json!({"metadata": {"name": name}, "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 9898}]}});
        services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
        self.endpoints(namespace, name, &ips).await;
        for (index, ip) in ips.iter().enumerate() {
            self.pod(namespace, name, &format!("{name}-{index}"), *ip).await;
        }
        let synced = || self.names.resolve(&format!("{name}.{namespace}"), 80).is_ok_and(|all| all.len() == ips.len());
        until(|| pods == 0 || synced()).await;
    }

    /// Makes these addresses, and no others, the ready endpoints of a Service.
    pub async fn endpoints(&self, namespace: &str, service: &str, ips: &[IpAddr]) {
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), namespace);
        let endpoints: Vec<Value> =
            ips.iter().map(|ip| json!({"addresses": [ip.to_string()], "conditions": {"ready": true}})).collect();
        let slice = json!({
            "metadata": {"name": service, "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": [{"name": "http", "port": 9898}],
        });
        let slice: EndpointSlice = serde_json::from_value(slice).unwrap();
        if slices.create(&PostParams::default(), &slice).await.is_err() {
            let patch = json!({"endpoints": slice.endpoints});
            slices.patch(service, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        }
    }

    /// A running pod that answers on port 9898 and shows metrics there.
    pub async fn pod(&mut self, namespace: &str, app: &str, name: &str, ip: IpAddr) {
        // The owner must exist, or the garbage collector takes the pod away.
        let owners: Api<ReplicaSet> = Api::namespaced(self.client.clone(), namespace);
        let owner_name = format!("{app}-h1");
        let owner = if let Some(owner) = owners.get_opt(&owner_name).await.unwrap() {
            owner
        } else {
            let template = json!({
                "metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "main", "image": "echo:1"}]},
            });
            let spec = json!({"selector": {"matchLabels": {"app": app}}, "template": template});
            let owner = json!({"metadata": {"name": owner_name}, "spec": spec});
            owners.create(&PostParams::default(), &serde_json::from_value(owner).unwrap()).await.unwrap()
        };
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let pod = json!({
            "metadata": {
                "name": name,
                "labels": {"app": app, "pod-template-hash": "h1", "app.kubernetes.io/part-of": "tests"},
                "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9898"},
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner_name, "uid": owner.metadata.uid, "controller": true,
                }],
            },
            "spec": {"containers": [{"name": "main", "image": "echo:1"}]},
        });
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        let status = json!({"status": {"phase": "Running", "podIP": ip.to_string()}});
        pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
        let address = SocketAddr::new(ip, 9898);
        self.serve(address, echo(name.to_owned(), app.to_owned(), Arc::clone(&self.seen))).await;
        let known = || self.names.pod_at(ip).is_some_and(|pod| pod.running);
        until(known).await;
    }

    /// Serves a router on a virtual address.
    pub async fn serve(&mut self, address: SocketAddr, router: Router) {
        let mut listener = self.net.bind(address).await.unwrap();
        self.servers.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok(stream) = listener.accept().await {
                let service = TowerToHyperService::new(router.clone());
                connections.spawn(async move {
                    let server = hyper::server::conn::http1::Builder::new();
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
    }

    /// Sends a request to the gateway.
    pub async fn send(&self, request: Request<Body>) -> Answer {
        self.send_to("gateway-istio.istio-ingress", 80, request).await
    }

    /// Sends a request to a name.
    pub async fn send_to(&self, host: &str, port: u16, request: Request<Body>) -> Answer {
        let stream = self.names.dial(host, port).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let response = sender.send_request(request).await.unwrap();
        Answer::read(response.map(|body| body.map_err(Into::into).boxed_unsync())).await
    }

    /// GETs a target of www.example.com through the gateway.
    pub async fn get(&self, target: &str) -> Answer {
        self.send(request(target)).await
    }

    /// Who answered, of so many requests.
    pub async fn count(&self, requests: usize, app: &str) -> usize {
        let mut count = 0;
        for _ in 0..requests {
            count += usize::from(self.get("/").await.header("x-podinfo-version") == app);
        }
        count
    }

    /// The writes of a user to a resource so far.
    pub fn writes(&self, user: &str, resource: &str) -> usize {
        let log = self.api.log().snapshot();
        log.iter().filter(|entry| entry.is_write() && entry.user == user && entry.resource == resource).count()
    }
}

pub fn request(target: &str) -> Request<Body> {
    Request::get(target).header("host", "www.example.com").body(proxy::empty()).unwrap()
}

pub fn resource(version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("gateway.networking.k8s.io", version, kind))
}

/// Waits for something that comes true soon.
pub async fn until(condition: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it does not come true");
}

/// A pod that answers with the request it got.
fn echo(pod: String, app: String, seen: Seen) -> Router {
    Router::new().fallback(move |request: Request<AxumBody>| {
        let (pod, app, seen) = (pod.clone(), app.clone(), Arc::clone(&seen));
        async move {
            let (head, body) = request.into_parts();
            let target = head.uri.to_string();
            if target != "/metrics" {
                seen.lock().unwrap().push(format!("{pod} {} {target}", head.method));
            }
            let body = body.collect().await.unwrap().to_bytes();
            let mut parts = head.uri.path().split('/').skip(1);
            let mut status = StatusCode::OK;
            match (parts.next(), parts.next()) {
                (Some("status"), Some(code)) => status = code.parse().unwrap(),
                (Some("delay"), Some(seconds)) => {
                    tokio::time::sleep(Duration::from_secs(seconds.parse().unwrap())).await;
                }
                (Some("metrics"), _) => {
                    let count = seen.lock().unwrap().iter().filter(|line| line.starts_with(&pod)).count();
                    return Response::new(AxumBody::from(format!("echo_requests_total{{pod=\"me\"}} {count}\n")));
                }
                _ => {}
            }
            let headers: serde_json::Map<String, Value> = head
                .headers
                .keys()
                .map(|name| {
                    let values = head.headers.get_all(name).iter().map(|value| value.to_str().unwrap());
                    (name.to_string(), json!(values.collect::<Vec<_>>().join(",")))
                })
                .collect();
            let text = json!({"target": target, "headers": headers, "body": String::from_utf8_lossy(&body)});
            Response::builder()
                .status(status)
                .header("x-podinfo-version", app)
                .header("x-powered-by", "echo")
                .body(AxumBody::from(text.to_string()))
                .unwrap()
        }
    })
}
