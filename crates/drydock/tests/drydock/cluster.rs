//! The whole cluster at once: manifests in, requests by name, and what clients notice of a rollout.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use seaway_drydock::proxy::empty;
use seaway_drydock::{Cluster, Options};

const PODINFO: &str = r#"
apiVersion: v1
kind: Namespace
metadata:
  name: test
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: podinfo
  namespace: test
spec:
  replicas: 3
  minReadySeconds: 1
  selector:
    matchLabels: {app: podinfo}
  strategy:
    rollingUpdate: {maxUnavailable: 1}
  template:
    metadata:
      labels: {app: podinfo}
      annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9797"}
    spec:
      containers:
        - name: podinfod
          image: ghcr.io/stefanprodan/podinfo:6.0.0
          ports:
            - {name: http, containerPort: 9898}
          readinessProbe:
            httpGet: {path: /readyz, port: http}
            periodSeconds: 2
---
apiVersion: v1
kind: Service
metadata:
  name: podinfo
  namespace: test
spec:
  selector: {app: podinfo}
  ports:
    - {name: http, port: 9898, targetPort: http}
---
"#;

async fn get(cluster: &Cluster, url: &str) -> (u16, String, String) {
    let answer = cluster.mesh().send(Request::get(url).body(empty()).unwrap()).await;
    let header = answer.headers().get("x-podinfo-version");
    let version = header.map(|version| version.to_str().unwrap().to_owned()).unwrap_or_default();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, version, String::from_utf8_lossy(&body).into_owned())
}

async fn until_rolled_out(cluster: &Cluster) {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client("test"), "test");
    for _ in 0..3000 {
        let deployment = deployments.get("podinfo").await.unwrap();
        let wanted = deployment.spec.as_ref().unwrap().replicas;
        let status = deployment.status.unwrap_or_default();
        if status.observed_generation == deployment.metadata.generation
            && status.updated_replicas == wanted
            && status.available_replicas == wanted
            && status.replicas == wanted
        {
            return;
        }
        cluster.clock().sleep(Duration::from_millis(500)).await;
    }
    panic!("podinfo was not rolled out");
}

async fn set_image(cluster: &Cluster, tag: &str) {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client("test"), "test");
    let image = format!("ghcr.io/stefanprodan/podinfo:{tag}");
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "podinfod", "image": image}]}}}});
    deployments.patch("podinfo", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn manifests_become_names_that_answer() {
    let cluster = Cluster::start(Options::paused()).await.unwrap();
    let applied = cluster.apply(PODINFO).await.unwrap();
    assert_eq!(applied.len(), 3);
    until_rolled_out(&cluster).await;
    let (status, version, _) = get(&cluster, "http://podinfo.test:9898/").await;
    assert_eq!((status, version.as_str()), (200, "6.0.0"));

    cluster.clock().sleep(Duration::from_secs(30)).await;
    let query = "http://prometheus.istio-system:9090/api/v1/query?query=sum(http_requests_total)";
    let (status, _, body) = get(&cluster, query).await;
    assert_eq!(status, 200);
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["status"], "success");
    assert!(answer["data"]["result"][0]["value"][1].as_str().is_some(), "{answer}");

    let services: Api<Service> = Api::namespaced(cluster.client("test"), "test");
    assert!(services.get("podinfo").await.unwrap().spec.unwrap().cluster_ip.unwrap().starts_with("10.96."));
    assert!(cluster.apply("kind: Nothing").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn clients_notice_nothing_of_a_rolling_update() {
    rolling_update_under_load(Options::paused(), Duration::from_millis(100)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_notice_nothing_of_a_rolling_update_on_real_sockets() {
    rolling_update_under_load(Options::scaled(jiff::Timestamp::UNIX_EPOCH, 50), Duration::from_millis(5)).await;
}

async fn rolling_update_under_load(options: Options, pause: Duration) {
    let cluster = Arc::new(Cluster::start(options).await.unwrap());
    cluster.apply(PODINFO).await.unwrap();
    until_rolled_out(&cluster).await;
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (cluster, stop) = (cluster.clone(), stop.clone());
            tokio::spawn(async move {
                let mut answers = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let (status, version, _) = get(&cluster, "http://podinfo.test:9898/").await;
                    answers.push((status, version));
                    tokio::time::sleep(pause).await;
                }
                answers
            })
        })
        .collect();
    set_image(&cluster, "6.0.1").await;
    until_rolled_out(&cluster).await;
    cluster.clock().sleep(Duration::from_secs(10)).await;
    stop.store(true, Ordering::Relaxed);
    let mut answers = Vec::new();
    for client in clients {
        answers.extend(client.await.unwrap());
    }
    let failed: Vec<_> = answers.iter().filter(|(status, _)| *status != 200).collect();
    assert!(failed.is_empty(), "{} of {} failed: {failed:?}", failed.len(), answers.len());
    for version in ["6.0.0", "6.0.1"] {
        assert!(answers.iter().any(|(_, answered)| answered == version), "{version} never answered");
    }
    let pods: Api<Pod> = Api::namespaced(cluster.client("test"), "test");
    let left = || async { pods.list(&ListParams::default()).await.unwrap().items.len() };
    for _ in 0..100 {
        if left().await == 3 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{} pods are left", left().await);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_cluster_is_gone() {
    let cluster = Cluster::start(Options::paused()).await.unwrap();
    cluster.apply(PODINFO).await.unwrap();
    until_rolled_out(&cluster).await;
    let (net, names) = (cluster.net().clone(), cluster.names().clone());
    let address = *names.resolve("podinfo.test", 9898).unwrap().first().unwrap();
    assert!(net.connect(address).await.is_ok());
    drop(cluster);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(net.connect(address).await.is_err(), "{address} still listens");
}
