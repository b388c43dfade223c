//! The rules against a model of the world: crashes and refusals at every write, losses at every moment,
//! recorded runs of Flagger, random inputs.

#![allow(clippy::unwrap_used)]

mod crashes;
mod field_bugs;
mod golden;
mod losses;
mod random;
mod rules;
mod scenarios;
mod takeover;
mod told;
mod world;
