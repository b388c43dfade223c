//! Table output: the columns `kubectl get` prints.
//!
//! A CRD's printer columns are read with the part of JSONPath that structural schemas allow (member access, indices,
//! filters by equality). Built-in kinds have columns of their own.

use jiff::{Timestamp, Unit};
use serde_json::{Value, json};

use super::columns::Column;
use super::meta;
use super::registry::Served;
use super::view::partial;

/// The objects as a `meta.k8s.io/v1` Table.
pub(crate) fn table(served: &Served, items: &[&Value], metadata: &Value, now: Timestamp) -> Value {
    let declared = &served.version().columns;
    if declared.is_empty() {
        let mut table = printed(served.resource.behaviour.columns, items, metadata, now);
        if served.resource.behaviour.unprinted && items.is_empty() {
            table["rows"] = Value::Null;
        }
        return table;
    }
    let shown = |column: &Value| {
        let text = |field: &str| column.get(field).and_then(Value::as_str).unwrap_or_default();
        let priority = column.get("priority").and_then(Value::as_u64).unwrap_or(0);
        define(text("name"), text("type"), text("format"), text("description"), priority)
    };
    let name = std::iter::once(define("Name", "string", "name", "", 0));
    let row = |item: &&Value| {
        let rest = declared.iter().map(|column| cell(column, item, now));
        std::iter::once(json!(meta::name(item))).chain(rest).collect()
    };
    let cells: Vec<_> = items.iter().map(row).collect();
    let definitions: Vec<_> = name.chain(declared.iter().map(shown)).collect();
    assemble(&definitions, &cells, items, metadata)
}

/// Anything as a Table with columns of this server.
pub(crate) fn printed(columns: &[Column], items: &[&Value], metadata: &Value, now: Timestamp) -> Value {
    let shown = |column: &Column| define(column.name, column.kind, column.format, "", u64::from(column.priority));
    let row = |item: &&Value| columns.iter().map(|column| (column.cell)(item, now)).collect();
    let cells: Vec<_> = items.iter().map(row).collect();
    let definitions: Vec<_> = columns.iter().map(shown).collect();
    assemble(&definitions, &cells, items, metadata)
}

fn assemble(definitions: &[Value], cells: &[Vec<Value>], items: &[&Value], metadata: &Value) -> Value {
    let rows: Vec<_> =
        cells.iter().zip(items).map(|(cells, item)| json!({"cells": cells, "object": partial(item)})).collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": definitions, "rows": rows,
    })
}

fn define(name: &str, kind: &str, format: &str, description: &str, priority: u64) -> Value {
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}

fn cell(column: &Value, item: &Value, now: Timestamp) -> Value {
    let found = select(item, meta::text(column, "/jsonPath"));
    match (meta::text(column, "/type"), found) {
        (_, None) => Value::Null,
        ("date", Some(value)) => match value.as_str().and_then(|text| text.parse::<Timestamp>().ok()) {
            Some(time) => json!(age(time, now)),
            None => json!("<unknown>"),
        },
        ("string", Some(value)) => match value {
            Value::String(_) => value.clone(),
            other => json!(other.to_string()),
        },
        (_, Some(value)) => value.clone(),
    }
}

/// How long ago, as kubectl shows it: two units at most.
pub(crate) fn age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.since(then).ok().and_then(|span| span.total(Unit::Second).ok()).unwrap_or(0.0).max(0.0) as u64;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let pair = |big: u64, unit: &str, small: u64, small_unit: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        _ => pair(days / 365, "y", days % 365, "d"),
    }
}

/// Evaluates a simple JSONPath; the first match counts.
fn select<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let path = path.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
    let mut value = value;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (step, after) = inner.split_once(']')?;
            value = index(value, step)?;
            rest = after;
        } else {
            let inner = rest.strip_prefix('.').unwrap_or(rest);
            let end = step_end(inner);
            value = value.get(inner[..end].replace("\\.", "."))?;
            rest = &inner[end..];
        }
    }
    Some(value)
}

/// Where a member name ends; a dot after a backslash belongs to the name.
fn step_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            '\\' => escaped = true,
            '.' | '[' if !escaped => return at,
            _ => escaped = false,
        }
    }
    text.len()
}

fn index<'a>(value: &'a Value, step: &str) -> Option<&'a Value> {
    let items = value.as_array();
    if let Some(filter) = step.strip_prefix("?(").and_then(|step| step.strip_suffix(')')) {
        let (path, wanted) = filter.split_once("==")?;
        let wanted = wanted.trim().trim_matches(['"', '\'']);
        let path = path.trim().trim_start_matches('@');
        return items?.iter().find(|item| select(item, path).and_then(Value::as_str) == Some(wanted));
    }
    match step {
        "*" => items?.first(),
        quoted if quoted.starts_with(['"', '\'']) => value.get(quoted.trim_matches(['"', '\''])),
        number => items?.get(number.parse::<usize>().ok()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_printer_columns() {
        let object = json!({"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}]},
            "metadata": {"annotations": {"a.b/c": "x"}}});
        let get = |path| select(&object, path).and_then(Value::as_str);
        assert_eq!(get(".status.conditions[?(@.type==\"Ready\")].status"), Some("True"));
        assert_eq!(get(".status.conditions[0].status"), Some("False"));
        assert_eq!(get(".metadata.annotations.a\\.b/c"), Some("x"));
        assert_eq!(get(".metadata.annotations['a.b/c']"), Some("x"));
        assert_eq!(get(".spec.missing"), None);
    }

    #[test]
    fn ages_have_two_units_at_most() {
        let shown = |seconds: i64| age(Timestamp::UNIX_EPOCH, Timestamp::from_second(seconds).unwrap());
        assert_eq!(shown(5), "5s");
        assert_eq!(shown(125), "2m5s");
        assert_eq!(shown(3600), "60m");
        assert_eq!(shown(4 * 3600 + 60), "4h1m");
        assert_eq!(shown(30 * 86_400), "30d");
    }
}
