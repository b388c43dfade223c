//! From effects to changes: the one place that knows which target and router function an effect means.
//!
//! An effect that is already true gives no changes. `Ask` and `Finalizer` are the operator's own business and give none.
//! Data of ConfigMaps and Secrets is not cached: [`needs`] says which objects to fetch, [`changes`] is handed them.

use std::collections::BTreeSet;
use std::sync::Arc;

use seaway_api::Canary;
use seaway_api::canary::primary_name;
use seaway_core::effect::Effect;
use seaway_core::observed::Revision;
use seaway_core::revision::flagger_id;
use serde_json::Value;

use crate::change::{Change, ObjectRef};
use crate::kinds::{DEPLOYMENT, HPA};
use crate::object::{is_owned_by, text, uid};
use crate::refusal::Refusal;
use crate::routers::{Router, Subject};
use crate::targets::services::Ports;
use crate::targets::{Conventions, config, deployment, hpa, ownership, previous, services};
use crate::world::{Fetched, World};

/// What effects are turned into changes with.
#[derive(Clone, Copy)]
pub struct EffectContext<'a> {
    /// The Canary, as it was observed.
    pub canary: &'a Canary,
    /// Cached objects.
    pub world: &'a dyn World,
    /// The router of this Canary.
    pub router: &'a dyn Router,
    /// How this installation names and copies things.
    pub conventions: &'a Conventions,
    /// Whole configs that [`needs`] asked for.
    pub fetched: &'a Fetched,
}

impl EffectContext<'_> {
    fn target(&self) -> Result<Arc<Value>, Refusal> {
        let (namespace, name) = (self.canary.namespace(), &self.canary.spec.target_ref.name);
        self.world.get(DEPLOYMENT, namespace, name).ok_or_else(|| deployment::not_found(namespace, name))
    }

    fn primary(&self) -> Option<Arc<Value>> {
        self.world.get(DEPLOYMENT, self.canary.namespace(), &self.canary.primary_workload())
    }

    fn autoscaler(&self) -> Option<Arc<Value>> {
        let autoscaler = self.canary.spec.autoscaler_ref.as_ref()?;
        self.world.get(HPA, self.canary.namespace(), &autoscaler.name)
    }

    /// The target, if it still is what was decided on.
    fn target_at(&self, revision: &Revision) -> Result<Arc<Value>, Refusal> {
        let target = self.target()?;
        if config::revision(&target, self.world, self.conventions)? == *revision {
            return Ok(target);
        }
        let key = self.canary.target_key();
        Err(Refusal::cluster(format!("{key} changed since it was looked at; it is looked at again")))
    }
}

/// The whole ConfigMaps and Secrets that an effect copies; those that are already right are not among them.
pub fn needs(effect: &Effect, context: &EffectContext<'_>) -> Vec<ObjectRef> {
    match effect {
        Effect::CreatePrimary(revision) if context.primary().is_none() => outdated_copies(revision, context),
        Effect::Promote { revision, .. } => outdated_copies(revision, context),
        Effect::StorePrevious(revision) => previous::store_needs(context.canary, context.world, revision),
        Effect::KeepCurrent(revision) => previous::keep_needs(context.canary, context.world, revision),
        Effect::RestorePrevious(revision) => previous::restore_needs(context.canary, context.world, revision),
        _ => Vec::new(),
    }
}

/// The configs of a revision whose primary copies differ, or would not outlive another Canary that shares them.
fn outdated_copies(revision: &Revision, context: &EffectContext<'_>) -> Vec<ObjectRef> {
    let namespace = context.canary.namespace();
    let outdated = revision.configs.iter().filter_map(|(key, checksum)| {
        let original = config::object_of(key, namespace)?;
        let copy = context.world.get(original.kind, namespace, &primary_name(&original.name));
        let right = |copy: Arc<Value>| text(&copy, "/checksum") == checksum && is_owned_by(&copy, context.canary);
        (!copy.is_some_and(right)).then_some(original)
    });
    outdated.collect()
}

/// The changes that make an effect true, in order.
pub fn changes(effect: &Effect, context: &EffectContext<'_>) -> Result<Vec<Change>, Refusal> {
    let EffectContext { canary, world, router, conventions, fetched } = *context;
    match effect {
        // Without a target its Services stay as they are: upkeep must not stop what comes after it.
        Effect::VariantServices => context
            .target()
            .map_or_else(|_| Ok(Vec::new()), |target| services::variants(canary, &target, world, conventions)),
        Effect::CreatePrimary(revision) => create_primary(revision, context),
        Effect::PrimaryAutoscaler { refresh } => hpa::primary(canary, world, *refresh),
        Effect::ApexToPrimary => apex_to_primary(context, Ports::OfTheSpec),
        Effect::ApexSelectsPrimary => apex_to_primary(context, Ports::AsTheyAre),
        Effect::SetSplit(split) => router.write(&Subject::of(canary), world, split),
        Effect::Announce(next) => router.announce(&Subject::of(canary), world, *next),
        Effect::ScaleUp => {
            let target = context.target()?;
            let (primary, autoscaler) = (context.primary(), context.autoscaler());
            let size = deployment::size_for_analysis(canary, &target, primary.as_deref(), autoscaler.as_deref());
            Ok(deployment::scale(&target, size).into_iter().collect())
        }
        // A target that was deleted runs no pods.
        Effect::ScaleToZero => {
            Ok(context.target().ok().and_then(|target| deployment::scale(&target, 0)).into_iter().collect())
        }
        Effect::StorePrevious(incoming) => previous::store(canary, world, fetched, conventions, incoming),
        Effect::Promote { revision, id } => promote(revision, id, context),
        Effect::KeepCurrent(revision) => previous::keep(canary, world, fetched, conventions, revision),
        Effect::RestorePrevious(revision) => previous::restore(canary, world, fetched, conventions, revision),
        Effect::ScaleToPrimary => {
            let target = context.target()?;
            let (primary, autoscaler) = (context.primary(), context.autoscaler());
            let size = deployment::size_of_primary(canary, &target, primary.as_deref(), autoscaler.as_deref());
            Ok(deployment::scale(&target, size).into_iter().collect())
        }
        Effect::ApexToTarget => services::apex_to_target(canary, &*context.target()?, world, conventions),
        Effect::RouteToApex => router.lead_to_apex(&Subject::of(canary), world),
        Effect::Release => {
            let mut changes = router.release(&Subject::of(canary), world)?;
            changes.extend(services::release_apex(canary, &*context.target()?, world, conventions)?);
            Ok(changes)
        }
        Effect::Ask(_) | Effect::Finalizer(_) => Ok(Vec::new()),
    }
}

/// Without a target its Service stays as it is, like the others.
fn apex_to_primary(context: &EffectContext<'_>, ports: Ports) -> Result<Vec<Change>, Refusal> {
    let EffectContext { canary, world, conventions, .. } = *context;
    let Ok(target) = context.target() else { return Ok(Vec::new()) };
    services::apex_to_primary(canary, &target, world, conventions, ports)
}

fn create_primary(revision: &Revision, context: &EffectContext<'_>) -> Result<Vec<Change>, Refusal> {
    if let Some(primary) = context.primary() {
        return ownership::ours(context.canary, ownership::PRIMARY, &primary).map(|()| Vec::new());
    }
    let in_context = |refusal: Refusal| refusal.within("createPrimaryDeployment failed");
    let target = context.target_at(revision).map_err(in_context)?;
    let mut changes = copies(revision, context)?;
    let tracked = revision.configs.keys().cloned().collect();
    let id = flagger_id(uid(context.canary), revision);
    let primary = deployment::create_primary(context.canary, &target, &tracked, context.conventions, &id);
    changes.push(primary.map_err(in_context)?);
    Ok(changes)
}

fn promote(revision: &Revision, id: &str, context: &EffectContext<'_>) -> Result<Vec<Change>, Refusal> {
    let target = context.target_at(revision)?;
    let (namespace, name) = (context.canary.namespace(), context.canary.primary_workload());
    let primary = context.primary().ok_or_else(|| deployment::not_found(namespace, &name))?;
    ownership::ours(context.canary, ownership::PRIMARY, &primary)?;
    let mut changes = copies(revision, context)?;
    let tracked: BTreeSet<String> = revision.configs.keys().cloned().collect();
    changes.extend(deployment::promote(context.canary, &target, &primary, &tracked, context.conventions, id)?);
    Ok(changes)
}

/// Brings the primary's copies to a revision. What was fetched must still be what was analysed.
fn copies(revision: &Revision, context: &EffectContext<'_>) -> Result<Vec<Change>, Refusal> {
    let canary = context.canary;
    let mut changes = Vec::new();
    for original in outdated_copies(revision, context) {
        let source = context.fetched.get(&original).ok_or_else(|| previous::missing(&original))?;
        let wanted = revision.configs.get(&config::key(original.kind, &original.name));
        if wanted != Some(&config::checksum(source)) {
            return Err(previous::changed(&original));
        }
        let name = primary_name(&original.name);
        let seen = context.world.get(original.kind, canary.namespace(), &name);
        changes.extend(config::copy(canary, source, original.kind, &name, seen.as_deref(), context.conventions)?);
    }
    Ok(changes)
}

#[cfg(test)]
mod tests;
