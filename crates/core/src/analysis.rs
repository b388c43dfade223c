//! From an answer to a verdict: is this number good, and what do people read about it?
//!
//! Missing data never passes: no value, NaN, several series or a query that could not be asked are all inconclusive, and
//! inconclusive counts as a failed check. The texts are Flagger's. How often a check may fail is `rollout`'s business.

use std::time::Duration;

use seaway_api::duration;
use seaway_api::number::go_float;
use serde_json::{Value, json};

use crate::builtin::Measure;
use crate::plan::{Bounds, Check, Plan, Source};
use crate::question::Answer;

/// What one check said.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Pass, fail or inconclusive.
    pub outcome: Outcome,
    /// What to tell people when it did not pass.
    pub text: Option<String>,
    /// Query, value, bounds and outcome, for the record.
    pub record: Value,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Within bounds.
    Pass,
    /// Out of bounds.
    Fail,
    /// Not known; never a pass.
    Inconclusive,
}

impl Outcome {
    /// The word used in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// Judges the answer to a metric check.
pub fn judge(plan: &Plan, check: &Check, answer: &Answer) -> Verdict {
    let (outcome, text) = match answer {
        Answer::Value { value, .. } if value.is_nan() => {
            (Outcome::Inconclusive, Some(no_values(plan, check, "no values found")))
        }
        Answer::Value { value, .. } => match breach(plan, check, *value) {
            Some(text) => (Outcome::Fail, Some(text)),
            None => (Outcome::Pass, None),
        },
        Answer::NoData { reason, .. } => (Outcome::Inconclusive, Some(no_values(plan, check, reason))),
        Answer::Broken(text) => (Outcome::Inconclusive, Some(text.clone())),
        // Consent is no measurement.
        Answer::Yes | Answer::No(_) => {
            (Outcome::Inconclusive, Some(format!("Metric query failed for {}: the answer is not a number", check.name)))
        }
    };
    let record = record(check, answer, outcome);
    Verdict { outcome, text, record }
}

/// The Event for a value that is out of bounds; `None` when it is good.
fn breach(plan: &Plan, check: &Check, value: f64) -> Option<String> {
    let halt = format!("Halt {} advancement", plan.key());
    let measure = match check.source {
        Source::Builtin(builtin) => Some(builtin.measure),
        Source::Inline(_) | Source::Template { .. } => None,
    };
    match measure {
        Some(Measure::SuccessRate) => out_of(check.bounds, value)
            .map(|(sign, bound)| format!("{halt} success rate {value:.2}% {sign} {}%", go_float(bound))),
        Some(Measure::Milliseconds) => slow(&halt, check.bounds, value),
        Some(Measure::Seconds) => slow(&halt, check.bounds, value * 1000.0),
        None => out_of(check.bounds, value)
            .map(|(sign, bound)| format!("{halt} {} {value:.2} {sign} {}", check.name, go_float(bound))),
    }
}

/// Latency is compared and shown in whole milliseconds, bounds included.
fn slow(halt: &str, bounds: Bounds, value: f64) -> Option<String> {
    let whole = Bounds { min: bounds.min.map(f64::trunc), max: bounds.max.map(f64::trunc) };
    let (sign, bound) = out_of(whole, value.trunc())?;
    Some(format!("{halt} request duration {} {sign} {}", milliseconds(value), milliseconds(bound)))
}

/// Which bound a value breaks, and on which side. Infinities break like any other number.
fn out_of(bounds: Bounds, value: f64) -> Option<(char, f64)> {
    let below = bounds.min.filter(|min| value < *min).map(|min| ('<', min));
    below.or_else(|| bounds.max.filter(|max| value > *max).map(|max| ('>', max)))
}

/// Whole milliseconds as Go prints a duration.
fn milliseconds(value: f64) -> String {
    let text = duration::format(Duration::from_millis(value.abs() as u64));
    if value <= -1.0 { format!("-{text}") } else { text }
}

/// The Event for missing data.
fn no_values(plan: &Plan, check: &Check, reason: &str) -> String {
    let name = &check.name;
    match check.source {
        Source::Builtin(builtin) => {
            let text = format!(
                "Halt advancement no values found for {} metric {name} probably {} is not receiving traffic",
                plan.provider,
                plan.target_key()
            );
            if builtin.is_success_rate() { format!("{text}: {reason}") } else { text }
        }
        Source::Inline(_) => format!("Halt advancement no values found for metric: {name}"),
        Source::Template { .. } => format!("Halt advancement no values found for custom metric: {name}: {reason}"),
    }
}

fn record(check: &Check, answer: &Answer, outcome: Outcome) -> Value {
    let (value, query, reason) = match answer {
        Answer::Value { value, query } => (Some(*value), Some(query), None),
        Answer::NoData { reason, query } => (None, Some(query), Some(reason)),
        Answer::Broken(reason) | Answer::No(reason) => (None, None, Some(reason)),
        Answer::Yes => (None, None, None),
    };
    let mut record = json!({ "check": check.name, "verdict": outcome.as_str() });
    let members = [
        ("query", query.map(|text| Value::from(text.as_str()))),
        // JSON has no infinities; serde writes them as null.
        ("value", value.map(Value::from)),
        ("min", check.bounds.min.map(Value::from)),
        ("max", check.bounds.max.map(Value::from)),
        ("reason", reason.map(|text| Value::from(text.as_str()))),
    ];
    for (name, member) in members {
        if let Some(member) = member {
            record[name] = member;
        }
    }
    record
}
