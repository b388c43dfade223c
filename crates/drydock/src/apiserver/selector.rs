//! Label and field selectors.

use serde_json::Value;

use super::error::{ApiError, Result};
use super::labels::{self, Requirement};
use super::meta;

/// A parsed pair of selectors; the empty one matches everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<(String, bool, String)>,
}

impl Selector {
    /// Parses the two query parameters. `selectable` says which fields the resource offers beyond its name; `None` that
    /// nobody has thought of any.
    pub(crate) fn parse(labels: &str, fields: &str, selectable: Option<&[String]>) -> Result<Self> {
        let fields = terms(fields)?;
        fields.iter().try_for_each(|(path, _, _)| known(path, selectable))?;
        Ok(Self { labels: labels::parse(labels)?, fields })
    }

    /// Whether both can be read at all, whatever they name.
    pub(crate) fn read(labels: &str, fields: &str) -> Result<()> {
        labels::parse(labels)?;
        terms(fields).map(drop)
    }

    /// Asks for one name too.
    pub(crate) fn name(&mut self, name: &str) {
        self.fields.push(("metadata.name".to_owned(), true, name.to_owned()));
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

    /// Whether it asks for one object by its name.
    pub(crate) fn names_one(&self) -> bool {
        self.fields.iter().any(|(path, equal, _)| path == "metadata.name" && *equal)
    }

    /// Whether the object is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        self.labels.iter().all(|requirement| requirement.holds(label(requirement.key())))
            && self.fields.iter().all(|(path, equal, value)| (field(object, path) == *value) == *equal)
    }
}

/// The text of a selectable field; a missing one is the empty string.
fn field(object: &Value, path: &str) -> String {
    if path == "source" && meta::text(object, "/kind") == "Event" {
        return source(object).to_owned();
    }
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

/// Who says what an Event says, in old words or in new ones.
fn source(event: &Value) -> &str {
    let old = meta::text(event, "/source/component");
    if old.is_empty() { meta::text(event, "/reportingComponent") } else { old }
}

/// The fields by which everything can be selected.
const ALWAYS: [&str; 2] = ["metadata.name", "metadata.namespace"];

/// A field, whether it must be equal, and to what.
type Term = (String, bool, String);

/// The terms of a selector in the order in which Go looks at them. Signs that mean something are escaped in values.
fn terms(selector: &str) -> Result<Vec<Term>> {
    let (mut parts, mut escaped) = (vec![String::new()], false);
    for sign in selector.chars() {
        if sign == ',' && !escaped {
            parts.push(String::new());
            continue;
        }
        escaped = sign == '\\' && !escaped;
        if let Some(part) = parts.last_mut() {
            part.push(sign);
        }
    }
    parts.sort_unstable();
    let parts = parts.iter().filter(|part| !part.is_empty());
    let read = |part: &String| {
        let Some((path, equal, value)) = split(part) else {
            let why = format!("invalid selector: '{selector}'; can't understand '{part}'");
            return Err(ApiError::bad_request(why));
        };
        let value = unescaped(value);
        let value = value.map_err(|why| ApiError::bad_request(format!("invalid field selector: {why}")))?;
        Ok((path.to_owned(), equal, value))
    };
    parts.map(read).collect()
}

fn split(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find('=')?;
    let at = if term[..at].ends_with('!') { at - 1 } else { at };
    let (path, rest) = term.split_at(at);
    let value = rest.strip_prefix("!=").map(|value| (false, value));
    let (equal, value) = value.or_else(|| Some((true, rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?)))?;
    Some((path, equal, value))
}

fn unescaped(value: &str) -> Result<String, String> {
    let (mut text, mut signs) = (String::new(), value.chars());
    while let Some(sign) = signs.next() {
        match (sign, if sign == '\\' { signs.next() } else { None }) {
            ('\\', Some(meant @ ('\\' | ',' | '='))) => text.push(meant),
            ('\\', other) => {
                return Err(format!("invalid escape sequence: \\{}", other.map(String::from).unwrap_or_default()));
            }
            (',' | '=', _) => return Err(format!("unescaped character in value: {}", u32::from(sign))),
            _ => text.push(sign),
        }
    }
    Ok(text)
}

/// Refuses a field by which nothing can be selected.
fn known(path: &str, selectable: Option<&[String]>) -> Result<()> {
    if ALWAYS.contains(&path) || selectable.is_some_and(|fields| fields.iter().any(|known| known == path)) {
        return Ok(());
    }
    Err(ApiError::bad_request(match selectable {
        None => format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""),
        Some(_) => format!("field label not supported: {path}"),
    }))
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

    #[test]
    fn fields_are_compared_as_text_and_unknown_ones_refused() {
        let object = json!({"metadata": {"name": "a"}, "status": {"phase": "Running"}});
        let allowed = ["status.phase", "spec.nodeName"].map(str::to_owned);
        let matches = |text| Selector::parse("", text, Some(&allowed)).unwrap().matches(&object);
        assert!(matches("metadata.name=a,status.phase!=Failed,spec.nodeName="));
        assert!(!matches("status.phase=Failed"));
        assert!(Selector::parse("", "spec.image=x", Some(&allowed)).is_err());
        assert!(Selector::parse("", "metadata.name=a", None).is_ok());
        assert!(!matches("metadata.name= a") && !matches(r"metadata.name=\,a"));
        for bad in ["metadata.name =a", "metadata.name=a=b", r"metadata.name=\a", "metadata.name==="] {
            assert!(Selector::parse("", bad, Some(&allowed)).is_err(), "{bad}");
        }
    }
}
