//! drydock's gateway next to Traefik and Envoy: the same routes, the same requests.
//!
//! All three serve the same generated HTTPRoutes of one real cluster, and every request goes to each of them. Where Traefik
//! and Envoy agree, drydock does too; where they do not, it answers as one of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use seaway_api::foreign::gateway::HttpRoute;
use seaway_drydock::pods::PodOptions;
use seaway_drydock::{Clock, gateway};
use serde_json::{Value, json};

use super::cluster::{PARTS, RealCluster};
use super::echo::{Echo, MARK};
use super::gateways::{Contour, Gateway, Traefik};
use super::haven::in_haven;
use super::routes;
use crate::harness::{Ground, NAMESPACES};

/// The first Gateway of drydock's gets this address.
const DRYDOCK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 244, 254, 1)), 8080);

/// Routes and requests are the same every time. A pod answered 2,520 of these behind all three alike: a third of the rules
/// redirect, and many requests match none. Traefik and Envoy disagreed on 951. With fewer answers or more quarrels than this the
/// test compares less than it did.
const SERVED: u32 = 2_450;
const QUARRELS: u32 = 1_000;

/// The gateways that are compared; what a request is marked with on its way through each.
const GATEWAYS: [(&str, SocketAddr); 3] = [("drydock", DRYDOCK), ("traefik", Traefik::WEB), ("envoy", Contour::WEB)];

type Web = Client<HttpConnector, Empty<Bytes>>;

/// What a gateway made of a request.
async fn ask(web: &Web, gateway: SocketAddr, host: &str, mark: &str, asked: &routes::Asked) -> Value {
    let uri = format!("http://{gateway}{}", asked.uri);
    let mut request = http::Request::builder().method(asked.method.clone()).uri(uri).header("host", host);
    for (name, value) in asked.headers.iter().chain(&[(MARK, mark)]) {
        request = request.header(*name, *value);
    }
    let Ok(answer) = web.request(request.body(Empty::new()).unwrap()).await else {
        return json!({"status": "no answer"});
    };
    let status = answer.status().as_u16();
    let header = |name: &str| -> Vec<String> {
        let values = answer.headers().get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let location = header("location");
    let marks = header("x-test-answer");
    let body = answer.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    // What a gateway says itself is its own business.
    let reached: Value = serde_json::from_slice(&body).unwrap_or_default();
    json!({"status": status, "location": location, "marks": marks, "reached": reached})
}

/// Every request to every gateway, and what each made of it. Copies that were sent to mirrors count.
async fn ask_all(web: &Web, echo: &Echo) -> Vec<(u64, routes::Asked, [Value; 3])> {
    let mark = |seed: u64, number: usize, gateway: &str| format!("{gateway}-{seed}-{number}");
    let mut all = Vec::new();
    for seed in 0..routes::count() {
        for (number, request) in routes::requests().into_iter().enumerate() {
            let mut answers = [Value::Null, Value::Null, Value::Null];
            for (answer, (name, gateway)) in answers.iter_mut().zip(GATEWAYS) {
                *answer = ask(web, gateway, &routes::asked_host(seed), &mark(seed, number, name), &request).await;
            }
            all.push((seed, number, request, answers));
        }
    }
    // Nobody waits for a copy.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let visits = |(seed, number, request, mut answers): (u64, usize, routes::Asked, [Value; 3])| {
        for (answer, (name, _)) in answers.iter_mut().zip(GATEWAYS) {
            answer["visited"] = json!(echo.visited(&mark(seed, number, name)));
        }
        (seed, request, answers)
    };
    all.into_iter().map(visits).collect()
}

/// Requests among which a weight shows. So many more are asked, and once more, before a gateway that draws lots is called wrong.
const CROWD: u32 = 2_000;
const CROWDS: u32 = 3;
/// How far a share may be from its weight, in points.
const CLOSE: f64 = 3.0;

/// Every gateway gives each backend its weight.
async fn weigh_all(web: &Web) {
    for (index, weight) in routes::WEIGHTS.into_iter().enumerate() {
        let asked = routes::Asked { method: http::Method::GET, uri: "/".to_owned(), headers: Vec::new() };
        for (name, gateway) in GATEWAYS {
            let (mut north, mut share) = (0, f64::NAN);
            for crowds in 1..=CROWDS {
                for _ in 0..CROWD {
                    let answer = ask(web, gateway, &routes::weighted_host(index), "crowd", &asked).await;
                    assert_eq!(answer["status"], 200, "{name}: {answer}");
                    north += u32::from(answer["reached"]["app"] == "north");
                }
                share = f64::from(north) * 100.0 / f64::from(crowds * CROWD);
                if (share - f64::from(weight)).abs() < CLOSE {
                    break;
                }
            }
            eprintln!("{name} sends {share:.1} of 100 where the weight is {weight}");
            assert!((share - f64::from(weight)).abs() < CLOSE, "{name}: {share} instead of {weight}");
        }
    }
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
        let echo = Echo::default();
        let cluster = RealCluster::with(PodOptions::default(), |programs| programs.with("echo", echo.clone())).await;
        let (_traefik, _contour) = (Traefik::start(&cluster).await, Contour::start(&cluster).await);
        let clock = Clock::starting_at(jiff::Timestamp::now(), 1);
        let client = cluster.api.client("gateway").await;
        let _drydock = gateway::Gateway::start(client, cluster.berth.names().clone(), clock).await.unwrap();
        cluster.apply(NAMESPACES).await;
        cluster.apply(include_str!("agreement.yaml")).await;
        for name in ["north", "south"] {
            cluster.until("the pods run", async |cluster| cluster.ready(name).await == 1).await;
        }
        let all = routes::all();
        for (_, route) in &all {
            cluster.apply(&route.to_string()).await;
        }
        for (name, _) in &all {
            cluster
                .until("the gateways have the route", async |cluster| {
                    let route: HttpRoute = cluster.api("test").get(name).await.unwrap();
                    is_accepted(&serde_json::to_value(route).unwrap())
                })
                .await;
        }
        cluster.sail(Duration::from_secs(4)).await;

        let web = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
        let (mut asked, mut served, mut wrong) = (0, 0, String::new());
        let mut quarrels: BTreeMap<u64, u32> = BTreeMap::new();
        for (seed, request, [drydock, traefik, envoy]) in ask_all(&web, &echo).await {
            asked += 1;
            *quarrels.entry(seed).or_default() += u32::from(traefik != envoy);
            served += u32::from(traefik == envoy && drydock == traefik && drydock["status"] == 200);
            if drydock != traefik && drydock != envoy {
                let rules = &routes::route(seed)["spec"]["rules"];
                let _ = writeln!(
                    wrong,
                    "{request:?}\n  drydock {drydock}\n  traefik {traefik}\n  envoy   {envoy}\n  rules   {rules}"
                );
            }
        }
        quarrels.retain(|_, count| *count > 0);
        eprintln!("Traefik and Envoy disagree on so many requests to these routes: {quarrels:?}");
        let quarrels: u32 = quarrels.into_values().sum();
        eprintln!(
            "{} routes, {asked} requests to each gateway; a pod answers {served} of them behind all three alike; Traefik \
             and Envoy disagree on {quarrels}",
            routes::count(),
        );
        assert!(wrong.is_empty(), "drydock answers as neither of them:\n{wrong}");
        assert!(quarrels <= QUARRELS && served >= SERVED, "this compares too little");
        weigh_all(&web).await;
    });
}
