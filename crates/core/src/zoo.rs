//! The bug zoo: bugs that canary operators have had in the field, kept alive behind cargo features.
//!
//! A test of the tests. Each constant is one bug, and `false` unless its feature is on; the rule beside which it stands
//! then has the bug, and the test that `tools/zoo.tsv` names must fail (`make zoo`). Features are never on by default, and
//! with one of them no release can be built. `Z1` to `Z21` are numbered across all crates.

/// Z1, Flagger #1898: the primary does not come up with the promoted revision, and the rollback is the usual one: all
/// traffic to that primary, and the healthy canary goes.
pub(crate) const ROLLS_BACK_TO_A_BROKEN_PRIMARY: bool = cfg!(feature = "zoo-z01-rollback-to-broken-primary");

/// Z3, Flagger's order (route, pods, status): a rollback begins before it is stored. Until it is, the status still wants
/// the canary's weight, and the next round or the next process gives it back.
pub(crate) const ROLLS_BACK_WITHOUT_INTENT: bool = cfg!(feature = "zoo-z03-rollback-without-intent");

/// Z5, Flagger #874: while a gate is closed nobody looks after the route, and half of all users reach a canary without
/// pods.
pub(crate) const LEAVES_THE_ROUTE_AT_A_GATE: bool = cfg!(feature = "zoo-z05-route-left-at-closed-gate");

/// Z6, Flagger reads the target once to compare and once more to copy: what was pushed in between is promoted unseen.
pub(crate) const PROMOTES_WHAT_IT_FINDS: bool = cfg!(feature = "zoo-z06-promotes-what-it-finds");

/// Z9, Flagger #1550, #686: the deletion hands everything to a target that still sleeps.
pub(crate) const REVERTS_TO_NO_PODS: bool = cfg!(feature = "zoo-z09-revert-to-no-pods");

/// Z10, Argo Rollouts #2235, #3681: pods go before their traffic was seen to be gone.
pub(crate) const SCALES_DOWN_FIRST: bool = cfg!(feature = "zoo-z10-scale-down-first");

/// Z11, Argo Rollouts #3372, #3020: a new revision midway sends everything to the stable side without asking how much of
/// it is left. Ours is never made smaller by a rollout, but it may have died of something else.
pub(crate) const TRUSTS_THE_PRIMARY: bool = cfg!(feature = "zoo-z11-restart-onto-dead-primary");

/// Z15, Flagger #989: what cannot be read for a moment is taken for a change, and a canary starts that nobody asked for.
pub(crate) const TAKES_SILENCE_FOR_A_CHANGE: bool = cfg!(feature = "zoo-z15-read-error-is-a-change");

/// Z16, Flagger #1581, PipeCD: a query without a result passes.
pub(crate) const MISSING_DATA_PASSES: bool = cfg!(feature = "zoo-z16-missing-data-passes");

/// Z17, Flagger's phase `Failed`: a new revision is stored as seen before anything is done about it, and if the round ends
/// there nothing ever is.
pub(crate) const STAMPS_BEFORE_ACTING: bool = cfg!(feature = "zoo-z17-swallows-new-revision");

/// Z18, Flagger #1591: a primary that exceeds its deadline in a promotion is waited for, for ever.
pub(crate) const WAITS_FOR_A_DEAD_PRIMARY: bool = cfg!(feature = "zoo-z18-stuck-in-promoting");

/// Z19, Flagger: nobody tells the rollout that its canary is being deleted, so it takes back what the deletion does.
pub(crate) const ROLLS_ON_WHILE_REVERTING: bool = cfg!(feature = "zoo-z19-rolls-on-while-reverting");

/// Z21, every operator that writes routes: a route that serves users leads to a Service that the data plane has not heard of.
/// Envoy answers 503 until it has.
pub(crate) const LEADS_WHERE_NOBODY_WAITS: bool = cfg!(feature = "zoo-z21-leads-where-nobody-waits");

const ANY: bool = ROLLS_BACK_TO_A_BROKEN_PRIMARY
    || ROLLS_BACK_WITHOUT_INTENT
    || LEAVES_THE_ROUTE_AT_A_GATE
    || PROMOTES_WHAT_IT_FINDS
    || REVERTS_TO_NO_PODS
    || SCALES_DOWN_FIRST
    || TRUSTS_THE_PRIMARY
    || TAKES_SILENCE_FOR_A_CHANGE
    || MISSING_DATA_PASSES
    || STAMPS_BEFORE_ACTING
    || WAITS_FOR_A_DEAD_PRIMARY
    || ROLLS_ON_WHILE_REVERTING
    || LEADS_WHERE_NOBODY_WAITS;

const _: () = assert!(cfg!(debug_assertions) || !ANY, "bugs of the zoo are for tests, not for releases");
