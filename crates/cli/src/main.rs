//! The door into the one binary; everything is in the library beside it.

use std::process::ExitCode;

/// The operator parses and drops a great many small objects; this allocator takes half the time of the system's for that,
/// and it is the same one where the system's is musl's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    seaway_cli::run(std::env::args_os().collect())
}
