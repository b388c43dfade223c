//! drydock's gateway next to Traefik and Envoy: the same routes, the same requests.
//!
//! All three serve the same generated HTTPRoutes of one real cluster, and every request goes to each of them. Where Traefik
//! and Envoy agree, drydock does too; where they do not, it answers as one of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use seaway_api::foreign::gateway::HttpRoute;
use seaway_drydock::pods::{PodContext, PodOptions, Program};
use seaway_drydock::{Clock, gateway};
use serde_json::{Value, json};

use super::cluster::{PARTS, RealCluster};
use super::gateways::{Contour, Gateway, Traefik};
use super::haven::in_haven;
use super::routes;
use crate::harness::{Ground, NAMESPACES};

/// The first Gateway of drydock's gets this address.
const DRYDOCK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 244, 254, 1)), 8080);

/// How many routes there are.
const ROUTES: u64 = 60;

/// A program that tells what reached it.
struct Echo;

impl Program for Echo {
    fn launch(&self, pod: &PodContext) -> Vec<(u16, Router)> {
        let app = pod.labels.get("app").cloned().unwrap_or_default();
        let echo = async move |request: Request| {
            let headers = request.headers().iter().filter(|(name, _)| name.as_str().starts_with("x-test-"));
            let headers: BTreeMap<_, _> =
                headers.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()))).collect();
            let told = json!({"app": app, "method": request.method().as_str(), "uri": request.uri().path_and_query().map(ToString::to_string), "headers": headers});
            ([("x-test-answer", "pod")], told.to_string())
        };
        vec![(8080, Router::new().fallback(echo))]
    }
}

/// What a gateway made of a request.
async fn ask(
    client: &Client<HttpConnector, Empty<Bytes>>,
    gateway: SocketAddr,
    host: &str,
    asked: &routes::Asked,
) -> Value {
    let uri = format!("http://{gateway}{}", asked.uri);
    let mut request = http::Request::builder().method(asked.method.clone()).uri(uri).header("host", host);
    for (name, value) in &asked.headers {
        request = request.header(*name, *value);
    }
    let Ok(answer) = client.request(request.body(Empty::new()).unwrap()).await else { return json!("no answer") };
    let status = answer.status().as_u16();
    let header = |name: &str| -> Vec<String> {
        let values = answer.headers().get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let (location, marks) = (header("location"), header("x-test-answer"));
    let body = answer.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    // What a gateway says itself is its own business.
    let reached: Value = serde_json::from_slice(&body).unwrap_or_default();
    json!({"status": status, "location": location, "marks": marks, "reached": reached})
}

/// All parents have taken the route up.
fn is_accepted(route: &Value) -> bool {
    let generation = &route["metadata"]["generation"];
    let parents = route.pointer("/status/parents").and_then(Value::as_array).cloned().unwrap_or_default();
    let accepted = |parent: &Value| {
        let conditions = parent["conditions"].as_array().cloned().unwrap_or_default();
        conditions
            .iter()
            .any(|one| one["type"] == "Accepted" && one["status"] == "True" && one["observedGeneration"] == *generation)
    };
    parents.iter().filter(|parent| accepted(parent)).count() == 3
}

#[test]
fn drydock_routes_as_traefik_and_envoy_do() {
    let parts = [&PARTS[..], Traefik::PARTS, Contour::PARTS].concat();
    in_haven("real::agreement::drydock_routes_as_traefik_and_envoy_do", &parts, async || {
        let cluster = RealCluster::with(PodOptions::default(), |programs| programs.with("echo", Echo)).await;
        let (_traefik, _contour) = (Traefik::start(&cluster).await, Contour::start(&cluster).await);
        let clock = Clock::starting_at(jiff::Timestamp::now(), 1);
        let client = cluster.api.client("gateway").await;
        let _drydock = gateway::Gateway::start(client, cluster.berth.names().clone(), clock).await.unwrap();
        cluster.apply(NAMESPACES).await;
        cluster.apply(include_str!("agreement.yaml")).await;
        for name in ["north", "south"] {
            cluster.until("the pods run", async |cluster| cluster.ready(name).await == 1).await;
        }
        for seed in 0..ROUTES {
            cluster.apply(&routes::route(seed).to_string()).await;
        }
        for seed in 0..ROUTES {
            cluster
                .until("the gateways have the route", async |cluster| {
                    let route: HttpRoute = cluster.api("test").get(&routes::name(seed)).await.unwrap();
                    is_accepted(&serde_json::to_value(route).unwrap())
                })
                .await;
        }
        cluster.sail(Duration::from_secs(4)).await;

        let client = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
        let (mut asked, mut quarrels, mut wrong) = (0, 0, String::new());
        for seed in 0..ROUTES {
            let host = routes::host(seed);
            for request in routes::requests() {
                let traefik = ask(&client, Traefik::WEB, &host, &request).await;
                let envoy = ask(&client, Contour::WEB, &host, &request).await;
                let drydock = ask(&client, DRYDOCK, &host, &request).await;
                asked += 1;
                quarrels += u32::from(traefik != envoy);
                if drydock != traefik && drydock != envoy {
                    let route = routes::route(seed)["spec"]["rules"].clone();
                    let _ = writeln!(
                        wrong,
                        "{request:?} to {host}\n  drydock {drydock}\n  traefik {traefik}\n  envoy   {envoy}\n  rules   {route}"
                    );
                }
            }
        }
        eprintln!("{ROUTES} routes, {asked} requests to each gateway; Traefik and Envoy disagree on {quarrels}");
        assert!(wrong.is_empty(), "drydock answers as neither of them:\n{wrong}");
    });
}
