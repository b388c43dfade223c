//! Drydock answers as kube-apiserver does: the same request sequences go to both, and what they say is compared.
//!
//! A sequence is drawn from a seed ([`generator`]), played in a namespace of its own on a real kube-apiserver and on drydock
//! ([`runner`]), stripped of what two right servers may say differently ([`mask`]) and compared ([`compare`]). What is
//! [`explained`] is counted; anything else fails the test, with the shortest sequence that still shows it. No controllers
//! run on either side, so that every answer follows from the requests.

mod asked;
mod compare;
mod definitions;
mod explained;
mod generator;
mod kinds;
mod mask;
mod report;
mod runner;
mod script;
mod servers;
mod trial;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use report::Report;
use servers::Servers;

use crate::real::in_haven;

const TEST: &str = "conformance::drydock_answers_as_kube_apiserver_does";

/// How many sequences run when nobody asks for more.
const RUNS: u64 = 500;
/// In one of so many sequences a real server may contradict itself, and in four more of a short run: at most two did in 500, and
/// two in 4,000.
const ONCE_ONLY_IN: usize = 500;
/// How many run at once: most of the time they wait for their watches to end.
const AT_ONCE: usize = 12;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

#[test]
fn drydock_answers_as_kube_apiserver_does() {
    in_haven(TEST, &["etcd", "kube-apiserver"], async || {
        let begun = Instant::now();
        let servers = Arc::new(Servers::start().await);
        if let Ok(seeds) = std::env::var("SEAWAY_CONFORMANCE_SEED") {
            for seed in seeds.split(',') {
                servers.replay(seed.parse().expect("SEAWAY_CONFORMANCE_SEED is a number, or several")).await;
            }
            return;
        }
        if let Ok(file) = std::env::var("SEAWAY_CONFORMANCE_SCRIPT") {
            return servers.by_hand(&std::fs::read_to_string(file).expect("SEAWAY_CONFORMANCE_SCRIPT is a file")).await;
        }
        let first = number("SEAWAY_CONFORMANCE_FIRST").unwrap_or(1);
        let end = first + number("SEAWAY_CONFORMANCE").unwrap_or(RUNS);
        // Scripts about one thing come at fixed distances.
        let step = number("SEAWAY_CONFORMANCE_EVERY").unwrap_or(1);
        assert!(first < end && step > 0, "SEAWAY_CONFORMANCE and SEAWAY_CONFORMANCE_EVERY are at least 1");
        let next = Arc::new(AtomicU64::new(first));
        let report = Arc::new(Report::default());
        let workers = (0..AT_ONCE).map(|_| {
            let (servers, next, report) = (servers.clone(), next.clone(), report.clone());
            tokio::spawn(async move {
                loop {
                    let seed = next.fetch_add(step, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let steps = generator::script(seed);
                    report.add(seed, steps.len(), trial::judge(&servers, &steps).await);
                }
            })
        });
        for worker in workers.collect::<Vec<_>>() {
            worker.await.unwrap();
        }
        eprintln!("{report}in {:.0?}", begun.elapsed());
        for seed in report.failed().into_iter().take(3) {
            servers.replay_quietly(seed).await;
        }
        assert!(report.failed().is_empty(), "drydock and kube-apiserver differ");
        let (once_only, all) = report.once_only();
        assert!(once_only <= all / ONCE_ONLY_IN + 4, "{once_only} of {all} sequences differ now and then");
    });
}
