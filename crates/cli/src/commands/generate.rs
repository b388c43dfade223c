//! `seaway generate`: files that other tools read.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use clap_complete::Shell;

use crate::output;

/// Print custom resource definitions, shell completions or manual pages.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  seaway generate crds | kubectl apply -f -
  seaway generate completions bash > /etc/bash_completion.d/seaway
  seaway generate man --out /usr/local/share/man/man1")]
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
    /// The manual pages, in roff.
    Man {
        /// Directory for all pages, one for each command. Without it the page of seaway alone is printed.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

/// Prints or writes what was asked for.
pub fn run(options: &Options, mut command: clap::Command) -> anyhow::Result<ExitCode> {
    let text = match &options.what {
        What::Crds { json } => crds(*json)?,
        What::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut command, "seaway", &mut text);
            String::from_utf8(text)?
        }
        What::Man { out: Some(folder) } => {
            pages(command, folder)?;
            return Ok(ExitCode::SUCCESS);
        }
        What::Man { out: None } => {
            let mut text = Vec::new();
            clap_mangen::Man::new(command).render(&mut text)?;
            eprintln!("this is seaway(1) alone; --out DIR writes the pages of its commands too");
            String::from_utf8(text)?
        }
    };
    output::text(&text).context("cannot write to stdout")?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for `seaway` and one for each of its commands.
fn pages(command: clap::Command, folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .with_context(|| format!("cannot write the manual pages to {}", folder.display()))
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::Cli;

    #[test]
    fn every_command_has_a_manual_page() {
        let folder = tempfile::TempDir::new().unwrap();
        let man1 = folder.path().join("man1");
        pages(Cli::command(), &man1).unwrap();
        let page = |name: &str| std::fs::read_to_string(man1.join(name)).unwrap_or_default();
        for command in Cli::command().get_subcommands() {
            let name = format!("seaway-{}.1", command.get_name());
            assert!(page(&name).contains("OPTIONS"), "{name}");
            assert!(
                page("seaway.1").contains(&name.replace(".1", "(1)").replace('-', "\\-")),
                "{name} is not referred to"
            );
        }
    }
}
