//! What has been seen of a rollout, as one value. Pure: sights go in, changes worth telling come out.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use seaway_api::Phase;
use serde::Serialize;
use serde_json::Value;

/// Events that are remembered for the screen.
const EVENTS_KEPT: usize = 50;

/// Where the story is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Chapter {
    /// The cluster starts and the app is brought under control.
    #[default]
    Launch,
    /// A good version is released.
    Promotion,
    /// A bad version is released.
    Rollback,
    /// It is over.
    End,
}

/// The Canary, reduced to what is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CanaryView {
    /// Its phase.
    pub phase: Phase,
    /// The share the canary should have.
    pub weight: i64,
    /// Failed checks so far.
    pub failed_checks: i64,
    /// Failed checks that cause a rollback.
    pub threshold: i64,
    /// Pause between two steps.
    pub interval: Duration,
    /// When it moved last.
    pub moved: Option<Timestamp>,
    /// A rollback is under way.
    pub rolling_back: bool,
    /// The records of the last decisions.
    pub decisions: Vec<Value>,
}

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    /// The story moved on; `version` is what is released in it.
    Chapter(Chapter, String),
    /// The Canary as it is now.
    Canary(Box<CanaryView>),
    /// The route's weights: primary, canary.
    Split(u8, u8),
    /// An Event was written, or written again.
    Event(EventLine),
    /// What clients have met so far.
    Load(Load),
}

/// A Kubernetes Event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventLine {
    /// Its object's name, to tell a repetition from another.
    #[serde(skip)]
    pub name: String,
    /// Whether it is a warning.
    pub warning: bool,
    /// Its text.
    pub text: String,
    /// How often it was said.
    pub count: i32,
}

/// What clients met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Requests that were answered or given up.
    pub requests: u64,
    /// Failed, and not answered by a pod that is scripted to fail: the rollout's fault.
    pub blamed: u64,
    /// By the version that answered; the empty version is nobody.
    pub versions: BTreeMap<String, Tally>,
}

/// Requests to one version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Requests.
    pub requests: u64,
    /// Of these, failed.
    pub errors: u64,
}

/// A check and what it said last.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Name of the metric.
    pub name: String,
    /// The number, if there was one.
    pub value: Option<f64>,
    /// Smallest good value.
    pub min: Option<f64>,
    /// Largest good value.
    pub max: Option<f64>,
    /// `pass`, `fail` or `inconclusive`.
    pub verdict: String,
}

/// Something new that is worth telling.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "lowercase")]
pub enum Change {
    /// The next chapter.
    Chapter {
        /// Which.
        chapter: Chapter,
        /// What is released in it.
        version: String,
    },
    /// A new phase.
    Phase {
        /// Which.
        phase: Phase,
    },
    /// The route was changed.
    Split {
        /// Weight of the primary.
        primary: u8,
        /// Weight of the canary.
        canary: u8,
    },
    /// A check was answered.
    Check(Check),
    /// Somebody should know.
    Event(EventLine),
}

/// Everything that has been seen.
#[derive(Clone, Debug)]
pub struct Model {
    /// Simulated seconds per second.
    pub speed: u32,
    /// When the story began.
    pub began: Timestamp,
    /// The simulated time.
    pub now: Timestamp,
    /// Where the story is.
    pub chapter: Chapter,
    /// The Canary.
    pub canary: CanaryView,
    /// The route's weights.
    pub split: Option<(u8, u8)>,
    /// The checks, in the order they were first seen.
    pub checks: Vec<Check>,
    /// The last Events, newest last, with the time they were said last.
    pub events: VecDeque<(Timestamp, EventLine)>,
    /// What clients met.
    pub load: Load,
    /// Every phase that was seen, in order.
    pub phases: Vec<Phase>,
    /// Version of each release: the app's first, the good one, the bad one.
    pub versions: Vec<String>,
}

impl Model {
    /// Nothing has been seen yet.
    pub fn new(began: Timestamp, speed: u32, version: &str) -> Self {
        Self {
            speed,
            began,
            now: began,
            chapter: Chapter::default(),
            canary: CanaryView::default(),
            split: None,
            checks: Vec::new(),
            events: VecDeque::new(),
            load: Load::default(),
            phases: Vec::new(),
            versions: vec![version.to_owned()],
        }
    }

    /// Takes in a sight; what is new about it comes back.
    pub fn see(&mut self, now: Timestamp, sight: Sight) -> Vec<Change> {
        self.now = self.now.max(now);
        match sight {
            Sight::Chapter(chapter, version) => {
                self.chapter = chapter;
                if matches!(chapter, Chapter::Promotion | Chapter::Rollback) {
                    self.versions.push(version.clone());
                }
                vec![Change::Chapter { chapter, version }]
            }
            Sight::Canary(view) => self.see_canary(*view),
            Sight::Split(primary, canary) if self.split == Some((primary, canary)) => Vec::new(),
            Sight::Split(primary, canary) => {
                self.split = Some((primary, canary));
                vec![Change::Split { primary, canary }]
            }
            Sight::Event(event) => self.see_event(event),
            Sight::Load(load) => {
                self.load = load;
                Vec::new()
            }
        }
    }

    fn see_canary(&mut self, view: CanaryView) -> Vec<Change> {
        let mut changes = Vec::new();
        let news: Vec<&Value> =
            view.decisions.iter().filter(|record| !self.canary.decisions.contains(record)).collect();
        for record in news {
            let mut found = Vec::new();
            checks(record, &mut found);
            for check in found {
                match self.checks.iter_mut().find(|known| known.name == check.name) {
                    Some(known) => *known = check.clone(),
                    None => self.checks.push(check.clone()),
                }
                changes.push(Change::Check(check));
            }
        }
        if view.phase != self.canary.phase {
            self.phases.push(view.phase);
            changes.push(Change::Phase { phase: view.phase });
        }
        self.canary = view;
        changes
    }

    fn see_event(&mut self, event: EventLine) -> Vec<Change> {
        let last = self.events.iter().rev().find(|(_, known)| known.name == event.name);
        if last.is_some_and(|(_, known)| known.count >= event.count && known.text == event.text) {
            return Vec::new();
        }
        self.events.push_back((self.now, event.clone()));
        if self.events.len() > EVENTS_KEPT {
            self.events.pop_front();
        }
        vec![Change::Event(event)]
    }

    /// How long until the next step can happen; `None` when nothing waits for the clock.
    pub fn next_step(&self) -> Option<Duration> {
        let waits = matches!(self.canary.phase, Phase::Progressing | Phase::Waiting | Phase::WaitingPromotion);
        let interval = self.canary.interval;
        if !waits || self.canary.rolling_back || interval.is_zero() {
            return None;
        }
        let since = Duration::try_from(self.now.duration_since(self.canary.moved?)).unwrap_or_default();
        let into = Duration::from_nanos((since.as_nanos() % interval.as_nanos()) as u64);
        Some(interval.saturating_sub(into))
    }

    /// Simulated time since the story began.
    pub fn elapsed(&self) -> Duration {
        Duration::try_from(self.now.duration_since(self.began)).unwrap_or_default()
    }
}

/// Finds the records of checks in the record of a decision, however deep they are.
fn checks(record: &Value, found: &mut Vec<Check>) {
    match record {
        Value::Object(members) => {
            if let (Some(Value::String(name)), Some(Value::String(verdict))) =
                (members.get("check"), members.get("verdict"))
            {
                let number = |key: &str| members.get(key).and_then(Value::as_f64);
                found.push(Check {
                    name: name.clone(),
                    value: number("value"),
                    min: number("min"),
                    max: number("max"),
                    verdict: verdict.clone(),
                });
            } else {
                members.values().for_each(|member| checks(member, found));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| checks(item, found)),
        _ => {}
    }
}

/// A duration as minutes and seconds, rounded to whole seconds.
pub fn clock(duration: Duration) -> String {
    let seconds = (duration.as_secs_f64()).round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn progressing(moved: i64, decisions: Vec<Value>) -> Sight {
        Sight::Canary(Box::new(CanaryView {
            phase: Phase::Progressing,
            interval: Duration::from_secs(60),
            threshold: 5,
            moved: Some(at(moved)),
            decisions,
            ..CanaryView::default()
        }))
    }

    #[test]
    fn the_same_sight_twice_is_told_once() {
        let mut model = Model::new(at(0), 20, "6.0.0");
        assert_eq!(model.see(at(1), progressing(1, Vec::new())), [Change::Phase { phase: Phase::Progressing }]);
        assert_eq!(model.see(at(2), progressing(1, Vec::new())), []);
        assert_eq!(model.see(at(3), Sight::Split(90, 10)), [Change::Split { primary: 90, canary: 10 }]);
        assert_eq!(model.see(at(4), Sight::Split(90, 10)), []);
    }

    #[test]
    fn the_next_step_counts_down_from_interval_to_interval() {
        let mut model = Model::new(at(0), 20, "6.0.0");
        assert_eq!(model.next_step(), None);
        model.see(at(15), progressing(10, Vec::new()));
        assert_eq!(model.next_step().map(clock).as_deref(), Some("0:55"));
        model.see(at(131), Sight::Split(100, 0));
        assert_eq!(model.next_step().map(clock).as_deref(), Some("0:59"), "a tick that changed nothing starts another");
    }

    #[test]
    fn checks_are_found_wherever_they_are_recorded() {
        let record =
            json!({"rule": "analyse", "checks": [{"check": "latency", "verdict": "fail", "value": 0.7, "max": 0.5}]});
        let mut model = Model::new(at(0), 20, "6.0.0");
        let changes = model.see(at(1), progressing(1, vec![record.clone()]));
        assert!(matches!(changes.first(), Some(Change::Check(check)) if check.value == Some(0.7)));
        assert_eq!(model.see(at(2), progressing(1, vec![record])), [], "a record is told once");
        assert_eq!(model.checks.len(), 1);
    }

    #[test]
    fn an_event_that_is_said_again_is_told_again() {
        let event = |name: &str, count| {
            Sight::Event(EventLine { name: name.to_owned(), warning: false, text: name.to_owned(), count })
        };
        let mut model = Model::new(at(0), 20, "6.0.0");
        model.see(at(1), event("a", 1));
        model.see(at(2), event("b", 1));
        assert_eq!(model.see(at(3), event("a", 1)), []);
        assert_eq!(model.see(at(4), event("a", 2)).len(), 1);
        let order: Vec<_> = model.events.iter().map(|(_, event)| event.name.as_str()).collect();
        assert_eq!(order, ["a", "b", "a"]);
    }

    #[test]
    fn only_so_many_events_are_kept() {
        let mut model = Model::new(at(0), 20, "6.0.0");
        for number in 0..100 {
            let name = number.to_string();
            model.see(at(number), Sight::Event(EventLine { text: name.clone(), name, warning: false, count: 1 }));
        }
        assert_eq!(model.events.len(), EVENTS_KEPT);
    }
}
