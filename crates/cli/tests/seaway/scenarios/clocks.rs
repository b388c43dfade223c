//! Somebody sets the clock of the operator's computer, by an hour, while it works or while it is down.
//!
//! Nothing may happen early, and nothing may wait for the clock to be right again.

use std::time::Duration;

use rstest::rstest;
use seaway_api::canary::Phase;

use crate::harness::{Ground, Ship, Users};

const HOUR: i64 = 3600;

/// What is waited for at most: rollouts of the tutorial's Canary take seven intervals of a minute.
const INTERVAL: Duration = Duration::from_secs(60);

/// Simulated time until the Canary has this phase.
async fn time_until(ship: &Ship, phase: Phase) -> Duration {
    let began = ship.cluster.clock().now();
    ship.until_phase("podinfo", phase).await;
    Duration::try_from(ship.cluster.clock().now().duration_since(began)).unwrap()
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_clock_set_while_it_works_hurries_nothing_and_stalls_nothing(
    #[values(HOUR, -HOUR)] ahead: i64,
    #[values(0, 20, 61, 90, 241, 330, 366, 372)] second: u64,
) {
    let ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 5);
    ship.transcript.clear();
    ship.set_image("podinfo", "6.0.1").await;
    ship.sail(Duration::from_secs(second)).await;
    ship.set_clock(ahead);
    let rest = time_until(&ship, Phase::Succeeded).await;
    let took = rest + Duration::from_secs(second);
    assert_eq!(ship.transcript.route("podinfo"), [10, 20, 30, 40, 50, 0], "{}", ship.transcript);
    assert!(took >= 6 * INTERVAL && took <= 7 * INTERVAL, "{took:?}\n{}", ship.transcript);
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_clock_set_while_it_is_down_costs_at_most_one_interval(
    #[values(HOUR, -HOUR)] ahead: i64,
    #[values(30, 90, 150, 330, 366)] second: u64,
) {
    let mut ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 5);
    ship.transcript.clear();
    ship.set_image("podinfo", "6.0.1").await;
    ship.sail(Duration::from_secs(second)).await;
    ship.kill_operator().await;
    ship.set_clock(ahead);
    ship.start_operator();
    let took = time_until(&ship, Phase::Succeeded).await + Duration::from_secs(second);
    assert_eq!(ship.transcript.route("podinfo"), [10, 20, 30, 40, 50, 0], "{}", ship.transcript);
    assert!(took >= 5 * INTERVAL && took <= 8 * INTERVAL, "{took:?}\n{}", ship.transcript);
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
}

/// The tutorial's deadline is a minute.
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_deadline_passes_when_its_time_has_passed(
    #[values(HOUR, -HOUR, 0)] ahead: i64,
    #[values(0, 25)] second: u64,
) {
    let ship = Ship::launch_initialised().await;
    ship.set_image("podinfo", "6.0.1-noready").await;
    ship.sail(Duration::from_secs(second)).await;
    ship.set_clock(ahead);
    let took = time_until(&ship, Phase::Failed).await + Duration::from_secs(second);
    assert!(took >= INTERVAL && took <= 3 * INTERVAL, "{took:?}\n{}", ship.transcript);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_not_believed_to_have_passed_while_it_was_down() {
    let mut ship = Ship::launch_initialised().await;
    ship.set_image("podinfo", "6.0.1-slowstart-40s").await;
    ship.sail(Duration::from_secs(10)).await;
    ship.kill_operator().await;
    ship.set_clock(HOUR);
    ship.start_operator();
    let _users = Users::start(&ship.cluster, 5);
    ship.until_phase("podinfo", Phase::Succeeded).await;
}
