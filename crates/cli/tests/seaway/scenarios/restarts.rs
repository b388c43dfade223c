//! The operator is killed at twenty moments of a rollout, and the next one goes on as if nothing had happened.

use std::time::Duration;

use rstest::rstest;
use seaway_api::canary::Phase;

use crate::harness::{Entry, Ground, Ship, Users};

/// A rollout of the tutorial's Canary takes about eight minutes of simulated time; the moments are spread over it and
/// fall into ticks, between them, and into the promotion.
#[rstest]
#[tokio::test(start_paused = true)]
async fn no_step_is_repeated_and_no_weight_jumps(
    #[values(1, 13, 40, 59, 60, 61, 75, 100, 119, 121, 180, 200, 241, 260, 301, 330, 361, 362, 370, 400)] second: u64,
) {
    let mut ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 5);
    ship.transcript.clear();
    ship.set_image("podinfo", "6.0.1").await;
    ship.sail(Duration::from_millis(second * 1000 + second % 7 * 11)).await;
    ship.kill_operator().await;
    ship.sail(Duration::from_secs(20)).await;
    ship.start_operator();
    ship.until_phase("podinfo", Phase::Succeeded).await;

    assert_eq!(ship.transcript.route("podinfo"), [10, 20, 30, 40, 50, 0], "{}", ship.transcript);
    let advances = |text: &String| text.starts_with("Advance");
    let told = ship.transcript.events().into_iter().filter(advances).collect::<Vec<_>>();
    let mut unique = told.clone();
    unique.dedup();
    assert_eq!(told, unique, "a step was told twice\n{}", ship.transcript);
    assert_eq!(ship.image("podinfo-primary").await, "6.0.1");
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
    let restarts = ship.transcript.entries().into_iter().filter(
        |entry| matches!(entry, Entry::Deployment { name, tag, .. } if name == "podinfo-primary" && tag == "6.0.1"),
    );
    assert_eq!(restarts.count(), 1, "the primary was promoted more than once\n{}", ship.transcript);
}

/// The drain is ten seconds; nobody here lives that long.
#[rstest]
#[case::promotion("6.0.1", Phase::Succeeded)]
#[case::rollback("6.0.1-err50", Phase::Failed)]
#[tokio::test(start_paused = true)]
async fn operators_that_never_live_long_still_come_to_an_end(#[case] tag: &str, #[case] end: Phase) {
    let mut ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo", tag).await;
    let mut lives = 0;
    while ship.status("podinfo").await.phase != end {
        lives += 1;
        assert!(lives < 150, "never {end}\n{}", ship.transcript);
        ship.sail(Duration::from_secs(7)).await;
        ship.kill_operator().await;
        ship.start_operator();
    }
    ship.sail(Duration::from_secs(30)).await;
    assert_eq!(ship.replicas("podinfo").await, 0);
    assert_eq!(ship.weights("podinfo").await, (100, 0));
    assert_eq!(users.failures_of_ours(tag), 0, "{:?}", users.seen());
}
