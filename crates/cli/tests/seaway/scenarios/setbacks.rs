//! Rollouts that people and clusters get in the way of, for any ground. On a real cluster `real/setbacks.rs` tells them.

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use seaway_api::canary::Phase;
use seaway_api::foreign::gateway::HttpRoute;
use serde_json::{Value, json};

use crate::harness::{Ground, Ship, Users};

/// An app with an initialised Canary, and the weights that a rollout of it goes through: three or more. It runs 6.0.0.
#[derive(Clone, Copy)]
pub struct App {
    pub name: &'static str,
    pub weights: &'static [i64],
}

impl App {
    fn primary(&self) -> String {
        format!("{}-primary", self.name)
    }

    /// The second weight, at which something happens.
    fn midway(&self) -> i64 {
        self.weights[1]
    }

    /// The route as it is told by a rollout that ends well, from the beginning on.
    fn way(&self) -> Vec<i64> {
        [&[0], self.weights, &[0]].concat()
    }

    /// The same, where this happens midway.
    fn way_with(&self, detour: &[i64]) -> Vec<i64> {
        [&[0], &self.weights[..2], detour].concat()
    }

    /// 6.0.1 is rolled out, until users and status are midway.
    async fn roll_out_to_midway<G: Ground>(&self, ground: &G) {
        ground.set_image(self.name, "6.0.1").await;
        ground.until_weight(self.name, self.midway()).await;
        self.until_split(ground, self.midway()).await;
    }

    async fn until_split<G: Ground>(&self, ground: &G, canary: i64) {
        let route: Api<HttpRoute> = ground.api("test");
        let leads = async |_: &G| {
            let route = route.get_opt(self.name).await.unwrap().map(|route| serde_json::to_value(route).unwrap());
            let weights = ["0", "1"].map(|index| {
                let place = format!("/spec/rules/0/backendRefs/{index}/weight");
                route.as_ref().and_then(|route| route.pointer(&place)).and_then(Value::as_i64)
            });
            weights == [Some(100 - canary), Some(canary)]
        };
        ground.until(&format!("the route of {} gives the canary {canary}", self.name), leads).await;
    }

    async fn until_scaled_down(&self, ground: &impl Ground) {
        let what = format!("{} is scaled down", self.name);
        ground.until(&what, async |ground| ground.replicas(self.name).await == 0).await;
    }

    async fn until_primary_runs(&self, ground: &impl Ground, version: &str) {
        let what = format!("{} runs {version}", self.primary());
        ground.until(&what, async |ground| ground.image(&self.primary()).await == version).await;
    }

    /// Somebody is told something that begins like this.
    async fn until_told(&self, ground: &impl Ground, beginning: &str) {
        let told = |text: &String| text.starts_with(beginning) && text.contains(self.name);
        ground.until(&format!("told: {beginning}"), async |ground| ground.transcript().events().iter().any(told)).await;
    }

    async fn patch_target(&self, ground: &impl Ground, container: Value) {
        let api: Api<Deployment> = ground.api("test");
        let patch = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
        api.patch(self.name, &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    }

    async fn delete_deployment(&self, ground: &impl Ground, name: &str) {
        let api: Api<Deployment> = ground.api("test");
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }
}

/// A version that never becomes ready meets no user.
pub async fn never_ready(ground: &impl Ground, app: App) {
    ground.set_image(app.name, "6.0.1-noready").await;
    ground.until_phase(app.name, Phase::Failed).await;
    app.until_told(ground, &format!("Rolling back {}.test progress deadline exceeded", app.name)).await;
    app.until_told(ground, &format!("Canary failed! Scaling down {}.test", app.name)).await;
    app.until_scaled_down(ground).await;
    assert_eq!(ground.transcript().route(app.name), [0], "no traffic ever moved");
}

/// A newer version midway is analysed from the beginning.
pub async fn newer_revision(ground: &impl Ground, app: App) {
    app.roll_out_to_midway(ground).await;
    ground.set_image(app.name, "6.0.2").await;
    ground.until_phase(app.name, Phase::Succeeded).await;
    app.until_told(ground, &format!("New revision detected! Restarting analysis for {}.test", app.name)).await;
    assert_eq!(ground.transcript().route(app.name), app.way_with(&app.way()));
    assert_eq!(ground.image(&app.primary()).await, "6.0.2");
}

/// The proven version midway: nothing is left to roll out.
pub async fn proven_revision(ground: &impl Ground, app: App) {
    app.roll_out_to_midway(ground).await;
    ground.set_image(app.name, "6.0.0").await;
    let rests = |phase| matches!(phase, Phase::Succeeded | Phase::Initialized);
    ground.until("the canary rests", async |ground| rests(ground.status(app.name).await.phase)).await;
    app.until_split(ground, 0).await;
    app.until_scaled_down(ground).await;
    assert_eq!(ground.image(&app.primary()).await, "6.0.0");
}

/// Weights that somebody writes by hand are put back; what they write beside them stays.
pub async fn edited_route(ground: &impl Ground, app: App) {
    app.roll_out_to_midway(ground).await;
    let routes: Api<HttpRoute> = ground.api("test");
    let edit = json!([
        {"op": "replace", "path": "/spec/rules/0/backendRefs/0/weight", "value": 45},
        {"op": "replace", "path": "/spec/rules/0/backendRefs/1/weight", "value": 55},
        {"op": "add", "path": "/metadata/labels", "value": {"team": "shop"}},
    ]);
    let patch: json_patch::Patch = serde_json::from_value(edit).unwrap();
    routes.patch(app.name, &PatchParams::default(), &Patch::Json::<()>(patch)).await.unwrap();
    ground.until_phase(app.name, Phase::Succeeded).await;
    let rest = [&[55, app.midway()], &app.weights[2..], &[0]].concat();
    assert_eq!(ground.transcript().route(app.name), app.way_with(&rest));
    assert!(ground.transcript().steps(app.name).iter().all(|(_, weight)| *weight != 55));
    let route = routes.get(app.name).await.unwrap();
    assert_eq!(route.metadata.labels.unwrap()["team"], "shop", "labels of others stay");
}

/// A route that is deleted comes back as it was, and the rollout goes on.
pub async fn deleted_route(ground: &impl Ground, app: App) {
    app.roll_out_to_midway(ground).await;
    let routes: Api<HttpRoute> = ground.api("test");
    let before = routes.get(app.name).await.unwrap().metadata.uid;
    routes.delete(app.name, &DeleteParams::default()).await.unwrap();
    let is_back = async |_: &_| routes.get_opt(app.name).await.unwrap().is_some_and(|now| now.metadata.uid != before);
    ground.until("the route is back", is_back).await;
    ground.until_phase(app.name, Phase::Succeeded).await;
    assert_eq!(ground.transcript().route(app.name), app.way(), "it came back at the weight it had");
}

/// A version that runs as canary and not as primary: users stay on the canary until the primary is what it was. And it is no
/// dead end.
pub async fn primary_that_cannot_run(ground: &impl Ground, app: App) {
    // Pods with this label crash: it passes as canary and fails in promotion.
    let version = |tag: &str, crashes_as: &str| {
        let image = format!("ghcr.io/stefanprodan/podinfo:{tag}");
        json!({"name": "podinfod", "image": image, "env": [{"name": "DRYDOCK_CRASH_AS", "value": crashes_as}]})
    };
    app.patch_target(ground, version("6.0.1", &app.primary())).await;
    ground.until_phase(app.name, Phase::Failed).await;
    let steps = ground.transcript().steps(app.name);
    assert!(steps.iter().any(|(phase, _)| phase == "Promoting"), "{}", ground.transcript());
    app.until_primary_runs(ground, "6.0.0").await;
    app.until_split(ground, 0).await;

    app.patch_target(ground, version("6.0.2", "")).await;
    ground.until_phase(app.name, Phase::Succeeded).await;
    assert_eq!(ground.image(&app.primary()).await, "6.0.2");
}

/// Somebody who is sure.
pub async fn skipped_analysis(ground: &impl Ground, app: App) {
    ground.patch_canary(app.name, json!({"spec": {"skipAnalysis": true}})).await;
    ground.set_image(app.name, "6.0.1").await;
    ground.until_phase(app.name, Phase::Succeeded).await;
    assert_eq!(ground.image(&app.primary()).await, "6.0.1");
    let told = format!("Promotion completed! Canary analysis was skipped for {}.test", app.name);
    app.until_told(ground, &told).await;
    assert_eq!(ground.transcript().route(app.name), [0]);
}

/// The target is deleted midway: its share goes to the primary, and the status remembers how much it was.
pub async fn deleted_target(ground: &impl Ground, app: App) {
    app.roll_out_to_midway(ground).await;
    app.delete_deployment(ground, app.name).await;
    app.until_split(ground, 0).await;
    assert_eq!(ground.status(app.name).await.canary_weight, app.midway(), "it is put back with the target");
}

/// The primary is deleted midway: the canary serves everybody until there is a primary again, with what was proven.
pub async fn deleted_primary(ground: &impl Ground, app: App) {
    app.roll_out_to_midway(ground).await;
    app.delete_deployment(ground, &app.primary()).await;
    app.until_split(ground, 100).await;
    ground.until_phase(app.name, Phase::Failed).await;
    app.until_split(ground, 0).await;
    app.until_scaled_down(ground).await;
    assert_eq!(ground.image(&app.primary()).await, "6.0.0");
}

/// The tutorial's app.
const PODINFO: App = App { name: "podinfo", weights: &[10, 20, 30, 40, 50] };

/// The story happens on drydock, and no user notices.
async fn unnoticed(story: impl AsyncFnOnce(&Ship)) {
    let ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 10);
    story(&ship).await;
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}\n{}", users.seen(), ship.transcript);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_never_becomes_ready_is_rolled_back() {
    unnoticed(async |ship| never_ready(ship, PODINFO).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_revision_midway_starts_the_analysis_again() {
    unnoticed(async |ship| newer_revision(ship, PODINFO).await).await;
}

#[tokio::test(start_paused = true)]
async fn going_back_to_the_promoted_version_midway_ends_well() {
    unnoticed(async |ship| proven_revision(ship, PODINFO).await).await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_the_route_is_put_back_at_the_current_weight() {
    unnoticed(async |ship| edited_route(ship, PODINFO).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_primary_that_cannot_run_the_new_version_is_restored() {
    unnoticed(async |ship| primary_that_cannot_run(ship, PODINFO).await).await;
}

#[tokio::test(start_paused = true)]
async fn skip_analysis_promotes_at_once() {
    unnoticed(async |ship| skipped_analysis(ship, PODINFO).await).await;
}

/// The story happens on drydock; users notice the blow, and nothing after it.
async fn noticed_once(story: impl AsyncFnOnce(&Ship)) {
    let ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 10);
    story(&ship).await;
    users.forget();
    ship.sail(std::time::Duration::from_secs(60)).await;
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}\n{}", users.seen(), ship.transcript);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_route_comes_back_with_the_current_weight() {
    noticed_once(async |ship| deleted_route(ship, PODINFO).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_target_deleted_in_analysis_gets_no_traffic() {
    noticed_once(async |ship| deleted_target(ship, PODINFO).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_primary_deleted_in_analysis_is_made_again_while_the_canary_serves() {
    noticed_once(async |ship| deleted_primary(ship, PODINFO).await).await;
}
