//! What many canaries cost: the operator as a process of its own against an API server in this one, over loopback, in
//! real time.
//!
//! `make bench` runs it; `SIZES=100,1000` chooses the numbers of canaries, `GROUND=real` a real kube-apiserver. Pods are
//! scripted, see `scripted.rs`. Both processes share the machine's processors, so times are those of a busy cluster, and
//! processor time says more.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod front;
mod process;
mod real;
mod report;
#[allow(dead_code)]
#[path = "../../tests/seaway/harness/scripted.rs"]
mod scripted;
mod story;
mod timeline;

use jiff::Timestamp;
use real::Real;
use scripted::Shape;
use seaway_drydock::apiserver::ApiServer;
use seaway_drydock::{Clock, Seed};
use story::Size;

/// The shape of a rollout: the peers were measured with three steps, and with longer intervals for more canaries.
fn shape(canaries: usize) -> Shape {
    let interval_seconds = match canaries {
        ..1_000 => 10,
        1_000..10_000 => 30,
        _ => 60,
    };
    Shape { interval_seconds, step_weight: 20, max_weight: 60 }
}

fn main() {
    let real = match std::env::var("GROUND").as_deref() {
        Ok("real") => true,
        Ok("drydock") | Err(_) => false,
        Ok(other) => panic!("GROUND={other}: there are drydock and real"),
    };
    if real && !real::enter() {
        return;
    }
    let sizes = std::env::var("SIZES").unwrap_or_else(|_| "100,1000".to_owned());
    let sizes = sizes.split(',').map(|size| size.trim().parse().expect("SIZES is a list of numbers"));
    let mut measured = Vec::new();
    for canaries in sizes {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let size = Size { canaries, shape: shape(canaries) };
        measured.push(runtime.block_on(async {
            if real {
                let (api, _programs) = Real::start().await;
                return story::run(size, api).await;
            }
            let clock = Clock::starting_at(Timestamp::now(), 1);
            story::run(size, ApiServer::start(clock, Seed::new(1))).await
        }));
        runtime.shutdown_background();
    }
    report::print(&measured, if real { "a real kube-apiserver" } else { "drydock" });
    let missing: usize = measured.iter().map(|size| size.missing).sum();
    if missing > 0 {
        eprintln!("{missing} canaries were not initialised or not promoted in time");
        std::process::exit(1);
    }
}
