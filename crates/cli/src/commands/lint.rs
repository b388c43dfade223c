//! `seaway lint`: what is wrong with manifests, before a cluster sees them.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use seaway_api::lint::{Finding, Severity, Source, lint};
use seaway_api::validate::Context;
use serde_json::{Value, json};

use crate::manifests;
use crate::output::{self, Paint};

/// Find mistakes in Canaries, MetricTemplates and AlertProviders.
///
/// Says the same as an operator with the same flags would, and finds misspelt fields, which a cluster drops in silence. Prints
/// `file:line: error: path: problem; remedy`. Exits with 1 if there are errors; warnings alone are fine.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  seaway lint canary.yaml
  seaway lint examples/
  kustomize build . | seaway lint -
  seaway lint --json deploy/ | jq 'select(.severity == \"error\")'")]
pub struct Options {
    /// Files, directories (searched for .yaml, .yml and .json), or - for stdin.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// One JSON object for each finding.
    #[arg(long)]
    json: bool,
    /// Who routes traffic for Canaries that do not say. Give what the operator is given; left out, the operator's own
    /// default is Flagger's, istio.
    #[arg(long, default_value = "gatewayapi:v1")]
    mesh_provider: String,
    /// Refuse references to objects of other namespaces, as the operator does with this flag.
    #[arg(long)]
    no_cross_namespace_refs: bool,
}

/// Prints every finding.
pub fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let mut texts = Vec::new();
    for path in manifests::find(&options.files)? {
        texts.push(read(&path)?);
    }
    let sources: Vec<Source<'_>> = texts.iter().map(|(name, text)| Source { name, text }).collect();
    let template = |text: &str| seaway_core::template::parse(text).map(drop).map_err(|error| error.to_string());
    let context = Context {
        default_provider: &options.mesh_provider,
        no_cross_namespace_refs: options.no_cross_namespace_refs,
        template: &template,
        ..Context::default()
    };
    let findings = lint(&sources, &context);
    let paint = Paint::on(&std::io::stdout());
    for finding in &findings {
        let text = if options.json { record(finding).to_string() } else { line(finding, paint) };
        if !output::line(&text) {
            break;
        }
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    if !options.json && std::io::stderr().is_terminal() {
        let files = if sources.len() == 1 { "file" } else { "files" };
        eprintln!("{} {files}: {errors} errors, {} warnings", sources.len(), findings.len() - errors);
    }
    Ok(if errors > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn read(path: &Path) -> anyhow::Result<(String, String)> {
    if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read stdin")?;
        return Ok(("<stdin>".to_owned(), text));
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok((path.display().to_string(), text))
}

fn line(finding: &Finding, paint: Paint) -> String {
    let text = finding.to_string();
    let (word, painted) = match finding.severity {
        Severity::Error => ("error", paint.bad("error")),
        Severity::Warning => ("warning", paint.warn("warning")),
    };
    text.replacen(&format!(": {word}: "), &format!(": {painted}: "), 1)
}

fn record(finding: &Finding) -> Value {
    json!({
        "file": finding.file,
        "line": finding.line,
        "document": finding.document,
        "object": finding.object,
        "path": finding.path,
        "severity": finding.severity.to_string(),
        "problem": finding.problem,
        "remedy": finding.remedy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding() -> Finding {
        Finding {
            file: "canary.yaml".to_owned(),
            line: 7,
            document: 0,
            object: "Canary test/podinfo".to_owned(),
            path: "spec.analysis.interval".to_owned(),
            severity: Severity::Error,
            problem: "\"soon\" is no duration".to_owned(),
            remedy: "write 1m".to_owned(),
        }
    }

    #[test]
    fn a_line_says_file_line_path_problem_and_remedy() {
        let expected = "canary.yaml:7: error: spec.analysis.interval: \"soon\" is no duration; write 1m";
        assert_eq!(line(&finding(), Paint::plain()), expected);
    }

    #[test]
    fn a_record_has_the_same_members() {
        let record = record(&finding());
        assert_eq!(record["line"], 7);
        assert_eq!(record["severity"], "error");
        assert_eq!(record["remedy"], "write 1m");
    }
}
