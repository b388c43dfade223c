//! Drydock's tests against its public face: one binary, one module per part.

mod apiserver;
