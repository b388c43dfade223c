//! Drydock's tests against its public face: one binary, one module per part.

mod apiserver;
mod cluster;
mod controllers;
mod gateway;
mod prometheus;
mod yard;
