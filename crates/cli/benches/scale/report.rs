//! The table: what was measured, next to what Flagger 1.44 needs, and whether the targets are met.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::front::Asked;
use crate::story::{Measured, Stage};
use crate::timeline::Spread;

/// ConfigMaps and Secrets that each canary tracks: `C` of the targets.
const CONFIGS: f64 = 1.0;

/// Flagger's processor seconds for the 100 rollouts of the table.
const FLAGGER_CPU: f64 = 17.5;

/// Flagger 1.44.0 with 100 canaries and 1 tracked ConfigMap each, interval 10 s, 3 steps, on a real kube-apiserver 1.36 on
/// 2 cores; its rollouts were watched for 150 s.
fn flagger(row: &str) -> &'static str {
    match row {
        "settled: requests per second" => "113.7",
        "settled: share of a core" => "8.8 %",
        "settled: resident" => "74 MB",
        "rollouts: resident at most" => "78 MB",
        "rollouts: CPU" => "17.5 s",
        "per rollout: object writes" => "about 21, Events included",
        "per rollout: reads" => "182",
        "at once: detected p50 / p99" => "9.5 s / 22.6 s",
        "at once: first weight p50 / p99" => "20.7 s / 33.7 s",
        "at once: finished p50 / p99" => "80 s / 93 s",
        _ => "",
    }
}

/// A row: what it is called, and how it is read.
type Row = (&'static str, fn(&Measured) -> String);

const ROWS: &[Row] = &[
    ("interval of the analysis", |one| format!("{} s", one.size.shape.interval_seconds)),
    ("all initialised after", |one| time(one.initialised)),
    ("start: ready after", |one| time(one.ready)),
    ("start: resident at most", |one| bytes(one.start_peak)),
    ("settled: requests per second", |one| {
        // The process's own: its Lease, and watches that the server ended.
        let asked = one.settled.reading.count(|asked| !asked.is_housekeeping());
        format!("{:.1}", asked as f64 / one.settled.took.as_secs_f64())
    }),
    ("settled: share of a core", |one| format!("{:.1} %", 100.0 * one.settled.cpu / one.settled.took.as_secs_f64())),
    ("settled: resident", |one| bytes(one.settled.rss)),
    ("rollouts: watched for", |one| time(one.rolling.took)),
    ("rollouts: CPU", |one| format!("{:.2} s", one.rolling.cpu)),
    ("rollouts: resident at most", |one| bytes(one.rolling.peak)),
    ("per rollout: CPU", |one| format!("{:.1} ms", 1e3 * each(one, one.rolling.cpu))),
    ("per rollout: object writes", |one| format!("{:.2}", each(one, writes(&one.rolling)))),
    ("per rollout: Events", |one| format!("{:.2}", each(one, events(&one.rolling)))),
    ("per rollout: reads", |one| format!("{:.2}", each(one, reads(&one.rolling)))),
    ("per rollout: watch bytes", |one| format!("{:.0}", each(one, one.rolling.reading.watch_bytes as f64))),
    ("per rollout: other bytes", |one| format!("{:.0}", each(one, one.rolling.reading.other_bytes as f64))),
    ("one by one: detected p50 / p99", |one| spread(one.one_by_one.detected)),
    ("one by one: scaled up p50 / p99", |one| spread(one.one_by_one.scaled)),
    ("at once: images changed within", |one| time(one.changes)),
    ("at once: detected p50 / p99", |one| spread(one.at_once.detected)),
    ("at once: scaled up p50 / p99", |one| spread(one.at_once.scaled)),
    ("at once: first weight p50 / p99", |one| spread(one.at_once.weighed)),
    ("at once: finished p50 / p99", |one| spread(one.at_once.finished)),
];

/// Prints everything, as Markdown.
pub fn print(measured: &[Measured], ground: &str) {
    println!(
        "\nSeaway on {ground}; pods are scripted, both processes share the processors. The last column was measured on"
    );
    println!("a real API server. Requests are those of the operator, its Lease and the opening of watches left out.\n");
    let sizes = measured.iter().map(|one| format!("{} canaries", thousands(one.size.canaries)));
    line("", sizes.chain(["Flagger 1.44, 100 canaries".to_owned()]));
    line("---", std::iter::repeat_n("---:".to_owned(), measured.len() + 1));
    for (name, read) in ROWS {
        line(name, measured.iter().map(read).chain([flagger(name).to_owned()]));
    }
    for Asked { verb, resource } in kinds(measured) {
        let count =
            |one: &Measured| one.rolling.reading.count(|asked| asked.verb == verb && asked.resource == resource);
        let cells = measured.iter().map(|one| thousands(count(one) as usize));
        line(&format!("requests of the rollouts: {verb} {resource}"), cells.chain([String::new()]));
    }
    println!();
    targets(measured);
}

fn line(name: &str, cells: impl Iterator<Item = String>) {
    println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
}

fn kinds(measured: &[Measured]) -> BTreeSet<Asked> {
    measured.iter().flat_map(|one| one.rolling.reading.requests.keys().cloned()).collect()
}

/// Whether each target is met, for every size it speaks of.
fn targets(measured: &[Measured]) {
    println!("| target | canaries | measured | |\n|---|---:|---:|---|");
    let judge = |what: &str, one: &Measured, value: String, met: bool| {
        let verdict = if met { "met" } else { "**missed**" };
        println!("| {what} | {} | {value} | {verdict} |", thousands(one.size.canaries));
    };
    for one in measured {
        let asked = one.settled.reading.count(|asked| !asked.is_housekeeping());
        judge("0 requests while settled", one, asked.to_string(), asked == 0);
        let (writes, events) = (each(one, writes(&one.rolling)), each(one, events(&one.rolling)));
        judge("at most 20 + 2C object writes per rollout", one, format!("{writes:.2}"), writes <= 20.0 + 2.0 * CONFIGS);
        let reads = each(one, reads(&one.rolling));
        judge("at most C reads per rollout", one, format!("{reads:.2}"), reads <= CONFIGS);
        judge("at most 12 Events per rollout", one, format!("{events:.2}"), events <= 12.0);
        let canaries = one.size.canaries;
        if canaries == 100 {
            let factor = FLAGGER_CPU / one.rolling.cpu;
            judge("a tenth of Flagger's CPU", one, format!("1/{factor:.1}"), factor >= 10.0);
        }
        if canaries == 1_000 {
            for (how, detected) in [("one by one", one.one_by_one.detected), ("at once", one.at_once.detected)] {
                let met = detected.missing == 0 && detected.p99.is_some_and(|p99| p99 <= Duration::from_millis(100));
                judge(&format!("detected within 100 ms, p99, changes {how}"), one, spread(detected), met);
            }
        }
        if canaries == 10_000 {
            let most = one.start_peak.max(one.settled.peak).max(one.rolling.peak);
            judge("at most 150 MB resident, settled", one, bytes(one.settled.rss), one.settled.rss <= 150_000_000);
            judge("at most 150 MB resident, ever", one, bytes(most), most <= 150_000_000);
        }
    }
}

fn each(one: &Measured, total: f64) -> f64 {
    total / one.size.canaries as f64
}

fn events(stage: &Stage) -> f64 {
    stage.reading.count(|asked| asked.resource == "events") as f64
}

fn reads(stage: &Stage) -> f64 {
    stage.reading.count(|asked| asked.is_read() && !asked.is_housekeeping()) as f64
}

fn writes(stage: &Stage) -> f64 {
    let all = stage.reading.count(|asked| !asked.is_read() && !asked.is_housekeeping());
    all as f64 - events(stage)
}

fn spread(Spread { p50, p99, missing }: Spread) -> String {
    let cell = |time_taken: Option<Duration>| time_taken.map_or_else(|| "never".to_owned(), time);
    let missing = if missing == 0 { String::new() } else { format!(", {missing} never") };
    format!("{} / {}{missing}", cell(p50), cell(p99))
}

fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1.0 { format!("{:.0} ms", 1e3 * seconds) } else { format!("{seconds:.1} s") }
}

fn bytes(count: u64) -> String {
    format!("{:.0} MB", count as f64 / 1e6)
}

fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}
