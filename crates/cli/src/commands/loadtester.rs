//! `seaway loadtester`: the load tester by itself, with Flagger's flags.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Command, FromArgMatches};
use regex::Regex;

use crate::goflags;
use crate::listen;
use crate::loadtester::{Offer, Options, Toolbox, router};
use crate::logging::{self, Encoding};
use crate::signals;

/// Run the load tester: gates, smoke tests and load for canary hooks.
///
/// A drop-in for Flagger's load tester, with its flags (one dash or two). Commands run with the `hey` and `curl` of the
/// machine, or with small ones of our own where it has none.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  seaway loadtester -port=8080 -log-level=info
  curl -d '{\"name\":\"app\",\"namespace\":\"test\"}' localhost:8080/gate/open
  curl -H 'Content-Type: application/json' \\
    -d '{\"name\":\"app\",\"namespace\":\"test\",\"metadata\":{\"type\":\"bash\",\"cmd\":\"true\"}}' localhost:8080/")]
pub struct Flags {
    /// Port to listen on.
    #[arg(long, default_value_t = 9090)]
    port: u16,
    /// Most detailed level that is logged: debug, info, warn, error.
    #[arg(long, default_value = "debug")]
    log_level: String,
    /// Time limit of one command.
    #[arg(long, default_value = "1h")]
    timeout: String,
    /// Serve only canaries of namespaces that match this regular expression.
    #[arg(long, default_value = "")]
    namespace_regexp: String,
    /// Encoding of the logs: json or console.
    #[arg(long, default_value = "json")]
    zap_encoding: Encoding,
    /// Accepted, has no meaning here.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    zap_replace_globals: Option<String>,
}

impl Flags {
    /// Reads flags in Go's spelling, without the program's name.
    pub fn parse(args: impl IntoIterator<Item = OsString>) -> anyhow::Result<Self> {
        let command = Self::augment_args(Command::new("loadtester").no_binary_name(true));
        let args = goflags::normalise(&command, args);
        Ok(Self::from_arg_matches(&command.try_get_matches_from(args)?)?)
    }

    /// The port to listen on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What the flags mean; proxy, clock and tools are not theirs to say.
    pub fn options(&self) -> anyhow::Result<Options> {
        let namespaces = match self.namespace_regexp.as_str() {
            "" => None,
            text => Some(Regex::new(text).context("-namespace-regexp is no regular expression")?),
        };
        let time_limit =
            seaway_api::duration::parse(&self.timeout).context("-timeout is no duration, write 30m or 1h")?;
        Ok(Options { time_limit, namespaces, ..Options::default() })
    }
}

/// Runs until a signal.
pub async fn run(flags: Flags) -> anyhow::Result<ExitCode> {
    logging::start(flags.zap_encoding, &flags.log_level);
    let stop = signals::shutdown()?;
    let binary = std::env::current_exe().context("cannot find the running program")?;
    let toolbox = Toolbox::create(&binary, Offer::WhatIsMissing).context("cannot make a directory for hey and curl")?;
    let options = Options { toolbox: Some(Arc::new(toolbox)), ..flags.options()? };
    let listener = listen::on_every_address(flags.port).await?;
    tracing::info!(port = flags.port, "starting load tester");
    let server = axum::serve(listener, router(&options)).with_graceful_shutdown(stop.clone().cancelled_owned());
    // Commands that block a reply may take an hour; a stop does not wait for them.
    tokio::select! {
        result = server => result?,
        () = async { stop.cancelled().await; tokio::time::sleep(Duration::from_secs(3)).await } => {}
    }
    tracing::info!("load tester stopped");
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_line_is_understood() {
        let line = ["-port=8080", "-log-level=info", "-timeout=30m", "-namespace-regexp=^team-"];
        let flags = Flags::parse(line.map(OsString::from)).unwrap();
        assert_eq!(flags.port(), 8080);
        let options = flags.options().unwrap();
        assert_eq!(options.time_limit, Duration::from_secs(1800));
        assert!(options.namespaces.unwrap().is_match("team-a"));
    }

    #[test]
    fn mistakes_are_errors() {
        assert!(Flags::parse(["-no-such".into()]).is_err());
        assert!(Flags::parse(["-timeout=soon".into()]).unwrap().options().is_err());
        assert!(Flags::parse(["-namespace-regexp=(".into()]).unwrap().options().is_err());
    }
}
