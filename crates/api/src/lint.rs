//! Reads YAML files as a person wrote them and says what is wrong, with file, line and field path.
//!
//! Beside the rules of [`crate::validate`] it finds what the API server would refuse (by the CRD's own schema) and what
//! it would silently drop: a misspelt field. Objects of other groups are read, so that a syntax error anywhere is found,
//! and otherwise left alone. No cluster is asked: a reference to an object outside the given files is a warning.

mod document;
mod nearest;
mod nulls;
mod references;
mod schema;

use std::fmt;

use document::Node;
use serde_json::Value;

use crate::canary::Canary;
use crate::field::{self, FieldError};
use crate::validate::{Context, Report, syntax, validate, validate_alert_provider, validate_metric_template};
use crate::{API_VERSION, AlertProvider, GROUP, MetricTemplate, crds};

/// One file.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Name, for messages.
    pub name: &'a str,
    /// YAML, one or more documents.
    pub text: &'a str,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The object would be refused, not acted on, or lose what was written.
    Error,
    /// It works, perhaps not as meant.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// Something wrong at one place of one file. Prints as `file:line: error: path: problem; remedy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Document in the file, from 0.
    pub document: usize,
    /// `Canary test/podinfo`; empty where the YAML itself is broken.
    pub object: String,
    /// Field path.
    pub path: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = FieldError::new(&self.path, &self.problem, &self.remedy);
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.severity, error.sentence())
    }
}

/// A typed object of ours.
enum Typed {
    Canary(Box<Canary>),
    MetricTemplate(Box<MetricTemplate>),
    AlertProvider(Box<AlertProvider>),
}

/// One object of one document.
struct Object {
    file: String,
    document: usize,
    kind: String,
    namespace: String,
    name: String,
    node: Node,
    /// What the API server would refuse or drop.
    refused: Vec<FieldError>,
    /// Fields without a value.
    empty: Vec<FieldError>,
    typed: Option<Typed>,
}

impl Object {
    fn title(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }

    fn finding(&self, severity: Severity, error: FieldError) -> Finding {
        Finding {
            file: self.file.clone(),
            line: self.node.line_of(&error.path),
            document: self.document,
            object: self.title(),
            path: error.path,
            severity,
            problem: error.problem,
            remedy: error.remedy,
        }
    }
}

/// Everything that is wrong in these files, in the order of the lines. `context.siblings` is replaced by the Canaries found.
pub fn lint(sources: &[Source<'_>], context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut objects = Vec::new();
    for source in sources {
        let (documents, broken) = document::read(source.text);
        for (document, root) in documents.into_iter().enumerate() {
            for node in root.objects() {
                objects.extend(Object::new(source.name, document, node, &mut findings));
            }
        }
        findings.extend(broken.into_iter().map(|broken| Finding {
            file: source.name.into(),
            line: broken.line,
            document: broken.document,
            object: String::new(),
            path: String::new(),
            severity: Severity::Error,
            problem: broken.problem,
            remedy: "correct the YAML".into(),
        }));
    }
    let canaries: Vec<&Canary> = objects.iter().filter_map(Object::canary).collect();
    let context = Context { siblings: &canaries, ..*context };
    for object in &objects {
        findings.extend(object.check(&context));
    }
    findings.extend(references::check(&objects));
    let order = |file: &str| sources.iter().position(|source| source.name == file);
    findings.sort_by(|a, b| {
        (order(&a.file), a.line, a.severity, &a.path).cmp(&(order(&b.file), b.line, b.severity, &b.path))
    });
    findings
}

/// A kind of ours in a group that is nearly ours: a cluster would not know it.
fn misspelt(file: &str, document: usize, node: &Node, group: &str, kind: &str) -> Option<Finding> {
    crds::schema_of(kind)?;
    nearest::nearest(group, std::iter::once(GROUP))?;
    Some(Finding {
        file: file.into(),
        line: node.line_of("apiVersion"),
        document,
        object: kind.to_owned(),
        path: "apiVersion".into(),
        severity: Severity::Error,
        problem: format!("there is no group \"{group}\" with a {kind}"),
        remedy: format!("write {API_VERSION}"),
    })
}

impl Object {
    /// The object in `node`, if it is one of ours.
    fn new(file: &str, document: usize, node: Node, findings: &mut Vec<Finding>) -> Option<Self> {
        let text = |path: &[&str]| node.get(path).and_then(|node| node.value().as_str().map(str::to_owned));
        let version = text(&["apiVersion"]).unwrap_or_default();
        let (group, _) = version.split_once('/')?;
        if group != GROUP {
            let kind = text(&["kind"]).unwrap_or_default();
            findings.extend(misspelt(file, document, &node, group, &kind));
            return None;
        }
        let mut object = Self {
            file: file.into(),
            document,
            kind: text(&["kind"]).unwrap_or_default(),
            namespace: text(&["metadata", "namespace"]).unwrap_or_else(|| "default".into()),
            name: text(&["metadata", "name"]).unwrap_or_default(),
            node,
            refused: Vec::new(),
            empty: Vec::new(),
            typed: None,
        };
        // The written tree is kept for its lines.
        let mut kept = object.node.clone();
        if let Some(schema) = crds::schema_of(&object.kind) {
            object.empty = nulls::drop_from(&mut kept, schema);
            object.refused = schema::check(&kept, schema);
        }
        if version != API_VERSION {
            let problem = format!("\"{version}\" is not served");
            findings.push(
                object.finding(Severity::Error, FieldError::new("apiVersion", problem, format!("write {API_VERSION}"))),
            );
        }
        match object.read(kept.value()) {
            Ok(typed) => object.typed = typed,
            Err(error) => findings.push(object.finding(Severity::Error, error)),
        }
        Some(object)
    }

    fn read(&self, value: Value) -> Result<Option<Typed>, FieldError> {
        // What the schema finds is said by the schema; only what it cannot say (a fraction) is left to the types.
        let stays_silent = |error: FieldError| if self.refused.is_empty() { Err(error) } else { Ok(None) };
        let typed = match self.kind.as_str() {
            "Canary" => field::parse(value).map(|canary| Typed::Canary(Box::new(canary))),
            "MetricTemplate" => field::parse(value).map(|template| Typed::MetricTemplate(Box::new(template))),
            "AlertProvider" => field::parse(value).map(|provider| Typed::AlertProvider(Box::new(provider))),
            other => {
                let remedy = "use Canary, MetricTemplate or AlertProvider";
                return Err(FieldError::new("kind", format!("{GROUP} has no kind \"{other}\""), remedy));
            }
        };
        typed.map(Some).or_else(stays_silent)
    }

    fn canary(&self) -> Option<&Canary> {
        match &self.typed {
            Some(Typed::Canary(canary)) => Some(canary),
            _ => None,
        }
    }

    fn check(&self, context: &Context<'_>) -> Vec<Finding> {
        let mut errors = self.metadata();
        errors.extend(self.refused.iter().cloned());
        let report = match &self.typed {
            Some(Typed::Canary(canary)) => validate(canary, context),
            Some(Typed::MetricTemplate(template)) => validate_metric_template(template, context),
            Some(Typed::AlertProvider(provider)) => validate_alert_provider(provider, context),
            None => Report::default(),
        };
        // The schema and the rules may find the same fault; people need it once.
        let new = |error: &FieldError, errors: &[FieldError]| !errors.iter().any(|known| known.path == error.path);
        for error in report.errors {
            if new(&error, &errors) {
                errors.push(error);
            }
        }
        let warnings = self.empty.iter().cloned().chain(report.warnings);
        let warnings: Vec<_> = warnings.filter(|warning| new(warning, &errors)).collect();
        let errors = errors.into_iter().map(|error| self.finding(Severity::Error, error));
        let warnings = warnings.into_iter().map(|warning| self.finding(Severity::Warning, warning));
        errors.chain(warnings).collect()
    }

    fn metadata(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if !syntax::is_subdomain(&self.name) {
            let problem = format!("\"{}\" is no object name", self.name);
            errors.push(FieldError::new("metadata.name", problem, "use lower case letters, digits, dashes and dots"));
        }
        if !syntax::is_label(&self.namespace) {
            let problem = format!("\"{}\" is no namespace", self.namespace);
            errors.push(FieldError::new("metadata.namespace", problem, "use lower case letters, digits and dashes"));
        }
        errors
    }
}

#[cfg(test)]
mod examples;
#[cfg(test)]
mod tests;
