//! Programs and Prometheus in a bad mood, as a client in the cluster meets them.

use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use seaway_drydock::fault::{Mood, Moody, Switch};
use seaway_drydock::pods::Programs;
use seaway_drydock::pods::podinfo::Podinfo;
use seaway_drydock::proxy::empty;
use seaway_drydock::{Cluster, Options, prometheus};

const POD: &str = r"
apiVersion: v1
kind: Pod
metadata:
  name: hook
  labels: {app: hook}
spec:
  containers:
    - {name: hook, image: 'podinfo:6.0.0', ports: [{containerPort: 9898}]}
---
apiVersion: v1
kind: Service
metadata:
  name: hook
spec:
  selector: {app: hook}
  ports:
    - {port: 80, targetPort: 9898}
";

async fn cluster() -> (Cluster, Switch, Switch) {
    let options = Options::paused();
    let (hook, metrics) = (Switch::new(options.clock), Switch::new(options.clock));
    let options = Options {
        programs: Programs::default().with("podinfo", Moody::new(Podinfo, &hook)),
        prometheus: prometheus::Options { switch: Some(metrics.clone()), ..prometheus::Options::default() },
        ..options
    };
    let cluster = Cluster::start(options).await.unwrap();
    cluster.apply(POD).await.unwrap();
    cluster.clock().sleep(Duration::from_secs(5)).await;
    (cluster, hook, metrics)
}

const HOOK: &str = "http://hook.default/version";
const METRICS: &str = "http://prometheus.istio-system:9090/api/v1/query?query=up";

async fn send(cluster: &Cluster, url: &str) -> http::Response<seaway_drydock::proxy::Body> {
    cluster.mesh().send(Request::get(url).body(empty()).unwrap()).await
}

async fn get(cluster: &Cluster, url: &str) -> (u16, String) {
    let answer = send(cluster, url).await;
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test(start_paused = true)]
async fn a_program_answers_in_every_mood() {
    let (cluster, hook, _) = cluster().await;
    assert!(get(&cluster, HOOK).await.1.contains("6.0.0"));
    assert_eq!(hook.spoilt(), 0);

    hook.set(Mood::Status(503));
    assert_eq!(get(&cluster, HOOK).await, (503, String::new()));
    hook.set(Mood::Body("{\"lie\": true}".into()));
    assert_eq!(get(&cluster, HOOK).await, (200, "{\"lie\": true}".to_owned()));
    hook.set(Mood::Garbage);
    assert!(get(&cluster, HOOK).await.1.starts_with('\0'));
    hook.set(Mood::RedirectLoop);
    let answer = send(&cluster, HOOK).await;
    assert_eq!((answer.status().as_u16(), &answer.headers()["location"]), (302, &"/version".parse().unwrap()));
    assert_eq!(hook.spoilt(), 4);

    hook.set(Mood::Reset);
    let answer = send(&cluster, HOOK).await;
    let broken = !answer.status().is_success() || answer.into_body().collect().await.is_err();
    assert!(broken, "the connection should have been broken");
    hook.set(Mood::Well);
    assert_eq!(get(&cluster, HOOK).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_program_takes_its_time() {
    let (cluster, hook, _) = cluster().await;
    let begun = cluster.clock().now();
    let passed = || cluster.clock().now().duration_since(begun).as_secs();
    hook.set(Mood::Slow(Duration::from_secs(7)));
    assert_eq!(get(&cluster, HOOK).await.0, 200);
    assert_eq!(passed(), 7);
    hook.set(Mood::Hang);
    let better = async {
        cluster.clock().sleep(Duration::from_secs(8)).await;
        hook.set(Mood::Well);
    };
    let (answer, ()) = tokio::join!(get(&cluster, HOOK), better);
    assert_eq!((answer.0, passed()), (200, 15));
}

#[tokio::test(start_paused = true)]
async fn a_flood_goes_on() {
    let (cluster, hook, _) = cluster().await;
    hook.set(Mood::Flood);
    let mut body = send(&cluster, HOOK).await.into_body();
    let mut read = 0;
    while read < 8 * 1024 * 1024 {
        read += body.frame().await.unwrap().unwrap().into_data().unwrap().len();
    }
}

#[tokio::test(start_paused = true)]
async fn prometheus_lies_about_its_numbers() {
    let (cluster, _, metrics) = cluster().await;
    let result = async || {
        let answer: serde_json::Value = serde_json::from_str(&get(&cluster, METRICS).await.1).unwrap();
        let series = answer["data"]["result"].as_array().unwrap().clone();
        series.iter().map(|series| series["value"][1].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(!result().await.is_empty());
    let now = cluster.clock().now();
    metrics.set(Mood::vector(now, &[]));
    assert!(result().await.is_empty());
    metrics.set(Mood::vector(now, &["NaN"]));
    assert_eq!(result().await, ["NaN"]);
    metrics.set(Mood::vector(now, &["1", "2"]));
    assert_eq!(result().await, ["1", "2"]);
    metrics.set(Mood::Status(500));
    assert_eq!(get(&cluster, METRICS).await.0, 500);
}
