//! Seaway's rules: when traffic moves, when a version is promoted and when it is rolled back.
//!
//! Pure functions over plain data. There is no I/O, no clock, no environment and no randomness here; the operator,
//! the simulator and the tests drive the same [`rollout::decide`]. Read [`invariants`] to trust the rest.
//!
//! | module | what it holds |
//! |---|---|
//! | [`plan`] | a spec whose meaning is settled |
//! | [`observed`], [`question`] | what a round saw; what it asks of the outside |
//! | [`rollout`] | the phase table: plan, status and observation give a [`effect::Decision`] |
//! | [`intent`], [`status`] | what should be; how a status changes |
//! | [`analysis`], [`builtin`], [`template`] | verdicts, Flagger's queries, the templates they are |
//! | [`invariants`] | what must never happen, as named checks |
//! | [`revision`], [`split`], [`effect`] | the words the others speak |

pub mod analysis;
pub mod builtin;
pub mod effect;
pub mod intent;
pub mod invariants;
pub mod observed;
pub mod plan;
pub mod question;
pub mod revision;
pub mod rollout;
pub mod split;
pub mod status;
pub mod template;
mod zoo;
