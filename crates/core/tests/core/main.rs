//! The rules against a model of the world: crashes between every two writes, recorded runs of Flagger, random inputs.

mod crashes;
mod golden;
mod random;

mod scenarios;
mod world;
