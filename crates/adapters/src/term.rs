//! Which term of leadership a rollout is in: what refuses the late writes of the leader before.
//!
//! A leader that stood still may wake up with a request already on its way. Its preconditions refuse it if the object has
//! changed since, so the next leader changes the objects that could do harm before it writes anything of its own: the
//! Canary, its route and its primary. (A target is only ever scaled, and that is tested by its generation, which every
//! reason to decide otherwise changes too.)

use std::collections::BTreeMap;

use seaway_api::Canary;
use serde_json::Value;

use crate::change::Change;
use crate::kinds::{CANARY, DEPLOYMENT};
use crate::object::{Patch, is_controlled_by};
use crate::routers::Router;
use crate::world::World;

/// Label with the name of the term in which an object was last taken over. No annotation: those of a Deployment are copied
/// to all its ReplicaSets.
pub const TERM: &str = "seaway.dev/term";

/// The changes after which nothing that was decided in an earlier term can be written any more.
pub fn begin(canary: &Canary, stored: &Value, router: &dyn Router, world: &dyn World, term: &str) -> Vec<Change> {
    let note = BTreeMap::from([(TERM.to_owned(), term.to_owned())]);
    let mark = |kind, seen: &Value| {
        let mut patch = Patch::of(kind, seen);
        patch.merge("/metadata/labels", &note);
        patch.finish()
    };
    let routes = router.kinds().iter().map(|kind| (*kind, canary.apex_name().to_owned()));
    let owned = routes.chain([(DEPLOYMENT, canary.primary_workload())]);
    let owned = owned.filter_map(|(kind, name)| {
        let seen = world.get(kind, canary.namespace(), &name).filter(|seen| is_controlled_by(seen, canary))?;
        mark(kind, &seen)
    });
    mark(CANARY, stored).into_iter().chain(owned).collect()
}
