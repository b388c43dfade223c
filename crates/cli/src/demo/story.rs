//! The story: bring an app under control, release a good version, release a bad one.
//!
//! It acts as a user would, by changing an image, and waits for what the Canary's status says. What is told about it is
//! not its business.

use std::time::Duration;

use anyhow::{Context, bail};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use seaway_api::Phase;
use serde_json::json;
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;

use super::ground::{Ground, MANIFESTS};
use super::model::{Chapter, Sight};
use super::users::Users;

/// Namespace of the app.
pub const NAMESPACE: &str = "test";
/// Name of the Canary and of its target.
pub const NAME: &str = "podinfo";
/// The version the app starts with.
pub const FIRST: &str = "6.0.0";
/// The good release.
pub const GOOD: &str = "6.0.1";
/// The bad release: the suffix scripts a pod of drydock to fail a quarter of its requests.
pub const BAD: &str = "6.0.2-err25";

const IMAGE: &str = "stefanprodan/podinfo";
const CONTAINER: &str = "podinfod";

/// Simulated time after which a chapter counts as stuck; each takes about eight minutes.
const PATIENCE: Duration = Duration::from_secs(40 * 60);
/// Simulated pause between two chapters, so that users are seen on the promoted version.
const PAUSE: Duration = Duration::from_secs(30);

/// How it went, as far as it went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// The good version serves all users.
    pub promoted: bool,
    /// The bad version serves nobody.
    pub rolled_back: bool,
}

/// Who takes part.
pub struct Cast<'a> {
    /// Where it happens.
    pub ground: &'a Ground,
    /// Those who use the app.
    pub users: &'a Users,
    /// The Canary's phase, as it is seen.
    pub phase: watch::Receiver<Phase>,
    /// Where chapters are announced.
    pub sights: Sender<Sight>,
}

impl Cast<'_> {
    /// Plays the whole story.
    pub async fn play(mut self) -> anyhow::Result<Outcome> {
        let mut outcome = Outcome::default();
        self.announce(Chapter::Launch, FIRST).await;
        self.ground.apply(MANIFESTS).await?;
        self.until("was not brought under control", |phase| phase == Phase::Initialized).await?;
        self.users.come();
        self.pause().await;

        self.announce(Chapter::Promotion, GOOD).await;
        outcome.promoted = self.release(GOOD).await? == Phase::Succeeded;
        self.pause().await;

        self.announce(Chapter::Rollback, BAD).await;
        outcome.rolled_back = self.release(BAD).await? == Phase::Failed;
        self.pause().await;

        self.users.leave().await;
        self.announce(Chapter::End, "").await;
        Ok(outcome)
    }

    /// Releases a version and waits for the verdict.
    async fn release(&mut self, version: &str) -> anyhow::Result<Phase> {
        let client = self.ground.cluster().client("kubectl");
        let image = format!("{IMAGE}:{version}");
        let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": CONTAINER, "image": image}]}}}});
        Api::<Deployment>::namespaced(client, NAMESPACE)
            .patch(NAME, &PatchParams::default(), &Patch::Strategic(patch))
            .await
            .with_context(|| format!("cannot set image {image}"))?;
        self.until("did not notice the new version", |phase| phase == Phase::Progressing).await?;
        self.until("did not come to a verdict", |phase| matches!(phase, Phase::Succeeded | Phase::Failed)).await
    }

    async fn until(&mut self, otherwise: &str, arrived: impl Fn(Phase) -> bool) -> anyhow::Result<Phase> {
        let clock = self.ground.cluster().clock();
        let seen = async { self.phase.wait_for(|phase| arrived(*phase)).await.map(|phase| *phase) };
        tokio::select! {
            phase = seen => phase.context("nobody watches the Canary any more"),
            () = clock.sleep(PATIENCE) => bail!("the canary {NAME}.{NAMESPACE} {otherwise} within {} simulated minutes",
                PATIENCE.as_secs() / 60),
        }
    }

    async fn pause(&self) {
        self.ground.cluster().clock().sleep(PAUSE).await;
    }

    async fn announce(&self, chapter: Chapter, version: &str) {
        // Nobody listens when the demo was interrupted, and then nobody needs to know.
        let _ = self.sights.send(Sight::Chapter(chapter, version.to_owned())).await;
    }
}
