//! The rules against a model of the world: crashes between every two writes, recorded runs of Flagger, random inputs.

#![allow(clippy::unwrap_used)]

mod crashes;
mod golden;
mod random;

mod scenarios;
mod takeover;
mod world;
