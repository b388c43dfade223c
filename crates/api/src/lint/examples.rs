//! The files under `examples/`: the good ones are good, and each bad one is found out at the field it names.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn files(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Stands for the real template parser, which lives above this crate: braces must be closed.
fn closed(query: &str) -> Result<(), String> {
    if query.matches("{{").count() == query.matches("}}").count() { Ok(()) } else { Err("unclosed action".into()) }
}

fn context() -> Context<'static> {
    Context { template: &closed, ..Context::default() }
}

#[test]
fn the_tutorial_has_no_errors() {
    let files = files("gateway-api");
    let names: Vec<_> = files.iter().map(|(path, _)| path.to_string_lossy().into_owned()).collect();
    let sources: Vec<_> = files.iter().zip(&names).map(|((_, text), name)| Source { name, text }).collect();
    let findings = lint(&sources, &context());
    let paths: Vec<_> = findings.iter().map(|finding| (finding.severity, finding.path.as_str())).collect();
    assert_eq!(paths, [(Severity::Warning, "spec.revertOnDeletion")], "{findings:#?}");
}

#[test]
fn every_bad_object_is_found_out() {
    let files = files("bad");
    assert!(files.len() >= 64, "the corpus of named faults and twenty more");
    for (path, text) in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let findings = lint(&[Source { name: &name, text: &text }], &context());
        let expected: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# expect: ")).collect();
        assert!(!expected.is_empty(), "{name} expects nothing");
        for expected in &expected {
            let (severity, path) = expected.split_once(' ').unwrap();
            let path = if path == "(yaml)" { "" } else { path };
            let found =
                findings.iter().find(|finding| finding.path == path && finding.severity.to_string() == severity);
            let finding = found.unwrap_or_else(|| panic!("{name}: no {expected} in {findings:#?}"));
            assert!(finding.line > 3 && !finding.problem.is_empty(), "{finding:?}");
        }
        let has_errors = findings.iter().any(|finding| finding.severity == Severity::Error);
        assert_eq!(has_errors, expected.iter().any(|expected| expected.starts_with("error")), "{name}: {findings:#?}");
    }
}

#[test]
fn the_crds_refuse_what_the_files_say_and_no_more() {
    let schema = crds::schema_of("Canary").unwrap();
    let rules = serde_json::to_value(schema).unwrap();
    for (path, text) in files("bad") {
        let refused = document::read(&text).0.iter().any(|node| {
            // A field that is dropped is not refused.
            let dropped = |error: &FieldError| error.problem.starts_with("there is no such field");
            !schema::check(node, schema).iter().all(dropped)
                || kube_cel::Validator::new().validate(&rules, &node.value(), None).is_err()
        });
        let expected = text.lines().find_map(|line| line.strip_prefix("# crd: ")).unwrap();
        assert_eq!(if refused { "refuses" } else { "accepts" }, expected, "{}", path.display());
    }
}

#[test]
fn the_rules_alone_find_what_the_types_can_hold() {
    // The operator does not see the file: no line, no dropped field, no reference to look up.
    let only_lint = [
        "misspelt-field",
        "field-at-the-wrong-place",
        "key-twice",
        "metric-template-missing",
        "number-in-quotes",
        "webhook-type-misspelt",
        "two-canaries-one-target",
    ];
    for (path, text) in files("bad") {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if only_lint.contains(&name.as_str()) {
            continue;
        }
        let value = document::read(&text).0.remove(0).value();
        let report = match crate::canary::parse(value) {
            Ok(canary) => validate(&canary, &context()),
            Err(error) => Report { errors: vec![error], warnings: Vec::new() },
        };
        for expected in text.lines().filter_map(|line| line.strip_prefix("# expect: ")) {
            let (severity, path) = expected.split_once(' ').unwrap();
            let list = if severity == "error" { &report.errors } else { &report.warnings };
            assert!(list.iter().any(|error| error.path == path), "{name}: no {expected} in {report:#?}");
        }
    }
}
