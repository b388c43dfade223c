//! A bounded Go text/template: the part that metric queries use.
//!
//! Variables, pipelines, `printf`, `if`, `with`, `range`, comments and trim markers, with Go's rules for white space, truth
//! and missing keys (`missingkey=error`). There is no data object: everything comes from functions such as `{{ target }}`.
//! Whatever else Go knows (`define`, `template`, `block`, methods, other functions) is an error when the template is
//! parsed, not a surprise when it is rendered. A template written by anybody is safe to render: steps, depth, width and
//! output are limited.

mod evaluate;
mod format;
mod lex;
mod parse;

use std::collections::BTreeMap;

use parse::Node;

/// The longest template that is read.
const MOST_INPUT: usize = 64 * 1024;
/// The longest text a template, or any value inside it, may become.
const MOST_OUTPUT: usize = 64 * 1024;
/// How many nodes, calls and loop turns a rendering may take.
const MOST_STEPS: u32 = 20_000;
/// How deep blocks and parentheses may nest.
const MOST_DEPTH: usize = 32;

/// What a template may refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vars {
    /// `{{ name }}`: the Canary.
    pub name: String,
    /// `{{ namespace }}`: its namespace.
    pub namespace: String,
    /// `{{ target }}`: the target workload.
    pub target: String,
    /// `{{ service }}`: the apex Service.
    pub service: String,
    /// `{{ ingress }}`: the Ingress.
    pub ingress: String,
    /// `{{ route }}`: the route.
    pub route: String,
    /// `{{ interval }}`: the window of the metric.
    pub interval: String,
    /// `{{ variables.key }}`: values the Canary gives.
    pub variables: BTreeMap<String, String>,
}

/// Why a template cannot be parsed or rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Not a template, or one of the parts that are not supported.
    #[error("line {line}: {problem}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// `variables` has no such key.
    #[error("map has no entry for key \"{0}\"")]
    MissingKey(String),
    /// A value is not what a function or a field needs.
    #[error("{0}")]
    Type(String),
    /// Too long or too much work.
    #[error("{0}")]
    Limit(String),
}

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    nodes: Vec<Node>,
}

/// Parses a template. Unknown functions and variables are found here.
pub fn parse(text: &str) -> Result<Template, TemplateError> {
    if text.len() > MOST_INPUT {
        return Err(TemplateError::Limit(format!("the template is longer than {MOST_INPUT} bytes")));
    }
    Ok(Template { nodes: parse::parse(lex::lex(text)?)? })
}

impl Template {
    /// The text for these values.
    pub fn render(&self, vars: &Vars) -> Result<String, TemplateError> {
        evaluate::render(&self.nodes, vars)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars() -> Vars {
        Vars {
            name: "podinfo".into(),
            namespace: "test".into(),
            target: "podinfo".into(),
            service: "svc".into(),
            ingress: "ing".into(),
            route: "rt".into(),
            interval: "1m".into(),
            variables: BTreeMap::from([("a".into(), "1".into()), ("b".into(), "2".into())]),
        }
    }

    fn render(text: &str) -> Result<String, TemplateError> {
        parse(text)?.render(&vars())
    }

    #[test]
    fn text_variables_and_functions() {
        for (template, text) in [
            ("plain } { text", "plain } { text"),
            ("{{ name }}.{{namespace}}", "podinfo.test"),
            (r#"x{pod=~"{{ target }}-[0-9a-zA-Z]+"}[{{ interval }}]"#, r#"x{pod=~"podinfo-[0-9a-zA-Z]+"}[1m]"#),
            ("{{ variables.a }}", "1"),
            ("{{ (variables).b }}", "2"),
            ("{{ $v := variables }}{{ $v.a }}", "1"),
            (r#"{{ index variables "b" }}"#, "2"),
            ("{{/* nothing */}}x{{- /* nothing */ -}} y", "xy"),
            ("a  {{- name -}}  b", "apodinfob"),
            ("{{ $x := printf \"%s-%s\" name namespace }}{{ $x }}", "podinfo-test"),
            ("{{ name | printf \"%s-%s\" namespace }}", "test-podinfo"),
            (
                "{{ printf \"%q %d %.2f %v %5s|%-5s| %t %%\" name 3 1.5 2.50 \"a\" \"b\" true }}",
                "\"podinfo\" 3 1.50 2.5     a|b    | true %",
            ),
            ("{{ printf `%s` `raw \\n` }}", "raw \\n"),
            ("{{ print 1 2 \"x\" 3 }}", "1 2x3"),
            ("{{ len name }}", "7"),
            ("{{ 0x1F }} {{ -2 }} {{ 1e3 }} {{ 'a' }}", "31 -2 1000 97"),
        ] {
            assert_eq!(render(template).as_deref(), Ok(text), "{template}");
        }
    }

    #[test]
    fn conditions_and_loops() {
        for (template, text) in [
            ("{{ if eq name \"podinfo\" }}yes{{ else }}no{{ end }}", "yes"),
            ("{{ if ne name \"podinfo\" }}a{{ else if eq namespace \"test\" \"prod\" }}b{{ else }}c{{ end }}", "b"),
            ("{{ if and name (not false) }}x{{ end }}", "x"),
            ("{{ or \"\" name }}", "podinfo"),
            ("{{ if lt 1 2 }}lt{{ end }}{{ if ge 1.5 2.5 }}ge{{ end }}", "lt"),
            ("{{ range $k, $v := variables }}{{ $k }}={{ $v }};{{ end }}", "a=1;b=2;"),
            ("{{ range variables }}[{{ . }}]{{ end }}", "[1][2]"),
            ("{{ range 3 }}{{ . }}{{ end }}", "012"),
            ("{{ range 0 }}x{{ else }}none{{ end }}", "none"),
            ("{{ with variables.a }}<{{ . }}>{{ end }}{{ with \"\" }}x{{ else }}y{{ end }}", "<1>y"),
            ("{{ $x := 1 }}{{ range 2 }}{{ $x = . }}{{ end }}{{ $x }}", "1"),
            (
                "{{ range 9 }}{{ if eq . 3 }}{{ break }}{{ end }}{{ if eq . 1 }}{{ continue }}{{ end }}{{ . }}{{ end }}",
                "02",
            ),
        ] {
            assert_eq!(render(template).as_deref(), Ok(text), "{template}");
        }
    }

    #[test]
    fn what_is_not_supported_is_found_when_parsing() {
        for template in [
            "{{ nope }}",
            "{{ $x }}",
            "{{ define \"x\" }}{{ end }}",
            "{{ template \"x\" }}",
            "{{ if name }}",
            "{{ end }}",
            "{{ else }}",
            "{{ name",
            "{{ }}",
            "{{ \"open }}",
            "{{ name | }}",
            "{{ 1 | \"x\" }}",
            "{{ break }}",
            "{{ html name }}",
            "{{ (name }}",
        ] {
            assert!(matches!(parse(template), Err(TemplateError::Syntax { .. })), "{template}");
        }
    }

    #[test]
    fn missing_keys_and_wrong_types_are_errors() {
        assert_eq!(render("{{ variables.nope }}"), Err(TemplateError::MissingKey("nope".into())));
        for template in [
            "{{ name.x }}",
            "{{ .x }}",
            "{{ len 3 }}",
            "{{ eq 1 \"1\" }}",
            "{{ range name }}{{ end }}",
            "{{ printf 1 }}",
            "{{ printf \"%d\" name }}",
            "{{ printf \"%s\" }}",
        ] {
            assert!(matches!(render(template), Err(TemplateError::Type(_))), "{template}: {:?}", render(template));
        }
    }

    #[test]
    fn nothing_runs_or_grows_without_end() {
        let doubling = "{{ $x := \"ab\" }}".to_owned() + &"{{ $x = printf \"%s%s\" $x $x }}".repeat(40);
        for template in [
            "{{ range 1000000000 }}{{ range 1000000000 }}{{ end }}{{ end }}".to_owned(),
            "{{ range 20000 }}0123456789{{ end }}".to_owned(),
            doubling,
            "{{ printf \"%99999999s\" name }}".to_owned(),
            "x".repeat(MOST_INPUT + 1),
        ] {
            assert!(
                matches!(render(&template), Err(TemplateError::Limit(_) | TemplateError::Type(_))),
                "{template:.60}"
            );
        }
        let deep = "{{ if true }}".repeat(200) + &"{{ end }}".repeat(200);
        assert!(parse(&deep).is_err());
        assert!(parse(&format!("{{{{ {}1{} }}}}", "(".repeat(200), ")".repeat(200))).is_err());
    }

    #[test]
    fn the_tutorials_templates_render() {
        let latency = "histogram_quantile(0.99,\n  sum(\n    rate(\n      istio_request_duration_milliseconds_bucket{\n        \
            reporter=\"source\",\n        destination_workload_namespace=~\"{{ namespace }}\",\n        \
            destination_workload=~\"{{ target }}\",\n      }[{{ interval }}]\n    )\n  ) by (le)\n)/1000\n";
        let text = render(latency).unwrap();
        assert!(
            text.contains("namespace=~\"test\"") && text.contains("workload=~\"podinfo\"") && text.contains("[1m]")
        );
        assert_eq!(text.lines().count(), latency.lines().count());
    }
}
