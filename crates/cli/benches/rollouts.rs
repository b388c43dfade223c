//! What a rollout costs: API requests counted on drydock's log, and the time the whole simulation takes.
//!
//! `make bench` runs it. The paused clock makes the counts exact and the same on every machine; only the last column is
//! time, and it includes the simulated cluster, its pods, its gateway and its users.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, dead_code, unused_imports)]

#[path = "../tests/seaway/harness/mod.rs"]
mod harness;

use std::time::{Duration, Instant};

use harness::{Ground, Ship, Users};
use seaway_api::canary::Phase;

/// One line of the table.
struct Cost {
    what: &'static str,
    reads: usize,
    writes: usize,
    events: usize,
    simulated: Duration,
    took: Duration,
}

async fn measure(ship: &Ship, what: &'static str, story: impl AsyncFnOnce(&Ship)) -> Cost {
    ship.cluster.api().log().clear();
    let (start, before) = (Instant::now(), ship.cluster.clock().now());
    story(ship).await;
    let requests = ship.requests();
    let events = requests.iter().filter(|request| request.resource == "events").count();
    let writes = requests.iter().filter(|request| request.is_write()).count() - events;
    Cost {
        what,
        reads: requests.len() - writes - events,
        writes,
        events,
        simulated: Duration::try_from(ship.cluster.clock().now().duration_since(before)).unwrap_or_default(),
        took: start.elapsed(),
    }
}

async fn costs() -> Vec<Cost> {
    let ship = Ship::launch_initialised().await;
    let _users = Users::start(&ship.cluster, 10);
    ship.sail(Duration::from_secs(60)).await;
    vec![
        measure(&ship, "settled for an hour", async |ship| ship.sail(Duration::from_secs(3600)).await).await,
        measure(&ship, "promotion in 5 steps", async |ship| {
            ship.set_image("podinfo", "6.0.1").await;
            ship.until_phase("podinfo", Phase::Succeeded).await;
        })
        .await,
        measure(&ship, "rollback after 5 failures", async |ship| {
            ship.set_image("podinfo", "6.0.2-err50").await;
            ship.until_phase("podinfo", Phase::Failed).await;
        })
        .await,
        measure(&ship, "failed for an hour", async |ship| ship.sail(Duration::from_secs(3600)).await).await,
    ]
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let costs = runtime.block_on(costs());
    println!("{:<28}{:>8}{:>8}{:>8}{:>12}{:>12}", "", "reads", "writes", "Events", "simulated", "took");
    for Cost { what, reads, writes, events, simulated, took } in costs {
        let (simulated, took) = (format!("{} s", simulated.as_secs()), format!("{} ms", took.as_millis()));
        println!("{what:<28}{reads:>8}{writes:>8}{events:>8}{simulated:>12}{took:>12}");
    }
}
