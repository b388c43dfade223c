//! The bug zoo, as far as it lives in routers and targets: see the module of this name in `seaway_core`.

/// Z4, Flagger: `replicas == int32p(0)` compares pointers, and half of one pod rounds down to none, so a workload without
/// a single pod is ready.
pub(crate) const ZERO_IS_READY: bool = cfg!(feature = "zoo-z04-zero-is-ready");

/// Z7, Flagger: any drift has the whole route written as on its first day, 100 to 0, in the middle of an analysis.
pub(crate) const DRIFT_RESETS_THE_SPLIT: bool = cfg!(feature = "zoo-z07-drift-resets-split");

/// Z12, Argo Rollouts #4390: nobody has taken up the route, nobody says so, and that is good enough for scaling down.
pub(crate) const SILENCE_IS_SETTLED: bool = cfg!(feature = "zoo-z12-router-did-nothing");

/// Z20, a round trip through a closed struct (KEDA, the `gateway-api` crate): what the struct does not know is gone.
pub(crate) const WRITES_WHAT_IT_KNOWS: bool = cfg!(feature = "zoo-z20-typed-round-trip");

const ANY: bool = ZERO_IS_READY || DRIFT_RESETS_THE_SPLIT || SILENCE_IS_SETTLED || WRITES_WHAT_IT_KNOWS;

const _: () = assert!(cfg!(debug_assertions) || !ANY, "bugs of the zoo are for tests, not for releases");
