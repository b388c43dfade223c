//! Everything that can go wrong, by name, and where each of it makes sense.
//!
//! A [`Mishap`] is a kind at a point and can be written as `crash-after@17` or `drop-event@w5` (`w`: watch events), which
//! is how a run is told again. What the world should look like afterwards is said by [`Kind::outlook`].

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use seaway_drydock::fault::{Call, Fault, LAG, LOSS_NOTICED, Point, WatchEvent};

use super::actors::{Deed, Edit, Harm};
use super::crew::{LEASE, RESTART};
use super::ground::INTERVAL;
use super::mask::Trace;
use super::outside::{Mood, Server};
use super::story::{End, OLD, Story};

/// One thing that goes wrong, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mishap {
    /// When.
    pub at: Point,
    /// What.
    pub kind: Kind,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Between the operator and the API server.
    Api(Fault),
    /// The leader dies and stays away; a standby is there.
    LeaderKilled,
    /// The leader stands still until its Lease is over, then goes on where it was; a standby is there.
    LeaderPaused,
    /// The operator's clock is set by so many hours.
    ClockSet(i64),
    /// Hooks or metrics misbehave for a while.
    Outside(Server, Mood),
    /// Something happens to pods.
    Pods(Harm),
    /// Somebody else writes what we manage.
    Writer(Edit),
    /// The person does something else in the middle.
    Person(Deed),
}

/// How a run with a mishap has to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// Exactly as without it, but for the mask.
    Same,
    /// At one of these ends.
    OneOf(Vec<End>),
}

/// How long hooks, metrics and pods misbehave: long enough for a tick to meet it, too short to use up the threshold.
pub const SPELL: Duration = Duration::from_secs(15);

/// How long a leader stands still: longer than its Lease.
pub const PAUSE: Duration = Duration::from_secs(LEASE.as_secs() + 8);

const FOR_GOOD: Duration = Duration::from_secs(86_400);
const SHORT: Duration = Duration::from_secs(2);
const RETRY_AFTER: Duration = Duration::from_secs(5);
const HANG: Duration = Duration::from_secs(40);
/// Shorter than the progress deadline: who sees nothing for longer than that has to believe that nothing happened.
const SILENCE: Duration = Duration::from_secs(15);

/// All kinds, by name.
pub static KINDS: &[(&str, Kind)] = &[
    ("crash-before", Kind::Api(Fault::CrashBefore)),
    ("crash-after", Kind::Api(Fault::CrashAfter)),
    ("lost-reply", Kind::Api(Fault::LostReply)),
    ("conflict", Kind::Api(Fault::Conflict)),
    ("too-many-requests", Kind::Api(Fault::TooManyRequests { retry_after: RETRY_AFTER, calls: 3 })),
    ("500", Kind::Api(Fault::Status(500))),
    ("503", Kind::Api(Fault::Status(503))),
    ("applied-504", Kind::Api(Fault::AppliedStatus(504))),
    ("hang", Kind::Api(Fault::Hang(HANG))),
    ("reset", Kind::Api(Fault::Reset)),
    ("stale-1", Kind::Api(Fault::Stale(1))),
    ("stale-2", Kind::Api(Fault::Stale(2))),
    ("recreated", Kind::Api(Fault::Recreated)),
    ("api-restart", Kind::Api(Fault::Restart(SHORT))),
    ("drop-event", Kind::Api(Fault::DropEvent)),
    ("duplicate-event", Kind::Api(Fault::DuplicateEvent)),
    ("delay-event", Kind::Api(Fault::DelayEvent(SPELL))),
    ("replay-old", Kind::Api(Fault::ReplayOld)),
    ("gone", Kind::Api(Fault::Gone)),
    ("silent-watch", Kind::Api(Fault::Silent(SILENCE))),
    ("leader-killed", Kind::LeaderKilled),
    ("leader-paused", Kind::LeaderPaused),
    ("clock+1h", Kind::ClockSet(1)),
    ("clock-1h", Kind::ClockSet(-1)),
    ("hooks-hang", Kind::Outside(Server::Hooks, Mood::Hang)),
    ("hooks-refuse", Kind::Outside(Server::Hooks, Mood::Refuse)),
    ("hooks-500", Kind::Outside(Server::Hooks, Mood::Status(500))),
    ("hooks-lie", Kind::Outside(Server::Hooks, Mood::Lie)),
    ("hooks-flood", Kind::Outside(Server::Hooks, Mood::Flood)),
    ("hooks-redirect", Kind::Outside(Server::Hooks, Mood::Redirect)),
    ("metrics-hang", Kind::Outside(Server::Metrics, Mood::Hang)),
    ("metrics-503", Kind::Outside(Server::Metrics, Mood::Status(503))),
    ("metrics-lie", Kind::Outside(Server::Metrics, Mood::Lie)),
    ("metrics-flatter", Kind::Outside(Server::Metrics, Mood::Flatter)),
    ("metrics-flood", Kind::Outside(Server::Metrics, Mood::Flood)),
    ("metrics-empty", Kind::Outside(Server::Metrics, Mood::Empty)),
    ("metrics-nan", Kind::Outside(Server::Metrics, Mood::NaN)),
    ("metrics-many", Kind::Outside(Server::Metrics, Mood::Many)),
    ("canary-crashes", Kind::Pods(Harm::Crash("podinfo"))),
    ("canary-vanishes", Kind::Pods(Harm::Vanish("podinfo"))),
    ("canary-unready", Kind::Pods(Harm::Unready("podinfo"))),
    ("primary-crashes", Kind::Pods(Harm::Crash("podinfo-primary"))),
    ("primary-vanishes", Kind::Pods(Harm::Vanish("podinfo-primary"))),
    ("primary-unready", Kind::Pods(Harm::Unready("podinfo-primary"))),
    ("writer-replicas", Kind::Writer(Edit::Replicas)),
    ("writer-weights", Kind::Writer(Edit::Weights)),
    ("writer-namespace", Kind::Writer(Edit::Namespace)),
    ("writer-labels", Kind::Writer(Edit::Labels)),
    ("writer-rule", Kind::Writer(Edit::Rule)),
    ("writer-selector", Kind::Writer(Edit::Selector)),
    ("person-revision", Kind::Person(Deed::Revision)),
    ("person-interval", Kind::Person(Deed::Interval)),
    ("person-suspend", Kind::Person(Deed::Suspend)),
    ("person-delete", Kind::Person(Deed::Delete)),
    ("person-recreate", Kind::Person(Deed::Recreate)),
];

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("unnamed", |(name, _)| name)
    }

    /// Whether it needs a leader and a standby.
    pub fn needs_two(self) -> bool {
        matches!(self, Self::LeaderKilled | Self::LeaderPaused | Self::ClockSet(_))
    }

    /// Whether it makes sense at a request.
    pub fn applies(self, call: &Call) -> bool {
        match self {
            Self::Api(fault) => fault.applies(call),
            _ => true,
        }
    }

    /// Whether it makes sense at a watch event. Crashes, pauses and restarts are placed at requests only.
    pub fn applies_to_event(self, event: &WatchEvent) -> bool {
        match self {
            Self::Api(Fault::CrashBefore | Fault::Pause(_) | Fault::Restart(_)) => false,
            Self::Api(fault) => fault.applies_to_event(event),
            _ => false,
        }
    }

    /// Whether it only changes what happens outside the API: two requests at the same moment are then the same point.
    pub fn is_timed(self) -> bool {
        matches!(self, Self::Outside(..) | Self::ClockSet(_))
    }

    /// How long it lasts by itself, recovery of what it broke included. Our own time comes on top.
    pub fn lasts(self) -> Duration {
        match self {
            Self::Api(fault) => match fault {
                Fault::CrashBefore | Fault::CrashAfter => RESTART + SHORT,
                Fault::TooManyRequests { retry_after, calls } => retry_after * calls,
                // And the next attempt after it.
                Fault::Hang(length) | Fault::Silent(length) | Fault::DelayEvent(length) | Fault::Restart(length) => {
                    length + SHORT
                }
                Fault::DropEvent => LOSS_NOTICED + SHORT,
                Fault::ReplayOld => LAG + SHORT,
                Fault::Gone => SHORT,
                // The primary's deadline included: people hear of it.
                Fault::Recreated => SPELL * 2 + SHORT,
                _ => Duration::ZERO,
            },
            // The next leader begins a deadline anew: it does not know how long the one before waited.
            Self::LeaderKilled => LEASE + SPELL * 2,
            Self::LeaderPaused => PAUSE + RESTART + SHORT,
            Self::ClockSet(_) => Duration::ZERO,
            // Each question of the spell may be answered at the very end of its time limit.
            Self::Outside(..) => SPELL + INTERVAL * 2,
            Self::Pods(_) => SPELL * 2,
            Self::Writer(_) => SPELL,
            Self::Person(deed) => deed.lasts(),
        }
    }

    /// For how long users may meet errors that no operator can prevent: while pods come back, while the operator has not
    /// yet heard of an edit, and for good once a Canary without `revertOnDeletion` was deleted.
    pub fn hurts_users(self, story: &Story) -> Duration {
        match self {
            Self::Pods(_) => self.lasts() + INTERVAL * 3,
            Self::Writer(_) => SHORT,
            Self::Person(Deed::Delete | Deed::Recreate) if story.reverts() => Duration::ZERO,
            Self::Api(Fault::Recreated) | Self::Person(Deed::Delete | Deed::Recreate) => FOR_GOOD,
            _ => Duration::ZERO,
        }
    }

    /// For how long after another's edit a write of ours may still be decided on what was before: news takes a moment.
    pub fn surprises(self) -> Duration {
        let gone = matches!(self, Self::Api(Fault::Recreated) | Self::Person(Deed::Delete | Deed::Recreate));
        if gone || matches!(self, Self::Writer(_) | Self::Pods(_)) { SHORT } else { Duration::ZERO }
    }

    /// How a story must end with it.
    pub fn outlook(self, story: &Story) -> Outlook {
        let end = story.end;
        let or_failed = || Outlook::OneOf(vec![end, End::Failed(OLD)]);
        match self {
            // A Canary that is created anew adopts whatever the target runs.
            Self::Api(Fault::Recreated) => {
                let mut ends = vec![end, End::Failed(OLD), End::Initialised(OLD)];
                ends.extend(story.tags().map(End::Initialised));
                ends.extend(story.unfit.then_some(End::Adopting));
                Outlook::OneOf(ends)
            }
            // A change of the config that is heard of after the promotion is rolled out by itself.
            Self::Api(Fault::DelayEvent(_) | Fault::Silent(_)) if story.name == "target_edited" => {
                Outlook::OneOf(vec![end])
            }
            Self::Api(_) | Self::LeaderKilled | Self::LeaderPaused | Self::ClockSet(_) => Outlook::Same,
            // A rollback hook that lies is obeyed.
            Self::Outside(Server::Hooks, Mood::Lie) if story.name == "manual_rollback" => or_failed(),
            // Bad versions pass while the metrics flatter them.
            Self::Outside(Server::Metrics, Mood::Flatter) if story.name == "failed_analysis" => {
                Outlook::OneOf(vec![end, End::Promoted("6.0.1-err70")])
            }
            Self::Outside(..) | Self::Writer(_) => Outlook::OneOf(vec![end]),
            Self::Pods(_) => or_failed(),
            Self::Person(deed) => deed.outlook(story),
        }
    }

    /// What it leaves behind in the objects of a story that ends as without it; nothing, if that is all over the place.
    pub fn traces(self) -> Option<&'static [Trace]> {
        const EDITOR: Trace = ("*", "/metadata/managedFields", "the editor's name");
        Some(match self {
            // Two replicas are two pods, with all that follows.
            Self::Writer(Edit::Replicas) => return None,
            Self::Outside(..) => &[("canaries", "/status/failedChecks", "the check that failed")],
            Self::Writer(Edit::Weights | Edit::Namespace | Edit::Selector) => &[EDITOR],
            Self::Writer(Edit::Labels) => &[
                EDITOR,
                ("*", "/metadata/labels/example.com~1team", "the edit, which stays"),
                ("httproutes", "/metadata/labels", "the edit, which stays; it has no other labels"),
            ],
            Self::Writer(Edit::Rule) => &[
                EDITOR,
                ("httproutes", "/spec/rules/1", "the edit, which stays"),
                ("httproutes", "/status/parents/*/conditions/1", "the rule leads to no Service"),
            ],
            Self::Person(Deed::Interval) => &[EDITOR, ("canaries", "/spec/analysis/interval", "the edit, which stays")],
            Self::Person(Deed::Suspend) => &[EDITOR, ("canaries", "/spec/suspend", "the edit, which stays")],
            _ => &[],
        })
    }

    /// The clock error of a [`Kind::ClockSet`].
    pub fn wrong_by(hours: i64) -> SignedDuration {
        SignedDuration::from_hours(hours)
    }
}

impl fmt::Display for Mishap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Point::Call(index) => write!(f, "{}@{index}", self.kind.name()),
            Point::Watch(index) => write!(f, "{}@w{index}", self.kind.name()),
        }
    }
}

impl FromStr for Mishap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, at) = text.split_once('@').ok_or_else(|| format!("{text}: no point"))?;
        let kind = KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        let kind = kind.ok_or_else(|| format!("{name}: no such fault"))?;
        let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{at}: {error}"));
        let at = match at.strip_prefix('w') {
            Some(index) => Point::Watch(number(index)?),
            None => Point::Call(number(at)?),
        };
        Ok(Self { at, kind })
    }
}
