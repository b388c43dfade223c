//! Load through the gateway and through the mesh, also while pods come and go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use seaway_drydock::load::{self, Load, Road, Stop};
use seaway_drydock::proxy::{self, Mesh};
use seaway_drydock::telemetry::Telemetry;
use seaway_drydock::{Cluster, Options};
use serde_json::json;

use crate::yard::{Answer, Yard};

#[tokio::test(start_paused = true)]
async fn load_is_bounded_and_says_who_answered() {
    let mut yard = Yard::with_gateway().await;
    yard.app("test", "primary", 1, 1).await;
    yard.app("test", "canary", 2, 1).await;
    let rules = json!([{"backendRefs": [{"name": "primary", "port": 80, "weight": 3}, {"name": "canary", "port": 80, "weight": 1}]}]);
    yard.route("podinfo", rules).await;
    let names = yard.names.clone();
    let dial: load::Dial = Arc::new(move || {
        let names = names.clone();
        Box::pin(async move { names.dial("gateway-istio.istio-ingress", 80).await })
    });
    let road = Road::Dial(dial);
    let paced = Load::get("/".parse().unwrap())
        .host("www.example.com")
        .pace(2, Some(10.0))
        .until(Stop::After(Duration::from_secs(120)));
    let summary = load::run(&paced, &road, yard.clock, |_| {}).await;
    assert_eq!(summary.requests, 2_400, "two workers, ten a second, two minutes");
    assert_eq!((summary.versions["primary"].requests, summary.versions["canary"].requests), (1_800, 600));
    assert_eq!((summary.failed, summary.unexplained), (0, 0));

    let failing = Load { target: "/status/503".parse().unwrap(), ..paced.until(Stop::Count(40)) };
    let summary = load::run(&failing, &road, yard.clock, |record| assert!(record.failed())).await;
    assert_eq!((summary.requests, summary.failed, summary.unexplained), (40, 40, 40));
    assert_eq!(summary.statuses()[&503], 40);

    let mesh = Mesh::new(yard.names.clone(), Telemetry::new("istio-system", "mesh"));
    let through = Load::get("http://canary.test/".parse().unwrap()).until(Stop::Count(7));
    load::run(&through, &Road::Mesh(mesh.clone()), yard.clock, |_| {}).await;
    assert_eq!(mesh.telemetry().requests()[&("canary".to_owned(), 200)], 7);
}

const PODINFO: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: test}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: podinfo, namespace: test}
spec:
  replicas: 3
  minReadySeconds: 5
  selector: {matchLabels: {app: podinfo}}
  strategy: {rollingUpdate: {maxUnavailable: 1}}
  template:
    metadata:
      labels: {app: podinfo}
      annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9797"}
    spec:
      containers:
      - name: podinfod
        image: stefanprodan/podinfo:6.0.0
        ports: [{name: http, containerPort: 9898}, {name: http-metrics, containerPort: 9797}]
        readinessProbe: {httpGet: {path: /readyz, port: 9898}}
---
apiVersion: v1
kind: Service
metadata: {name: podinfo, namespace: test}
spec: {selector: {app: podinfo}, ports: [{name: http, port: 9898, targetPort: http}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gateway, namespace: default}
spec:
  gatewayClassName: seaway
  listeners: [{name: default, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: podinfo, namespace: test}
spec:
  parentRefs: [{name: gateway, namespace: default}]
  hostnames: [www.example.com]
  rules: [{backendRefs: [{name: podinfo, port: 9898}]}]
"#;

/// Two updates of all pods while requests come in: in memory, and over sockets with the clock ten times as fast. Answers how
/// many came, and how many Prometheus saw a second at the end.
async fn a_rolling_update_loses_no_request(options: Options) -> (u64, f64) {
    let cluster = Cluster::start(options).await.unwrap();
    cluster.apply(PODINFO).await.unwrap();
    let clock = cluster.clock();
    clock.sleep(Duration::from_secs(20)).await;
    let names = cluster.names().clone();
    let dial: load::Dial = Arc::new(move || {
        let names = names.clone();
        Box::pin(async move { names.dial("gateway-seaway", 80).await })
    });
    let load = Load::get("/".parse().unwrap())
        .host("www.example.com")
        .pace(4, Some(5.0))
        .until(Stop::After(Duration::from_secs(120)));
    let update = async {
        let deployments: Api<Deployment> = Api::namespaced(cluster.client("test"), "test");
        for version in ["6.0.1", "6.0.2"] {
            let containers = json!([{"name": "podinfod", "image": format!("stefanprodan/podinfo:{version}")}]);
            let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
            deployments.patch("podinfo", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
            clock.sleep(Duration::from_secs(50)).await;
        }
    };
    let road = Road::Dial(dial);
    let (summary, ()) = tokio::join!(load::run(&load, &road, clock, |_| {}), update);
    assert_eq!((summary.failed, &summary.errors), (0, &BTreeMap::new()), "{:?}", summary.statuses());
    assert_eq!(summary.versions.keys().collect::<Vec<_>>(), ["6.0.0", "6.0.1", "6.0.2"]);

    let query = "http://prometheus.istio-system:9090/api/v1/query?query=sum(rate(istio_requests_total%7Bdestination_workload%3D%22podinfo%22%2Creporter%3D%22source%22%7D%5B30s%5D))";
    let answer = cluster.mesh().send(Request::get(query).body(proxy::empty()).unwrap()).await;
    let rate = Answer::read(answer).await.echo()["data"]["result"][0]["value"][1].as_str().unwrap().parse().unwrap();
    (summary.requests, rate)
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_loses_no_request_in_memory() {
    let (requests, rate) = a_rolling_update_loses_no_request(Options::paused()).await;
    assert!(requests > 2_000, "{requests}");
    assert!((15.0..25.0).contains(&rate), "twenty a second: {rate}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_update_loses_no_request_over_sockets() {
    let options = Options::scaled("2026-01-01T00:00:00Z".parse().unwrap(), 10);
    let (requests, rate) = a_rolling_update_loses_no_request(options).await;
    // How many get through is the machine's affair; a few must, or nothing was lost because nobody came.
    assert!(requests > 200 && rate > 0.0, "{requests} requests, {rate} a second");
}
