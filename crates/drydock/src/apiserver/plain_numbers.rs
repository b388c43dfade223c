//! Whole numbers of custom resources. Go writes them without a point, however they came in.

use serde_json::Value;

use super::schema::{Kind, Schema};

/// The first whole number that has no place among integers any more.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// A whole number that came with a point. Whoever looks before it is stored sees a number with a fraction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pointed {
    /// Its place, a JSON pointer.
    pub(crate) place: String,
    /// Whether only an integer may be there.
    pub(crate) integer: bool,
}

/// Writes whole numbers without a point, and says which had one. One that stands where no number may is left, so that it
/// can be told what it is.
pub(crate) fn write_plainly(schema: &Schema, value: &mut Value) -> Vec<Pointed> {
    let mut found = Vec::new();
    write(schema, value, "", &mut found);
    found
}

fn write(schema: &Schema, value: &mut Value, place: &str, found: &mut Vec<Pointed>) {
    let node = schema.resolve();
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if let Some(schema) = node.member(name) {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    write(schema, value, &format!("{place}/{name}"), found);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                write(schema.item(), item, &format!("{place}/{index}"), found);
            }
        }
        Value::Number(number) if !matches!(node.kind, Kind::String | Kind::Boolean | Kind::Object | Kind::Array) => {
            let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(whole) else { return };
            *value = whole.into();
            found.push(Pointed { place: place.to_owned(), integer: node.kind == Kind::Integer });
        }
        _ => {}
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
        let found = write_plainly(&schema, &mut value);
        let found: Vec<_> = found.iter().map(|one| (one.place.as_str(), one.integer)).collect();
        assert_eq!(found, [("/count", true), ("/steps/0", true), ("/port", false), ("/any/deep/0", false)]);
        let plain =
            json!({"count": 100, "share": 1.5, "steps": [10, 20], "port": 80, "any": {"deep": [2]}, "text": 1.0});
        assert_eq!(value, plain);
        assert_eq!(write_plainly(&schema, &mut value), []);
    }
}
