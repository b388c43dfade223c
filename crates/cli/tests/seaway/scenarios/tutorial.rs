//! The tutorial as a person lives through it: real sockets, real commands in the hooks, manifests applied unchanged.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::BodyExt;
use seaway_cli::demo::ground::{Ground, MANIFESTS};
use seaway_drydock::proxy::empty;

use crate::harness::{Transcript, Users, podinfo};

/// `watch curl http://podinfo-canary:9898/PATH`, from a pod of the namespace, until told to stop.
fn watch_curl(ground: &Ground, path: &'static str, stop: Arc<AtomicBool>) -> tokio::task::JoinHandle<u32> {
    let mesh = ground.cluster().mesh().in_namespace("test");
    tokio::spawn(async move {
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            let request = http::Request::get(format!("http://podinfo-canary:9898/{path}")).body(empty()).unwrap();
            let _ = mesh.send(request).await.into_body().collect().await;
            sent += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        sent
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tutorial_promotes_and_then_rolls_back() {
    let mut ground = Ground::start(20, Path::new(env!("CARGO_BIN_EXE_seaway"))).await.unwrap();
    let transcript = Transcript::of(ground.cluster());
    ground.apply(MANIFESTS).await.unwrap();
    ground.start_operator();
    podinfo::until_phase(&ground, "Initialized", &transcript).await;
    let users = Users::start(ground.cluster(), 2);

    transcript.clear();
    podinfo::set_image(&ground, "6.0.1").await;
    podinfo::until_phase(&ground, "Succeeded", &transcript).await;
    assert_eq!(transcript.route("podinfo"), [10, 20, 30, 40, 50, 0], "{transcript}");
    for text in [
        "New revision detected! Scaling up podinfo.test",
        "Starting canary analysis for podinfo.test",
        "Pre-rollout check smoke-test passed",
        "Advance podinfo.test canary weight 10",
        "Advance podinfo.test canary weight 50",
        "Copying podinfo.test template spec to podinfo-primary.test",
        "Routing all traffic to primary",
        "Promotion completed! Scaling down podinfo.test",
    ] {
        podinfo::until_said(&ground, text, &transcript).await;
    }

    transcript.clear();
    podinfo::set_image(&ground, "6.0.2").await;
    podinfo::until_weight(&ground, 10, &transcript).await;
    let stop = Arc::new(AtomicBool::new(false));
    let errors = watch_curl(&ground, "status/500", stop.clone());
    let latency = watch_curl(&ground, "delay/1", stop.clone());
    podinfo::until_phase(&ground, "Failed", &transcript).await;
    stop.store(true, Ordering::Relaxed);
    assert!(errors.await.unwrap() > 10 && latency.await.unwrap() > 0);
    let told = transcript.events();
    let halts = told.iter().filter(|text| text.starts_with("Halt podinfo.test advancement error-rate ")).count();
    assert!(halts >= 4, "{told:#?}");
    for text in
        ["Rolling back podinfo.test failed checks threshold reached 5", "Canary failed! Scaling down podinfo.test"]
    {
        podinfo::until_said(&ground, text, &transcript).await;
    }
    // People who came through the gateway noticed nothing: the errors were asked for at the canary's own Service.
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
    ground.stop().await;
}
