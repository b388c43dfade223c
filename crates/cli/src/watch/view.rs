//! The world as one canary sees it: everything a screen shows, worked out. Pure.

use std::time::Duration;

use jiff::Timestamp;
use seaway_api::Phase;

use super::canary::CanaryFacts;
use super::checks::Check;
use super::objects::{Key, Kind, Workload};
use super::tree::{Node, tree};
use super::world::{Known, Trouble, World};

/// What a thing means to people; a screen gives it a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// On its way.
    Busy,
    /// Not as it should be.
    Bad,
    /// Of less interest.
    Faint,
    /// Nothing special.
    Plain,
}

/// A word with a sign, so that it can be told apart without colours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The sign.
    pub glyph: &'static str,
    /// The word.
    pub word: String,
    /// What it means.
    pub tone: Tone,
}

/// A step on the way to promotion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The weight, or `promote`.
    pub name: String,
    /// Where it is.
    pub place: Place,
}

/// Where a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind us.
    Done,
    /// Here.
    Here,
    /// Here, and it went wrong.
    Broken,
    /// Before us.
    Ahead,
}

/// One line about something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// How long ago.
    pub age: Option<Duration>,
    /// Whether it is a warning.
    pub warning: bool,
    /// The text, and how often it was said if more than once.
    pub text: String,
}

/// One canary.
#[derive(Clone, Debug)]
pub struct View {
    /// Where it is.
    pub key: Key,
    /// Its phase.
    pub look: Look,
    /// What it says about itself.
    pub message: String,
    /// `Deployment/podinfo`.
    pub target: String,
    /// Who routes; empty for the operator's default.
    pub provider: String,
    /// Image of the primary and of the canary.
    pub images: (Option<String>, Option<String>),
    /// The steps; empty when there are none.
    pub steps: Vec<Step>,
    /// Rounds done and wanted, where there are these instead of steps.
    pub rounds: Option<(i64, i64)>,
    /// New versions are promoted without being judged.
    pub unjudged: bool,
    /// Pause between two checks.
    pub interval: Duration,
    /// Until the next check; `None` when nothing waits for the clock.
    pub next_check: Option<Duration>,
    /// Failed checks, and how many cause a rollback.
    pub failed: (i64, i64),
    /// Since phase, weight or failed checks moved last.
    pub moved: Option<Duration>,
    /// Weights of primary and canary.
    pub split: (u8, u8),
    /// Whether the weights are those of the route, not only what the status wants.
    pub routed: bool,
    /// The canary's weight over time, oldest first.
    pub weights: Vec<(Timestamp, u8)>,
    /// The time.
    pub now: Timestamp,
    /// The checks.
    pub checks: Vec<Check>,
    /// What belongs to it.
    pub tree: Vec<Node>,
    /// What was said, newest last.
    pub events: Vec<Said>,
    /// What cannot be seen.
    pub troubles: Vec<String>,
}

impl View {
    /// What is to be shown of the canary `key`; before it was seen for the first time, that is little.
    pub fn of(world: &World, key: &Key, now: Timestamp) -> Self {
        let nothing = Known::default();
        let seen = world.canary(key);
        let known = seen.unwrap_or(&nothing);
        let facts = &known.facts;
        let target = world.workloads.get(&Key::new(key.namespace.as_str(), facts.target.as_str()));
        let primary = world.workloads.get(&Key::new(key.namespace.as_str(), facts.primary.as_str()));
        let status = &facts.status;
        Self {
            key: key.clone(),
            look: if seen.is_some() {
                look(known)
            } else {
                Look { glyph: "○", word: "Waiting for it".to_owned(), tone: Tone::Faint }
            },
            message: if known.gone.is_some() { "the Canary was deleted".to_owned() } else { facts.message() },
            target: if facts.target.is_empty() {
                String::new()
            } else {
                format!("{}/{}", facts.target_kind, facts.target)
            },
            provider: facts.provider.clone(),
            images: images(primary, target),
            steps: steps(facts),
            rounds: facts.rounds.map(|rounds| (status.iterations.clamp(0, rounds), rounds)),
            unjudged: facts.unjudged,
            interval: facts.interval,
            next_check: if known.gone.is_some() { None } else { next_check(facts, now) },
            failed: (status.failed_checks, facts.threshold),
            moved: status.last_transition_time.map(|time| since(time, now)),
            split: known.split.unwrap_or((100 - facts.weight(), facts.weight())),
            routed: known.split.is_some(),
            weights: known.weights.iter().copied().collect(),
            now,
            checks: known.checks.clone(),
            tree: tree(world, known, now),
            events: known.events.iter().map(|event| said(event, now)).collect(),
            troubles: troubles(world, now),
        }
    }
}

/// How long ago; zero for what lies ahead, because clocks differ.
pub fn since(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(time)).unwrap_or_default()
}

fn said(event: &super::objects::EventLine, now: Timestamp) -> Said {
    let times = if event.count > 1 { format!(" (x{})", event.count) } else { String::new() };
    Said { age: event.at.map(|at| since(at, now)), warning: event.warning, text: format!("{}{times}", event.text) }
}

/// The phase, or what matters more than it.
pub fn look(known: &Known) -> Look {
    let facts = &known.facts;
    let look = |glyph, word: &str, tone| Look { glyph, word: word.to_owned(), tone };
    let phase = facts.phase();
    if known.gone.is_some() {
        return look("○", "Deleted", Tone::Faint);
    }
    if facts.refusal().is_some() {
        return look("✖", "Not accepted", Tone::Bad);
    }
    if facts.fault().is_some() {
        return look("✖", "Internal error", Tone::Bad);
    }
    if facts.rolling_back() {
        return look("↺", "Rolling back", Tone::Bad);
    }
    match phase {
        Phase::Terminating | Phase::Terminated => look("○", phase.as_str(), Tone::Faint),
        _ if facts.deleting => look("○", "Terminating", Tone::Faint),
        _ if facts.suspended => look("‖", "Suspended", Tone::Faint),
        Phase::Unset => look("○", "Starting", Tone::Faint),
        Phase::Initializing => look("◌", phase.as_str(), Tone::Busy),
        Phase::Waiting | Phase::WaitingPromotion => look("‖", phase.as_str(), Tone::Busy),
        Phase::Progressing | Phase::Promoting | Phase::Finalising => look("◉", phase.as_str(), Tone::Busy),
        Phase::Initialized | Phase::Succeeded => look("✔", phase.as_str(), Tone::Good),
        Phase::Failed => look("✖", phase.as_str(), Tone::Bad),
    }
}

/// The steps and the promotion after them. A rollout that failed keeps no step: its status is back at zero.
pub fn steps(facts: &CanaryFacts) -> Vec<Step> {
    if facts.steps.is_empty() {
        return Vec::new();
    }
    let phase = facts.phase();
    let weight = u8::try_from(facts.status.canary_weight.clamp(0, 100)).unwrap_or(0);
    let here = if facts.rolling_back() { Place::Broken } else { Place::Here };
    let place = |step: u8| match phase {
        Phase::Promoting | Phase::Finalising | Phase::Succeeded => Place::Done,
        Phase::WaitingPromotion if step <= weight => Place::Done,
        Phase::Progressing if step < weight => Place::Done,
        Phase::Progressing if step == weight => here,
        _ => Place::Ahead,
    };
    let mut steps: Vec<Step> =
        facts.steps.iter().map(|step| Step { name: step.to_string(), place: place(*step) }).collect();
    let promotion = match phase {
        Phase::Succeeded => Place::Done,
        Phase::WaitingPromotion | Phase::Promoting | Phase::Finalising => here,
        _ => Place::Ahead,
    };
    steps.push(Step { name: "promote".to_owned(), place: promotion });
    steps
}

/// How long an answer may take until it is believed that the check changed nothing.
const ANSWER: Duration = Duration::from_secs(5);

/// How long until the next check; zero while it is being asked. A check that changed nothing starts another interval.
pub fn next_check(facts: &CanaryFacts, now: Timestamp) -> Option<Duration> {
    let waits = matches!(facts.phase(), Phase::Progressing | Phase::Waiting | Phase::WaitingPromotion);
    let interval = facts.interval;
    let held = facts.rolling_back() || facts.suspended || facts.refusal().or_else(|| facts.fault()).is_some();
    if !waits || held || interval.is_zero() {
        return None;
    }
    let since = since(facts.status.last_transition_time?, now);
    let into = Duration::from_nanos(u64::try_from(since.as_nanos() % interval.as_nanos()).unwrap_or(0));
    let asking = since >= interval && into < ANSWER.min(interval / 2);
    Some(if asking { Duration::ZERO } else { interval.saturating_sub(into) })
}

/// The images of the container that differs, or of the first one.
fn images(primary: Option<&Workload>, target: Option<&Workload>) -> (Option<String>, Option<String>) {
    let list = |workload: Option<&Workload>| workload.map(|workload| workload.images.clone()).unwrap_or_default();
    let (old, new) = (list(primary), list(target));
    let differs = new.iter().find(|(name, image)| old.iter().any(|(other, was)| name == other && image != was));
    let name = differs.or(new.first()).or(old.first()).map(|(name, _)| name.clone()).unwrap_or_default();
    let image =
        |list: &[(String, String)]| list.iter().find(|(other, _)| *other == name).map(|(_, image)| short_image(image));
    (image(&old), image(&new))
}

/// An image without its registry, and with no more of a digest than tells it apart.
pub fn short_image(image: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or(image);
    match name.split_once("@sha256:") {
        Some((name, digest)) => format!("{name}@{}", digest.chars().take(8).collect::<String>()),
        None => name.to_owned(),
    }
}

/// What cannot be seen, in as few sentences as there are reasons. A cluster without HTTPRoutes has another router.
pub fn troubles(world: &World, now: Timestamp) -> Vec<String> {
    let mut lost: Option<(Timestamp, &str)> = None;
    let mut forbidden = Vec::new();
    let mut unknown = Vec::new();
    for (kind, at, trouble) in world.troubles() {
        match trouble {
            Trouble::Forbidden(_) => forbidden.push(kind.plural()),
            Trouble::Unknown if kind == Kind::Route => {}
            Trouble::Unknown => unknown.push(kind.plural()),
            Trouble::Lost(why) if lost.is_none_or(|(since, _)| at < since) => lost = Some((at, why)),
            Trouble::Lost(_) => {}
        }
    }
    let lost = lost.map(|(at, why)| format!("no connection for {}, trying again: {why}", age(since(at, now))));
    let forbidden = (!forbidden.is_empty()).then(|| format!("not allowed to watch {}", forbidden.join(", ")));
    let unknown = (!unknown.is_empty()).then(|| format!("the cluster does not know {}", unknown.join(", ")));
    [lost, forbidden, unknown].into_iter().flatten().collect()
}

/// A duration in as few letters as kubectl uses.
pub fn age(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 if seconds.is_multiple_of(60) => format!("{minutes}m"),
        120..600 => format!("{minutes}m{}s", seconds % 60),
        600..10_800 => format!("{minutes}m"),
        10_800..172_800 => format!("{hours}h"),
        _ => format!("{}d", hours / 24),
    }
}

/// A pause in as few letters as say it whole: `30s`, `1m`, `90s`.
pub fn pause(duration: Duration) -> String {
    match duration.as_secs() {
        0 => seaway_api::duration::format(duration),
        seconds if seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        seconds if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

/// A duration as minutes and seconds, rounded to whole seconds.
pub fn clock(duration: Duration) -> String {
    let seconds = (duration.as_secs_f64()).round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
#[path = "view/tests.rs"]
mod tests;
