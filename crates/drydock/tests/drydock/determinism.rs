//! The same seed tells the same story, byte for byte: every request of every user, every write, every answer of the
//! gateway, every event that a watcher sees, and the numbers Prometheus makes of it.
//!
//! Every run has a runtime of its own, so that chance has its chance: hash maps and unbiased choices differ between two
//! runs in one process as they do between two processes.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use seaway_drydock::fault::{Fault, Faults, Point};
use seaway_drydock::load::{self, Load, Road, Stop};
use seaway_drydock::{Cluster, Options, Seed, proxy};
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;

use crate::yard::Answer;

const SEEDS: u64 = 20;

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
  minReadySeconds: 2
  selector: {matchLabels: {app: podinfo}}
  template:
    metadata:
      labels: {app: podinfo}
      annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9797"}
    spec:
      containers:
      - name: podinfod
        image: stefanprodan/podinfo:6.0.0-errors=3%
        ports: [{name: http, containerPort: 9898}, {name: http-metrics, containerPort: 9797}]
        readinessProbe: {httpGet: {path: /readyz, port: 9898}, periodSeconds: 2}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: podinfo, namespace: test}
spec:
  minReplicas: 2
  maxReplicas: 6
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: podinfo}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
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

/// Lines in the order in which things happened.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<String>>);

impl Trace {
    fn line(&self, line: impl std::fmt::Display) {
        writeln!(self.0.lock().unwrap(), "{line}").unwrap();
    }
}

fn run(seed: u64) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(story(seed))
}

async fn story(seed: u64) -> String {
    let trace = Trace::default();
    let cluster = Cluster::start(Options { seed, ..Options::paused() }).await.unwrap();
    let (clock, commits) = (cluster.clock(), trace.clone());
    cluster.api().on_commit(move |commit| {
        let object = commit.after.as_ref().or(commit.before.as_ref()).unwrap();
        commits.line(format_args!("{} {} {} {} {object}", commit.time, commit.user, commit.verb, commit.revision));
    });
    // Seeded choices, so that the twenty stories differ.
    let choice = Seed::new(seed).fork("story");
    let faults = Faults::new(clock);
    faults.plan(Point::Watch(choice.below(30)), Fault::DropEvent);
    faults.plan(Point::Watch(30 + choice.below(30)), Fault::Restart(Duration::from_secs(2)));
    let client = faults.client(cluster.api(), "watcher");
    let watching = AbortOnDropHandle::new(tokio::spawn(follow(Api::all(client), trace.clone(), clock)));
    cluster.apply(PODINFO).await.unwrap();
    clock.sleep(Duration::from_secs(15)).await;

    let names = cluster.names().clone();
    let dial: load::Dial = Arc::new(move || {
        let names = names.clone();
        Box::pin(async move { names.dial("gateway-seaway", 80).await })
    });
    let load = Load::get("/".parse().unwrap())
        .host("www.example.com")
        .pace(2, Some(8.0))
        .until(Stop::After(Duration::from_secs(40)));
    let answers = trace.clone();
    let road = Road::Dial(dial);
    let requests = load::run(&load, &road, clock, move |record| answers.line(format_args!("{record:?}")));
    let ((), summary) = tokio::join!(people(&cluster, &choice), requests);
    trace.line(format_args!("{:?}", (summary.requests, summary.failed, summary.errors)));

    for query in ["sum(http_requests_total)", "rate(istio_requests_total[30s])", "up"] {
        let query: String = url::form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let url = format!("http://prometheus.istio-system:9090/api/v1/query?query={query}");
        let answer = cluster.mesh().send(Request::get(url).body(proxy::empty()).unwrap()).await;
        trace.line(String::from_utf8_lossy(&Answer::read(answer).await.body));
    }
    drop(watching);
    cluster.api().log().snapshot().iter().for_each(|request| trace.line(format_args!("{request:?}")));
    faults.calls().iter().for_each(|call| trace.line(format_args!("{call:?}")));
    faults.watch_events().iter().for_each(|event| trace.line(format_args!("{event:?}")));
    faults.struck().iter().for_each(|line| trace.line(line));
    assert!(!faults.struck().is_empty());
    let told = trace.0.lock().unwrap();
    told.clone()
}

/// Scales, updates, and deletes pods.
async fn people(cluster: &Cluster, choice: &Seed) {
    let clock = cluster.clock();
    let deployments: Api<Deployment> = Api::namespaced(cluster.client("people"), "test");
    let pods: Api<Pod> = Api::namespaced(cluster.client("people"), "test");
    for _ in 0..4 {
        clock.sleep(Duration::from_millis(3_000 + choice.below(4_000))).await;
        let patch = if choice.below(2) == 0 {
            json!({"spec": {"replicas": 2 + choice.below(4)}})
        } else {
            let image = format!("stefanprodan/podinfo:6.0.{}", 1 + choice.below(3));
            json!({"spec": {"template": {"spec": {"containers": [{"name": "podinfod", "image": image}]}}}})
        };
        deployments.patch("podinfo", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
        clock.sleep(Duration::from_millis(choice.below(3_000))).await;
        let all = pods.list(&ListParams::default()).await.unwrap().items;
        for pod in all.iter().take(2) {
            let options = DeleteParams::default();
            let options = if choice.below(2) == 0 { options.grace_period(0) } else { options };
            pods.delete(&pod.name_any(), &options).await.unwrap();
        }
    }
}

async fn follow(pods: Api<Pod>, trace: Trace, clock: seaway_drydock::Clock) {
    let mut events = std::pin::pin!(watcher::watcher(pods, watcher::Config::default()));
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => trace.line(format_args!("{} watcher {event:?}", clock.now())),
            Err(error) => {
                trace.line(format_args!("{} watcher {error}", clock.now()));
                clock.sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

#[test]
fn a_seed_tells_the_same_story_twice() {
    let mut stories = std::collections::BTreeSet::new();
    for seed in 0..SEEDS {
        let (first, second) = std::thread::scope(|threads| {
            let first = threads.spawn(|| run(seed));
            let second = run(seed);
            (first.join().unwrap(), second)
        });
        if first != second {
            let differs = first.lines().zip(second.lines()).position(|(one, other)| one != other).unwrap_or(0);
            let line =
                |story: &str| story.lines().nth(differs).unwrap_or("nothing").chars().take(600).collect::<String>();
            panic!("seed {seed}, line {differs}:\n  {}\n  {}", line(&first), line(&second));
        }
        stories.insert(first);
    }
    assert_eq!(stories.len() as u64, SEEDS, "different seeds tell different stories");
}
