//! How many replicas each ReplicaSet of a Deployment should have next: arithmetic only, nothing is read or written.
//!
//! Every function answers with the ReplicaSets whose size changes. The order of the rules is Kubernetes': grow the
//! new one as far as surge allows, clean up old replicas that do not answer anyway, then shrink the old ones as far
//! as availability allows.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// A ReplicaSet and the size it should get.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Resize {
    pub(super) replica_set: Arc<ReplicaSet>,
    pub(super) replicas: i32,
}

/// Replicas the ReplicaSet is asked for.
pub(super) fn asked(replica_set: &ReplicaSet) -> i32 {
    replica_set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// Replicas of the ReplicaSet that are available, never more than it is asked for: the rest is about to go.
fn available(replica_set: &ReplicaSet) -> i32 {
    let seen = replica_set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0);
    seen.min(asked(replica_set))
}

fn total_asked<'a>(sets: impl IntoIterator<Item = &'a Arc<ReplicaSet>>) -> i32 {
    sets.into_iter().map(|set| asked(set)).sum()
}

/// Replicas the Deployment is asked for.
pub(super) fn wanted(deployment: &Deployment) -> i32 {
    deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// What a rolling update may add to and take from the wanted replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fences {
    pub(super) surge: i32,
    pub(super) unavailable: i32,
}

impl Fences {
    /// Reads the strategy. Percentages round up for surge and down for unavailability; if both come out as 0 nothing
    /// could ever move, so one replica may be missing.
    pub(super) fn of(deployment: &Deployment) -> Self {
        let wanted = wanted(deployment);
        if !is_rolling(deployment) || wanted == 0 {
            return Self { surge: 0, unavailable: 0 };
        }
        let rolling = deployment
            .spec
            .as_ref()
            .and_then(|spec| spec.strategy.as_ref())
            .and_then(|strategy| strategy.rolling_update.as_ref());
        let quarter = IntOrString::String("25%".into());
        let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref()).unwrap_or(&quarter);
        let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref()).unwrap_or(&quarter);
        let surge = scaled(surge, wanted, Round::Up);
        let unavailable = scaled(unavailable, wanted, Round::Down);
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable.min(wanted) };
        Self { surge, unavailable }
    }
}

#[derive(Clone, Copy)]
enum Round {
    Up,
    Down,
}

fn scaled(value: &IntOrString, of: i32, round: Round) -> i32 {
    match value {
        IntOrString::Int(number) => (*number).max(0),
        IntOrString::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            let hundredfold = i64::from(of) * percent;
            let whole = match round {
                Round::Up => (hundredfold + 99) / 100,
                Round::Down => hundredfold / 100,
            };
            i32::try_from(whole).unwrap_or(i32::MAX).max(0)
        }
    }
}

/// Whether the strategy is a rolling update, which it is unless it says otherwise.
pub(super) fn is_rolling(deployment: &Deployment) -> bool {
    let strategy = |spec: &DeploymentSpec| spec.strategy.as_ref().and_then(|strategy| strategy.type_.clone());
    deployment.spec.as_ref().and_then(strategy).is_none_or(|name| name == "RollingUpdate")
}

/// The size the new ReplicaSet may have, given what the old ones still hold.
pub(super) fn new_size(deployment: &Deployment, new: i32, old: &[Arc<ReplicaSet>]) -> i32 {
    let wanted = wanted(deployment);
    if !is_rolling(deployment) {
        return wanted;
    }
    let room = wanted + Fences::of(deployment).surge - total_asked(old) - new;
    if room <= 0 { new } else { new + room.min(wanted - new).max(0) }
}

/// One step of a rolling update; empty when there is nothing to move until pods change.
pub(super) fn roll(deployment: &Deployment, new: &Arc<ReplicaSet>, old: &[Arc<ReplicaSet>]) -> Vec<Resize> {
    let wanted = wanted(deployment);
    let target = if asked(new) > wanted { wanted } else { new_size(deployment, asked(new), old) };
    if target != asked(new) {
        return vec![Resize { replica_set: new.clone(), replicas: target }];
    }
    shrink_old(deployment, new, old)
}

fn shrink_old(deployment: &Deployment, new: &Arc<ReplicaSet>, old: &[Arc<ReplicaSet>]) -> Vec<Resize> {
    let least = wanted(deployment) - Fences::of(deployment).unavailable;
    // New replicas that do not answer yet must be replaced by old ones that do.
    let missing = asked(new) - available(new);
    let mut spare = total_asked(old) + asked(new) - least - missing;
    if spare <= 0 {
        return Vec::new();
    }
    let oldest_first = oldest_first(old);
    let mut sizes: Vec<i32> = oldest_first.iter().map(|set| asked(set)).collect();
    // Replicas that do not answer serve nobody: they go first.
    for (set, size) in oldest_first.iter().zip(&mut sizes) {
        let gone = spare.min(*size - available(set)).max(0);
        *size -= gone;
        spare -= gone;
    }
    let answering = available(new) + oldest_first.iter().map(|set| available(set)).sum::<i32>();
    let mut surplus = (answering - least).min(spare);
    for size in &mut sizes {
        let gone = surplus.min(*size).max(0);
        *size -= gone;
        surplus -= gone;
    }
    resized(oldest_first, sizes)
}

/// Everything old goes to 0: the first half of the `Recreate` strategy.
pub(super) fn empty_old(old: &[Arc<ReplicaSet>]) -> Vec<Resize> {
    resized(oldest_first(old), vec![0; old.len()])
}

/// Follows a change of the Deployment's size: one ReplicaSet takes it all, several share it in proportion.
pub(super) fn rescale(deployment: &Deployment, new: Option<&Arc<ReplicaSet>>, old: &[Arc<ReplicaSet>]) -> Vec<Resize> {
    let wanted = wanted(deployment);
    let all: Vec<_> = old.iter().chain(new).cloned().collect();
    let active: Vec<_> = all.iter().filter(|set| asked(set) > 0).cloned().collect();
    match active.as_slice() {
        [only] => return resized(vec![only.clone()], vec![wanted]),
        [] => {
            let latest = new.cloned().or_else(|| oldest_first(&all).pop());
            return latest.map(|set| resized(vec![set], vec![wanted])).unwrap_or_default();
        }
        _ => {}
    }
    if let Some(new) = new
        && is_saturated(deployment, new)
    {
        return empty_old(old);
    }
    if is_rolling(deployment) { proportional(deployment, &active) } else { Vec::new() }
}

/// The new ReplicaSet alone is all the Deployment asks for.
fn is_saturated(deployment: &Deployment, new: &ReplicaSet) -> bool {
    let wanted = wanted(deployment);
    asked(new) == wanted && available(new) == wanted && super::revision::desired_annotation(new) == Some(wanted)
}

/// Shares what was added or taken among the active ReplicaSets by their present size; the largest gets the remainder.
fn proportional(deployment: &Deployment, active: &[Arc<ReplicaSet>]) -> Vec<Resize> {
    let wanted = wanted(deployment);
    let allowed = if wanted > 0 { wanted + Fences::of(deployment).surge } else { 0 };
    let mut sets = active.to_vec();
    // Largest first; equals by age: the newer grows first, the older shrinks first.
    sets.sort_by_key(|set| (-asked(set), set.metadata.creation_timestamp.clone()));
    let to_add = allowed - total_asked(&sets);
    if to_add > 0 {
        sets.sort_by(|a, b| {
            let age = |set: &ReplicaSet| set.metadata.creation_timestamp.clone();
            asked(b).cmp(&asked(a)).then(age(b).cmp(&age(a)))
        });
    }
    let mut left = to_add;
    let mut sizes = Vec::with_capacity(sets.len());
    for set in &sets {
        let size = asked(set);
        let share = if left == 0 { 0 } else { share_of(size, allowed, super::revision::max_annotation(set), left) };
        left -= share;
        sizes.push(size + share);
    }
    if let Some(first) = sizes.first_mut() {
        *first = (*first + left).max(0);
    }
    resized(sets, sizes)
}

/// A ReplicaSet's part of `left`: what keeps its share of the whole the same as when `before` replicas were allowed.
fn share_of(size: i32, allowed: i32, before: Option<i32>, left: i32) -> i32 {
    let before = before.filter(|before| *before > 0).unwrap_or(allowed).max(1);
    let fair = (f64::from(size) * f64::from(allowed) / f64::from(before)).round() as i32 - size;
    if left > 0 { fair.clamp(0, left) } else { fair.clamp(left, 0).max(-size) }
}

fn oldest_first(sets: &[Arc<ReplicaSet>]) -> Vec<Arc<ReplicaSet>> {
    let mut sets = sets.to_vec();
    sets.sort_by_key(|set| (set.metadata.creation_timestamp.clone(), set.metadata.name.clone()));
    sets
}

fn resized(sets: Vec<Arc<ReplicaSet>>, sizes: Vec<i32>) -> Vec<Resize> {
    let changes = sets.into_iter().zip(sizes).filter(|(set, size)| asked(set) != *size);
    changes.map(|(replica_set, replicas)| Resize { replica_set, replicas }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::{DeploymentStrategy, ReplicaSetSpec, ReplicaSetStatus, RollingUpdateDeployment};

    fn deployment(replicas: i32, surge: IntOrString, unavailable: IntOrString) -> Deployment {
        let rolling = RollingUpdateDeployment { max_surge: Some(surge), max_unavailable: Some(unavailable) };
        let strategy = DeploymentStrategy { rolling_update: Some(rolling), type_: None };
        let spec = DeploymentSpec { replicas: Some(replicas), strategy: Some(strategy), ..Default::default() };
        Deployment { spec: Some(spec), ..Default::default() }
    }

    fn set(name: &str, replicas: i32, available: i32) -> Arc<ReplicaSet> {
        let mut set = ReplicaSet::default();
        set.metadata.name = Some(name.into());
        set.spec = Some(ReplicaSetSpec { replicas: Some(replicas), ..Default::default() });
        set.status = Some(ReplicaSetStatus { available_replicas: Some(available), ..Default::default() });
        Arc::new(set)
    }

    fn names(changes: &[Resize]) -> Vec<(&str, i32)> {
        let name = |change: &Resize| change.replica_set.metadata.name.as_deref().map(str::len);
        changes
            .iter()
            .map(|change| {
                assert!(name(change).is_some());
                (change.replica_set.metadata.name.as_deref().unwrap(), change.replicas)
            })
            .collect()
    }

    #[test]
    fn percentages_round_up_for_surge_and_down_for_unavailable() {
        let quarter = || IntOrString::String("25%".into());
        assert_eq!(Fences::of(&deployment(3, quarter(), quarter())), Fences { surge: 1, unavailable: 0 });
        assert_eq!(Fences::of(&deployment(10, quarter(), quarter())), Fences { surge: 3, unavailable: 2 });
        let none = || IntOrString::Int(0);
        assert_eq!(Fences::of(&deployment(2, none(), none())), Fences { surge: 0, unavailable: 1 });
    }

    #[test]
    fn grows_the_new_one_within_surge_then_shrinks_the_old_one() {
        let wanted = deployment(3, IntOrString::Int(1), IntOrString::Int(0));
        assert_eq!(names(&roll(&wanted, &set("new", 0, 0), &[set("old", 3, 3)])), [("new", 1)]);
        assert_eq!(names(&roll(&wanted, &set("new", 1, 0), &[set("old", 3, 3)])), []);
        assert_eq!(names(&roll(&wanted, &set("new", 1, 1), &[set("old", 3, 3)])), [("old", 2)]);
        assert_eq!(names(&roll(&wanted, &set("new", 3, 3), &[set("old", 1, 1)])), [("old", 0)]);
    }

    #[test]
    fn old_replicas_that_do_not_answer_go_first() {
        let wanted = deployment(3, IntOrString::Int(1), IntOrString::Int(1));
        let old = [set("good", 2, 2), set("sick", 1, 0)];
        assert_eq!(names(&roll(&wanted, &set("new", 1, 0), &old)), [("sick", 0)]);
    }

    #[test]
    fn availability_never_falls_below_the_fence() {
        let wanted = deployment(4, IntOrString::Int(1), IntOrString::Int(1));
        for new_available in 0..=2 {
            let changes = roll(&wanted, &set("new", 2, new_available), &[set("old", 3, 3)]);
            let old = changes.first().map_or(3, |change| change.replicas);
            assert!(new_available + old >= 3, "{new_available} new and {old} old");
        }
    }

    #[test]
    fn a_rescale_in_the_middle_of_a_rollout_is_shared() {
        let wanted = deployment(10, IntOrString::Int(2), IntOrString::Int(2));
        let marked = |name: &str, replicas| {
            let mut set = set(name, replicas, replicas).as_ref().clone();
            let annotations = [("deployment.kubernetes.io/max-replicas".to_owned(), "7".to_owned())];
            set.metadata.annotations = Some(annotations.into());
            Arc::new(set)
        };
        let changes = rescale(&wanted, Some(&marked("new", 2)), &[marked("old", 5)]);
        let total: i32 = changes.iter().map(|change| change.replicas).sum();
        assert_eq!(total, 12);
        assert_eq!(names(&changes), [("old", 9), ("new", 3)]);
    }

    #[test]
    fn a_lone_replica_set_takes_the_whole_rescale() {
        let wanted = deployment(5, IntOrString::Int(1), IntOrString::Int(1));
        assert_eq!(names(&rescale(&wanted, Some(&set("new", 2, 2)), &[set("old", 0, 0)])), [("new", 5)]);
        assert_eq!(names(&rescale(&wanted, Some(&set("new", 0, 0)), &[])), [("new", 5)]);
    }
}
