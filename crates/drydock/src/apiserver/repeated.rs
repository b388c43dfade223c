//! Members that an object has twice. JSON allows them and the last one counts, but whoever sends them hardly means it.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::schema::{Schema, join};

/// As what a body is read. Nobody looks into what is not known, nor into what is kept as it was sent.
#[derive(Clone, Copy)]
pub(crate) enum As<'s> {
    Anything,
    Known(&'s Schema),
    /// A JSON Patch.
    Operations,
    Operation,
}

/// A member that comes up again, or that nobody knows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Odd {
    /// Where it is, as Go says it.
    pub(crate) path: String,
    /// The steps to the object that has it.
    pub(crate) holder: Vec<String>,
    pub(crate) name: String,
    pub(crate) known: bool,
}

/// The members of an operation.
const OPERATION: [&str; 4] = ["op", "path", "from", "value"];

/// The members that are there more than once, in the order in which they come up again, and those of operations that nobody
/// knows. What is not JSON has none.
pub(crate) fn odd_members(body: &[u8], read_as: As<'_>) -> Vec<Odd> {
    let mut found = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(body);
    match (Search { path: String::new(), steps: Vec::new(), read_as, found: &mut found }).deserialize(&mut json) {
        Ok(()) => found,
        Err(_) => Vec::new(),
    }
}

impl As<'_> {
    /// As what a member is read; `None` where nobody looks.
    pub(crate) fn member(self, name: &str) -> Option<Self> {
        match self {
            Self::Anything => Some(self),
            Self::Known(schema) => schema.member(name).filter(|schema| !schema.is_raw()).map(Self::Known),
            Self::Operation => OPERATION.contains(&name).then_some(Self::Anything),
            Self::Operations => None,
        }
    }

    /// Whether a member is known. One that is kept as it was sent is.
    pub(crate) fn knows(self, name: &str) -> bool {
        match self {
            Self::Known(schema) => schema.member(name).is_some(),
            Self::Operation => OPERATION.contains(&name),
            Self::Anything | Self::Operations => true,
        }
    }

    pub(crate) fn item(self) -> Self {
        match self {
            Self::Known(schema) => Self::Known(schema.item()),
            Self::Operations => Self::Operation,
            other => other,
        }
    }
}

/// Looks through the value at a path.
struct Search<'s, 'f> {
    path: String,
    steps: Vec<String>,
    read_as: As<'s>,
    found: &'f mut Vec<Odd>,
}

impl Search<'_, '_> {
    fn tell(&mut self, name: &str, known: bool) {
        let path = join(&self.path, name);
        if !self.found.iter().any(|odd| odd.path == path && odd.known == known) {
            self.found.push(Odd { path, holder: self.steps.clone(), name: name.to_owned(), known });
        }
    }

    /// The steps to a part.
    fn steps_to(&self, part: String) -> Vec<String> {
        self.steps.iter().cloned().chain([part]).collect()
    }
}

impl<'de> DeserializeSeed<'de> for Search<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(name) = members.next_key::<String>()? {
            let (below, known) = (self.read_as.member(&name), self.read_as.knows(&name));
            if !known && matches!(self.read_as, As::Operation) {
                self.tell(&name, false);
            } else if known && !seen.insert(name.clone()) {
                self.tell(&name, true);
            }
            match below {
                Some(read_as) => {
                    let (path, steps) = (join(&self.path, &name), self.steps_to(name));
                    members.next_value_seed(Search { path, steps, read_as, found: &mut *self.found })?;
                }
                None => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for at in 0_usize.. {
            let (path, steps) = (format!("{}[{at}]", self.path), self.steps_to(at.to_string()));
            let item = Search { path, steps, read_as: self.read_as.item(), found: &mut *self.found };
            if items.next_element_seed(item)?.is_none() {
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

    fn paths(body: &[u8], read_as: As<'_>) -> Vec<String> {
        odd_members(body, read_as).into_iter().map(|odd| odd.path).collect()
    }

    #[test]
    fn members_are_named_where_they_come_up_again() {
        let body = br#"{"data": {"k": "1", "k": 2, "k": null}, "list": [{}, {"x": 1.5, "x": true}], "data": {}}"#;
        assert_eq!(paths(body, As::Anything), ["data.k", "list[1].x", "data"]);
        assert!(paths(b"{\"a\": 1", As::Anything).is_empty());
    }

    #[test]
    fn nobody_looks_into_what_is_unknown_or_kept_as_it_was_sent() {
        let schema = Schema::named("apps.v1.ControllerRevision");
        let body = br#"{"data": {"k": 1, "k": 2}, "data": {}, "odd": {"k": 1, "k": 2}, "odd": 1, "metadata": {"name": "a", "name": "b"}}"#;
        assert_eq!(paths(body, As::Known(&schema)), ["data", "metadata.name"]);
    }

    #[test]
    fn operations_are_asked_for_what_nobody_knows_too() {
        let body = br#"[{"op": "add", "op": "add", "more": {"x": 1, "x": 2}, "value": [{"x": 1, "x": 2}]}]"#;
        let odd = odd_members(body, As::Operations);
        let told: Vec<_> = odd.iter().map(|odd| (odd.path.as_str(), odd.known)).collect();
        assert_eq!(told, [("[0].op", true), ("[0].more", false), ("[0].value[0].x", true)]);
        assert_eq!((odd[2].holder.join("/"), odd[2].name.as_str()), ("0/value/0".to_owned(), "x"));
    }
}
