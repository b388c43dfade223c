//! Canaries come and go by the thousand, and nothing of them stays: no task, no watch, no series, no entry in a table of
//! the operator's, no memory.
//!
//! The cluster is scripted (no pods), so that a cycle costs milliseconds. It runs in a process of its own, this same
//! binary: only there the memory is that of the operator and its API server, and not that of other tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use http::{Method, Request};
use http_body_util::BodyExt;
use jiff::Timestamp;
use seaway_adapters::http::Http;
use seaway_cli::glue::ClusterClock;
use seaway_drydock::Clock;
use seaway_drydock::apiserver::Commit;
use seaway_operator::{Config, Operator};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::harness::scripted::{AllPrometheus, NAMESPACE, Scripted, Shape, canary};
use crate::harness::{OPERATOR, alone};

/// The test as the command line of this binary names it.
const NAME: &str = "scenarios::leaks::ten_thousand_canaries_come_and_go_and_leave_nothing";
/// How many canaries come and go in all; `SEAWAY_LEAKS` asks for another number.
const CYCLES: usize = 10_000;
/// Canaries that are there at the same time.
const BATCH: usize = 100;
/// Of each batch, those that have an app and are initialised. The others wait for theirs until they are deleted.
const SERVED: usize = 20;
/// Of each batch, those that roll out a second version before they are deleted.
const ROLLED_OUT: usize = 4;
/// After so many batches time passes, so that what is kept for an hour goes.
const PAUSE: usize = 5;
/// So many more bytes in use at the end than at half time are no leak: two for every canary would be more.
const SLACK: usize = 8_000;

#[test]
fn ten_thousand_canaries_come_and_go_and_leave_nothing() {
    let Some(output) = alone(NAME) else {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        return runtime.block_on(come_and_go());
    };
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.contains("1 passed"), "{out}");
    print!("{out}");
}

async fn come_and_go() {
    let cycles = std::env::var("SEAWAY_LEAKS").map_or(CYCLES, |number| number.parse().unwrap());
    let batches = cycles.div_ceil(BATCH).max(2);
    let port = Port::open().await;
    let start = Instant::now();
    port.batch(0).await;
    let before = port.census().await;
    let mut grown = 0;
    for batch in 1..batches {
        port.batch(batch).await;
        if batch % PAUSE == 0 {
            let memory = port.census().await.memory;
            // By half time every buffer that grows to its full size once has grown.
            grown = if batch <= batches / 2 { memory } else { grown };
        }
    }
    let after = port.census().await;
    println!("{} cycles in {:.1} s: {before:?}, then {after:?}", batches * BATCH, start.elapsed().as_secs_f64());
    assert!(before.watches > 0 && before.tasks > before.watches, "{before:?}");
    for table in ["memories", "voices", "interests", "targets", "owners", "series", "woken", "deletions"] {
        let entries = before.series.get(&format!("flagger_operator_entries{{table=\"{table}\"}}"));
        assert_eq!(entries.map(String::as_str), Some("0"), "{table}");
    }
    assert_eq!(before.series, after.series, "metric series and entries of the operator's tables");
    assert_eq!((before.tasks, before.watches), (after.tasks, after.watches), "tasks and watches");
    assert_eq!(before.objects, after.objects, "objects in the cluster");
    assert!(after.memory < grown + SLACK, "memory: {grown} bytes, then {}", after.memory);
}

/// A scripted cluster with an operator.
struct Port {
    cluster: Scripted,
    clock: Clock,
    page: Router,
    /// Canaries there are, as they are stored.
    known: Arc<Mutex<BTreeMap<String, Arc<Value>>>>,
}

/// What there is while no canary is there.
#[derive(Debug)]
struct Census {
    tasks: usize,
    watches: usize,
    objects: usize,
    /// Bytes that are allocated.
    memory: usize,
    series: BTreeMap<String, String>,
}

impl Port {
    async fn open() -> Self {
        let clock = Clock::starting_at(Timestamp::from_second(1_735_689_600).unwrap(), 1);
        let cluster = Scripted::start(clock).await;
        let known: Arc<Mutex<BTreeMap<_, _>>> = Arc::default();
        let own = known.clone();
        cluster.api.on_commit(move |commit: &Commit| {
            let Some(object) =
                commit.after.as_ref().or(commit.before.as_ref()).filter(|_| commit.resource == "canaries")
            else {
                return;
            };
            let (name, mut known) = (object["metadata"]["name"].as_str().unwrap().to_owned(), own.lock().unwrap());
            match &commit.after {
                Some(after) => drop(known.insert(name, after.clone())),
                None => drop(known.remove(&name)),
            }
        });
        let config = Config { mesh_provider: "gatewayapi:v1".into(), port: None, ..Config::default() };
        let http = Http::through(Arc::new(AllPrometheus));
        let operator = Operator::new(config, cluster.api.client(OPERATOR), Arc::new(ClusterClock::new(clock)), http);
        let page = operator.page();
        tokio::spawn(operator.run(CancellationToken::new()));
        Self { cluster, clock, page, known }
    }

    /// One batch comes and goes, under names that were never used before.
    async fn batch(&self, number: usize) {
        let names: Vec<String> = (0..BATCH).map(|index| format!("app-{number}-{index}")).collect();
        let (served, rolled_out) = (&names[..SERVED], &names[..ROLLED_OUT]);
        for name in served {
            self.cluster.create_app(name).await;
        }
        for name in &names {
            let mut canary = canary(name, Shape { interval_seconds: 10, step_weight: 50, max_weight: 50 });
            canary["spec"]["revertOnDeletion"] = json!(true);
            self.cluster.create_canary(&canary).await;
        }
        let finalizer = |canary: &Value| canary.pointer("/metadata/finalizers/0").is_some();
        self.until(&names, "taken up", finalizer).await;
        let phase = |wanted: &'static str| move |canary: &Value| canary["status"]["phase"] == wanted;
        self.until(served, "initialised", phase("Initialized")).await;
        for name in rolled_out {
            self.cluster.set_image(name, "6.0.1").await;
        }
        self.until(rolled_out, "promoted", phase("Succeeded")).await;
        for name in &names {
            self.cluster.delete_canary(name).await;
        }
        self.wait("gone", || self.known.lock().unwrap().is_empty()).await;
        for name in served {
            self.cluster.delete_app(name).await;
            // What serves users is left to them when a canary goes.
            let service = format!("/api/v1/namespaces/{NAMESPACE}/services/{name}");
            let route = format!("/apis/gateway.networking.k8s.io/v1/namespaces/{NAMESPACE}/httproutes/{name}");
            for path in [service, route] {
                self.cluster.send("kubectl", Method::DELETE, &path, &Value::Null).await;
            }
        }
        // What the API server itself remembers of the past is not what is looked for.
        let events = format!("/api/v1/namespaces/{NAMESPACE}/events");
        self.cluster.send("kubectl", Method::DELETE, &events, &Value::Null).await;
        self.cluster.api.log().clear();
        self.cluster.api.compact();
    }

    async fn until(&self, names: &[String], what: &str, holds: impl Fn(&Value) -> bool) {
        self.wait(what, || {
            let known = self.known.lock().unwrap();
            names.iter().all(|name| known.get(name).is_some_and(|canary| holds(canary)))
        })
        .await;
    }

    async fn wait(&self, what: &str, holds: impl Fn() -> bool) {
        for _ in 0..3600 {
            if holds() {
                return;
            }
            self.clock.sleep(Duration::from_secs(1)).await;
        }
        panic!("never {what}: {:#?}", self.known.lock().unwrap());
    }

    async fn census(&self) -> Census {
        // Connections that are kept open in case they are needed again are closed by then.
        self.clock.sleep(Duration::from_secs(600)).await;
        self.cluster.api.compact();
        let page = Request::get("/metrics").body(Body::empty()).unwrap();
        let page = self.page.clone().oneshot(page).await.unwrap().into_body().collect().await.unwrap().to_bytes();
        let series = str::from_utf8(&page).unwrap().lines().filter(|line| !line.starts_with('#'));
        let series = series.filter_map(|line| line.rsplit_once(' '));
        let mut objects = 0;
        let routes = "apis/gateway.networking.k8s.io/v1/httproutes";
        for collection in ["apis/apps/v1/deployments", "api/v1/services", "api/v1/configmaps", routes] {
            objects += self.cluster.names(&format!("/{collection}")).await.len();
        }
        Census {
            tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
            watches: self.cluster.api.watches(),
            objects,
            memory: crate::MEMORY.allocated(),
            series: series.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        }
    }
}
