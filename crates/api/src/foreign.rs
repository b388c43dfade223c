//! Objects of other projects, as far as Seaway reads or writes them.
//!
//! Every struct keeps the fields it does not know (`other`), so that reading and writing one loses nothing.

pub mod gateway;
