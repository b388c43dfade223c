//! What is asked: a sequence of raw HTTP requests in one namespace.
//!
//! A request may use what earlier answers said (`<<3.uid>>` is the uid in the answer to step 3), so the same script fits
//! both servers although they give out different uids, versions and names. `<<ns>>` is the namespace.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

/// One request.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its number, which it keeps when others are left out.
    pub id: usize,
    pub method: &'static str,
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Body,
}

/// What a request carries.
#[derive(Clone, Debug)]
pub enum Body {
    Text(String),
    /// What an earlier answer said, with a merge patch upon it: read, modify, write.
    Edited {
        of: usize,
        change: Value,
    },
}

impl Step {
    /// Whether the answer goes on until its time is over.
    pub fn is_watch(&self) -> bool {
        self.path.contains("watch=1") && self.method == "GET"
    }

    /// How long a watch goes on.
    pub fn lasts(&self) -> Option<Duration> {
        let (_, seconds) = self.path.split_once("timeoutSeconds=").filter(|_| self.is_watch())?;
        seconds.split('&').next()?.parse().ok().map(Duration::from_secs)
    }

    /// The same with so many times as long for a watch.
    pub fn with_more_time(&self, times: u32) -> Self {
        let mut step = self.clone();
        if let Some(lasts) = self.lasts() {
            let seconds = |lasts: Duration| format!("timeoutSeconds={}", lasts.as_secs());
            step.path = step.path.replace(&seconds(lasts), &seconds(lasts * times));
        }
        step
    }

    /// Whether a watch does not begin at a version.
    pub fn begins_with_what_is_there(&self) -> bool {
        self.path.contains("sendInitialEvents=true") || !self.path.contains("resourceVersion=<<")
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:>3}  {} {}", self.id, self.method, self.path)?;
        for (name, value) in &self.headers {
            write!(out, "  [{name}: {value}]")?;
        }
        match &self.body {
            Body::Text(text) if text.is_empty() => Ok(()),
            Body::Text(text) => write!(out, "\n       {text}"),
            Body::Edited { of, change } => write!(out, "\n       what {of} said, with {change}"),
        }
    }
}

/// What answers so far said, for the requests that come.
#[derive(Default)]
pub struct Memory {
    pub namespace: String,
    /// The version in which the namespace was new.
    pub version: String,
    pub answers: BTreeMap<usize, Value>,
}

impl Memory {
    /// A text with its placeholders filled. What was never said is a word that no server knows, or the first version.
    pub fn fill(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("<<") {
            let (what, after) = after.split_once(">>").expect("a placeholder ends");
            filled.push_str(before);
            filled.push_str(&self.value(what));
            rest = after;
        }
        filled + rest
    }

    fn value(&self, what: &str) -> String {
        if what == "ns" {
            return self.namespace.clone();
        }
        let (step, field) = what.split_once('.').expect("a placeholder names a step and a field");
        let pointer = match field {
            "uid" => "/metadata/uid",
            "rv" => "/metadata/resourceVersion",
            "name" => "/metadata/name",
            "continue" => "/metadata/continue",
            other => panic!("no answer has {other}"),
        };
        let said = self.answers.get(&step.parse().unwrap()).and_then(|answer| answer.pointer(pointer));
        said.and_then(Value::as_str).unwrap_or(if field == "rv" { &self.version } else { "unknown" }).to_owned()
    }

    pub fn body(&self, body: &Body) -> String {
        match body {
            Body::Text(text) => self.fill(text),
            Body::Edited { of, change } => {
                // A refusal is no object; what is left is the change alone.
                let said = self.answers.get(of).filter(|answer| answer["kind"] != "Status");
                let mut object = said.cloned().unwrap_or_else(|| json!({}));
                json_patch::merge(&mut object, &serde_json::from_str(&self.fill(&change.to_string())).unwrap());
                object.to_string()
            }
        }
    }
}
