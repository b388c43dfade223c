//! One round of one canary: observe, decide, check, apply. The only file that knows all of them.
//!
//! A round reads the world once, asks the rules once, and carries out what they say in a fixed order. It ends with the
//! time of the next round, if only time can bring one. Everything a round does can be done again: rounds are woken by
//! changes and by timers, and either may be missed.
//!
//! A spec that cannot be served is answered with the condition `Accepted` and nothing else is written: traffic stays
//! where it is until somebody corrects the spec.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use seaway_adapters::object::text;
use seaway_adapters::refusal::{Blame, Refusal};
use seaway_adapters::routers::{self, Router};
use seaway_adapters::targets::names::InUse;
use seaway_adapters::targets::{Conventions, Foreign};
use seaway_adapters::term;
use seaway_adapters::world::World;
use seaway_api::canary::{CanaryStatus, Phase};
use seaway_api::{Canary, FieldError};
use seaway_core::effect::{Decision, Effect, Notice};
use seaway_core::observed::Observed;
use seaway_core::plan::{Plan, Settings, Strategy};
use seaway_core::rollout::{decide, step};
use seaway_core::{invariants, status};
use serde::Deserialize;
use serde_json::Value;

use crate::admission;
use crate::announce::Announcer;
use crate::apply::{Hand, Trouble};
use crate::ask::Asker;
use crate::cache::{Cache, View};
use crate::clock::{Clock, Moment};
use crate::key::CanaryKey;
use crate::memory::{Memories, Memory, lock};
use crate::observe::{Scene, Sight};
use crate::requests::{Requests, Retry};
use crate::scheduler::{backoff, spread};
use crate::telemetry::{Census, End, Telemetry};
use crate::zoo;

/// Rounds in a row that may write without a pause; more means that something does not settle.
const EAGER: u32 = 12;
/// Failures in a row before a refused write makes us doubt the cache.
const DOUBT: u32 = 2;
/// Failures in a row before people hear of one that usually passes by itself.
const PATIENCE: u32 = 6;

/// What people hear of a fault of ours.
const BROKEN: &str = "internal error, the canary is left as it is and looked at again later";

/// Everything a round needs; shared by all canaries.
pub(crate) struct Reconciler {
    pub(crate) cache: Arc<Cache>,
    pub(crate) requests: Requests,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) conventions: Conventions,
    pub(crate) memories: Arc<Memories>,
    pub(crate) announcer: Arc<Announcer>,
    pub(crate) asker: Asker,
    pub(crate) telemetry: Arc<Telemetry>,
    /// The term of leadership, if it began while the leader before may have had requests on their way.
    pub(crate) term: Option<String>,
    pub(crate) seed: u64,
}

/// What one round works with.
struct Round<'a> {
    canary: &'a Canary,
    plan: &'a Plan,
    router: &'static dyn Router,
    memory: &'a Mutex<Memory>,
    now: Moment,
}

impl Reconciler {
    /// One round of `key`; returns when (in passed time) the next one is due, `None` when only a change can bring it.
    pub(crate) async fn round(&self, key: &CanaryKey) -> Option<Duration> {
        let view = self.cache.view(key);
        let Some(stored) = view.canary() else {
            self.forget(key);
            view.forget();
            return None;
        };
        let memory = self.memories.of(key, uid_of(&stored));
        self.telemetry.count(&key.namespace, self.cache.count(&key.namespace));
        let doubtful = lock(&memory).failures >= DOUBT;
        let mut hand = Hand::new(&self.requests, &view, &stored, doubtful);
        hand.copied = lock(&memory).take_copies();
        let mut result = self.work(key, &stored, &view, &mut hand, &memory).await;
        if result.is_ok() {
            result = mend(&view, &mut hand).await.and(result);
        }
        let (copied, writes) = (std::mem::take(&mut hand.copied), hand.writes);
        let status = view.canary().map(|canary| status_of(&canary)).unwrap_or_default();
        let stay = lock(&memory).keep_copies(copied, &status, self.clock.elapsed());
        let next = self.after(key, &stored, result, writes, &memory);
        let next = [next, stay.map(|stay| self.clock.elapsed().saturating_add(stay))].into_iter().flatten().min();
        view.finish(next.is_none());
        if next.is_none() {
            lock(&memory).rest();
        }
        next
    }

    /// The round of `key` panicked: a fault of ours, contained to this canary. Says so, as far as that can be said, and
    /// returns when to try again.
    pub(crate) async fn panicked(&self, key: &CanaryKey, message: &str) -> Option<Duration> {
        tracing::error!(canary = %key, panic = message, "{BROKEN}");
        let view = self.cache.view(key);
        let Some(stored) = view.canary() else {
            view.finish(false);
            return None;
        };
        let memory = self.memories.of(key, uid_of(&stored));
        let first = {
            let mut memory = lock(&memory);
            memory.complaint.replace(BROKEN.to_owned()).as_deref() != Some(BROKEN)
        };
        if first {
            self.announcer.warn(&stored, BROKEN, self.clock.now());
        }
        let before = status_of(&stored);
        if let Some(after) = status::broken(self.clock.now(), &before, BROKEN) {
            let mut hand = Hand::new(&self.requests, &view, &stored, false);
            if let Err(trouble) = hand.store(&before, &after).await {
                tracing::debug!(canary = %key, error = %trouble, "the internal error could not be stored");
            }
        }
        view.finish(false);
        self.shun(key)
    }

    /// When to try again after a round that panicked.
    pub(crate) fn shun(&self, key: &CanaryKey) -> Option<Duration> {
        let view = self.cache.view(key);
        let stored = view.canary();
        view.finish(false);
        let memory = self.memories.of(key, uid_of(&*stored?));
        let failures = {
            let mut memory = lock(&memory);
            memory.failures += 1;
            memory.failures
        };
        let pause = backoff(self.seed, key, failures, Duration::from_secs(10), Duration::from_secs(600));
        Some(self.clock.elapsed().saturating_add(pause))
    }

    /// How much is kept of all canaries together.
    pub(crate) fn census(&self) -> Census {
        let mut census = self.cache.census();
        census.extend([("memories", self.memories.len()), ("voices", self.announcer.len())]);
        census
    }

    fn forget(&self, key: &CanaryKey) {
        self.memories.forget(key);
        self.announcer.forget(key);
        self.telemetry.forget(key);
        self.telemetry.count(&key.namespace, self.cache.count(&key.namespace));
    }

    async fn work(
        &self,
        key: &CanaryKey,
        stored: &Arc<Value>,
        view: &View,
        hand: &mut Hand<'_>,
        memory: &Mutex<Memory>,
    ) -> Result<Option<Duration>, Trouble> {
        let now = Moment::now(&*self.clock);
        // Which field is at fault is found out only if one is: that takes longer than the reading.
        let parsed = Canary::deserialize(&**stored).or_else(|_| seaway_api::canary::parse(Value::clone(stored)));
        let parsed = parsed.map_err(|error| vec![error]);
        let admitted = parsed.and_then(|canary| self.admit(as_it_lives(canary, view, memory)?, view, memory));
        let Admitted { canary, plan, router } = match admitted {
            Ok(admitted) => admitted,
            Err(errors) if is_being_deleted(stored) => match self.admit_for_deletion(stored, view, memory) {
                Some(admitted) => admitted,
                None => return self.let_go(hand, stored, &errors, now.date).await,
            },
            Err(errors) => return self.reject(hand, stored, &errors, now.date).await,
        };
        let status = canary.status_or_default();
        lock(memory).keep_only(&step(&status));
        let sight = {
            let conventions = &self.conventions;
            let scene = Scene { canary: &canary, plan: &plan, router, conventions, world: view };
            scene.observe(&mut lock(memory), now)
        };
        let Sight { observed, foreign } = sight;
        if !observed.deleting && !foreign.is_empty() {
            if let Some(passing) = foreign.iter().find(|foreign| foreign.refusal.blame == Blame::Cluster) {
                // It goes away by itself.
                return Err(passing.refusal.clone().into());
            }
            let error = |foreign: &Foreign| FieldError::new(foreign.field, &foreign.refusal.text, "");
            let errors: Vec<FieldError> = foreign.iter().map(error).collect();
            return self.reject(hand, stored, &errors, now.date).await;
        }
        let decision = decide(now.date, &plan, &status, &observed);
        if let Err(violation) = invariants::check(&plan, &status, &decision, &observed) {
            return Err(self.refuse(key, &violation));
        }
        self.begin_term(hand, &canary, stored, router, memory).await?;
        let round = Round { canary: &canary, plan: &plan, router, memory, now };
        let result = self.carry_out(&round, hand, &status, &decision).await;
        self.show(&round, &status, &decision, &observed);
        result.map(|()| decision.wake.map(|wake| now.elapsed_at(wake)))
    }

    /// Makes sure, once, that nothing which the leader before decided on this rollout can still be written.
    async fn begin_term(
        &self,
        hand: &mut Hand<'_>,
        canary: &Canary,
        stored: &Value,
        router: &dyn Router,
        memory: &Mutex<Memory>,
    ) -> Result<(), Trouble> {
        let Some(term) = self.term.as_ref().filter(|_| !lock(memory).in_term) else { return Ok(()) };
        let phase = canary.status_or_default().phase;
        if !phase.is_resting() && phase != Phase::Unset {
            for change in term::begin(canary, stored, router, hand.view, term) {
                hand.send(&change).await?;
            }
        }
        lock(memory).in_term = true;
        Ok(())
    }

    /// What is needed to serve a canary, or every reason why it cannot be served.
    fn admit(&self, canary: Canary, view: &View, memory: &Mutex<Memory>) -> Result<Admitted, Vec<FieldError>> {
        let mut plan = lock(memory).plan(&canary, &self.settings)?;
        let Some(router) = routers::find(&plan.provider) else {
            let problem = format!("provider {} is not supported yet", plan.provider);
            return Err(vec![FieldError::new("spec.provider", problem, "use gatewayapi:v1")]);
        };
        let mut errors = router.check(&canary);
        errors.extend(admission::rivalry(&canary, &self.cache.rivals(&key_of(&canary), &plan.target)));
        for kind in router.kinds() {
            // Reading the route also registers the interest, so that the canary is woken when the kind appears.
            view.get(*kind, &plan.namespace, &plan.apex);
            errors.extend(admission::registered(*kind, view.presence(*kind)));
        }
        let missing = admission::missing(&canary, view);
        if !missing.is_empty() {
            Arc::make_mut(&mut plan).warnings.extend(missing);
        }
        if errors.is_empty() { Ok(Admitted { canary, plan, router }) } else { Err(errors) }
    }

    /// What is needed to put things back for a canary that cannot be served as it is written. Names and router are
    /// enough for that; `None` if even those make no sense, or belong to another canary.
    fn admit_for_deletion(&self, stored: &Value, view: &View, memory: &Mutex<Memory>) -> Option<Admitted> {
        let living = |canary: Canary| as_it_lives(canary, view, memory).ok();
        let canary = living(seaway_api::canary::parse(admission::remains(stored)).ok()?)?;
        let plan = Plan::new(&canary, &self.settings).ok()?;
        let router = routers::find(&plan.provider)?;
        let rival = admission::rivalry(&canary, &self.cache.rivals(&key_of(&canary), &plan.target));
        // The object as it is written knows more of the route than its remains, if it can be read at all.
        let canary = seaway_api::canary::parse(stored.clone()).ok().and_then(living).unwrap_or(canary);
        rival.is_none().then(|| Admitted { canary, plan: Arc::new(plan), router })
    }

    /// Says in the status why the canary cannot be served. Nothing else is written, so everything stays where it is.
    async fn reject(
        &self,
        hand: &mut Hand<'_>,
        stored: &Value,
        errors: &[FieldError],
        now: Timestamp,
    ) -> Result<Option<Duration>, Trouble> {
        let before = status_of(stored);
        let Some(after) = status::rejected(now, &before, errors) else { return Ok(None) };
        hand.store(&before, &after).await?;
        self.announcer.warn(stored, &format!("invalid canary spec: {}", sentences(errors)), now);
        Ok(None)
    }

    /// A canary that is being deleted and of which nothing can be understood goes, and people hear what stays behind.
    async fn let_go(
        &self,
        hand: &mut Hand<'_>,
        stored: &Value,
        errors: &[FieldError],
        now: Timestamp,
    ) -> Result<Option<Duration>, Trouble> {
        let writes = hand.writes;
        hand.finalizer(false).await?;
        // Without a phase nothing was ever done for it, so there is nothing to put back.
        if hand.writes > writes && status_of(stored).phase != Phase::Unset {
            let text = format!("deleted without putting anything back, invalid canary spec: {}", sentences(errors));
            self.announcer.warn(stored, &text, now);
        }
        Ok(None)
    }

    /// A decision broke a rule that must never be broken: nothing of it is done.
    fn refuse(&self, key: &CanaryKey, violation: &invariants::Violation) -> Trouble {
        tracing::error!(canary = %key, %violation, "decision refused");
        self.telemetry.violated(violation.rule);
        Trouble::Refused(Refusal::user(format!("decision refused: {violation}")))
    }

    async fn carry_out(
        &self,
        round: &Round<'_>,
        hand: &mut Hand<'_>,
        before: &CanaryStatus,
        decision: &Decision,
    ) -> Result<(), Trouble> {
        let intended = decision.status.as_ref();
        if let Some(after) = intended.filter(|_| !zoo::ACTS_BEFORE_ITS_INTENT) {
            hand.store(before, after).await?;
            lock(round.memory).standing_since(after, round.now);
        }
        let mut result = Ok(());
        for effect in &decision.effects {
            result = match effect {
                Effect::Ask(question) => {
                    self.asker.ask(
                        round.canary,
                        round.plan,
                        question,
                        hand.view,
                        &mut lock(round.memory),
                        round.now.elapsed,
                    );
                    Ok(())
                }
                effect => {
                    let writes = hand.writes;
                    let made = hand.make(effect, round.canary, round.router, &self.conventions).await;
                    if *effect == Effect::ScaleToZero && hand.writes > writes && before.phase.is_resting() {
                        lock(round.memory).slept = Some(round.now.elapsed);
                    }
                    made
                }
            };
            if result.is_err() {
                break;
            }
        }
        if let Some(after) = intended.filter(|_| zoo::ACTS_BEFORE_ITS_INTENT && result.is_ok()) {
            hand.store(before, after).await?;
        }
        // A stored status is a fact even when an effect of it has to be tried again; without one the whole decision
        // comes again.
        if result.is_ok() || decision.status.is_some() {
            self.tell(round, &decision.notices);
        }
        result
    }

    fn tell(&self, round: &Round<'_>, notices: &[Notice]) {
        for notice in notices {
            if lock(round.memory).says(&notice.once) {
                self.announcer.tell(round.canary, round.plan, notice, round.now.date);
            }
        }
    }

    /// Brings the exported metrics up to date.
    fn show(&self, round: &Round<'_>, before: &CanaryStatus, decision: &Decision, observed: &Observed) {
        let after = decision.status.as_ref().unwrap_or(before);
        let set = decision.effects.iter().find_map(|effect| match effect {
            Effect::SetSplit(split) => Some(*split),
            _ => None,
        });
        let split = set.or_else(|| observed.route.as_ref()?.split);
        self.telemetry.observe(round.canary, after.phase, split.as_ref());
        if decision.status.is_none() {
            return;
        }
        if let Some(began) = lock(round.memory).tick_began.take() {
            self.telemetry.analysed(round.canary, self.clock.elapsed().saturating_sub(began).as_secs_f64());
        }
        let end = match after.phase {
            phase if phase == before.phase => None,
            Phase::Succeeded => Some(End::Success),
            Phase::Failed => Some(End::Failure),
            _ => None,
        };
        if let Some(end) = end {
            let strategy = match round.plan.strategy {
                Strategy::AbTest => "ab-testing",
                Strategy::BlueGreen => "blue-green",
                Strategy::Weighted | Strategy::Mirror | Strategy::Affinity => "canary",
            };
            self.telemetry.ended(round.canary, end, strategy, round.plan.skip_analysis);
        }
    }

    /// When the next round is due, and what people hear of a failed one.
    fn after(
        &self,
        key: &CanaryKey,
        stored: &Value,
        result: Result<Option<Duration>, Trouble>,
        writes: u32,
        memory: &Mutex<Memory>,
    ) -> Option<Duration> {
        let now = self.clock.elapsed();
        let mut memory = lock(memory);
        let trouble = match result {
            Ok(wake) => {
                memory.failures = 0;
                memory.complaint = None;
                if writes == 0 {
                    memory.busy = 0;
                    return wake.map(|at| spread(self.seed, key, now, at));
                }
                // What was written may be all that the next step waits for; our own writes wake nobody.
                memory.busy += 1;
                let pause = match memory.busy.checked_sub(EAGER) {
                    None | Some(0) => Duration::ZERO,
                    Some(more) => backoff(self.seed, key, more, Duration::from_secs(1), Duration::from_secs(60)),
                };
                return Some(now.saturating_add(pause));
            }
            Err(trouble) => trouble,
        };
        memory.failures += 1;
        let pause = |first: u64, most: u64| {
            backoff(self.seed, key, memory.failures, Duration::from_millis(first), Duration::from_secs(most))
        };
        let (pause, patience) = match &trouble {
            Trouble::Refused(refusal) if refusal.blame == Blame::User => (pause(60_000, 600), 1),
            Trouble::Refused(_) => (pause(500, 60), PATIENCE),
            Trouble::Api { error, .. } => match error.retry() {
                // Whoever leads goes on in a moment; if it is not us, this process ends.
                Retry::Fenced => (pause(1000, 5), u32::MAX),
                Retry::Corrected => (pause(5000, 300), 1),
                Retry::Soon => (pause(200, 30), PATIENCE),
                Retry::Backoff => (pause(1000, 60).max(error.retry_after.unwrap_or_default()), 1),
            },
        };
        let text = trouble.to_string();
        tracing::debug!(canary = %key, failures = memory.failures, error = text, "round ended early");
        if memory.failures >= patience && memory.complaint.as_ref() != Some(&text) {
            self.announcer.warn(stored, &text, self.clock.now());
            memory.complaint = Some(text);
        }
        Some(now.saturating_add(pause))
    }
}

/// A canary that can be served, with what that takes.
struct Admitted {
    canary: Canary,
    plan: Arc<Plan>,
    router: &'static dyn Router,
}

/// The Canary under the names it lives under. A spec that says others is refused; what is being deleted is put back under
/// the names it has.
fn as_it_lives(canary: Canary, view: &View, memory: &Mutex<Memory>) -> Result<Canary, Vec<FieldError>> {
    let in_use = InUse::of(&canary, view);
    if canary.is_being_deleted() {
        // What is put back is no longer ours, and could not be found a second time.
        let found = lock(memory).names_in_use.get_or_insert(in_use).clone();
        return Ok(found.restore(canary));
    }
    let errors = in_use.errors(&canary);
    if errors.is_empty() { Ok(canary) } else { Err(errors) }
}

/// The status of a Canary of which maybe nothing else can be read.
fn status_of(stored: &Value) -> CanaryStatus {
    stored.get("status").and_then(|status| CanaryStatus::deserialize(status).ok()).unwrap_or_default()
}

fn key_of(canary: &Canary) -> CanaryKey {
    CanaryKey::new(canary.namespace(), canary.name())
}

/// A round went through: if one before it broke off, that is over. Of a Canary that has just been let go nobody needs to
/// know.
async fn mend(view: &View, hand: &mut Hand<'_>) -> Result<(), Trouble> {
    let gone = |canary: &Value| is_being_deleted(canary) && has_no_finalizer(canary);
    let Some(before) = view.canary().filter(|canary| !gone(canary)).map(|canary| status_of(&canary)) else {
        return Ok(());
    };
    match status::mended(&before) {
        Some(after) => hand.store(&before, &after).await,
        None => Ok(()),
    }
}

fn has_no_finalizer(stored: &Value) -> bool {
    stored.pointer("/metadata/finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty)
}

fn uid_of(stored: &Value) -> &str {
    text(stored, "/metadata/uid")
}

fn is_being_deleted(stored: &Value) -> bool {
    stored.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

fn sentences(errors: &[FieldError]) -> String {
    errors.iter().map(FieldError::sentence).collect::<Vec<_>>().join("; ")
}
