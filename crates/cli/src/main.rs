//! The door into the one binary; everything is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    seaway_cli::run(std::env::args_os().collect())
}
