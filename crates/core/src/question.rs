//! Questions to the outside and their answers.
//!
//! The rules never wait: they return a question as an effect, somebody asks it as a task of its own, and the answer
//! is part of the next observation. The key names the canary's revision and step and the tick, so an answer that
//! comes late, or twice, or after a restart, can never count for another step.

use serde::{Deserialize, Serialize};

/// Identifies one asking of one question. Ordered, so that collections of answers are deterministic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QuestionKey {
    /// Hash of the revision under analysis (template and configs).
    pub revision: String,
    /// Phase, weight, iterations and failed checks of the status it was asked under.
    pub step: String,
    /// Which tick since the last transition; 0 for questions that belong to no tick.
    pub tick: u64,
    /// What is asked.
    pub subject: Subject,
}

/// What is asked; the index points into the plan's list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Subject {
    /// Call the hook at this index of `plan.hooks`.
    Hook(usize),
    /// Ask the metric at this index of `plan.metrics`.
    Metric(usize),
    /// Are all metric providers of the plan reachable?
    Providers,
}

/// A question to be asked now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Under which key the answer must come back.
    pub key: QuestionKey,
    /// The phase told to hooks in their payload.
    pub phase: seaway_api::canary::Phase,
}

/// What came back. Missing data is an answer of its own and never passes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The hook consented, or the providers are all reachable.
    Yes,
    /// The hook refused or could not be reached: why, without any response body.
    No(String),
    /// The metric's value and the query that gave it.
    Value {
        /// The number as the query gave it; units are the judge's business.
        value: f64,
        /// The rendered query.
        query: String,
    },
    /// The query worked and found nothing (or NaN, or several series).
    NoData {
        /// `no values found`, `query returned multiple values`, …
        reason: String,
        /// The rendered query.
        query: String,
    },
    /// The question could not be asked or answered; the text is the whole event message.
    Broken(String),
}
