//! What real Flagger did, tick by tick, and what we do, in the same form.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::harness::{Entry, Transcript};

/// Recorded from Flagger 1.44.0 on a real cluster, statuses and Events; `after` names what the user did and `t` the seconds
/// since.
const RECORDED: &str = include_str!("../../../../core/tests/golden/gateway-api-weighted.jsonl");

/// Ticks are ten seconds apart. What happens closer together than this belongs to one.
const PAUSE: f64 = 5.0;

/// What one tick stored and told, each in its order. How the two mingle is left open: Flagger's Events pass a queue and
/// reach the server now before and now after the status of their tick, as the recording shows.
#[derive(Debug, Default, PartialEq)]
pub struct Tick {
    /// Phase, weight and failed checks.
    pub statuses: Vec<(String, i64, i64)>,
    /// Type and text.
    pub events: Vec<(String, String)>,
}

enum Line {
    Status(String, i64, i64),
    Event(String, String),
}

/// What Flagger does after a step of the recording's user, and we do too.
pub fn expected(step: &str) -> Vec<Tick> {
    let mut ticks = recorded(step);
    for tick in 0..ticks.len() {
        // It stores the hash of a new revision under the old phase first. A crash between the two loses the revision.
        ticks[tick].statuses.retain(|(phase, ..)| !(step.ends_with("after-failure") && phase == "Failed"));
        // It finds out one tick after the last failed check that it was the last, and users of the bad version wait.
        if let Some(at) = ticks[tick].events.iter().position(|(_, text)| text.starts_with("Rolling back ")) {
            let event = ticks[tick].events.remove(at);
            ticks[tick - 1].events.push(event);
        }
    }
    ticks
}

/// All in one tick, without what is said again: how often somebody looked depends on who was faster.
pub fn in_one(ticks: Vec<Tick>) -> Tick {
    let mut one = Tick::default();
    for tick in ticks {
        one.statuses.extend(tick.statuses);
        for event in tick.events {
            if !one.events.contains(&event) {
                one.events.push(event);
            }
        }
    }
    one
}

fn recorded(step: &str) -> Vec<Tick> {
    let lines = RECORDED.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let line = |line: Value| {
        let what = match line.get("message") {
            Some(message) => Line::Event(text(&line["type"]), text(message)),
            None => {
                Line::Status(text(&line["phase"]), line["weight"].as_i64().unwrap(), line["failed"].as_i64().unwrap())
            }
        };
        (line["t"].as_f64().unwrap(), what)
    };
    let ticks = ticks(lines.filter(|line| line["after"] == step).map(line));
    assert!(!ticks.is_empty(), "nothing was recorded after {step}");
    ticks
}

/// Panics if a reason for waiting was told twice since the transcript was last cleared. Flagger tells it at every tick.
pub fn must_not_nag(transcript: &Transcript) {
    let mut told = BTreeSet::new();
    for text in transcript.events().into_iter().filter(|text| is_about_pods(text)) {
        assert!(told.insert(text.clone()), "told again: {text}\n{transcript}");
    }
}

/// Panics if the weight was raised before an interval had passed. Times are stored in whole seconds, so that much may lack.
pub fn must_take_its_time(transcript: &Transcript, canary: &str, interval: Duration) {
    let raised = |(time, entry): (Timestamp, Entry)| match entry {
        Entry::Status { name, phase, weight, .. } if name == canary && phase == "Progressing" => Some((time, weight)),
        _ => None,
    };
    let statuses: Vec<_> = transcript.timed().into_iter().filter_map(raised).collect();
    for (before, after) in statuses.iter().zip(statuses.iter().skip(1)) {
        let passed = after.0.duration_since(before.0).as_secs_f64();
        let is_raise = after.1 > before.1 && before.1 > 0;
        assert!(!is_raise || passed > interval.as_secs_f64() - 1.5, "{} after {passed} s\n{transcript}", after.1);
    }
}

/// Since the transcript was last cleared.
pub fn ours(transcript: &Transcript, canary: &str) -> Vec<Tick> {
    let line = |(time, entry): (Timestamp, Entry)| {
        let what = match entry {
            Entry::Status { name, phase, weight, failed } if name == canary => Line::Status(phase, weight, failed),
            Entry::Event { kind, text } => {
                Line::Event(kind, text.trim_start_matches("(combined from similar events): ").to_owned())
            }
            _ => return None,
        };
        Some((time.as_millisecond() as f64 / 1000.0, what))
    };
    ticks(transcript.timed().into_iter().filter_map(line))
}

fn ticks(lines: impl Iterator<Item = (f64, Line)>) -> Vec<Tick> {
    let mut ticks: Vec<Tick> = Vec::new();
    let mut last = f64::NEG_INFINITY;
    // How long pods take to come up is their own affair, and so is who says that they are waited for: Flagger's primary was not
    // ready at the first tick, on drydock it is. How often it is said is asked apart.
    let about_pods = |line: &Line| matches!(line, Line::Event(_, text) if is_about_pods(text));
    for (time, line) in lines.filter(|(_, line)| !about_pods(line)) {
        if time - last > PAUSE {
            ticks.push(Tick::default());
        }
        last = time;
        let tick = ticks.last_mut().unwrap();
        match line {
            Line::Status(phase, weight, failed) => tick.statuses.push((phase, weight, failed)),
            Line::Event(kind, text) => tick.events.push((kind, without_value(&text))),
        }
    }
    ticks
}

/// Somebody is told that pods are waited for.
fn is_about_pods(text: &str) -> bool {
    text.contains(" not ready: ")
}

/// The value of a failing metric is no promise.
fn without_value(text: &str) -> String {
    match text.split_once("error-rate ") {
        Some((head, tail)) => format!("{head}error-rate _ {}", tail.split_once(' ').map_or("", |(_, rest)| rest)),
        None => text.to_owned(),
    }
}
