//! The commands of `seaway`: what can be typed, and which function each line leads to.

pub mod demo;
pub mod drydock;
pub mod generate;
pub mod lint;
pub mod loadtester;
pub mod operator;
pub mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::goflags;

/// Progressive delivery for Kubernetes.
///
/// A new version reaches users a little at a time, is judged on real traffic, and is promoted or rolled back without
/// anybody watching. Runs in a cluster as a drop-in for Flagger, or without any cluster as a demo.
#[derive(Parser, Debug)]
#[command(name = "seaway", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  seaway demo                                  a promotion and a rollback, no cluster needed
  seaway watch -A                              all canaries of a cluster, live
  seaway lint canary.yaml                      find mistakes before the cluster does
  seaway drydock --with-operator               a cluster in this process, for kubectl
  seaway operator -mesh-provider gatewayapi:v1 run in a cluster, with Flagger's flags
  seaway generate crds | kubectl apply -f -    install the custom resources";

#[derive(Subcommand, Debug)]
enum Command {
    Demo(demo::Options),
    Drydock(drydock::Options),
    Watch(watch::Options),
    Operator(Box<operator::Flags>),
    Loadtester(loadtester::Flags),
    Lint(lint::Options),
    Generate(generate::Options),
}

/// Parses `args` (with the program's name in front) and runs the command.
pub fn run(args: Vec<OsString>) -> ExitCode {
    let matches = match Cli::command().try_get_matches_from(readable(args)) {
        Ok(matches) => matches,
        Err(error) => {
            // Help goes to stdout and is a success, a mistake goes to stderr and is none; clap knows which it is.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let result = Cli::from_arg_matches(&matches).map_err(anyhow::Error::from).and_then(|cli| dispatch(cli, &matches));
    result.unwrap_or_else(|error| {
        crate::output::error(&error);
        ExitCode::FAILURE
    })
}

/// Rewrites Go's flags of the commands that are drop-ins for Go programs.
fn readable(args: Vec<OsString>) -> Vec<OsString> {
    let command = Cli::command();
    let name = args.get(1).and_then(|arg| arg.to_str());
    let drop_in = name.filter(|name| ["operator", "loadtester"].contains(name));
    let Some(command) = drop_in.and_then(|name| command.find_subcommand(name)) else { return args };
    let mut args = args.into_iter();
    let mut out: Vec<OsString> = args.by_ref().take(2).collect();
    out.extend(goflags::normalise(command, args));
    out
}

fn dispatch(cli: Cli, matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let given = |name: &str| matches.subcommand_matches(name).cloned().unwrap_or_default();
    match cli.command {
        Command::Lint(options) => lint::run(&options),
        Command::Generate(options) => generate::run(&options, Cli::command()),
        Command::Demo(options) => runtime()?.block_on(demo::run(options)),
        Command::Drydock(options) => runtime()?.block_on(drydock::run(options)),
        Command::Watch(options) => runtime()?.block_on(watch::run(options)),
        Command::Operator(flags) => runtime()?.block_on(operator::run(*flags, &given("operator"))),
        Command::Loadtester(flags) => runtime()?.block_on(loadtester::run(flags)),
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        let command = Cli::command();
        for sub in command.get_subcommands() {
            assert!(sub.get_after_help().is_some(), "{} has no examples", sub.get_name());
        }
    }
}
