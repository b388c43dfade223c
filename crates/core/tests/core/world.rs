//! A cluster in miniature: two workloads that need time to become ready, a route that needs time to settle, hooks and
//! metrics that need time to answer, users who interfere, and an operator that may crash, or be refused, before any of its
//! writes.
//!
//! It drives `decide` the way the operator does (status, effects, notices) and checks the invariants on every decision and
//! every commit.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use jiff::Timestamp;
use seaway_api::Canary;
use seaway_api::canary::{CanaryStatus, Phase};
use seaway_core::effect::{Decision, Effect};
use seaway_core::invariants::{
    self,
    commit::{Pods, Scene},
};
use seaway_core::observed::{Observed, Previous, Readiness, Revision, Route, Workload};
use seaway_core::plan::{Plan, Settings};
use seaway_core::question::{Answer, Question, QuestionKey};
use seaway_core::revision::applied;
use seaway_core::rollout::decide;
use seaway_core::split::{Split, Variant};
use seaway_core::status::ROLLING_BACK;

mod hands;
mod load;

pub use load::Load;

pub const STARTUP: Duration = Duration::from_secs(4);
const SETTLING: Duration = Duration::from_secs(2);
const REPLICAS: u32 = 2;

/// What a scenario says about the outside.
#[derive(Clone, Copy)]
pub struct Script {
    /// What hooks and metrics answer, and after how long.
    pub answer: fn(&World, &Plan, &Question) -> (Answer, Duration),
    /// What users do, each once its condition holds, in order.
    pub users: Users,
    /// Whether pods of this template come up in this role.
    pub comes_up: fn(template: &str, primary: bool) -> bool,
    /// Whether a primary that does not come up takes its old pods down with it.
    pub deadly: bool,
}

/// What users do, and when.
pub type Users = &'static [(fn(&World) -> bool, fn(&mut World))];

/// The operator's memory: everything a crash takes away.
#[derive(Clone, Default)]
struct Memory {
    answers: BTreeMap<QuestionKey, Answer>,
    asked: BTreeMap<QuestionKey, (Timestamp, Answer)>,
    said: BTreeSet<String>,
    settled_since: Option<Timestamp>,
}

/// Why a round ended before its end.
pub enum Stop {
    /// The operator died before a write.
    Crash,
    /// A write was refused.
    Refused,
}

/// The outgoing primary of a promotion.
#[derive(Clone)]
struct Stored {
    incoming: Revision,
    outgoing: Revision,
    id: Option<String>,
}

/// A cluster in miniature.
#[derive(Clone)]
pub struct World {
    pub now: Timestamp,
    /// Its spec; the status is beside it.
    pub canary: Rc<Canary>,
    status: CanaryStatus,
    pub target: Option<Load>,
    pub primary: Option<Load>,
    pub split: Option<Split>,
    route_changed: Timestamp,
    /// The route leads to the apex.
    pub to_apex: bool,
    /// The route names where it leads next, without a share.
    pub announced: bool,
    /// Apex and route are nobody's.
    pub released: bool,
    pub apex: Option<Variant>,
    /// The apex has the ports of another Canary's spec.
    other_ports: bool,
    /// When the route last led there.
    left_apex: Timestamp,
    finalizer: bool,
    pub deleting: bool,
    pub gone: bool,
    previous: Option<Stored>,
    /// Stored copies of configs: those of the outgoing primary, or, at rest, those the primary runs.
    kept: BTreeMap<String, String>,
    services: bool,
    /// The target's autoscaler is missing, so the primary's cannot follow it.
    pub no_autoscaler: bool,
    /// What the target would run cannot be read.
    pub blind: bool,
    slept: Option<Timestamp>,
    script: Script,
    /// The plan, and the one part of the spec that scenarios change.
    planned: Option<(bool, Rc<Plan>)>,
    user: usize,
    memory: Memory,
    wake: Option<Timestamp>,
    /// Texts of all notices, in order.
    pub events: Vec<String>,
    /// All committed writes.
    pub writes: u64,
    /// Writes that could be interrupted so far.
    pub points: u64,
    /// The operator dies before this one.
    pub crash_at: Option<u64>,
    /// And once more before this one.
    pub second_crash: Option<u64>,
    /// This write is refused.
    pub refuse_at: Option<u64>,
    pub crashes: u64,
    /// Phase and weight after every status write, repeats left out.
    pub trace: Vec<(Phase, i64)>,
}

fn later(time: Timestamp, wait: Duration) -> Timestamp {
    time.checked_add(wait).unwrap()
}

pub fn settings() -> Settings {
    Settings { any_address: true, ..Settings::default() }
}

/// A revision by name; `v1+a` is the template `v1` with other configs.
pub fn revision(name: &str) -> Revision {
    let template = format!("s1:{}", name.split('+').next().unwrap());
    Revision { template, configs: BTreeMap::from([("secret/tls".into(), format!("sum-of-s1:{name}"))]) }
}

/// Template and configs belong together.
fn whole(revision: &Revision) -> bool {
    revision.configs.values().all(|sum| sum.starts_with(&format!("sum-of-{}", revision.template)))
}

impl World {
    pub fn new(canary: Canary, script: Script) -> Self {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let target = Load::new(now, revision("v1"), None, true);
        Self {
            now,
            canary: Rc::new(canary),
            status: CanaryStatus::default(),
            target: Some(target),
            primary: None,
            split: None,
            route_changed: now,
            to_apex: false,
            announced: false,
            released: false,
            apex: Some(Variant::Canary),
            other_ports: false,
            left_apex: now,
            finalizer: false,
            deleting: false,
            gone: false,
            previous: None,
            kept: BTreeMap::new(),
            services: false,
            no_autoscaler: false,
            blind: false,
            slept: None,
            script,
            planned: None,
            user: 0,
            memory: Memory::default(),
            wake: None,
            events: Vec::new(),
            writes: 0,
            points: 0,
            crash_at: None,
            second_crash: None,
            refuse_at: None,
            crashes: 0,
            trace: Vec::new(),
        }
    }

    pub fn status(&self) -> &CanaryStatus {
        &self.status
    }

    pub fn phase(&self) -> Phase {
        self.status.phase
    }

    pub fn weight(&self) -> i64 {
        self.status.canary_weight
    }

    pub fn plan(&mut self) -> Rc<Plan> {
        if let Some((_, plan)) = self.planned.as_ref().filter(|(skips, _)| *skips == self.canary.spec.skip_analysis) {
            return plan.clone();
        }
        let plan = Rc::new(Plan::new(&self.canary, &settings()).unwrap());
        self.planned = Some((self.canary.spec.skip_analysis, plan.clone()));
        plan
    }

    /// A user changes the target's template.
    pub fn set_image(&mut self, template: &str) {
        if self.target.is_some() {
            self.apply_target(template);
        }
    }

    /// Users do nothing more, and what they broke is well again.
    pub fn dismiss_users(&mut self) {
        self.user = self.script.users.len();
        let now = self.now;
        let dead = [&mut self.primary, &mut self.target].into_iter().flatten().filter(|load| load.dead);
        dead.for_each(|load| load.die(now, false));
    }

    /// All pods of the primary die, or come back.
    pub fn primary_dies(&mut self, dies: bool) {
        let now = self.now;
        self.primary.iter_mut().for_each(|load| load.die(now, dies));
    }

    /// All pods of the target die, or come back.
    pub fn target_dies(&mut self, dies: bool) {
        let now = self.now;
        self.target.iter_mut().for_each(|load| load.die(now, dies));
    }

    /// Somebody deletes a workload.
    pub fn lose(&mut self, primary: bool) {
        *(if primary { &mut self.primary } else { &mut self.target }) = None;
    }

    /// A user applies the target, whether it is there or not.
    pub fn apply_target(&mut self, template: &str) {
        let (now, wanted) = (self.now, revision(template));
        match &mut self.target {
            Some(target) => _ = target.set(now, &wanted, None),
            None => self.target = Some(Load::new(now, wanted, None, false)),
        }
    }

    /// Somebody else scales the target.
    pub fn scale_target(&mut self, replicas: u32) {
        let now = self.now;
        self.target.as_mut().unwrap().scale(now, replicas);
    }

    /// Whoever the route names most answers, or nobody does.
    pub fn serves(&self) -> bool {
        let ready = |load: &Option<Load>| load.as_ref().is_some_and(|load| load.ready() > 0);
        let reached = |variant| self.split.is_some_and(|split| split.weight(variant) > 0);
        let (primary, target) = (ready(&self.primary), ready(&self.target));
        let lost = (reached(Variant::Primary) && !primary) || (reached(Variant::Canary) && !target);
        !lost || !(primary || target)
    }

    /// Somebody writes another split into the route.
    pub fn meddle(&mut self, split: Split) {
        self.rewrite_route(Some(split), false, false);
    }

    /// A new generation of the route.
    fn rewrite_route(&mut self, split: Option<Split>, to_apex: bool, announced: bool) {
        if self.to_apex {
            self.left_apex = self.now;
        }
        (self.split, self.to_apex, self.announced) = (split, to_apex, announced);
        self.route_changed = self.now;
        self.memory.settled_since = None;
    }

    /// The route was left by another Canary of this name: it leads to the apex, by a port that this one's spec does not have.
    pub fn inherit_route(&mut self) {
        self.rewrite_route(None, true, false);
        self.other_ports = true;
    }

    pub fn delete(&mut self) {
        self.deleting = true;
        self.gone = !self.finalizer;
    }

    fn scene(&self) -> Scene {
        let pods = |load: &Load| Pods {
            replicas: load.replicas,
            ready: load.ready(),
            revision: load.revision.template.clone(),
            configs: load.revision.configs.clone(),
        };
        Scene {
            status: self.status.clone(),
            split: self.split,
            to_apex: self.to_apex,
            announced: self.announced,
            primary: self.primary.as_ref().map(pods),
            target: self.target.as_ref().map(pods),
            apex: self.apex,
        }
    }

    fn settled(&self) -> bool {
        later(self.route_changed, SETTLING) <= self.now
    }

    fn workload(&self, load: &Load, primary: bool, deadline: Duration) -> Workload {
        let until = later(load.changed, deadline);
        let comes_up = !load.dead && (self.script.comes_up)(&load.revision.template, primary);
        let reason = "waiting for rollout to finish: 0 of 2 updated replicas are available".to_owned();
        let readiness = match load.replicas {
            0 => Readiness::Waiting { reason: "no replicas are asked for".into(), until: None },
            _ if load.up => Readiness::Ready,
            _ if !comes_up && until <= self.now => {
                Readiness::Failed { reason: "exceeded its progress deadline".into() }
            }
            _ => Readiness::Waiting { reason, until: Some(until) },
        };
        Workload { replicas: load.replicas, ready: load.ready(), readiness, id: load.id.clone() }
    }

    fn observe(&mut self, plan: &Plan) -> Observed {
        if self.settled() && self.memory.settled_since.is_none() {
            self.memory.settled_since = Some(self.now);
        }
        let route = self.split.is_some() || self.to_apex;
        let target = self.target.as_ref().filter(|_| !self.blind);
        let same = |target: &Load, primary: &Load| target.revision == primary.revision;
        Observed {
            deleting: self.deleting,
            finalizer: self.finalizer,
            target: self.target.as_ref().map(|load| self.workload(load, false, plan.deadline)),
            primary: self.primary.as_ref().map(|load| self.workload(load, true, plan.deadline)),
            revision: target.map(|load| load.revision.clone()),
            target_equals_primary: target.zip(self.primary.as_ref()).is_some_and(|(t, p)| same(t, p)),
            previous: self.previously(),
            standing_since: None,
            slept: self.slept,
            problems: if self.blind { vec!["a config cannot be read".into()] } else { Vec::new() },
            apex_to_primary: self.apex == Some(Variant::Primary),
            apex_to_target: self.apex == Some(Variant::Canary),
            route: route.then(|| Route {
                split: self.split,
                shape_ok: true,
                settled_since: self.memory.settled_since.filter(|_| self.settled()),
                unsettled: None,
                unsettled_since: None,
                to_apex: self.to_apex,
                announced: self.announced,
            }),
            answers: self.memory.answers.clone(),
            asked: self.memory.asked.keys().cloned().collect(),
        }
    }

    /// What is stored for `incoming`, if it can be restored.
    fn stored_for(&self, incoming: &Revision) -> Option<&Stored> {
        let primary = self.primary.as_ref().map(|primary| &primary.revision.configs);
        let verified = |stored: &&Stored| {
            [Some(&self.kept), primary].into_iter().flatten().any(|configs| *configs == stored.outgoing.configs)
        };
        self.previous.as_ref().filter(|stored| stored.incoming == *incoming).filter(verified)
    }

    fn previously(&self) -> Previous {
        let Some(stored) = self.stored_for(&applied(&self.status)) else { return Previous::Absent };
        let same = |primary: &Load| primary.revision == stored.outgoing && primary.id == stored.id;
        if self.primary.as_ref().is_some_and(same) { Previous::Intact } else { Previous::Differs }
    }

    /// Pods come up, answers come in, users act.
    fn live(&mut self) {
        let (now, comes_up) = (self.now, self.script.comes_up);
        for (load, primary) in [(&mut self.target, false), (&mut self.primary, true)] {
            if let Some(load) = load {
                let up = load.replicas > 0 && later(load.changed, STARTUP) <= now;
                if up && !load.up && !load.dead && comes_up(&load.revision.template, primary) {
                    (load.up, load.old) = (true, 0);
                }
            }
        }
        let done: Vec<_> =
            self.memory.asked.iter().filter(|(_, (due, _))| *due <= now).map(|(k, _)| k.clone()).collect();
        for key in done {
            let (_, answer) = self.memory.asked.remove(&key).unwrap();
            self.memory.answers.insert(key, answer);
        }
        while let Some((when, act)) = self.script.users.get(self.user) {
            if !when(self) {
                break;
            }
            self.user += 1;
            act(self);
        }
    }

    /// One round of the operator. Returns whether anything changed.
    pub fn round(&mut self) -> Result<bool, Stop> {
        self.live();
        if self.gone {
            return Ok(false);
        }
        let plan = self.plan();
        let seen = self.observe(&plan);
        let before = self.status.clone();
        let decision = decide(self.now, &plan, &before, &seen);
        if let Err(violation) = invariants::check(&plan, &before, &decision, &seen) {
            panic!("{violation}\n{before:#?}\n{seen:#?}\n{decision:#?}");
        }
        self.carry_out(&plan, decision)
    }

    fn carry_out(&mut self, plan: &Plan, decision: Decision) -> Result<bool, Stop> {
        let writes = self.writes;
        self.wake = decision.wake;
        let stored = decision.status.is_some();
        if let Some(status) = decision.status {
            self.store(plan, status)?;
        }
        let mut asked = false;
        let mut refused = false;
        for effect in decision.effects {
            if let Effect::Ask(question) = effect {
                asked |= self.ask(plan, question);
                continue;
            }
            refused = match self.apply(plan, &effect) {
                Ok(accepted) => !accepted,
                Err(Stop::Refused) => true,
                Err(Stop::Crash) => return Err(Stop::Crash),
            };
            if refused {
                break;
            }
        }
        // Without a stored status a refused decision comes again, notices included.
        let told = if refused && !stored { Vec::new() } else { decision.notices };
        if told.iter().any(|notice| !self.memory.said.contains(&notice.once)) {
            self.point()?;
        }
        for notice in told {
            if self.memory.said.insert(notice.once) {
                self.events.push(notice.text);
            }
        }
        Ok(self.writes > writes || asked)
    }

    fn store(&mut self, plan: &Plan, status: CanaryStatus) -> Result<(), Stop> {
        // Times are stored in whole seconds, and stock CRDs prune the decisions.
        let pruned = CanaryStatus { decisions: Vec::new(), ..status };
        let stored: CanaryStatus = serde_json::from_value(serde_json::to_value(&pruned).unwrap()).unwrap();
        self.commit(plan, |world| {
            world.status = stored;
            true
        })?;
        let over = self.status.failed_checks >= i64::from(plan.threshold) && self.phase() == Phase::Progressing;
        assert!(!over || self.status.is_true(ROLLING_BACK), "the last failed check and the rollback are one write");
        let position = (self.phase(), self.weight());
        if self.trace.last() != Some(&position) {
            self.trace.push(position);
        }
        Ok(())
    }

    fn ask(&mut self, plan: &Plan, question: Question) -> bool {
        if self.memory.asked.contains_key(&question.key) || self.memory.answers.contains_key(&question.key) {
            return false;
        }
        let (answer, after) = (self.script.answer)(self, plan, &question);
        self.memory.asked.insert(question.key, (later(self.now, after), answer));
        true
    }

    /// The next moment at which anything can happen.
    fn next(&self) -> Option<Timestamp> {
        let loads = [&self.target, &self.primary].into_iter().flatten();
        let ready = loads.filter(|load| load.replicas > 0 && !load.up).map(|load| later(load.changed, STARTUP));
        let settled = (!self.settled()).then(|| later(self.route_changed, SETTLING));
        let answers = self.memory.asked.values().map(|(due, _)| *due);
        let all = ready.chain(settled).chain(answers).chain(self.wake).filter(|time| *time > self.now);
        all.min()
    }

    /// Goes to the next moment at which anything can happen.
    pub fn step_time(&mut self) {
        self.now = self.next().unwrap_or(self.now);
    }

    /// Lives until nothing is planned any more, or `most` simulated time is over.
    pub fn run(&mut self, most: Duration) {
        self.live_until(later(self.now, most), Self::round);
    }

    /// The same; `watch` sees the world before each round, and how many writes the round was about to make.
    pub fn run_watched(&mut self, most: Duration, mut watch: impl FnMut(&Self, std::ops::RangeInclusive<u64>)) {
        self.live_until(later(self.now, most), |world| {
            let before = world.clone();
            let round = world.round();
            watch(&before, before.points + 1..=world.points);
            round
        });
    }

    /// Lives for this long, at rest or not.
    pub fn run_for(&mut self, time: Duration) {
        let end = later(self.now, time);
        self.live_while(end, Self::round);
        self.now = end;
    }

    fn live_until(&mut self, end: Timestamp, round: impl FnMut(&mut Self) -> Result<bool, Stop>) {
        let settled = self.live_while(end, round);
        assert!(settled, "not settled at {end}: {:#?}\n{:#?}", self.status(), self.events);
    }

    /// Returns whether nothing is planned any more.
    fn live_while(&mut self, end: Timestamp, mut round: impl FnMut(&mut Self) -> Result<bool, Stop>) -> bool {
        let mut busy = 0;
        while self.now < end {
            match round(self) {
                Ok(true) | Err(_) => {
                    busy += 1;
                    assert!(busy < 50, "rounds without end: {:?} {:?}", self.status(), self.events);
                    continue;
                }
                Ok(false) => busy = 0,
            }
            match self.next() {
                Some(time) => self.now = time,
                None => return true,
            }
        }
        false
    }

    /// Ten more intervals, looked at often: nothing may be written, asked or planned.
    pub fn assert_silent(&mut self) {
        assert!(
            !self.other_ports || self.target.is_none() || self.deleting,
            "the ports of the apex are not the spec's"
        );
        let writes = self.writes;
        let events = self.events.len();
        (self.crash_at, self.second_crash, self.refuse_at) = (None, None, None);
        for _ in 0..20 {
            self.now = later(self.now, self.plan().interval / 2);
            if self.gone {
                return;
            }
            assert!(!self.round().is_ok_and(|changed| changed), "a write at rest: {:#?}", self.status());
            assert_eq!(self.wake, None, "a settled canary plans nothing");
        }
        assert_eq!((self.writes, self.events.len()), (writes, events));
    }
}
