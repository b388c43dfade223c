//! Label and field selectors.

use std::collections::BTreeSet;

use serde_json::Value;

use super::error::{ApiError, Result};
use super::meta;

/// A parsed pair of selectors; the empty one matches everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<(String, bool, String)>,
}

#[derive(Clone, Debug)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Exists,
    Missing,
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Above(i64),
    Below(i64),
}

impl Selector {
    /// Parses the two query parameters. `selectable` says which fields the resource offers.
    pub(crate) fn parse(labels: &str, fields: &str, selectable: &[String]) -> Result<Self> {
        let labels = split(labels).into_iter().map(requirement).collect::<Result<_>>()?;
        let fields = split(fields).into_iter().map(|term| field_term(term, selectable)).collect::<Result<_>>()?;
        Ok(Self { labels, fields })
    }

    /// The same with other paths of fields.
    pub(crate) fn renamed(mut self, rename: impl Fn(&str) -> String) -> Self {
        for (path, _, _) in &mut self.fields {
            *path = rename(path);
        }
        self
    }

    /// Whether it asks for nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether the object is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        self.labels.iter().all(|requirement| requirement.holds(label(&requirement.key)))
            && self.fields.iter().all(|(path, equal, value)| (field(object, path) == *value) == *equal)
    }
}

impl Requirement {
    fn holds(&self, label: Option<&str>) -> bool {
        let number = || label.and_then(|text| text.parse::<i64>().ok());
        match &self.test {
            Test::Exists => label.is_some(),
            Test::Missing => label.is_none(),
            Test::In(values) => label.is_some_and(|text| values.contains(text)),
            Test::NotIn(values) => label.is_none_or(|text| !values.contains(text)),
            Test::Above(bound) => number().is_some_and(|number| number > *bound),
            Test::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// The text of a selectable field; a missing one is the empty string.
fn field(object: &Value, path: &str) -> String {
    let mut value = Some(object);
    for part in path.split('.') {
        value = value.and_then(|value| value.get(part));
    }
    match value {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

/// Splits at commas that are not inside parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut terms, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms.into_iter().map(str::trim).filter(|term| !term.is_empty()).collect()
}

fn requirement(term: &str) -> Result<Requirement> {
    let wrong = || ApiError::bad_request(format!("unable to parse requirement: {term:?} is no label selector"));
    let make = |key: &str, test| {
        let key = key.trim();
        if key.is_empty() { Err(wrong()) } else { Ok(Requirement { key: key.to_owned(), test }) }
    };
    let one = |value: &str| BTreeSet::from([value.trim().to_owned()]);
    if let Some((head, list)) = term.split_once('(') {
        let list = list.strip_suffix(')').ok_or_else(wrong)?;
        let values = list.split(',').map(|value| value.trim().to_owned()).collect();
        let (key, operator) = head.trim().rsplit_once(char::is_whitespace).ok_or_else(wrong)?;
        return match operator {
            "in" => make(key, Test::In(values)),
            "notin" => make(key, Test::NotIn(values)),
            _ => Err(wrong()),
        };
    }
    if let Some((key, value)) = term.split_once("!=") {
        return make(key, Test::NotIn(one(value)));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return make(key, Test::In(one(value)));
    }
    if let Some((key, bound)) = term.split_once('>') {
        return make(key, Test::Above(bound.trim().parse().map_err(|_| wrong())?));
    }
    if let Some((key, bound)) = term.split_once('<') {
        return make(key, Test::Below(bound.trim().parse().map_err(|_| wrong())?));
    }
    match term.strip_prefix('!') {
        Some(key) => make(key, Test::Missing),
        None if term.contains(char::is_whitespace) => Err(wrong()),
        None => make(term, Test::Exists),
    }
}

/// The fields by which everything can be selected.
const ALWAYS: [&str; 2] = ["metadata.name", "metadata.namespace"];

fn field_term(term: &str, selectable: &[String]) -> Result<(String, bool, String)> {
    let (path, equal, value) = if let Some((path, value)) = term.split_once("!=") {
        (path, false, value)
    } else if let Some((path, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        (path, true, value)
    } else {
        return Err(ApiError::bad_request(format!("invalid selector: {term:?}; can't understand {term:?}")));
    };
    let path = path.trim();
    if !ALWAYS.contains(&path) && !selectable.iter().any(|known| known == path) {
        return Err(ApiError::bad_request(if selectable.is_empty() {
            format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        } else {
            format!("field label not supported: {path}")
        }));
    }
    Ok((path.to_owned(), equal, value.trim().to_owned()))
}

/// `matchLabels` and `matchExpressions` as the text of a label selector; what `status.selector` of a scale holds.
pub(crate) fn label_selector_text(selector: &Value) -> String {
    let mut terms = Vec::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        terms.push(format!("{key}={}", value.as_str().unwrap_or_default()));
    }
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let (key, mut values) = (meta::text(expression, "/key"), meta::strings(expression.get("values")));
        values.sort_unstable();
        terms.push(match meta::text(expression, "/operator") {
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            _ => format!("{key} in ({})", values.join(",")),
        });
    }
    terms.sort_unstable();
    terms.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selects(labels: &str) -> bool {
        let object = json!({"metadata": {"labels": {"app": "podinfo", "tier": "web", "size": "7"}}});
        Selector::parse(labels, "", &[]).unwrap().matches(&object)
    }

    #[test]
    fn every_operator_of_a_label_selector() {
        for yes in [
            "",
            "app=podinfo",
            "app==podinfo,tier=web",
            "app!=x",
            "app in (a, podinfo)",
            "app notin (a,b)",
            "tier",
            "!x",
            "size>6",
            "size<8",
            "missing!=x",
            "missing notin (x)",
        ] {
            assert!(selects(yes), "{yes}");
        }
        for no in
            ["app=x", "app!=podinfo", "app in (a)", "app notin (podinfo)", "!app", "missing", "size>7", "x in (y)"]
        {
            assert!(!selects(no), "{no}");
        }
    }

    #[test]
    fn fields_are_compared_as_text_and_unknown_ones_refused() {
        let object = json!({"metadata": {"name": "a"}, "status": {"phase": "Running"}});
        let allowed = ["status.phase", "spec.nodeName"].map(str::to_owned);
        let matches = |text| Selector::parse("", text, &allowed).unwrap().matches(&object);
        assert!(matches("metadata.name=a,status.phase!=Failed,spec.nodeName="));
        assert!(!matches("status.phase=Failed"));
        assert!(Selector::parse("", "spec.image=x", &allowed).is_err());
    }
}
