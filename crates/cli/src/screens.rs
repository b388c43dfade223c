//! Live terminal screens: pure functions from a model to a frame.

pub mod demo;
