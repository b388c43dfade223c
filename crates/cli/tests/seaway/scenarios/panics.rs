//! A fault of ours, in one round of one canary, is that canary's trouble alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use seaway_api::canary::{ConditionStatus, Phase};
use seaway_drydock::Cluster;
use tower::ServiceExt;

use crate::harness::{CANARY, Ground, OPERATOR, PODINFO, Ship, Users};

/// A client whose requests for one route panic, in the round that waits for the answer, while `poison` is set.
fn poisoned(cluster: &Cluster, poison: &Arc<AtomicBool>) -> Client {
    let (inner, poison) = (cluster.api().as_user(OPERATOR), poison.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, poison) = (inner.clone(), poison.clone());
        async move {
            let touches = request.method() != http::Method::GET && request.uri().path().ends_with("/httproutes/poison");
            assert!(!(touches && poison.load(Ordering::Relaxed)), "a fault of ours");
            inner.oneshot(request).await
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn a_round_that_panics_is_contained_and_tried_again_later() {
    let poison = Arc::new(AtomicBool::new(false));
    let mut ship = Ship::launch_initialised().await;
    let second = PODINFO.replace("podinfo", "poison");
    let same_pods = second.replace("poisond", "podinfod").replace("stefanprodan/poison", "stefanprodan/podinfo");
    ship.apply(&same_pods).await;
    let canary = CANARY.replace("podinfo", "poison").replace("www.example.com", "poison.example.com");
    ship.apply(&canary).await;
    ship.until_phase("poison", Phase::Initialized).await;
    let users = Users::start(&ship.cluster, 10);

    ship.kill_operator().await;
    let client = poisoned(&ship.cluster, &poison);
    ship.start_operator_with(client);
    ship.sail(Duration::from_secs(10)).await;
    poison.store(true, Ordering::Relaxed);
    ship.set_image("poison", "6.0.1").await;
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
    assert_eq!(ship.image("podinfo-primary").await, "6.0.1", "the other one goes on");

    let status = ship.status("poison").await;
    let broken = status.condition("InternalError").expect("people are told");
    assert_eq!((broken.status, broken.reason.as_str()), (ConditionStatus::True, "RoundBrokeOff"));
    let told = "internal error, the canary is left as it is and looked at again later";
    assert_eq!(ship.transcript.events().iter().filter(|text| *text == told).count(), 1, "{}", ship.transcript);
    let before = ship.requests().len();
    ship.sail(Duration::from_secs(1200)).await;
    let tries = ship.requests().len() - before;
    assert!(tries <= 12, "{tries} requests in twenty minutes");

    poison.store(false, Ordering::Relaxed);
    ship.until("it goes on", async |ship| ship.status("poison").await.condition("InternalError").is_none()).await;
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
}
