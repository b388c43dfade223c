//! How the demo ended, and whether that is the story it promised. Pure.

use std::time::Duration;

use seaway_api::Phase;
use serde::Serialize;

use super::model::{Load, Model};
use crate::output::Paint;
use crate::screens::text::wrap;
use crate::watch::view::clock;

/// Columns of the usual terminal, and those before what a line says.
const WIDTH: usize = 80;
const INDENT: usize = 12;

/// The least number of requests that makes the story worth believing.
pub const ENOUGH_REQUESTS: u64 = 2_000;

/// How it ended.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The good version was promoted.
    pub promoted: bool,
    /// The bad version was rolled back.
    pub rolled_back: bool,
    /// Every phase, in order.
    pub phases: Vec<Phase>,
    /// What clients met.
    #[serde(flatten)]
    pub load: Load,
    /// Simulated seconds.
    pub simulated_seconds: u64,
    /// Seconds of this machine.
    pub seconds: f64,
    /// Why it is not the promised story; empty when it is.
    pub problems: Vec<String>,
}

impl Summary {
    /// Judges what was seen.
    pub fn new(model: &Model, promoted: bool, rolled_back: bool, took: Duration) -> Self {
        let mut problems = Vec::new();
        if !promoted {
            problems.push("the good version was not promoted".to_owned());
        }
        if !rolled_back {
            problems.push("the bad version was not rolled back".to_owned());
        }
        if model.load.blamed > 0 {
            problems.push(format!("{} requests failed because of the rollout", model.load.blamed));
        }
        if model.load.requests < ENOUGH_REQUESTS {
            problems.push(format!("only {} requests were sent", model.load.requests));
        }
        Self {
            promoted,
            rolled_back,
            phases: model.phases.clone(),
            load: model.load.clone(),
            simulated_seconds: model.elapsed().as_secs(),
            seconds: (took.as_secs_f64() * 10.0).round() / 10.0,
            problems,
        }
    }

    /// Whether the promise was kept.
    pub fn kept(&self) -> bool {
        self.problems.is_empty()
    }

    /// The text at the end, for terminals of the usual width.
    pub fn text(&self, paint: Paint) -> String {
        let phases: Vec<_> = self.phases.iter().map(|phase| phase.as_str()).filter(|name| !name.is_empty()).collect();
        let mut lines = vec![paint.bold("Summary")];
        let phases = wrap(&phases.join(" → "), WIDTH - INDENT, usize::MAX).into_iter().enumerate();
        lines.extend(phases.map(|(index, text)| format!("  {:<8}  {text}", if index == 0 { "phases" } else { "" })));
        lines.extend([
            format!(
                "  time      {} simulated, {:.1} seconds of yours",
                clock(Duration::from_secs(self.simulated_seconds)),
                self.seconds
            ),
            format!("  requests  {}", self.load.requests),
        ]);
        for (version, tally) in &self.load.versions {
            let name = if version.is_empty() { "nobody answered" } else { version };
            lines.push(format!("            {name:<16} {:>7} requests {:>6} errors", tally.requests, tally.errors));
        }
        let lost = format!("failed because of the rollout: {}", self.load.blamed);
        lines.push(format!("  {}", if self.load.blamed == 0 { paint.good(&lost) } else { paint.bad(&lost) }));
        for problem in &self.problems {
            lines.push(format!("  {} {problem}", paint.bad("problem:")));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::demo::model::Tally;

    fn model(requests: u64, blamed: u64) -> Model {
        let mut model = Model::new(Timestamp::UNIX_EPOCH, 20, "6.0.0");
        model.phases = vec![Phase::Unset, Phase::Initializing, Phase::Initialized, Phase::Progressing];
        model.now = Timestamp::from_second(815).unwrap();
        model.load = Load { requests, blamed, ..Load::default() };
        model.load.versions.insert("6.0.2-err25".to_owned(), Tally { requests: 240, errors: 59 });
        model
    }

    #[test]
    fn the_promised_story_reads_well() {
        let summary = Summary::new(&model(4_250, 0), true, true, Duration::from_millis(41_250));
        assert!(summary.kept());
        insta::assert_snapshot!(summary.text(Paint::plain()));
    }

    #[test]
    fn every_broken_promise_is_named() {
        let summary = Summary::new(&model(10, 3), false, false, Duration::from_secs(1));
        assert!(!summary.kept());
        assert_eq!(
            summary.problems,
            [
                "the good version was not promoted",
                "the bad version was not rolled back",
                "3 requests failed because of the rollout",
                "only 10 requests were sent",
            ]
        );
    }
}
