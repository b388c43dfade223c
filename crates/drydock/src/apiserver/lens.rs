//! The same objects under another name: `events.k8s.io/v1` shows the events of the core group with other words.
//!
//! Objects are stored in one shape. A lens is a list of members that are called something else; what a client sends
//! through it is renamed before anything else looks at it, and what it gets is renamed last.

use serde_json::{Map, Value};

use super::fields::Fields;

/// How a resource shows objects that belong to another one.
pub(crate) struct Lens {
    /// The resource whose objects they are.
    pub(crate) of: &'static str,
    /// The version they are stored in.
    pub(crate) api_version: &'static str,
    /// The type they are stored as.
    pub(crate) type_name: &'static str,
    /// Texts that are left out here where nobody said anything.
    unsaid: &'static [&'static str],
    /// What is called differently: here, and there.
    names: &'static [(&'static str, &'static str)],
}

static EVENTS: Lens = Lens {
    of: "events",
    api_version: "v1",
    type_name: "core.v1.Event",
    unsaid: &["reportingController", "reportingInstance"],
    names: &[
        ("deprecatedCount", "count"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedSource", "source"),
        ("note", "message"),
        ("regarding", "involvedObject"),
        ("reportingController", "reportingComponent"),
    ],
};

/// The lens of a resource, by its id.
pub(crate) fn lens(id: &str) -> Option<&'static Lens> {
    (id == "events.events.k8s.io").then_some(&EVENTS)
}

/// The lens that a version is seen through: who wrote in its words owns fields in them.
pub(crate) fn lens_of(api_version: &str) -> Option<&'static Lens> {
    (api_version == "events.k8s.io/v1").then_some(&EVENTS)
}

impl Lens {
    /// What a client sent, as it is stored.
    pub(crate) fn store(&self, object: &mut Value) {
        rename(object, |name| self.names.iter().find(|(here, _)| *here == name).map(|(_, there)| *there));
        if let Value::Object(members) = object {
            members.insert("apiVersion".into(), self.api_version.into());
        }
    }

    /// A stored object as a client sees it. Its version is the view's business.
    pub(crate) fn show(&self, object: &mut Value) {
        rename(object, |name| self.names.iter().find(|(_, there)| *there == name).map(|(here, _)| *here));
        if let Value::Object(members) = object {
            members.retain(|name, value| !self.unsaid.contains(&name.as_str()) || *value != "");
        }
    }

    /// Fields of a stored object as a client calls them.
    pub(crate) fn shown_fields(&self, fields: Fields) -> Fields {
        renamed(fields, |name| self.names.iter().find(|(_, there)| *there == name).map(|(here, _)| *here))
    }

    /// Fields that a client owns as they are called in a stored object.
    pub(crate) fn stored_fields(&self, fields: Fields) -> Fields {
        renamed(fields, |name| self.names.iter().find(|(here, _)| *here == name).map(|(_, there)| *there))
    }

    /// A path of a field selector, as a client writes it.
    pub(crate) fn shown_path(&self, path: &str) -> String {
        change_head(path, self.names.iter().map(|(here, there)| (*there, *here)))
    }

    /// A path of a field selector, into stored objects.
    pub(crate) fn stored_path(&self, path: &str) -> String {
        change_head(path, self.names.iter().copied())
    }
}

fn rename(object: &mut Value, new_name: impl Fn(&str) -> Option<&'static str>) {
    let Value::Object(members) = object else { return };
    let renamed = std::mem::take(members).into_iter().map(|(key, value)| match new_name(&key) {
        Some(name) => (name.to_owned(), value),
        None => (key, value),
    });
    *members = renamed.collect::<Map<_, _>>();
}

fn renamed(fields: Fields, new_name: impl Fn(&str) -> Option<&'static str>) -> Fields {
    let children = fields.children.into_iter().map(|(step, fields)| {
        let new = step.strip_prefix("f:").and_then(&new_name);
        (new.map_or(step, |name| format!("f:{name}")), fields)
    });
    Fields { member: fields.member, children: children.collect() }
}

fn change_head<'a>(path: &str, mut names: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let (head, rest) = path.split_once('.').map_or((path, None), |(head, rest)| (head, Some(rest)));
    let head = names.find(|(from, _)| *from == head).map_or(head, |(_, to)| to);
    rest.map_or_else(|| head.to_owned(), |rest| format!("{head}.{rest}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn there_and_back_is_the_same() {
        let sent = json!({"apiVersion": "v1", "note": "hello", "regarding": {"name": "a"}, "reason": "R"});
        let mut object = sent.clone();
        EVENTS.store(&mut object);
        assert_eq!(
            object,
            json!({"apiVersion": "v1", "message": "hello", "involvedObject": {"name": "a"}, "reason": "R"})
        );
        EVENTS.show(&mut object);
        assert_eq!(object, sent);
        assert_eq!(EVENTS.stored_path("regarding.name"), "involvedObject.name");
        assert_eq!(EVENTS.shown_path("involvedObject.name"), "regarding.name");
        assert_eq!(EVENTS.stored_path("reason"), "reason");
        let fields = Fields::from_json(&json!({"f:note": {}, "f:reason": {}, "f:regarding": {"f:name": {}}}));
        let stored = EVENTS.stored_fields(fields.clone());
        assert_eq!(stored.paths(), [".message", ".reason", ".involvedObject.name"]);
        assert_eq!(EVENTS.shown_fields(stored), fields);
    }
}
