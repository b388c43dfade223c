//! One round's inputs, and the questions every rule asks of them: is a tick due, is traffic gone, who answers?

use jiff::{SignedDuration, Timestamp};
use seaway_api::canary::{CanaryStatus, HookType};

use super::draft::Draft;
use crate::effect::{Destination, Effect, Notice, Severity};
use crate::intent;
use crate::observed::{Observed, Readiness, Revision, Route, Workload};
use crate::plan::{Hook, Plan};
use crate::question::{Answer, Question, QuestionKey, Subject};
use crate::revision;
use crate::split::{Split, Variant};
use crate::zoo;

/// For how many intervals a route that settles late is waited for.
const LATE: u64 = 10;

/// The inputs of one decision.
pub(super) struct Round<'a> {
    pub now: Timestamp,
    pub plan: &'a Plan,
    pub status: &'a CanaryStatus,
    pub seen: &'a Observed,
    /// Since when the status stands where it does. Never in the future: a clock that was set back must not stop the ticks.
    pub since: Option<Timestamp>,
    /// Which interval since then this is; 0 means that no tick is due yet.
    pub tick: u64,
    step: String,
}

/// What a question has brought so far.
pub(super) enum Reply<'a> {
    /// No answer yet.
    Pending,
    /// Consent.
    Yes,
    /// Refusal, and why.
    No(&'a str),
}

/// What a list of hooks has brought so far.
pub(super) enum Hooks<'a> {
    /// All consented.
    Passed,
    /// This one is asked next.
    Pending(Subject),
    /// This one refused.
    Refused(&'a Hook, &'a str),
}

/// Whether all traffic has left the canary.
pub(super) enum Drained {
    /// The route was seen without it, long enough ago.
    Yes,
    /// At this time, if nothing changes.
    At(Timestamp),
    /// The route does not say so, or was not seen to be in force.
    No,
}

/// The step a status stands at. Answers under other steps can be forgotten: no decision will use them.
pub fn step(status: &CanaryStatus) -> String {
    let since = status.last_transition_time.map_or(0, Timestamp::as_second);
    let (weight, iterations, failed) = (status.canary_weight, status.iterations, status.failed_checks);
    format!("{}/{weight}/{iterations}/{failed}@{since}", status.phase)
}

impl<'a> Round<'a> {
    pub fn new(now: Timestamp, plan: &'a Plan, status: &'a CanaryStatus, seen: &'a Observed) -> Self {
        let since = seen.standing_since.or(status.last_transition_time).map(|since| since.min(now));
        let tick = since.map_or(1, |since| {
            let elapsed = now.duration_since(since).as_nanos();
            u64::try_from(elapsed / i128::try_from(plan.interval.as_nanos().max(1)).unwrap_or(i128::MAX)).unwrap_or(0)
        });
        Self { now, plan, status, seen, since, tick, step: step(status) }
    }

    /// When the next tick is due.
    pub fn next_tick(&self) -> Timestamp {
        let since = self.since.unwrap_or(self.now);
        let ticks = u32::try_from(self.tick.saturating_add(1)).unwrap_or(u32::MAX);
        let next = self.plan.interval.checked_mul(ticks).and_then(|wait| since.checked_add(wait).ok());
        next.filter(|next| *next > self.now).unwrap_or_else(|| later(self.now, self.plan.interval))
    }

    /// The canary's share according to the status.
    pub fn weight(&self) -> u8 {
        intent::weight(self.plan, self.status)
    }

    /// The revision under analysis according to the status.
    pub fn applied(&self) -> Revision {
        revision::applied(self.status)
    }

    /// Whether the status was last stamped by an algorithm that cannot be compared, e.g. Flagger's.
    pub fn foreign(&self) -> bool {
        !revision::is_ours(&self.status.last_applied_spec)
    }

    // Notices -------------------------------------------------------------------------------------------------------

    /// Good or neutral news, told once per step.
    pub fn normal(&self, what: &str, text: String) -> Notice {
        Notice { severity: Severity::Normal, text, once: format!("{}/{what}", self.step) }
    }

    /// Bad news, told once per step.
    pub fn warning(&self, what: &str, text: String) -> Notice {
        Notice { severity: Severity::Warning, text, once: format!("{}/{what}", self.step) }
    }

    /// A reason for waiting: told by ticks only, and the same reason once per step, however long it lasts.
    pub fn waiting(&self, draft: &mut Draft, what: &str, text: String) {
        draft.wake_at(self.next_tick());
        if self.tick > 0 {
            draft.notices.push(self.warning(&format!("{what}: {text}"), text));
        }
    }

    /// Why something cannot be seen: told like any reason for waiting.
    pub fn problems(&self, draft: &mut Draft) {
        for (index, problem) in self.seen.problems.iter().enumerate() {
            self.waiting(draft, &format!("problem {index}"), problem.clone());
        }
        draft.wake_at(self.next_tick());
    }

    /// The primary's readiness as Flagger words it.
    pub fn primary_not_ready(&self, reason: &str) -> String {
        format!("{} not ready: {reason}", self.plan.primary_key())
    }

    /// The target's readiness as Flagger words it.
    pub fn target_not_ready(&self, reason: &str) -> String {
        format!("canary {} {} not ready: {reason}", self.plan.target_kind.to_lowercase(), self.plan.target_key())
    }

    /// Waits for a workload: tells why at ticks, and looks again when its deadline passes.
    pub fn wait_for(&self, draft: &mut Draft, what: &str, readiness: &Readiness, text: String) {
        self.waiting(draft, what, text);
        if let Readiness::Waiting { until: Some(until), .. } = readiness
            && *until > self.now
        {
            draft.wake_at(*until);
        }
    }

    // Questions -----------------------------------------------------------------------------------------------------

    fn key(&self, revision: &str, tick: u64, subject: Subject) -> QuestionKey {
        QuestionKey { revision: revision.to_owned(), step: self.step.clone(), tick, subject }
    }

    /// The question as an effect.
    pub fn ask(&self, revision: &str, tick: u64, subject: Subject) -> Effect {
        Effect::Ask(Question { key: self.key(revision, tick, subject), phase: self.status.phase })
    }

    /// The answer to one asking of one question.
    pub fn answer(&self, revision: &str, tick: u64, subject: Subject) -> Option<&'a Answer> {
        self.seen.answers.get(&self.key(revision, tick, subject))
    }

    /// The answer to one asking of one hook.
    pub fn reply(&self, revision: &str, tick: u64, hook: usize) -> Reply<'a> {
        match self.answer(revision, tick, Subject::Hook(hook)) {
            None => Reply::Pending,
            Some(Answer::Yes) => Reply::Yes,
            Some(Answer::No(reason) | Answer::Broken(reason)) => Reply::No(reason),
            Some(Answer::Value { .. } | Answer::NoData { .. }) => Reply::No("the answer is neither yes nor no"),
        }
    }

    /// Whether a hook consented at any tick of this step.
    fn consented(&self, revision: &str, hook: usize) -> bool {
        (0..=self.tick).rev().take(1000).any(|tick| matches!(self.reply(revision, tick, hook), Reply::Yes))
    }

    /// All hooks of one type in order; the first refusal ends it. Consent is told, except that of checks which run at
    /// every tick. A check before the first weight is not asked again while a gate behind it stays closed.
    pub fn hooks(&self, draft: &mut Draft, revision: &str, tick: u64, kind: HookType) -> Hooks<'a> {
        for (index, hook) in self.plan.hooks_of(kind) {
            let remembered = kind == HookType::PreRollout && self.consented(revision, index);
            let reply = if remembered { Reply::Yes } else { self.reply(revision, tick, index) };
            match reply {
                Reply::Pending => return Hooks::Pending(Subject::Hook(index)),
                Reply::No(reason) => return Hooks::Refused(hook, reason),
                Reply::Yes => {
                    let what = match kind {
                        HookType::PreRollout => format!("hook {index} passed"),
                        _ => format!("hook {index} passed@{tick}"),
                    };
                    let told = passed(kind, &hook.name).map(|text| self.normal(&what, text));
                    draft.notices.extend(told);
                }
            }
        }
        Hooks::Passed
    }

    /// The ticks to work on, in order: one that has begun and may not be finished, then the newest. A hook that takes
    /// longer than an interval would otherwise never be heard.
    pub fn ticks(&self, revision: &str) -> Vec<u64> {
        let mine = |key: &&QuestionKey| key.step == self.step && key.revision == revision && key.tick > 0;
        let begun = self.seen.answers.keys().chain(&self.seen.asked).filter(mine).map(|key| key.tick);
        let mut ticks: Vec<u64> = begun.filter(|tick| *tick <= self.tick).max().into_iter().collect();
        if ticks.last() != Some(&self.tick) {
            ticks.push(self.tick);
        }
        ticks
    }

    // Traffic -------------------------------------------------------------------------------------------------------

    /// Some pod of the primary answers.
    pub fn primary_answers(&self) -> bool {
        self.seen.primary.as_ref().is_some_and(Workload::answers)
    }

    /// Some pod of the target answers.
    pub fn target_answers(&self) -> bool {
        self.seen.target.as_ref().is_some_and(Workload::answers)
    }

    /// The route names `wanted`, or the only side that answers. The status keeps its weight: it is put back when the other
    /// side answers again.
    pub fn serve(&self, wanted: Split) -> Option<Effect> {
        self.set_split(self.only_side().unwrap_or(wanted))
    }

    /// Everything to the one side that answers, if there is just one.
    pub fn only_side(&self) -> Option<Split> {
        match (self.primary_answers(), self.target_answers()) {
            (true, false) => Some(Split::primary_only()),
            (false, true) => Some(Split::canary(100)),
            _ => None,
        }
    }

    /// The route names `split`. `None` when it already does, or when somebody who does not answer would get more.
    pub fn set_split(&self, split: Split) -> Option<Effect> {
        let route = self.seen.route.as_ref();
        let current = route.and_then(|route| route.split);
        if current == Some(split) && route.is_some_and(|route| route.shape_ok) {
            return None;
        }
        if self.reaches_someone(current, split) {
            return Some(Effect::SetSplit(split));
        }
        // Without any route nobody is served: better the primary alone than nobody.
        let primary = Split::primary_only();
        (current.is_none() && self.reaches_someone(None, primary)).then_some(Effect::SetSplit(primary))
    }

    /// Everybody who gains traffic answers.
    fn reaches_someone(&self, from: Option<Split>, to: Split) -> bool {
        let gains = |variant| to.weight(variant) > from.map_or(0, |from| from.weight(variant));
        (!gains(Variant::Primary) || self.primary_answers())
            && (!gains(Variant::Canary) || self.target_answers())
            && !gains(Variant::Baseline)
    }

    /// Whether all traffic has left the canary.
    pub fn drained(&self) -> Drained {
        let Some(route) = &self.seen.route else { return Drained::No };
        if route.split != Some(Split::primary_only()) || !route.shape_ok {
            return Drained::No;
        }
        match route.settled_since.map(|since| later(since, self.plan.drain)) {
            Some(gone) if gone <= self.now => Drained::Yes,
            Some(gone) => Drained::At(gone),
            None => Drained::No,
        }
    }

    /// Waits until all traffic has left the canary.
    pub fn wait_for_drain(&self, draft: &mut Draft) {
        match self.drained() {
            Drained::Yes => {}
            Drained::At(time) => draft.wake_at(time),
            Drained::No => self.wait_for_route(draft),
        }
    }

    /// Waits until the data plane has taken up the route. That it has not is told after an interval: it needs a moment.
    pub fn wait_for_route(&self, draft: &mut Draft) {
        draft.wake_at(self.next_tick());
        let Some(route) = &self.seen.route else { return };
        let Some(reason) = &route.unsettled else { return };
        match route.unsettled_since.map(|since| later(since, self.plan.interval)) {
            Some(patience) if patience > self.now => draft.wake_at(patience),
            _ => self.waiting(draft, "route", reason.clone()),
        }
    }

    /// Whether the data plane has had the time of a drain to learn of the Services that the route leads to next. Until then
    /// it is told, and waited for.
    pub fn announced(&self, draft: &mut Draft, route: &Route, next: Destination) -> bool {
        if zoo::LEADS_WHERE_NOBODY_WAITS {
            return true;
        }
        if !route.announced {
            draft.make(Effect::Announce(next));
            draft.wake_at(self.next_tick());
            return false;
        }
        match route.settled_since.map(|since| later(since, self.plan.drain)) {
            Some(known) if known <= self.now => return true,
            Some(known) => draft.wake_at(known),
            None => self.wait_for_route(draft),
        }
        false
    }

    /// The data plane has taken up the route as it stands.
    pub fn route_settled(&self) -> bool {
        self.seen.route.as_ref().is_some_and(|route| route.settled_since.is_some())
    }

    /// When enough was measured to be judged, if that is still to come: when the next tick is due, and one interval after
    /// the data plane took up a route that came late. A server that was away when the route had to be written is no failed
    /// check of the new revision.
    pub fn measured_at(&self) -> Option<Timestamp> {
        let interval = self.plan.interval;
        let settled = self.seen.route.as_ref().and_then(|route| route.settled_since);
        // Whoever edits the route all the time must not keep a bad revision from being judged.
        let patient = self.tick < LATE;
        let late =
            settled.filter(|settled| patient && self.since.is_some_and(|since| *settled > later(since, interval / 2)));
        let measured = late.map(|settled| later(settled, interval)).filter(|time| *time > self.now);
        measured.or_else(|| (self.tick == 0).then(|| self.next_tick()))
    }

    /// What every phase after initialisation relies on; already true effects cost nothing. Services select by the target's
    /// labels, so without a target they stay as they are.
    pub fn keep(&self, draft: &mut Draft) {
        if self.seen.target.is_none() {
            return;
        }
        draft.make(Effect::VariantServices);
        if self.primary_answers() {
            draft.make(Effect::ApexToPrimary);
        }
    }

    /// The primary does not exist, in the words of one that is not ready.
    pub fn primary_missing(&self) -> String {
        self.primary_not_ready("it does not exist")
    }
}

/// `time` after `wait`; the end of time if there is no such moment.
pub(super) fn later(time: Timestamp, wait: std::time::Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    time.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// The Event of a hook that consented.
fn passed(kind: HookType, name: &str) -> Option<String> {
    let kind = match kind {
        HookType::ConfirmRollout => "Confirm-rollout",
        HookType::PreRollout => "Pre-rollout",
        HookType::ConfirmTrafficIncrease => "Confirm-traffic-increase",
        HookType::ConfirmPromotion => "Confirm-promotion",
        HookType::PostRollout => "Post-rollout",
        HookType::Rollout | HookType::Event | HookType::Rollback => return None,
    };
    Some(format!("{kind} check {name} passed"))
}
