//! Whose an object is, asked before anything is written to it.
//!
//! The names of primaries, variant Services and autoscalers are derived, so somebody else's object may have one of them.
//! What this Canary (by uid) owns is ours, whoever made it: Flagger's objects too. What an earlier Canary of the same name
//! owns is about to be collected, and building on it would lose it again. Everything else is left alone.
//!
//! The apex Service is different: a user's own is taken over on purpose, see [`super::services`].

use seaway_api::Canary;
use serde_json::Value;

use crate::change::Kind;
use crate::kinds::{DEPLOYMENT, HPA, SERVICE};
use crate::object::{has_canary_owner, is_owned_by, list, text};
use crate::refusal::Refusal;
use crate::world::World;

/// What an object is needed for.
#[derive(Clone, Copy)]
pub(crate) struct Role {
    kind: Kind,
    /// Why its name cannot be somebody else's, or what to do about it.
    need: &'static str,
    /// What has to differ between two Canaries so that both can have one.
    choice: &'static str,
    /// The field of the Canary that its name comes from.
    field: &'static str,
}

/// An object with a name that a Canary needs and does not own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The field of the Canary that the name comes from.
    pub field: &'static str,
    /// Whose it is, and what helps.
    pub refusal: Refusal,
}

/// The workload that serves users.
pub(crate) const PRIMARY: Role = Role {
    kind: DEPLOYMENT,
    need: "its name is needed for the primary",
    choice: "target",
    field: "spec.targetRef.name",
};
/// One of the Services between which a route splits.
pub(crate) const VARIANT: Role =
    Role { kind: SERVICE, need: "or set spec.service.name", choice: "spec.service.name", field: "spec.service.name" };
/// The Service that users know.
pub(crate) const APEX: Role = VARIANT;
/// The autoscaler of the primary.
pub(crate) const AUTOSCALER: Role = Role {
    kind: HPA,
    need: "its name is needed for the primary's autoscaler",
    choice: "autoscaler",
    field: "spec.autoscalerRef.name",
};

/// An object that exists is this Canary's, so it may be written.
pub(crate) fn ours(canary: &Canary, role: Role, object: &Value) -> Result<(), Refusal> {
    if is_owned_by(object, canary) {
        return Ok(());
    }
    let what = format!("{} {}.{}", role.kind.kind, text(object, "/metadata/name"), canary.namespace());
    let owner = list(object, "/metadata/ownerReferences").iter().find(|owner| text(owner, "/kind") == "Canary");
    Err(match owner.filter(|_| has_canary_owner(object)).map(|owner| text(owner, "/name")) {
        None => Refusal::user(format!("{what} exists and no Canary owns it; rename or delete it, {}", role.need)),
        Some(owner) if owner == canary.name() => Refusal::cluster(format!(
            "{what} belongs to an earlier Canary {} that was deleted; waiting until it is gone",
            canary.key()
        )),
        Some(owner) => Refusal::user(format!(
            "{what} belongs to Canary {owner}.{}; delete that Canary, or give one of them another {}",
            canary.namespace(),
            role.choice
        )),
    })
}

/// An apex Service may be a user's, but not another Canary's.
pub(crate) fn not_anothers(canary: &Canary, apex: &Value) -> Result<(), Refusal> {
    if has_canary_owner(apex) { ours(canary, APEX, apex) } else { Ok(()) }
}

/// Every object that has a name this Canary needs and is not its own: why nothing can be written for it.
///
/// To be asked before the first write of a round. [`Blame::User`](crate::refusal::Blame::User): the Canary cannot be
/// accepted until somebody acts, and the text says how. [`Blame::Cluster`](crate::refusal::Blame::Cluster): an earlier
/// Canary's object is being collected; look again soon. A Canary that is being deleted need not ask.
pub fn foreign_objects(canary: &Canary, world: &dyn World) -> Vec<Foreign> {
    let autoscaler = canary.spec.autoscaler_ref.as_ref().map(|autoscaler| (AUTOSCALER, autoscaler.primary_name()));
    let needed =
        [(PRIMARY, canary.primary_workload()), (VARIANT, canary.canary_service()), (VARIANT, canary.primary_service())];
    let refused = |(role, name): (Role, String)| {
        let object = world.get(role.kind, canary.namespace(), &name)?;
        let refusal = ours(canary, role, &object).err()?;
        Some(Foreign { field: role.field, refusal })
    };
    let apex = world.get(SERVICE, canary.namespace(), canary.apex_name());
    let apex = apex.and_then(|apex| not_anothers(canary, &apex).err());
    let apex = apex.map(|refusal| Foreign { field: APEX.field, refusal });
    needed.into_iter().chain(autoscaler).filter_map(refused).chain(apex).collect()
}
