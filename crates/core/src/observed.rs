//! What one round saw of the world, as plain data.
//!
//! Everything a decision uses is either here or in the stored status. Building it from cached objects is the
//! operator's job, with the pure functions of the adapters; the rules never see a Kubernetes object.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::question::{Answer, QuestionKey};
use crate::split::Split;

/// The world as one round saw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The Canary is being deleted.
    pub deleting: bool,
    /// Our finalizer is on the Canary.
    pub finalizer: bool,
    /// The user's workload, which runs the canary revision.
    pub target: Option<Workload>,
    /// The workload that serves users, made by us.
    pub primary: Option<Workload>,
    /// What the target would run now: template and tracked configs. `None` when it cannot be known, see `problems`.
    pub revision: Option<Revision>,
    /// The primary runs what the target would run: same template but for what we change in every primary, same configs.
    /// Hashes that cannot be compared (an older algorithm, Flagger's, a template with a new server-side default) are no
    /// change then, and an adopted primary needs no copy.
    pub target_equals_primary: bool,
    /// What is stored of the primary from before it became, or began to become, the revision that the status names.
    pub previous: Previous,
    /// Since when the status stands where it does, by the clock of this round; `None`: since when it says. A process that
    /// saw it move knows how long ago that was, whatever the clock has been set to since.
    pub standing_since: Option<Timestamp>,
    /// When the target was last put to sleep at rest, as far as this process knows. Somebody who wakes it again and again
    /// is not fought at every turn.
    pub slept: Option<Timestamp>,
    /// Why something cannot be seen (target or mandatory config missing, selector label missing…): full event texts.
    pub problems: Vec<String>,
    /// The apex Service exists and selects the primary's pods.
    pub apex_to_primary: bool,
    /// The apex Service exists and [`ApexToTarget`](crate::effect::Effect::ApexToTarget) is true of it. Looked at only
    /// in a deletion.
    pub apex_to_target: bool,
    /// The route as the router reads it; `None` while there is none.
    pub route: Option<Route>,
    /// What checks have answered, by question. Answers of earlier steps may be dropped, see [`crate::rollout::step`].
    pub answers: BTreeMap<QuestionKey, Answer>,
    /// Questions that are being asked right now. Optional: it only keeps a check that takes longer than an interval
    /// from being asked a second time meanwhile.
    pub asked: BTreeSet<QuestionKey>,
}

/// What is stored of the primary from before a promotion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Previous {
    /// Nobody has looked: restoring is tried, and may bring nothing.
    #[default]
    Unknown,
    /// Nothing that could be restored.
    Absent,
    /// It is stored, and the primary is just that: not changed yet, or completely restored.
    Intact,
    /// It is stored, and the primary differs from it, in whole or in part, or does not exist.
    Differs,
}

/// A workload, reduced to what the rules ask.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Replicas asked for in its spec.
    pub replicas: u32,
    /// Pods that answer now, of whatever revision.
    pub ready: u32,
    /// Whether its rollout is complete.
    pub readiness: Readiness,
    /// `flagger-id` of its pod template: which revision we gave it. Only on primaries.
    pub id: Option<String>,
}

impl Workload {
    /// At least one pod answers.
    pub fn answers(&self) -> bool {
        self.ready > 0
    }
}

/// Whether a workload's rollout is complete.
#[derive(Clone, Debug, PartialEq)]
pub enum Readiness {
    /// Complete, with at least one pod ready. Zero replicas are never ready.
    Ready,
    /// Under way; the text is Flagger's. `until`: when it will count as failed if nothing changes.
    Waiting {
        /// Why, in Flagger's words.
        reason: String,
        /// When the deadline passes, if it is already known.
        until: Option<Timestamp>,
    },
    /// It will not become ready: the progress deadline has passed.
    Failed {
        /// Why, in Flagger's words.
        reason: String,
    },
}

/// The route as it stands in the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Route {
    /// The weights it names; `None` when our rule is missing or cannot be read.
    pub split: Option<Split>,
    /// Everything of ours except the weights is as we would write it.
    pub shape_ok: bool,
    /// The data plane has taken up this generation, since this time (as far as this process knows).
    pub settled_since: Option<Timestamp>,
    /// Why it is not settled, in Flagger's words.
    pub unsettled: Option<String>,
    /// And since when, as far as this process knows.
    pub unsettled_since: Option<Timestamp>,
    /// It sends everything to the apex Service: what a deletion with revert brings about, and what the next Canary of that
    /// name finds.
    pub to_apex: bool,
    /// It names where it will lead next, without a share: in a deletion the apex Service, else, while it leads to that one,
    /// those of primary and canary.
    pub announced: bool,
}

/// What the target would run: pod template and tracked configs, by hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Revision {
    /// `s1:` and 16 hex digits over the canonical JSON of the raw pod template.
    pub template: String,
    /// `configmap/{name}` or `secret/{name}` to checksum.
    pub configs: BTreeMap<String, String>,
}
