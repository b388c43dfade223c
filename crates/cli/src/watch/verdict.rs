//! Whether a rollout has ended, and how: what `seaway watch --wait` waits for. Pure.
//!
//! A status at rest may be that of the last rollout, not of the change that was made a moment ago. Whether it is about the
//! present target is told by comparing the target's pod template with the hash in the status.

use std::time::Duration;

use jiff::Timestamp;
use seaway_api::Phase;
use seaway_core::revision::is_ours;

use super::canary::CanaryFacts;
use super::objects::{Key, Kind};
use super::view::since;
use super::world::{Access, World};

/// How long a Canary must have been refused. The operator may just be reading a spec that was corrected.
const PATIENCE: Duration = Duration::from_secs(5);

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The primary runs what the target wants.
    Promoted,
    /// It does not, and will not without somebody's help.
    Failed(String),
}

/// How the rollout of what the target wants now has ended; `None` while it has not.
pub fn verdict(world: &World, key: &Key, now: Timestamp) -> Option<Verdict> {
    let known = world.canary(key)?;
    let facts = &known.facts;
    if known.gone.is_some() {
        return Some(Verdict::Failed("the Canary was deleted".to_owned()));
    }
    if let Some(message) = facts.refusal() {
        let long = known.refused.is_some_and(|at| since(at, now) >= PATIENCE);
        return long.then(|| Verdict::Failed(format!("the Canary is not accepted: {message}")));
    }
    if facts.rolling_back() || !is_about_the_present(world, facts) {
        return None;
    }
    match facts.phase() {
        Phase::Initialized | Phase::Succeeded => Some(Verdict::Promoted),
        Phase::Failed => Some(Verdict::Failed(facts.message())),
        _ => None,
    }
}

/// Whether the status speaks of the target as it is. Where that cannot be found out (a status of Flagger's, a target we
/// may not read) it is believed.
fn is_about_the_present(world: &World, facts: &CanaryFacts) -> bool {
    let kind = if facts.target_kind == "DaemonSet" { Kind::DaemonSet } else { Kind::Deployment };
    let applied = &facts.status.last_applied_spec;
    if !is_ours(applied) {
        return true;
    }
    match world.access(kind) {
        Some(Access::Synced) => {
            let target = world.workloads.get(&Key::new(facts.key.namespace.as_str(), facts.target.as_str()));
            target.is_none_or(|target| target.template == *applied)
        }
        Some(Access::Waiting) => false,
        Some(Access::Troubled(..)) | None => true,
    }
}

#[cfg(test)]
mod tests {
    use seaway_api::Canary;
    use seaway_api::canary::{Condition, ConditionStatus};

    use super::*;
    use crate::watch::canary::raw;
    use crate::watch::objects::{Object, Workload};
    use crate::watch::world::{Sight, Trouble};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn target(template: &str) -> Object {
        Object::Workload(Workload {
            kind: Kind::Deployment,
            key: Key::new("test", "podinfo"),
            uid: "1".into(),
            created: None,
            desired: 2,
            ready: 2,
            images: Vec::new(),
            template: template.into(),
            problem: None,
        })
    }

    fn world(canary: &Canary, sights: Vec<Sight>) -> World {
        let mut world = World::new(at(0));
        world.take(at(0), Sight::Seen(Object::Canary(Box::new(CanaryFacts::of(&raw(canary))))));
        for sight in sights {
            world.take(at(0), sight);
        }
        world
    }

    fn judged(canary: &Canary, sights: Vec<Sight>) -> Option<Verdict> {
        verdict(&world(canary, sights), &Key::new("test", "podinfo"), at(1))
    }

    fn deployments(template: &str) -> Vec<Sight> {
        vec![Sight::Listing(Kind::Deployment), Sight::Seen(target(template)), Sight::Listed(Kind::Deployment)]
    }

    #[test]
    fn a_result_counts_only_for_what_the_target_wants_now() {
        let succeeded = Canary::test().at(Phase::Succeeded).revisions("s1:a", "s1:a");
        assert_eq!(judged(&succeeded, deployments("s1:a")), Some(Verdict::Promoted));
        assert_eq!(judged(&succeeded, deployments("s1:b")), None, "the change has not been noticed yet");
        assert_eq!(judged(&succeeded, vec![Sight::Listing(Kind::Deployment)]), None, "the target was not seen yet");
        let failed = Canary::test().at(Phase::Failed).revisions("s1:b", "s1:a");
        assert!(matches!(judged(&failed, deployments("s1:b")), Some(Verdict::Failed(_))));
        assert_eq!(judged(&failed, deployments("s1:c")), None);
    }

    #[test]
    fn what_cannot_be_found_out_is_believed() {
        let forbidden = vec![Sight::Trouble(Kind::Deployment, Trouble::Forbidden("no".into()))];
        let ours = Canary::test().at(Phase::Succeeded).revisions("s1:a", "s1:a");
        assert_eq!(judged(&ours, forbidden), Some(Verdict::Promoted));
        let flaggers = Canary::test().at(Phase::Succeeded).revisions("5978589476", "5978589476");
        assert_eq!(judged(&flaggers, deployments("s1:a")), Some(Verdict::Promoted));
    }

    #[test]
    fn on_the_way_there_is_no_verdict() {
        for phase in [Phase::Unset, Phase::Initializing, Phase::Waiting, Phase::Progressing, Phase::Promoting] {
            assert_eq!(judged(&Canary::test().at(phase), Vec::new()), None, "{phase}");
        }
    }

    #[test]
    fn a_refusal_that_stays_and_a_deletion_are_failures() {
        let mut canary = Canary::test().at(Phase::Succeeded);
        let refused = Condition::new("Accepted", ConditionStatus::False, "InvalidSpec", "spec.service: no port", at(0));
        canary.status.as_mut().unwrap().set_condition(refused);
        let world = world(&canary, Vec::new());
        let key = Key::new("test", "podinfo");
        assert_eq!(verdict(&world, &key, at(1)), None);
        let expected = Verdict::Failed("the Canary is not accepted: spec.service: no port".into());
        assert_eq!(verdict(&world, &key, at(6)), Some(expected));
        let gone = judged(&Canary::test(), vec![Sight::Gone(Kind::Canary, key)]);
        assert_eq!(gone, Some(Verdict::Failed("the Canary was deleted".into())));
    }
}
