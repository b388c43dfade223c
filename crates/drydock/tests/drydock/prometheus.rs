//! Prometheus, asked over its HTTP API.

use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DeleteParams;
use seaway_drydock::prometheus::{Options, Prometheus};
use seaway_drydock::proxy;
use serde_json::{Value, json};

use crate::yard::{Yard, until};

async fn ask(yard: &Yard, query: &str) -> Value {
    let target: String =
        url::form_urlencoded::Serializer::new("/api/v1/query?".to_owned()).extend_pairs([("query", query)]).finish();
    let request = Request::get(target.replace("?&", "?")).header("host", "x").body(proxy::empty()).unwrap();
    yard.send_to("prometheus.istio-system", 9090, request).await.echo()
}

async fn value(yard: &Yard, query: &str) -> Option<f64> {
    let answer = ask(yard, query).await;
    answer["data"]["result"][0]["value"][1].as_str().map(|text| text.parse().unwrap())
}

async fn start(yard: &Yard) -> Prometheus {
    let prometheus = Prometheus::start(yard.names.clone(), yard.clock, Options::default()).await.unwrap();
    Prometheus::publish(&yard.client, "istio-system").await.unwrap();
    until(|| yard.names.resolve("prometheus.istio-system", 9090).is_ok()).await;
    prometheus
}

#[tokio::test(start_paused = true)]
async fn the_tutorials_queries_see_the_canary() {
    let mut yard = Yard::with_gateway().await;
    yard.app("test", "podinfo-primary", 1, 2).await;
    yard.app("test", "podinfo", 2, 1).await;
    yard.route(
        "podinfo",
        json!([{"backendRefs": [{"name": "podinfo-primary", "port": 80}, {"name": "podinfo", "port": 80}]}]),
    )
    .await;
    let _prometheus = start(&yard).await;
    // Longer than the window: the rate of a counter that began in it depends on where its zero is guessed.
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for target in ["/", "/", "/", "/", "/", "/", "/status/500", "/status/500"] {
            yard.get(target).await;
        }
    }
    let labels = "reporter=\"source\", destination_workload_namespace=~\"test\", destination_workload=~\"podinfo\",";
    let errors = format!(
        "100 - sum( rate( istio_requests_total{{ {labels} response_code!~\"5.*\" }}[1m] ) ) / \
         sum( rate( istio_requests_total{{ {labels} }}[1m] ) ) * 100"
    );
    let rate = value(&yard, &errors).await.unwrap();
    assert!((rate - 25.0).abs() < 1e-9, "{rate}");
    let latency = format!(
        "histogram_quantile(0.99, sum( rate( istio_request_duration_milliseconds_bucket{{ {labels} }}[1m] ) ) by (le) )/1000"
    );
    let p99 = value(&yard, &latency).await.unwrap();
    assert!(p99 < 0.001, "answers from memory take no time: {p99}");
    let destination = errors.replace("source", "destination");
    assert!((value(&yard, &destination).await.unwrap() - 25.0).abs() < 1e-9);
    let pods =
        "sum(rate(echo_requests_total{kubernetes_namespace=\"test\", kubernetes_pod_name=~\"podinfo-[0-9]\"}[1m]))";
    let rate = value(&yard, pods).await.unwrap();
    assert!((rate - 4.0).abs() < 0.2, "half of eight a second: {rate}");
}

#[tokio::test(start_paused = true)]
async fn scraped_series_carry_the_labels_of_their_pod() {
    let mut yard = Yard::start().await;
    yard.app("test", "app", 1, 1).await;
    let _prometheus = start(&yard).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let answer = ask(&yard, "echo_requests_total").await;
    assert_eq!(
        answer["data"]["result"][0]["metric"],
        json!({
            "__name__": "echo_requests_total", "app": "app", "app_kubernetes_io_part_of": "tests", "exported_pod": "me",
            "instance": "10.244.1.0:9898", "job": "kubernetes-pods", "kubernetes_namespace": "test",
            "kubernetes_pod_name": "app-0", "namespace": "test", "pod": "app-0", "pod_template_hash": "h1",
        })
    );
    assert_eq!(value(&yard, "up{job=\"kubernetes-pods\"}").await, Some(1.0));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_leaves_no_value_behind() {
    let mut yard = Yard::start().await;
    yard.app("test", "app", 1, 1).await;
    let _prometheus = start(&yard).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(value(&yard, "echo_requests_total").await.is_some());
    let pods: Api<Pod> = Api::namespaced(yard.client.clone(), "test");
    pods.delete("app-0", &DeleteParams::default().grace_period(0)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(value(&yard, "echo_requests_total").await, None);
    assert_eq!(value(&yard, "count_over_time(echo_requests_total[1m])").await, Some(5.0), "ranges still see it");
}

#[tokio::test(start_paused = true)]
async fn scraping_costs_the_api_server_nothing() {
    let mut yard = Yard::start().await;
    yard.app("test", "app", 1, 3).await;
    let _prometheus = start(&yard).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    yard.api.log().clear();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let asked: Vec<_> = yard.api.log().snapshot().into_iter().filter(|entry| entry.verb != "watch").collect();
    assert_eq!(asked, []);
    assert_eq!(value(&yard, "sum(count_over_time(up{job=\"kubernetes-pods\"}[5m]))").await, Some(180.0));
}

#[tokio::test(start_paused = true)]
async fn the_api_has_prometheus_shape() {
    let yard = Yard::start().await;
    let _prometheus = start(&yard).await;
    let get = async |target: &str| {
        let request = Request::get(target).header("host", "x").body(proxy::empty()).unwrap();
        let answer = yard.send_to("prometheus.istio-system", 9090, request).await;
        (answer.status.as_u16(), String::from_utf8(answer.body.to_vec()).unwrap())
    };
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let (status, body) = get("/api/v1/query?query=vector(1)&time=1700000000.5").await;
    let expected = json!({"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [1_700_000_000.5, "1"]}]}});
    assert_eq!((status, json(&body)), (200, expected));
    let (status, body) = get("/api/v1/query?query=1%2B1&time=2023-11-14T22:13:20Z").await;
    assert_eq!((status, json(&body)["data"]["result"].clone()), (200, json!([1_700_000_000, "2"])));
    let (status, body) = get("/api/v1/query?query=sum(").await;
    assert_eq!((status, json(&body)["errorType"].clone()), (400, json!("bad_data")));
    let (status, body) = get("/api/v1/query?query=topk(1,up)").await;
    assert_eq!(
        (status, json(&body)["errorType"].clone(), json(&body)["status"].clone()),
        (422, json!("execution"), json!("error"))
    );
    let (status, body) = get("/api/v1/query_range?query=time()&start=0&end=30&step=15").await;
    let values = json!([[0, "0"], [15, "15"], [30, "30"]]);
    assert_eq!((status, json(&body)["data"]["result"][0]["values"].clone()), (200, values));
    assert_eq!(get("/api/v1/query_range?query=1&start=0&end=99999999&step=1").await.0, 400);
    // Moments outside the calendar and steps outside the integers are refused or harmless, never a loop.
    for moments in ["start=-1e300&end=1e300", "start=0&end=253402300800", "start=-62167219201&end=0"] {
        assert_eq!(get(&format!("/api/v1/query_range?query=1&{moments}&step=1")).await.0, 400, "{moments}");
    }
    assert_eq!(get("/api/v1/query?query=1&time=1e300").await.0, 400);
    let (status, body) = get("/api/v1/query_range?query=1&start=0&end=30&step=1e300").await;
    assert_eq!((status, json(&body)["data"]["result"][0]["values"].clone()), (200, json!([[0, "1"]])));
    for query in ["up%20offset%20290000000y", "rate(up[290000000y])", "up%20@%201e300"] {
        assert_ne!(get(&format!("/api/v1/query?query={query}")).await.0, 500, "{query}");
    }
    assert_eq!(get("/-/healthy").await.0, 200);
    assert_eq!(json(&get("/api/v1/status/buildinfo").await.1)["status"], "success");
    let form = Request::post("/api/v1/query")
        .header("host", "x")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(proxy::full("query=vector(3)"))
        .unwrap();
    let answer = yard.send_to("prometheus.istio-system", 9090, form).await.echo();
    assert_eq!(answer["data"]["result"][0]["value"][1], "3");
}
