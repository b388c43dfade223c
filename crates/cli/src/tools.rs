//! Small stand-ins for the programs that load test commands expect on their PATH.
//!
//! The `seaway` binary answers to these names when it is started through a link called like them, so a machine needs
//! nothing but `seaway`. They cover what canary hooks use, over plain HTTP/1.1, and refuse the rest by name.

pub mod curl;
pub mod hey;
mod web;

use std::ffi::OsString;
use std::process::ExitCode;

/// A program the binary can play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// The load generator.
    Hey,
    /// The HTTP client.
    Curl,
}

impl Tool {
    /// The tool of this file name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "hey" => Some(Self::Hey),
            "curl" => Some(Self::Curl),
            _ => None,
        }
    }

    /// Plays the program; `args` are without the program's name.
    pub fn run(self, args: Vec<OsString>) -> ExitCode {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                eprintln!("cannot start: {error}");
                return ExitCode::FAILURE;
            }
        };
        runtime.block_on(async {
            match self {
                Self::Hey => hey::main(args).await,
                Self::Curl => curl::main(args).await,
            }
        })
    }
}
