//! Seaway's rules: when traffic moves, when a version is promoted and when it is rolled back.
//!
//! Pure functions over plain data. There is no I/O, no clock, no environment and no randomness here; the operator,
//! the simulator and the tests drive the same [`effect::Decision`]s. Read `invariants` to trust the rest.

pub mod effect;
pub mod observed;
pub mod question;
pub mod split;
