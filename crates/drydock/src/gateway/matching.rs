//! Which request a rule is for, and which of two rules goes first: the precedence of the Gateway API.

use std::cmp::Reverse;

use http::{HeaderMap, Method};
use regex::Regex;

use super::spec;

/// A hostname of a listener or a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hostname {
    /// Everything.
    Any,
    /// `*.example.com`, kept as `.example.com`.
    Wildcard(String),
    /// One name.
    Exact(String),
}

impl Hostname {
    pub fn parse(text: Option<&str>) -> Self {
        match text.map(str::to_ascii_lowercase) {
            None => Self::Any,
            Some(text) if text.is_empty() || text == "*" => Self::Any,
            Some(text) => match text.strip_prefix('*') {
                Some(suffix) => Self::Wildcard(suffix.to_owned()),
                None => Self::Exact(text),
            },
        }
    }

    /// Whether a lower-case host without port is meant.
    pub fn matches(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            // The wildcard stands for at least one label.
            Self::Wildcard(suffix) => host.len() > suffix.len() && host.ends_with(suffix.as_str()),
            Self::Exact(name) => name == host,
        }
    }

    /// The narrower of two hostnames; `None` if no host is meant by both.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, narrow) | (narrow, Self::Any) => Some(narrow.clone()),
            (Self::Exact(name), pattern) | (pattern, Self::Exact(name)) => {
                pattern.matches(name).then(|| Self::Exact(name.clone()))
            }
            (Self::Wildcard(one), Self::Wildcard(two)) => {
                let (short, long) = if one.len() <= two.len() { (one, two) } else { (two, one) };
                long.ends_with(short.as_str()).then(|| Self::Wildcard(long.clone()))
            }
        }
    }

    /// Sorts the most specific first: exact names, then wildcards by length, then everything.
    pub fn rank(&self) -> (u8, Reverse<usize>) {
        match self {
            Self::Exact(name) => (0, Reverse(name.len())),
            Self::Wildcard(suffix) => (1, Reverse(suffix.len())),
            Self::Any => (2, Reverse(0)),
        }
    }
}

#[derive(Clone, Debug)]
enum Text {
    Exact(String),
    Pattern(Regex),
}

impl Text {
    fn parse(kind: &str, value: &str) -> Result<Self, String> {
        match kind {
            "Exact" => Ok(Self::Exact(value.to_owned())),
            "RegularExpression" => pattern(value).map(Self::Pattern),
            other => Err(format!("match type {other:?} is not supported")),
        }
    }

    fn matches(&self, value: &str) -> bool {
        match self {
            Self::Exact(text) => text == value,
            Self::Pattern(pattern) => pattern.is_match(value),
        }
    }
}

/// A regular expression that must cover the whole text, as in Envoy.
fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(&format!("^(?:{text})$")).map_err(|_| format!("{text:?} is not a regular expression"))
}

#[derive(Clone, Debug)]
enum Path {
    Exact(String),
    /// Without a trailing slash; empty for `/`.
    Prefix(String),
    Pattern(Regex),
}

/// The conditions of one `matches` entry.
#[derive(Clone, Debug)]
pub(super) struct Matcher {
    path: Path,
    method: Option<Method>,
    headers: Vec<(String, Text)>,
    query: Vec<(String, Text)>,
}

/// What a request is matched by.
pub(super) struct Question<'a> {
    pub path: &'a str,
    pub query: &'a str,
    pub method: &'a Method,
    pub headers: &'a HeaderMap,
}

impl Matcher {
    /// Reads a match; an error says which value is not supported.
    pub fn parse(spec: &spec::Match) -> Result<Self, String> {
        let path = match spec.path.kind.as_str() {
            "Exact" => Path::Exact(spec.path.value.clone()),
            "PathPrefix" => Path::Prefix(spec.path.value.trim_end_matches('/').to_owned()),
            "RegularExpression" => Path::Pattern(pattern(&spec.path.value)?),
            other => return Err(format!("path match type {other:?} is not supported")),
        };
        let method = match &spec.method {
            Some(method) => Some(method.parse().map_err(|_| format!("{method:?} is not a method"))?),
            None => None,
        };
        let values = |matches: &[spec::ValueMatch], fold: fn(&str) -> String| {
            let mut read: Vec<(String, Text)> = Vec::new();
            for value in matches {
                let name = fold(&value.name);
                // Of several entries with one name only the first counts, says the API.
                if read.iter().all(|(seen, _)| *seen != name) {
                    read.push((name, Text::parse(&value.kind, &value.value)?));
                }
            }
            Ok::<_, String>(read)
        };
        Ok(Self {
            path,
            method,
            headers: values(&spec.headers, str::to_ascii_lowercase)?,
            query: values(&spec.query_params, str::to_owned)?,
        })
    }

    pub fn matches(&self, asked: &Question<'_>) -> bool {
        let path = match &self.path {
            Path::Exact(path) => path == asked.path,
            Path::Prefix(prefix) => after_prefix(prefix, asked.path).is_some(),
            Path::Pattern(pattern) => pattern.is_match(asked.path),
        };
        path && self.method.as_ref().is_none_or(|method| method == asked.method)
            && self.headers.iter().all(|(name, text)| {
                let values: Vec<&str> =
                    asked.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
                !values.is_empty() && text.matches(&values.join(","))
            })
            && self.query.iter().all(|(name, text)| {
                let mut pairs = url::form_urlencoded::parse(asked.query.as_bytes());
                pairs.find(|(key, _)| key == name).is_some_and(|(_, value)| text.matches(&value))
            })
    }

    /// The prefix that matched, for filters that replace it.
    pub fn prefix(&self) -> Option<&str> {
        match &self.path {
            Path::Prefix(prefix) => Some(prefix),
            _ => None,
        }
    }

    /// Sorts the more specific first: exact paths, patterns, prefixes by length; then a method, then the number of headers,
    /// then of query parameters. The specification leaves the place of patterns open; Envoy looks at them before prefixes.
    pub fn rank(&self) -> impl Ord + use<> {
        let path = match &self.path {
            Path::Exact(path) => (0, Reverse(path.len())),
            Path::Pattern(pattern) => (1, Reverse(pattern.as_str().len())),
            Path::Prefix(prefix) => (2, Reverse(prefix.len())),
        };
        (path, Reverse(self.method.is_some()), Reverse(self.headers.len()), Reverse(self.query.len()))
    }
}

/// What follows a prefix that ends at a path element; `prefix` has no trailing slash.
pub(super) fn after_prefix<'p>(prefix: &str, path: &'p str) -> Option<&'p str> {
    path.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn host(text: &str) -> Hostname {
        Hostname::parse(Some(text))
    }

    fn matcher(spec: serde_json::Value) -> Matcher {
        Matcher::parse(&serde_json::from_value(spec).unwrap()).unwrap()
    }

    fn asks(matcher: &Matcher, method: &str, target: &str, headers: &[(&'static str, &str)]) -> bool {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        matcher.matches(&Question { path, query, method: &method.parse().unwrap(), headers: &map })
    }

    #[test]
    fn a_wildcard_stands_for_one_or_more_labels() {
        let wildcard = host("*.example.com");
        assert!(wildcard.matches("www.example.com") && wildcard.matches("a.b.example.com"));
        assert!(!wildcard.matches("example.com") && !wildcard.matches("badexample.com"));
    }

    #[test]
    fn hostnames_intersect_to_the_narrower() {
        let both = |one, two| host(one).intersect(&host(two));
        assert_eq!(both("*.example.com", "www.example.com"), Some(host("www.example.com")));
        assert_eq!(both("*.b.example.com", "*.example.com"), Some(host("*.b.example.com")));
        assert_eq!(both("*", "*.example.com"), Some(host("*.example.com")));
        assert_eq!(both("*.example.com", "example.com"), None);
        assert_eq!(both("a.example.com", "b.example.com"), None);
    }

    #[test]
    fn prefixes_end_at_a_path_element() {
        let prefix = matcher(json!({"path": {"type": "PathPrefix", "value": "/abc/"}}));
        for (path, expected) in [("/abc", true), ("/abc/", true), ("/abc/def", true), ("/abcd", false), ("/", false)] {
            assert_eq!(asks(&prefix, "GET", path, &[]), expected, "{path}");
        }
        assert!(asks(&matcher(json!({})), "GET", "/anything", &[]));
    }

    #[test]
    fn headers_query_and_method_must_all_match() {
        let all = matcher(json!({
            "method": "POST",
            "headers": [{"name": "Cookie", "type": "RegularExpression", "value": "^(.*?;)?(type=insider)(;.*)?$"}],
            "queryParams": [{"name": "v", "value": "a b"}],
        }));
        let cookie = ("cookie", "id=1;type=insider;x=2");
        assert!(asks(&all, "POST", "/?v=a%20b&v=c", &[cookie]));
        assert!(!asks(&all, "GET", "/?v=a%20b", &[cookie]));
        assert!(!asks(&all, "POST", "/?v=ab", &[cookie]));
        assert!(!asks(&all, "POST", "/?v=a%20b", &[("cookie", "type=insiders")]));
        assert!(!asks(&all, "POST", "/?v=a%20b", &[]));
    }

    #[test]
    fn precedence_is_that_of_the_specification() {
        let ordered = [
            json!({"path": {"type": "Exact", "value": "/a"}}),
            json!({"path": {"type": "RegularExpression", "value": "/.*"}}),
            json!({"path": {"type": "PathPrefix", "value": "/long/prefix"}}),
            json!({"path": {"type": "PathPrefix", "value": "/long"}, "method": "GET"}),
            json!({"path": {"type": "PathPrefix", "value": "/long"}, "headers": [{"name": "a", "value": "1"}, {"name": "b", "value": "1"}]}),
            json!({"path": {"type": "PathPrefix", "value": "/long"}, "headers": [{"name": "a", "value": "1"}], "queryParams": [{"name": "q", "value": "1"}]}),
            json!({"path": {"type": "PathPrefix", "value": "/long"}, "headers": [{"name": "a", "value": "1"}]}),
            json!({"path": {"type": "PathPrefix", "value": "/long"}, "queryParams": [{"name": "q", "value": "1"}]}),
            json!({"path": {"type": "PathPrefix", "value": "/long"}}),
            json!({}),
        ];
        let matchers: Vec<Matcher> = ordered.into_iter().map(matcher).collect();
        for pair in matchers.windows(2) {
            assert!(pair[0].rank() < pair[1].rank(), "{pair:?}");
        }
    }

    #[test]
    fn what_cannot_be_obeyed_is_an_error() {
        let parse = |value| Matcher::parse(&serde_json::from_value(value).unwrap());
        assert!(parse(json!({"path": {"type": "RegularExpression", "value": "("}})).is_err());
        assert!(parse(json!({"headers": [{"name": "a", "type": "Glob", "value": "*"}]})).is_err());
    }
}
