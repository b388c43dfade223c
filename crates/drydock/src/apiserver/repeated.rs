//! Members that an object has twice. JSON allows them and the last one counts, but whoever sends them hardly means it.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::schema::join;

/// The paths of the members that are there more than once, in the order in which they come up again. What is not JSON has
/// none.
pub(crate) fn repeated(body: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(body);
    match (Search { path: String::new(), found: &mut found }).deserialize(&mut json) {
        Ok(()) => found,
        Err(_) => Vec::new(),
    }
}

/// Looks through the value at a path.
struct Search<'a> {
    path: String,
    found: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(name) = members.next_key::<String>()? {
            let path = join(&self.path, &name);
            if !seen.insert(name) && !self.found.contains(&path) {
                self.found.push(path.clone());
            }
            members.next_value_seed(Search { path, found: &mut *self.found })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for at in 0_usize.. {
            let path = format!("{}[{at}]", self.path);
            if items.next_element_seed(Search { path, found: &mut *self.found })?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_named_where_they_come_up_again() {
        let body = br#"{"data": {"k": "1", "k": 2, "k": null}, "list": [{}, {"x": 1.5, "x": true}], "data": {}}"#;
        assert_eq!(repeated(body), ["data.k", "list[1].x", "data"]);
        assert!(repeated(b"{\"a\": 1").is_empty());
    }
}
