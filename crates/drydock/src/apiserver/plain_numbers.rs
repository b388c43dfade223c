//! Whole numbers of custom resources. Go writes them without a point, however they came in.

use serde_json::Value;

use super::schema::{Kind, Schema};

/// The first whole number that has no place among integers any more.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// Writes whole numbers without a point, and says how many had one. One that stands where no number may is left, so that it
/// can be told what it is.
pub(crate) fn write_plainly(schema: &Schema, value: &mut Value) -> usize {
    let node = schema.resolve();
    match value {
        Value::Object(members) => members
            .iter_mut()
            .filter_map(|(name, value)| node.member(name).map(|schema| write_plainly(schema, value)))
            .sum(),
        Value::Array(items) => items.iter_mut().map(|item| write_plainly(schema.item(), item)).sum(),
        Value::Number(number) if !matches!(node.kind, Kind::String | Kind::Boolean | Kind::Object | Kind::Array) => {
            let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(whole) else { return 0 };
            *value = whole.into();
            1
        }
        _ => 0,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it is whole and fits")]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < TOO_LARGE).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_numbers_lose_their_point_where_numbers_may_be() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "steps": {"type": "array", "items": {"type": "integer"}},
            "port": {"x-kubernetes-int-or-string": true},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "text": {"type": "string"},
        }}));
        let mut value =
            json!({"count": 1e2, "share": 1.5, "steps": [10.0, 20], "port": 80.0, "any": {"deep": [2.0]}, "text": 1.0});
        assert_eq!(write_plainly(&schema, &mut value), 4);
        let plain =
            json!({"count": 100, "share": 1.5, "steps": [10, 20], "port": 80, "any": {"deep": [2]}, "text": 1.0});
        assert_eq!(value, plain);
        assert_eq!(write_plainly(&schema, &mut value), 0);
    }
}
