//! Objects in which a member is there twice, as Go reads them into its types: the second is read over the first.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::schema::Schema;

/// Reads a body. What is not JSON is nothing.
pub(crate) fn read(body: &[u8], schema: &Schema) -> Option<Value> {
    let mut json = serde_json::Deserializer::from_slice(body);
    Over { schema: Some(schema), before: Value::Null }.deserialize(&mut json).ok()
}

/// A value that is read over another.
struct Over<'s> {
    schema: Option<&'s Schema>,
    before: Value,
}

impl<'de> DeserializeSeed<'de> for Over<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Over<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let schema = self.schema.filter(|schema| !schema.is_raw());
        let mut all = match self.before {
            Value::Object(before) if schema.is_some() => before,
            _ => Map::new(),
        };
        while let Some(name) = members.next_key::<String>()? {
            // Only what has a field of its own is read over what was there.
            let is_field = schema.is_some_and(|schema| schema.resolve().properties.contains_key(&name));
            let before = all.get(&name).filter(|_| is_field).cloned().unwrap_or_default();
            let schema = schema.and_then(|schema| schema.member(&name));
            let value = members.next_value_seed(Over { schema, before })?;
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let schema = self.schema.filter(|schema| !schema.is_raw());
        let mut before = match self.before {
            Value::Array(before) if schema.is_some() => before,
            _ => Vec::new(),
        }
        .into_iter();
        let mut all = Vec::new();
        while let Some(item) = {
            let before = before.next().unwrap_or_default();
            items.next_element_seed(Over { schema: schema.map(Schema::item), before })?
        } {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_read_over_what_was_there_and_keys_of_maps_are_new() {
        let map =
            br#"{"data":{"a":"1","b":"1"},"metadata":{"name":"x"},"data":{"b":"2"},"metadata":{"namespace":"y"}}"#;
        let read_map = read(map, &Schema::named("core.v1.ConfigMap")).unwrap();
        let metadata = json!({"name": "x", "namespace": "y"});
        assert_eq!(read_map, json!({"data": {"a": "1", "b": "2"}, "metadata": metadata}));
        let revision = br#"{"data":{"a":1},"data":{"b":2}}"#;
        let revision = read(revision, &Schema::named("apps.v1.ControllerRevision")).unwrap();
        assert_eq!(revision, json!({"data": {"b": 2}}));
    }
}
