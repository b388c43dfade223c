//! The tutorial's podinfo on a cluster with real sockets: change its image, wait for its Canary.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams};
use seaway_api::canary::{Canary, CanaryStatus};
use seaway_cli::demo::ground::Ground;
use serde_json::json;

use super::Transcript;

/// As `kubectl set image deployment/podinfo podinfod=…`.
pub async fn set_image(ground: &Ground, tag: &str) {
    let api: Api<Deployment> = Api::namespaced(ground.cluster().client("test"), "test");
    let image = format!("ghcr.io/stefanprodan/podinfo:{tag}");
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "podinfod", "image": image}]}}}});
    api.patch("podinfo", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
}

pub async fn status(ground: &Ground) -> CanaryStatus {
    let api: Api<Canary> = Api::namespaced(ground.cluster().client("test"), "test");
    api.get("podinfo").await.unwrap().status.unwrap_or_default()
}

pub async fn until_phase(ground: &Ground, phase: &str, transcript: &Transcript) {
    until(ground, &format!("phase {phase}"), transcript, |status| format!("{:?}", status.phase) == phase).await;
}

pub async fn until_weight(ground: &Ground, weight: i64, transcript: &Transcript) {
    until(ground, &format!("weight {weight}"), transcript, |status| status.canary_weight == weight).await;
}

/// An Event follows the status it tells of.
pub async fn until_said(ground: &Ground, text: &str, transcript: &Transcript) {
    until(ground, text, transcript, |_| transcript.events().iter().any(|told| told == text)).await;
}

/// Gives up after three minutes without any change of the story: slow machines are slow, a hang is a hang.
pub async fn until(ground: &Ground, what: &str, transcript: &Transcript, holds: impl Fn(&CanaryStatus) -> bool) {
    let (mut idle, mut lines) = (0, 0);
    while !holds(&status(ground).await) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = transcript.entries().len();
        idle = if now == lines { idle + 1 } else { 0 };
        lines = now;
        assert!(idle < 3600, "never: {what}\n{transcript}");
    }
}
