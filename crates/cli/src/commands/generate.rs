//! `seaway generate`: files that other tools read.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use clap_complete::Shell;

/// Print custom resource definitions, shell completions or the manual page.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  seaway generate crds | kubectl apply -f -
  seaway generate completions bash > /etc/bash_completion.d/seaway
  seaway generate man > /usr/local/share/man/man1/seaway.1")]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// The custom resource definitions of Canary, MetricTemplate and AlertProvider.
    Crds {
        /// One JSON List instead of YAML documents.
        #[arg(long)]
        json: bool,
    },
    /// A completion script.
    Completions {
        /// The shell it is for.
        shell: Shell,
    },
    /// The manual page, in roff.
    Man,
}

/// Prints what was asked for.
pub fn run(options: &Options, mut command: clap::Command) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    match &options.what {
        What::Crds { json } => text = crds(*json)?.into_bytes(),
        What::Completions { shell } => clap_complete::generate(*shell, &mut command, "seaway", &mut text),
        What::Man => clap_mangen::Man::new(command).render(&mut text)?,
    }
    match std::io::stdout().write_all(&text) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        written => written.context("cannot write to stdout").map(|()| ExitCode::SUCCESS),
    }
}

/// The definitions as text.
fn crds(json: bool) -> anyhow::Result<String> {
    let crds = seaway_api::crds::crds();
    if json {
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": crds});
        return Ok(format!("{}\n", serde_json::to_string_pretty(&list)?));
    }
    let mut text = String::new();
    for crd in &crds {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(crd)?);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}
