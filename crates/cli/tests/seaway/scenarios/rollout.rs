//! The tutorial's rollouts, against the sequence recorded from real Flagger.

use std::time::Duration;

use seaway_api::canary::Phase;
use seaway_api::duration;

use super::golden::{expected, in_one, must_not_nag, must_take_its_time, ours};
use crate::harness::{CANARY, Ground, Ship, Users};

/// What is told follows what is stored.
pub const NEWS: Duration = Duration::from_secs(2);

/// Steps of the recording in which a good version is rolled out.
pub const PROMOTED: &str = "A2-set-image-6.0.1";
pub const PROMOTED_AFTER_A_FAILURE: &str = "A3b-set-image-6.0.3-after-failure";

/// Fails half of its requests.
pub const FAULTY: &str = "6.0.2-err50";

/// A rollout went as Flagger's, tick by tick, and no tick came early.
async fn must_go_as_flaggers(ground: &impl Ground, step: &str) {
    assert_eq!(ours(ground.transcript(), "podinfo"), expected(step), "{}", ground.transcript());
    must_not_nag(ground.transcript());
    let interval = ground.canary("podinfo").await.spec.analysis.unwrap().interval;
    must_take_its_time(ground.transcript(), "podinfo", duration::parse(&interval).unwrap());
}

/// The tutorial's Canary is created. The ground has podinfo 6.0.0 and an operator.
pub async fn initialise_as_flagger_did(ground: &impl Ground, canary: &str) {
    ground.apply(canary).await;
    ground.until_phase("podinfo", Phase::Initialized).await;
    ground.sail(NEWS).await;
    // Nobody waits for ticks here: a primary that is ready is seen at once.
    let ours = ours(ground.transcript(), "podinfo");
    assert_eq!(in_one(ours), in_one(expected("A1-canary-create")), "{}", ground.transcript());
    must_not_nag(ground.transcript());
    assert_eq!((ground.replicas("podinfo").await, ground.replicas("podinfo-primary").await), (0, 2));
}

/// A good version is promoted.
pub async fn promote_as_flagger_did(ground: &impl Ground, tag: &str, step: &str) {
    ground.transcript().clear();
    ground.set_image("podinfo", tag).await;
    ground.until_phase("podinfo", Phase::Succeeded).await;
    ground.sail(NEWS).await;
    must_go_as_flaggers(ground, step).await;
    assert_eq!(ground.transcript().route("podinfo"), [10, 20, 30, 40, 50, 0]);
    assert_eq!(ground.image("podinfo-primary").await, tag);
    assert_eq!(ground.replicas("podinfo").await, 0);
}

/// A version that fails half of its requests is rolled back.
pub async fn roll_back_as_flagger_did(ground: &impl Ground) {
    let proven = ground.image("podinfo-primary").await;
    ground.transcript().clear();
    ground.set_image("podinfo", FAULTY).await;
    ground.until_phase("podinfo", Phase::Failed).await;
    ground.sail(NEWS).await;
    must_go_as_flaggers(ground, "A3-set-image-6.0.2-err50").await;
    assert_eq!(ground.transcript().route("podinfo"), [10, 0]);
    assert_eq!(ground.image("podinfo-primary").await, proven);
    assert_eq!(ground.replicas("podinfo").await, 0);
}

#[tokio::test(start_paused = true)]
async fn initialise_promote_roll_back_and_promote_again_as_flagger_did() {
    let mut ship = Ship::launch().await;
    ship.start_operator();
    initialise_as_flagger_did(&ship, CANARY).await;
    let users = Users::start(&ship.cluster, 10);
    promote_as_flagger_did(&ship, "6.0.1", PROMOTED).await;
    roll_back_as_flagger_did(&ship).await;
    promote_as_flagger_did(&ship, "6.0.3", PROMOTED_AFTER_A_FAILURE).await;
    assert_eq!(users.failures_of_ours(FAULTY), 0, "{:?}", users.seen());
}

#[tokio::test(start_paused = true)]
async fn users_see_the_split_the_status_shows() {
    let ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 20);
    ship.set_image("podinfo", "6.0.1").await;
    for weight in [10_u64, 20, 30] {
        ship.until_weight("podinfo", i64::try_from(weight).unwrap()).await;
        ship.sail(Duration::from_secs(2)).await;
        users.forget();
        ship.sail(Duration::from_secs(50)).await;
        let seen = users.seen();
        let new = seen.get(&("6.0.1".to_owned(), 200)).copied().unwrap_or_default();
        let all: u64 = seen.values().sum();
        let share = new * 100 / all;
        assert!(share.abs_diff(weight) <= 1, "{share} % instead of {weight} %: {seen:?}");
    }
}
