//! Logs in the shape Flagger's users parse: one JSON object per line on stderr, or the same as text.
//!
//! The keys are zap's (`level`, `ts`, `caller`, `msg`), then the event's own fields. Only our crates log below
//! `warn`; `RUST_LOG` overrides everything. Sampling, stack traces and log files are not offered.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

const OURS: [&str; 6] =
    ["seaway_api", "seaway_core", "seaway_adapters", "seaway_operator", "seaway_drydock", "seaway_cli"];

/// A module that logs what we log too.
const CHATTY: &str = "kube_client::client::builder";

/// How a log line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// One JSON object per line.
    Json,
    /// Tab-separated text.
    Console,
}

impl FromStr for Encoding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "json" => Ok(Self::Json),
            "console" | "text" => Ok(Self::Console),
            other => Err(format!("{other:?} is no encoding; use json or console")),
        }
    }
}

/// Starts to log to stderr. A second call in one process changes nothing.
pub fn start(encoding: Encoding, level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives(level)));
    let subscriber = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(filter)
        .fmt_fields(JsonFields::new())
        .event_format(Zap(encoding));
    // Tests and the demo may have set one up before; two would print everything twice.
    let _ = subscriber.try_init();
}

/// Level names of Flagger, and what they mean here.
const LEVELS: [(&str, &str); 8] = [
    ("trace", "trace"),
    ("debug", "debug"),
    ("info", "info"),
    ("warn", "warn"),
    // Flagger's chart names it, and Flagger takes it for info.
    ("warning", "warn"),
    ("error", "error"),
    ("fatal", "error"),
    ("panic", "error"),
];

/// Whether this is a level; one that is not means info, as in Flagger, and people should hear of it.
pub fn is_level(name: &str) -> bool {
    LEVELS.iter().any(|(level, _)| *level == name)
}

/// Flagger's level names as filter directives; a name it does not know means info, as there.
fn directives(level: &str) -> String {
    let level = LEVELS.iter().find(|(name, _)| *name == level).map_or("info", |(_, level)| level);
    let others = if level == "error" { "error" } else { "warn" };
    // One line per request that fails, without the reason. Whoever asked tells it better.
    let others = if level == "trace" { others.to_owned() } else { format!("{others},{CHATTY}=off") };
    OURS.iter().fold(others, |all, ours| format!("{all},{ours}={level}"))
}

/// zap's line format.
struct Zap(Encoding);

impl<S, N> FormatEvent<S, N> for Zap
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let meta = event.metadata();
        let mut fields = Fields::default();
        if let Some(scope) = context.event_scope() {
            for span in scope.from_root() {
                let extensions = span.extensions();
                let written = extensions.get::<FormattedFields<N>>();
                if let Some(Ok(Value::Object(map))) = written.map(|text| serde_json::from_str(&text.fields)) {
                    fields.rest.extend(map);
                }
            }
        }
        event.record(&mut fields);
        let level = match *meta.level() {
            Level::ERROR => "error",
            Level::WARN => "warn",
            Level::INFO => "info",
            Level::DEBUG | Level::TRACE => "debug",
        };
        let caller = caller(meta.file().unwrap_or_default(), meta.target(), meta.line());
        let line = Line { level, at: Timestamp::now(), caller: &caller, fields };
        writeln!(out, "{}", line.write(self.0))
    }
}

/// Where a line comes from: our files by their path in the repository. Those of libraries are where the builder's computer
/// had them, which tells nobody anything; their module does.
fn caller(file: &str, module: &str, line: Option<u32>) -> String {
    match file.strip_prefix("crates/") {
        Some(own) => format!("{own}:{}", line.unwrap_or_default()),
        None => module.to_owned(),
    }
}

/// One log line before it is text.
struct Line<'a> {
    level: &'a str,
    at: Timestamp,
    caller: &'a str,
    fields: Fields,
}

impl Line<'_> {
    fn write(self, encoding: Encoding) -> String {
        let at = format!("{:.3}", self.at);
        match encoding {
            Encoding::Json => {
                let mut object = Map::new();
                object.insert("level".to_owned(), self.level.into());
                object.insert("ts".to_owned(), at.into());
                object.insert("caller".to_owned(), self.caller.into());
                object.insert("msg".to_owned(), self.fields.message.into());
                object.extend(self.fields.rest);
                Value::Object(object).to_string()
            }
            Encoding::Console => {
                let mut line = format!("{at}\t{}\t{}\t{}", self.level.to_uppercase(), self.caller, self.fields.message);
                if !self.fields.rest.is_empty() {
                    line.push('\t');
                    line.push_str(&Value::Object(self.fields.rest).to_string());
                }
                line
            }
        }
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    rest: Map<String, Value>,
}

impl Fields {
    fn set(&mut self, field: &Field, value: Value) {
        if field.name() == "message" {
            self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        } else {
            self.rest.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}").into());
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value.into());
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value.into());
    }
    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.set(field, value.to_string().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line<'static> {
        let mut rest = Map::new();
        rest.insert("canary".to_owned(), "podinfo.test".into());
        let fields = Fields { message: "Synced test/podinfo".to_owned(), rest };
        let at = "2026-03-01T12:00:00.5Z".parse().unwrap();
        Line { level: "info", at, caller: "operator/src/reconcile.rs:7", fields }
    }

    #[test]
    fn json_has_zaps_keys_in_zaps_order() {
        assert_eq!(
            line().write(Encoding::Json),
            r#"{"level":"info","ts":"2026-03-01T12:00:00.500Z","caller":"operator/src/reconcile.rs:7","msg":"Synced test/podinfo","canary":"podinfo.test"}"#
        );
    }

    #[test]
    fn console_is_the_same_with_tabs() {
        assert_eq!(
            line().write(Encoding::Console),
            "2026-03-01T12:00:00.500Z\tINFO\toperator/src/reconcile.rs:7\tSynced test/podinfo\t{\"canary\":\"podinfo.test\"}"
        );
    }

    #[test]
    fn unknown_levels_mean_info() {
        assert!(directives("loud").ends_with("seaway_cli=info"));
        assert!(directives("warning").ends_with("seaway_cli=warn"));
        assert!(directives("fatal").starts_with("error,"));
        assert!(is_level("debug") && !is_level("loud"));
        assert!(directives("debug").contains("builder=off") && !directives("trace").contains("=off"));
    }

    #[test]
    fn a_library_is_told_by_its_module() {
        assert_eq!(
            caller("crates/operator/src/lease.rs", "seaway_operator::lease", Some(7)),
            "operator/src/lease.rs:7"
        );
        let file = "/home/builder/.cargo/registry/src/index/kube-runtime/src/watcher.rs";
        assert_eq!(caller(file, "kube_runtime::watcher", Some(7)), "kube_runtime::watcher");
    }
}
