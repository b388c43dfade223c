//! The bug zoo, as far as it lives between decisions and the API server: see the module of this name in `seaway_core`.

/// Z2, Flagger's order (`Promote`, then the phase): effects run before the status that intends them is stored. After a
/// crash in between nobody knows that the primary has a new version.
pub(crate) const ACTS_BEFORE_ITS_INTENT: bool = cfg!(feature = "zoo-z02-promote-before-intent");

/// Z8, Flagger: after a change of the interval the old job and the new one work on one canary at once.
pub(crate) const STARTS_A_SECOND_ROUND: bool = cfg!(feature = "zoo-z08-second-round");

/// Z13, Argo Rollouts #2117, Flagger #1613: one that can no longer renew its Lease goes on beside the new leader.
pub(crate) const LEADS_FOR_EVER: bool = cfg!(feature = "zoo-z13-two-leaders");

/// Z14, Argo Rollouts #4073: what was decided on an old version of an object is written over the newer one.
pub(crate) const WRITES_WITHOUT_A_GUARD: bool = cfg!(feature = "zoo-z14-stale-write");

const ANY: bool = ACTS_BEFORE_ITS_INTENT || STARTS_A_SECOND_ROUND || LEADS_FOR_EVER || WRITES_WITHOUT_A_GUARD;

const _: () = assert!(cfg!(debug_assertions) || !ANY, "bugs of the zoo are for tests, not for releases");
