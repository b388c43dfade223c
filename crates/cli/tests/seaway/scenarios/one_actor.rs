//! One canary has one actor: never two rounds of one operator, never two operators, never a write from yesterday.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Full;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use seaway_adapters::http::{Dial, Http, Stream};
use seaway_api::canary::Phase;
use seaway_cli::glue::{ClusterClock, ClusterDial};
use seaway_drydock::fault::{Call, Faults, Point};
use seaway_operator::{Config, Operator};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

use crate::harness::{CANARY, Ground, OPERATOR, Ship, Users};

/// One more operator process, with a way to the API server of its own.
fn start(ship: &Ship, config: Config, client: Client) -> JoinHandle<()> {
    start_until(CancellationToken::new(), ship, config, client)
}

/// The same, until it is told to stop.
fn start_until(stop: CancellationToken, ship: &Ship, config: Config, client: Client) -> JoinHandle<()> {
    let config = Config {
        mesh_provider: "gatewayapi:v1".into(),
        metrics_server: "http://prometheus.istio-system:9090".into(),
        port: None,
        ..config
    };
    let clock = Arc::new(ClusterClock::new(ship.cluster.clock()));
    let http = Http::through(Arc::new(Dialling(ClusterDial(ship.cluster.names().clone()))));
    let operator = Operator::new(config, client, clock, http);
    tokio::spawn(async move { drop(operator.run(stop).await) })
}

/// The cluster's names, and one at which nobody ever answers.
struct Dialling(ClusterDial);

impl Dial for Dialling {
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<Stream>> {
        if host == "deaf.test" { Box::pin(std::future::pending()) } else { self.0.dial(host, port) }
    }
}

/// Flagger starts another job when the interval changes, while a tick of the old one may still be under way.
#[tokio::test(start_paused = true)]
async fn an_edit_during_a_round_starts_no_second_one() {
    let ship = Ship::launch().await;
    let faults = Faults::new(ship.cluster.clock());
    let (under_way, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    // Every write of a round takes a second. Events are not part of it.
    for index in 0..500 {
        let (clock, faults_seen) = (ship.cluster.clock(), faults.clone());
        let (under_way, most) = (under_way.clone(), most.clone());
        faults.before(Point::Call(index), async move {
            let calls = faults_seen.calls();
            let effect = |call: &Call| call.index == Some(index) && call.is_write() && call.resource != "events";
            if calls.iter().any(effect) {
                most.fetch_max(under_way.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                clock.sleep(Duration::from_secs(1)).await;
                under_way.fetch_sub(1, Ordering::Relaxed);
            }
        });
    }
    let operator =
        start(&ship, Config { lease: None, ..Config::default() }, faults.client(ship.cluster.api(), OPERATOR));
    ship.apply(CANARY).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    let users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo", "6.0.1").await;
    let mut edits = ["61s", "1m"].into_iter().cycle();
    while ship.status("podinfo").await.phase != Phase::Succeeded {
        let interval = edits.next();
        ship.patch_canary("podinfo", json!({"spec": {"analysis": {"interval": interval}}})).await;
        ship.sail(Duration::from_secs(7)).await;
    }
    operator.abort();
    assert!(faults.calls().len() < 500, "not all writes were slow");
    assert_eq!(most.load(Ordering::Relaxed), 1, "two rounds of one canary at once");
    assert_eq!(ship.transcript.route("podinfo"), [0, 10, 20, 30, 40, 50, 0], "{}", ship.transcript);
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
}

/// A way to the API server on which these resources cannot be reached while `cut` is set, and everything else can.
fn without(resources: &'static [&'static str], ship: &Ship, user: &str, cut: &Arc<AtomicBool>) -> Client {
    let (server, cut) = (ship.cluster.api().as_user(user), cut.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let asked = |resource: &&str| request.uri().path().contains(*resource);
        let (mut server, lost) = (server.clone(), cut.load(Ordering::Relaxed) && resources.iter().any(asked));
        async move {
            let answer: Result<Response<_>, BoxError> =
                if lost { Err("connection reset".into()) } else { server.call(request).await };
            answer
        }
    });
    Client::new(service, "default")
}

/// Argo Rollouts #2117: it lost its Lease and went on beside the new leader.
#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_leaves_the_work_to_the_next() {
    const OLD: &str = "seaway-old";
    let ship = Ship::launch().await;
    let elect = |name: &str| Config::default().elect(name, "kube-system", Duration::from_secs(20));
    let cut = Arc::new(AtomicBool::new(false));
    let old = start(&ship, elect(OLD), without(&["/leases"], &ship, OLD, &cut));
    ship.apply(CANARY).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    let new = start(&ship, elect(OPERATOR), ship.cluster.client(OPERATOR));
    ship.sail(Duration::from_secs(30)).await;

    cut.store(true, Ordering::Relaxed);
    ship.sail(Duration::from_secs(60)).await;
    ship.cluster.api().log().clear();
    let users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
    let late =
        ship.cluster.api().log().snapshot().into_iter().filter(|request| request.user == OLD && request.is_write());
    assert_eq!(late.map(|request| format!("{request:?}")).collect::<Vec<_>>(), [""; 0], "two operators act at once");
    assert!(!ship.requests().is_empty(), "nobody acts");
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
    old.abort();
    new.abort();
}

/// The status says what was decided, so nobody who comes after decides and says it again.
#[tokio::test(start_paused = true)]
async fn what_was_said_before_the_lease_was_lost_is_told_all_the_same() {
    let ship = Ship::launch().await;
    let config = Config::default().elect(OPERATOR, "kube-system", Duration::from_secs(20));
    let cut = Arc::new(AtomicBool::new(false));
    let operator = start(&ship, config, without(&["/leases", "/events"], &ship, OPERATOR, &cut));
    ship.apply(CANARY).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    cut.store(true, Ordering::Relaxed);
    let cut_at = ship.cluster.clock().now();
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::Progressing).await;
    // Since a moment it leads no more: it would have had to renew the Lease within five seconds.
    until(&ship, cut_at, 6).await;
    assert!(!operator.is_finished());
    cut.store(false, Ordering::Relaxed);
    until(&ship, cut_at, 12).await;
    assert!(operator.is_finished(), "it has no Lease");
    let told = ship.transcript.events();
    assert!(told.iter().any(|text| text.starts_with("New revision detected!")), "{told:#?}");
}

/// Sails until so many seconds after `start`.
async fn until(ship: &Ship, start: Timestamp, seconds: i64) {
    let left = (start + SignedDuration::from_secs(seconds)).duration_since(ship.cluster.clock().now());
    ship.sail(Duration::try_from(left).expect("that is still to come")).await;
}

/// With one replica whoever leads next is this very process, started anew: nobody acts until it has ended.
#[tokio::test(start_paused = true)]
async fn a_process_without_its_lease_ends_soon_although_somebody_does_not_listen() {
    for told_to_stop in [false, true] {
        let ship = Ship::launch().await;
        let config = Config { event_webhook: Some("http://deaf.test/".to_owned()), ..Config::default() };
        let config = config.elect(OPERATOR, "kube-system", Duration::from_secs(20));
        let (cut, stop) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
        let operator = start_until(stop.clone(), &ship, config, without(&["/leases"], &ship, OPERATOR, &cut));
        ship.apply(CANARY).await;
        ship.until_phase("podinfo", Phase::Initialized).await;
        cut.store(true, Ordering::Relaxed);
        let cut_at = ship.cluster.clock().now();
        until(&ship, cut_at, 6).await;
        assert!(!operator.is_finished(), "it has something to say");
        if told_to_stop {
            stop.cancel();
        }
        until(&ship, cut_at, if told_to_stop { 7 } else { 12 }).await;
        assert!(operator.is_finished(), "told to stop: {told_to_stop}");
    }
}

/// A request that the network holds back.
type Held = Arc<Mutex<Option<Request<Full<Bytes>>>>>;

/// A way to the API server on which the first request whose body has `words` gets lost, and is found again in `held`.
fn with_a_late_request(ship: &Ship, words: &'static str, held: &Held) -> Client {
    let (server, held, lost) = (ship.cluster.api().as_user(OPERATOR), held.clone(), Arc::new(AtomicBool::new(false)));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (mut server, held, lost) = (server.clone(), held.clone(), lost.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let request = Request::from_parts(parts, Full::new(body.clone()));
            if String::from_utf8_lossy(&body).contains(words) && !lost.swap(true, Ordering::Relaxed) {
                *held.lock().unwrap() = Some(request);
                return std::future::pending().await;
            }
            let answer: Result<Response<_>, BoxError> = server.call(request).await;
            answer
        }
    });
    Client::new(service, "default")
}

/// Argo Rollouts #4073: what was decided on an old version was written over a newer one.
#[tokio::test(start_paused = true)]
async fn a_write_that_arrives_late_changes_nothing() {
    let ship = Ship::launch().await;
    let held = Held::default();
    let client = with_a_late_request(&ship, r#""canaryWeight":20"#, &held);
    let operator = start(&ship, Config { lease: None, ..Config::default() }, client);
    ship.apply(CANARY).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    let users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_weight("podinfo", 40).await;
    let late = held.lock().unwrap().take().expect("a request was held back");
    let answer = ship.cluster.api().as_user(OPERATOR).call(late).await.unwrap();
    assert_eq!((answer.status().as_u16(), ship.status("podinfo").await.canary_weight), (409, 40));
    ship.until_phase("podinfo", Phase::Succeeded).await;
    assert_eq!(ship.transcript.route("podinfo"), [0, 10, 20, 30, 40, 50, 0], "{}", ship.transcript);
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
    operator.abort();
}
