//! `seaway lint`: what is wrong with manifests, before a cluster sees them.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::string::FromUtf8Error;

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
    let mut unreadable = Vec::new();
    for path in manifests::find(&options.files)? {
        let (name, bytes) = read(&path)?;
        match String::from_utf8(bytes) {
            Ok(text) => texts.push((name, text)),
            Err(error) => unreadable.push(not_text(name, &error)),
        }
    }
    let sources: Vec<Source<'_>> = texts.iter().map(|(name, text)| Source { name, text }).collect();
    let template = |text: &str| seaway_core::template::parse(text).map(drop).map_err(|error| error.to_string());
    let context = Context {
        default_provider: &options.mesh_provider,
        no_cross_namespace_refs: options.no_cross_namespace_refs,
        template: &template,
        ..Context::default()
    };
    let mut findings = lint(&sources, &context);
    let unread = unreadable.len();
    findings.extend(unreadable);
    let paint = Paint::on(&std::io::stdout());
    for finding in &findings {
        let text = if options.json { record(finding).to_string() } else { line(finding, paint) };
        if !output::line(&text) {
            break;
        }
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    if !options.json && std::io::stderr().is_terminal() {
        let read = texts.len() + unread;
        let files = if read == 1 { "file" } else { "files" };
        eprintln!("{read} {files}: {errors} errors, {} warnings", findings.len() - errors);
    }
    Ok(if errors > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn read(path: &Path) -> anyhow::Result<(String, Vec<u8>)> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("cannot read stdin")?;
        return Ok(("<stdin>".to_owned(), bytes));
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok((path.display().to_string(), bytes))
}

/// A file that is no text. It spoils itself; the others are still looked at.
fn not_text(file: String, error: &FromUtf8Error) -> Finding {
    let good = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
    Finding {
        file,
        line: 1 + good.filter(|byte| **byte == b'\n').count(),
        document: 0,
        object: String::new(),
        path: String::new(),
        severity: Severity::Error,
        problem: "this is not UTF-8 text".to_owned(),
        remedy: "save the file as UTF-8".to_owned(),
    }
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
    fn a_file_that_is_no_text_is_a_finding_with_its_line() {
        let error = String::from_utf8(b"kind: Canary\nname: \xff\n".to_vec()).unwrap_err();
        let expected = "canary.yaml:2: error: this is not UTF-8 text; save the file as UTF-8";
        assert_eq!(line(&not_text("canary.yaml".to_owned(), &error), Paint::plain()), expected);
    }

    #[test]
    fn a_record_has_the_same_members() {
        let record = record(&finding());
        assert_eq!(record["line"], 7);
        assert_eq!(record["severity"], "error");
        assert_eq!(record["remedy"], "write 1m");
    }
}
