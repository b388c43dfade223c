//! What a decision asks the world to become.
//!
//! Every effect is absolute and idempotent: it names the state that should be, never a difference, and doing it twice
//! changes nothing the second time. Adapters turn effects into API requests with preconditions; an effect that is
//! already true turns into none.

use jiff::Timestamp;
use seaway_api::canary::CanaryStatus;

use crate::observed::Revision;
use crate::question::Question;
use crate::split::Split;

/// One round's answer: first the status is stored, then the effects run in order, then the notices are told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The status to store by compare-and-swap before anything else; `None` leaves it alone.
    pub status: Option<CanaryStatus>,
    /// What to make true, in this order. The first refusal ends the round.
    pub effects: Vec<Effect>,
    /// What to tell people.
    pub notices: Vec<Notice>,
    /// When to look again even if nothing changes; `None`: only a change can matter.
    pub wake: Option<Timestamp>,
}

/// One absolute, idempotent change to the world.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Our finalizer is on the Canary, or is not.
    Finalizer(bool),
    /// The `-canary` and `-primary` Services exist and select their pods.
    VariantServices,
    /// The primary workload exists with its copies of the tracked configs, its pod template marked with
    /// [`crate::revision::flagger_id`] of this revision. An existing primary is left alone.
    CreatePrimary(Revision),
    /// The primary's autoscaler exists; when `refresh`, it also follows the target's autoscaler.
    PrimaryAutoscaler {
        /// Also bring an existing one up to date.
        refresh: bool,
    },
    /// The apex Service exists, selects the primary's pods and has the ports of the spec.
    ApexToPrimary,
    /// The apex Service exists and selects the primary's pods. One that was there before keeps its ports, because the route may
    /// lead users to one of them.
    ApexSelectsPrimary,
    /// The route exists, has our shape, and names this split.
    SetSplit(Split),
    /// The route, which serves users, also names where it will lead next, without a share. A data plane that is sent to a
    /// Service it has not heard of loses requests until it has.
    Announce(Destination),
    /// The target runs, at the size it should have for analysis.
    ScaleUp,
    /// The target runs no pods.
    ScaleToZero,
    /// The outgoing primary (template and configs) is stored so that it can be restored. The revision is the incoming
    /// one: what is already stored for its sake is left alone, because a repeated promotion may find the primary
    /// half changed.
    StorePrevious(Revision),
    /// The primary runs this revision: template and configs byte-equal to those analysed, marked with this id.
    Promote {
        /// The analysed revision; the target must still have it.
        revision: Revision,
        /// `flagger-id` for the pod template.
        id: String,
    },
    /// The stored copies of this revision's configs are those the primary runs: ready for the next promotion, which then
    /// need not read them. Nothing depends on it; [`Effect::StorePrevious`] makes up for what is missing.
    KeepCurrent(Revision),
    /// The primary runs what was stored before it became (or began to become) this revision; a missing one is made again
    /// from it. Where nothing is stored for this revision, nothing changes.
    RestorePrevious(Revision),
    /// The target runs at the primary's size (deletion with revert).
    ScaleToPrimary,
    /// The apex Service selects the target's pods, or whatever its user let it select before us (deletion with revert).
    ApexToTarget,
    /// The route sends everything to the apex Service (deletion with revert).
    RouteToApex,
    /// Apex Service and route are no longer ours, so that they outlive the Canary. From then on nobody repairs them, which
    /// is why it comes last (deletion with revert).
    Release,
    /// Somebody asks this question and brings back the answer.
    Ask(Question),
}

/// Where a route leads as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The Services of primary and canary.
    Variants,
    /// The apex Service.
    Apex,
}

/// Text for people, as data: becomes a Kubernetes Event, an alert, a log line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Normal or Warning.
    pub severity: Severity,
    /// The whole text, in Flagger's words.
    pub text: String,
    /// Said once per value of this key (phase, revision, step, and tick where a tick says it).
    pub once: String,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Event type Normal.
    Normal,
    /// Event type Warning.
    Warning,
}
