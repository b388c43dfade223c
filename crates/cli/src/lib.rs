//! The one binary `seaway`, as a library: commands, terminal screens, the load tester, the demo.
//!
//! This is the only place that joins a driver with drydock. `main.rs` is a thin door into [`run`].

pub mod commands;
pub mod demo;
pub mod glue;
pub mod goflags;
mod leftovers;
mod listen;
pub mod loadtester;
mod logging;
mod manifests;
mod output;
pub mod screens;
mod signals;
pub mod tools;
pub mod watch;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use tools::Tool;

/// Runs the program that `args` name, with the program's own name in front.
///
/// The binary answers to several names: started as `hey` or `curl` it is that tool, started as `flagger` or
/// `loadtester` (an image that is swapped keeps its command line) it is the command that replaces it.
pub fn run(args: Vec<OsString>) -> ExitCode {
    let name = args.first().and_then(|program| Path::new(program).file_name()).and_then(|name| name.to_str());
    let name = name.unwrap_or_default().to_owned();
    if let Some(tool) = Tool::named(&name) {
        return tool.run(args.into_iter().skip(1).collect());
    }
    let command = match name.as_str() {
        "flagger" => Some("operator"),
        "loadtester" => Some("loadtester"),
        _ => None,
    };
    let mut words = args.into_iter();
    let mut line: Vec<OsString> = words.by_ref().take(1).collect();
    line.extend(command.map(OsString::from));
    line.extend(words);
    commands::run(line)
}
