//! A decision in the making, with the reasons that end up in the record.

use jiff::Timestamp;
use seaway_api::canary::CanaryStatus;
use serde_json::Value;

use crate::effect::{Effect, Notice};

/// A decision in the making.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// The status to store.
    pub status: Option<CanaryStatus>,
    /// What to make true.
    pub effects: Vec<Effect>,
    /// What to tell.
    pub notices: Vec<Notice>,
    /// When to look again.
    pub wake: Option<Timestamp>,
    /// The rule that decided.
    pub rule: &'static str,
    /// What the checks said.
    pub checks: Vec<Value>,
}

impl Draft {
    /// Nothing yet, under this rule.
    pub fn new(rule: &'static str) -> Self {
        Self { status: None, effects: Vec::new(), notices: Vec::new(), wake: None, rule, checks: Vec::new() }
    }

    /// Looks again at `time`, or earlier if that was already planned.
    pub fn wake_at(&mut self, time: Timestamp) {
        self.wake = Some(self.wake.map_or(time, |planned| planned.min(time)));
    }

    /// Makes this true as well. An effect that is not needed is `None`.
    pub fn make(&mut self, effect: impl Into<Option<Effect>>) {
        self.effects.extend(effect.into());
    }

    /// Traffic moves like this and no other way. It comes before everything else: upkeep may be refused, a refusal ends
    /// the round, and users must not wait for that. Returns whether anything has to move.
    pub fn route(&mut self, effect: Option<Effect>) -> bool {
        self.effects.retain(|drafted| !matches!(drafted, Effect::SetSplit(_)));
        let moves = effect.is_some();
        self.effects.splice(..0, effect);
        moves
    }
}
