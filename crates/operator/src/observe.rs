//! From cached objects to what the rules see.
//!
//! Puts together what the adapters read; has no opinion of its own. What cannot be seen is said as a problem in words
//! for people, never guessed.

use seaway_adapters::kinds::DEPLOYMENT;
use seaway_adapters::refusal::Refusal;
use seaway_adapters::routers::{Router, Subject};
use seaway_adapters::targets::{
    Conventions, Foreign, Selector, config, deployment, foreign_objects, previous, services,
};
use seaway_adapters::world::World;
use seaway_api::Canary;
use seaway_api::canary::Phase;
use seaway_core::observed::{Observed, Previous, Revision};
use seaway_core::plan::Plan;
use seaway_core::revision::applied;
use seaway_core::status::ROLLING_BACK;
use serde_json::Value;

use crate::clock::{Moment, later};
use crate::memory::Memory;

/// What a round looks at.
pub(crate) struct Scene<'a> {
    /// The Canary.
    pub(crate) canary: &'a Canary,
    /// Its plan.
    pub(crate) plan: &'a Plan,
    /// Its router.
    pub(crate) router: &'a dyn Router,
    /// The installation's conventions.
    pub(crate) conventions: &'a Conventions,
    /// Cached objects.
    pub(crate) world: &'a dyn World,
}

/// What was seen.
pub(crate) struct Sight {
    /// What the rules see.
    pub(crate) observed: Observed,
    /// Objects of our names that are somebody else's.
    pub(crate) foreign: Vec<Foreign>,
}

impl Scene<'_> {
    /// The world now.
    pub(crate) fn observe(&self, memory: &mut Memory, now: Moment) -> Sight {
        let plan = self.plan;
        let target = self.world.get(DEPLOYMENT, &plan.namespace, &plan.target);
        let primary = self.world.get(DEPLOYMENT, &plan.namespace, &plan.primary);
        let mut workload = |object: Option<&Value>, name: &str, threshold: u8| {
            let since = memory.short_since(name, object.and_then(deployment::unavailable), now);
            let until = since.map(|since| later(since, plan.deadline));
            object.map(|object| deployment::observe(object, i64::from(threshold), until, now.date))
        };
        let mut observed = Observed {
            deleting: self.canary.is_being_deleted(),
            finalizer: self.canary.has_finalizer(),
            target: workload(target.as_deref(), &plan.target, plan.canary_ready_threshold),
            primary: workload(primary.as_deref(), &plan.primary, plan.primary_ready_threshold),
            previous: self.previous(),
            standing_since: memory.standing_since(&self.canary.status_or_default(), now),
            slept: memory.slept.map(|slept| now.date_of(slept)),
            answers: memory.answers.clone(),
            asked: memory.under_way(),
            ..Observed::default()
        };
        match &target {
            Some(target) => self.observe_target(&mut observed, target, primary.as_deref()),
            None => observed.problems.push(deployment::not_found(&plan.namespace, &plan.target).text),
        }
        let reading = self.router.read(&Subject::of(self.canary), self.world);
        let since = memory.route_since(&reading, now);
        observed.route = reading.route.map(|mut route| {
            let state = if reading.settled { &mut route.settled_since } else { &mut route.unsettled_since };
            *state = Some(since);
            route
        });
        let route =
            reading.problem.map(|problem| Foreign { field: "spec.service.name", refusal: Refusal::user(problem) });
        let foreign = foreign_objects(self.canary, self.world).into_iter().chain(route).collect();
        Sight { observed, foreign }
    }

    fn observe_target(&self, observed: &mut Observed, target: &Value, primary: Option<&Value>) {
        match config::revision(target, self.world, self.conventions) {
            Ok(revision) => {
                observed.target_equals_primary = primary.is_some_and(|primary| self.same(target, primary, &revision));
                observed.revision = Some(revision);
            }
            Err(refusal) => observed.problems.push(refusal.text),
        }
        match Selector::of(target, self.conventions) {
            Ok(selector) => {
                let (canary, world) = (self.canary, self.world);
                observed.apex_to_primary = services::apex_selects(canary, world, &selector, &selector.primary_value());
                observed.apex_to_target =
                    observed.deleting && services::apex_leads_to_target(canary, target, world, self.conventions);
            }
            Err(refusal) => observed.problems.push(refusal.text),
        }
    }

    /// What is stored of the primary from before a promotion; looked for only while the rules may ask for it.
    fn previous(&self) -> Previous {
        let status = self.canary.status_or_default();
        let asked = matches!(
            status.phase,
            Phase::Progressing | Phase::WaitingPromotion | Phase::Promoting | Phase::Finalising | Phase::Failed
        );
        if !asked && !status.is_true(ROLLING_BACK) {
            return Previous::Unknown;
        }
        let incoming = applied(&status);
        if !previous::is_stored(self.canary, self.world, &incoming) {
            Previous::Absent
        } else if previous::is_intact(self.canary, self.world, &incoming) {
            Previous::Intact
        } else {
            Previous::Differs
        }
    }

    fn same(&self, target: &Value, primary: &Value, revision: &Revision) -> bool {
        let tracked = revision.configs.keys().cloned().collect();
        deployment::equals_primary(target, primary, &tracked, self.conventions)
            && config::equal_primary(revision, &self.plan.namespace, self.world)
    }
}
