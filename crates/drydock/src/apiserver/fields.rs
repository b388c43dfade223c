//! Sets of fields: which parts of an object somebody owns.
//!
//! A set is a tree in the form Kubernetes writes it (`FieldsV1`): steps are `f:name` for members, `k:{...}` for items of
//! associative lists and `v:...` for items of sets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::go_json::{in_source, shown};
use super::schema::{Kind, ListType, Schema};
use super::validate::key_of;

/// A set of field paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    /// Whether the path that leads here is in the set.
    pub(crate) member: bool,
    pub(crate) children: BTreeMap<String, Fields>,
}

/// What compares as one value: scalars, atomic lists, atomic maps.
fn is_leaf(schema: &Schema, value: &Value) -> bool {
    match value {
        Value::Object(_) => schema.resolve().atomic_map,
        Value::Array(_) => schema.resolve().list == ListType::Atomic,
        _ => true,
    }
}

/// The parts of a value, with the step that leads to each.
fn parts<'a>(schema: &'a Schema, value: &'a Value) -> Vec<(String, Option<&'a Schema>, &'a Value)> {
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (format!("f:{name}"), schema.member(name), value)).collect()
        }
        Value::Array(items) => items.iter().map(|item| (item_step(schema, item), Some(schema.item()), item)).collect(),
        _ => Vec::new(),
    }
}

/// The parts of a value by their steps. Several share one only in lists that are no sets and no maps, though they should be.
type Grouped<'a> = BTreeMap<String, (Option<&'a Schema>, Vec<&'a Value>)>;

fn grouped<'a>(schema: &'a Schema, value: &'a Value) -> Grouped<'a> {
    let mut groups = Grouped::new();
    for (step, schema, part) in parts(schema, value) {
        groups.entry(step).or_insert((schema, Vec::new())).1.push(part);
    }
    groups
}

/// Whether a step leads to a member that the schema knows by name, not to a key of a map or an item of a list.
fn is_named(schema: &Schema, step: &str) -> bool {
    step.strip_prefix("f:").is_some_and(|name| schema.resolve().properties.contains_key(name))
}

/// The step that identifies an item of a list.
pub(crate) fn item_step(schema: &Schema, item: &Value) -> String {
    match &schema.resolve().list {
        ListType::Map(keys) => {
            let mut keys = keys.clone();
            keys.sort();
            let pairs = keys.iter().map(|key| (key.clone(), key_of(schema.item(), item, key)));
            let key: Map<_, _> = pairs.filter(|(_, value)| !value.is_null()).collect();
            format!("k:{}", Value::Object(key))
        }
        _ => format!("v:{item}"),
    }
}

/// The Go type of a value that was read into anything.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

impl Fields {
    fn leaf() -> Self {
        Self { member: true, children: BTreeMap::new() }
    }

    /// The one field that a JSON pointer leads to.
    pub(crate) fn at(pointer: &str) -> Self {
        let mut fields = Self::leaf();
        for step in pointer.split('/').skip(1).collect::<Vec<_>>().into_iter().rev() {
            let mut holder = Self::default();
            holder.add(format!("f:{step}"), fields);
            fields = holder;
        }
        fields
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    /// Every field a value sets. With `containers`, what holds them counts too.
    pub(crate) fn of(schema: &Schema, value: &Value, containers: bool) -> Self {
        if is_leaf(schema, value) {
            return Self::leaf();
        }
        let mut fields = Self::default();
        for (step, (below, parts)) in grouped(schema, value) {
            let Some(below) = below else { continue };
            let mut child = match parts.as_slice() {
                [one] => Self::of(below, one, containers),
                // What is there twice is one field, whatever is in it.
                _ => Self::leaf(),
            };
            child.member |= !is_named(schema, &step);
            fields.add(step, child);
        }
        // A list of items that has none says nothing.
        fields.member = containers || value.as_object().is_some_and(Map::is_empty);
        fields
    }

    /// Compares two states of a value: what was changed or added, and what was removed.
    pub(crate) fn compare(schema: &Schema, old: &Value, new: &Value) -> (Self, Self) {
        let (mut changed, mut removed) = (Self::default(), Self::default());
        if old == new {
            return (changed, removed);
        }
        let comparable = !is_leaf(schema, old) && !is_leaf(schema, new) && old.is_object() == new.is_object();
        // What is null holds nothing, where the other side holds something.
        let holds = |value: &Value| !is_leaf(schema, value) && !parts(schema, value).is_empty();
        let bared = old.is_null() && holds(new) || new.is_null() && holds(old);
        if !comparable && !bared {
            changed.member = true;
            return (changed, removed);
        }
        let (mut before, after) = (grouped(schema, old), grouped(schema, new));
        for (step, (schema, parts)) in after {
            let gone = before.remove(&step).map(|(_, parts)| parts).unwrap_or_default();
            let Some(schema) = schema else { continue };
            let (changes, removals) = Self::compare_parts(schema, &gone, &parts, new.is_array());
            changed.add(step.clone(), changes);
            removed.add(step, removals);
        }
        for (step, (schema, parts)) in before {
            if let Some(schema) = schema {
                removed.add(step, Self::compare_parts(schema, &parts, &[], false).1);
            }
        }
        (changed, removed)
    }

    /// The same for what one step leads to. What is there twice is one field, whatever is in it.
    fn compare_parts(schema: &Schema, old: &[&Value], new: &[&Value], items: bool) -> (Self, Self) {
        let added = |part: Option<&&Value>| part.map(|part| Self::added(schema, part, items)).unwrap_or_default();
        let gone = |part: Option<&&Value>| {
            part.map(|part| Self { member: true, ..Self::of(schema, part, true) }).unwrap_or_default()
        };
        match (old, new) {
            ([old], [new]) => Self::compare(schema, old, new),
            ([], [new]) => (added(Some(new)), Self::default()),
            ([old], []) => (Self::default(), gone(Some(old))),
            ([_, _, ..], [_, _, ..]) => (if old == new { Self::default() } else { Self::leaf() }, Self::default()),
            ([_, _, ..], new) => (added(new.first()), Self::leaf()),
            (old, _) => (Self::leaf(), gone(old.first())),
        }
    }

    /// The fields of a part that was not there before. Items of lists are fields themselves.
    fn added(schema: &Schema, part: &Value, item: bool) -> Self {
        let mut fields = Self::of(schema, part, true);
        fields.member |= item;
        fields
    }

    fn add(&mut self, step: String, fields: Self) {
        if !fields.is_empty() {
            self.children.insert(step, fields);
        }
    }

    pub(crate) fn union(mut self, other: &Self) -> Self {
        self.member |= other.member;
        for (step, fields) in &other.children {
            let child = self.children.remove(step).unwrap_or_default();
            self.children.insert(step.clone(), child.union(fields));
        }
        self
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let shared = self.children.iter().filter_map(|(step, fields)| {
            let both = fields.intersection(other.children.get(step)?);
            (!both.is_empty()).then(|| (step.clone(), both))
        });
        Self { member: self.member && other.member, children: shared.collect() }
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        let left = self.children.iter().filter_map(|(step, fields)| {
            let left = other.children.get(step).map_or_else(|| fields.clone(), |other| fields.difference(other));
            (!left.is_empty()).then(|| (step.clone(), left))
        });
        Self { member: self.member && !other.member, children: left.collect() }
    }

    /// Only, or everything but, what is below one member.
    pub(crate) fn restricted(mut self, member: &str, inside: bool) -> Self {
        self.children.retain(|step, _| (step.strip_prefix("f:") == Some(member)) == inside);
        self
    }

    /// The paths in the set, in the form error messages use (`.spec.containers[name="main"].image`).
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.write_paths("", &mut paths);
        paths
    }

    /// The real server names what is in the set at one level before it goes deeper.
    fn write_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        let place = |step: &str| {
            let shown = match step.split_once(':') {
                Some(("f", name)) => format!(".{name}"),
                Some(("k", key)) => {
                    let key: Map<String, Value> = serde_json::from_str(key).unwrap_or_default();
                    let pairs: Vec<_> =
                        key.iter().map(|(name, value)| format!("{name}={}", key_value(value))).collect();
                    format!("[{}]", pairs.join(","))
                }
                Some((_, value)) => format!("[={value}]"),
                None => step.to_owned(),
            };
            format!("{prefix}{shown}")
        };
        paths.extend(self.children.iter().filter(|(_, fields)| fields.member).map(|(step, _)| place(step)));
        for (step, fields) in &self.children {
            fields.write_paths(&place(step), paths);
        }
    }

    /// The parts of a value that its schema does not know, or knows as something else; `None` if there are none.
    pub(crate) fn untyped(schema: &Schema, value: &Value) -> Option<String> {
        match untyped_parts(schema, value).as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("errors:\n  {}", several.join("\n  "))),
        }
    }

    /// Reads `fieldsV1`.
    pub(crate) fn from_json(fields: &Value) -> Self {
        let mut set = Self::node(fields);
        set.member = false;
        set
    }

    fn node(fields: &Value) -> Self {
        let members = fields.as_object();
        let children = members.into_iter().flatten().filter(|(step, _)| *step != ".");
        Self {
            member: members.is_none_or(|members| members.is_empty() || members.contains_key(".")),
            children: children.map(|(step, fields)| (step.clone(), Self::node(fields))).collect(),
        }
    }

    /// Writes `fieldsV1`.
    pub(crate) fn to_json(&self) -> Value {
        let mut members = Map::new();
        if self.member && !self.children.is_empty() {
            members.insert(".".into(), json!({}));
        }
        members.extend(self.children.iter().map(|(step, fields)| (step.clone(), fields.to_json())));
        Value::Object(members)
    }

    /// The same, with every named member that holds something of the set.
    fn with_holders(&self, schema: Option<&Schema>) -> Self {
        let children = self.children.iter().map(|(step, fields)| {
            let below = schema.and_then(|schema| match step.split_once(':') {
                Some(("f", name)) => schema.member(name),
                Some(("k", _)) => Some(schema.item()),
                _ => None,
            });
            let mut fields = fields.with_holders(below);
            fields.member |= schema.is_some_and(|schema| is_named(schema, step));
            (step.clone(), fields)
        });
        Self { member: self.member, children: children.collect() }
    }

    /// What an apply leaves of an object whose fields these were before: without those that nobody wants any longer. What
    /// belongs to nobody goes with the last owned member of what holds it.
    pub(crate) fn pruned(&self, schema: &Schema, merged: &Value, wanted: &Self) -> Value {
        if self.is_empty() {
            return merged.clone();
        }
        let there = |value: &Value| Self::of(schema, value, false).with_holders(Some(schema));
        let (before, all) = (self.with_holders(Some(schema)), there(merged));
        let left = there(&before.removed_from(schema, merged)).union(&wanted.with_holders(Some(schema)));
        let left = there(&all.difference(&left).removed_from(schema, merged));
        all.difference(&left).intersection(&before).removed_from(schema, merged)
    }

    /// A value without the fields of the set. A map or a list that has nothing left is nothing.
    fn removed_from(&self, schema: &Schema, value: &Value) -> Value {
        if self.children.is_empty() {
            return value.clone();
        }
        let kept = |step: &str, schema: Option<&Schema>, part: &Value| match self.children.get(step) {
            Some(fields) if fields.member => None,
            Some(fields) => Some(schema.map_or_else(|| part.clone(), |schema| fields.removed_from(schema, part))),
            None => Some(part.clone()),
        };
        match value {
            Value::Object(members) => {
                let left = members.iter().filter_map(|(name, part)| {
                    Some((name.clone(), kept(&format!("f:{name}"), schema.member(name), part)?))
                });
                Some(left.collect::<Map<_, _>>()).filter(|left| !left.is_empty()).map_or(Value::Null, Value::Object)
            }
            Value::Array(items) => {
                let left = items.iter().filter_map(|item| kept(&item_step(schema, item), Some(schema.item()), item));
                Some(left.collect::<Vec<_>>()).filter(|left| !left.is_empty()).map_or(Value::Null, Value::Array)
            }
            scalar => scalar.clone(),
        }
    }
}

/// How the value of a key is written in messages.
fn key_value(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(key_value).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let parts: Vec<_> = members.iter().map(|(name, value)| format!("{name}={}", key_value(value))).collect();
            parts.concat()
        }
        scalar => scalar.to_string(),
    }
}

/// How one step is written in messages.
fn shown_step(step: String) -> String {
    let mut place = Fields::default();
    place.children.insert(step, Fields::leaf());
    place.paths().concat()
}

/// What is wrong with a value itself, by its schema.
fn wrong_type(schema: &Schema, value: &Value) -> Option<String> {
    let node = schema.resolve();
    let scalar = node.kind == Kind::IntOrString || node.rules.get("format").is_some_and(|form| form == "date-time");
    // Types that read themselves take any scalar.
    let lenient = scalar || schema.type_name() == Some("Quantity");
    match (node.kind, value) {
        _ if schema.is_raw() => None,
        (_, Value::Object(_) | Value::Array(_)) if lenient && node.kind != Kind::IntOrString => {
            Some(format!("expected any scalar, got &{{{}}}", shown(value)))
        }
        _ if lenient => None,
        (_, Value::Null)
        | (Kind::Any, _)
        | (Kind::String, Value::String(_))
        | (Kind::Boolean, Value::Bool(_))
        | (Kind::Integer | Kind::Number, Value::Number(_))
        | (Kind::Object, Value::Object(_))
        | (Kind::Array, Value::Array(_)) => None,
        (Kind::String, other) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", in_source(other)))
        }
        (Kind::Integer | Kind::Number, other) => {
            Some(format!("expected numeric (int or float), got {}", type_of(other)))
        }
        (Kind::Boolean, other) => Some(format!("expected boolean, got &{{{}}}", shown(other))),
        (Kind::Array, other) => Some(format!("expected list, got &{{{}}}", shown(other))),
        (_, other) => Some(format!("expected map, got &{{{}}}", shown(other))),
    }
}

/// Why nobody could tell an item of a list from the others.
fn unplaced(schema: &Schema, item: &Value) -> Option<String> {
    let why = match (&schema.resolve().list, item) {
        (ListType::Map(_), Value::Null) => "associative list with keys may not have a null element",
        (ListType::Map(keys), Value::Object(_)) => {
            let missing = keys.iter().all(|key| key_of(schema.item(), item, key).is_null());
            let keys: Vec<_> = keys.iter().map(|key| format!("{key:?}")).collect();
            let why = "(and doesn't have default values for any key fields)";
            return missing.then(|| {
                format!(
                    "associative list with keys has an element that omits all key fields [{}] {why}",
                    keys.join(" ")
                )
            });
        }
        (ListType::Map(_), _) => "associative list with keys may not have non-map elements",
        (ListType::Set, Value::Object(_)) => "associative list without keys has an element that's a map type",
        (ListType::Set, Value::Array(_)) => "not supported: associative list with lists as elements",
        (ListType::Set, Value::Null) => "associative list without keys has an element that's an explicit null",
        _ => return None,
    };
    Some(why.to_owned())
}

/// Everything that keeps a value from being of its type, each with the path to it. The real server stops in an object at
/// the first member it does not know, wherever that is in Go's order; here one is told last.
fn untyped_parts(schema: &Schema, value: &Value) -> Vec<String> {
    if let Some(wrong) = wrong_type(schema, value) {
        return vec![format!(": {wrong}")];
    }
    let below = |place: &str, schema: &Schema, part: &Value| {
        untyped_parts(schema, part).into_iter().map(|wrong| format!("{place}{wrong}")).collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    match value {
        Value::Object(members) => {
            let names: BTreeSet<_> = members.keys().collect();
            let unknown = names.iter().find(|name| schema.member(name).is_none());
            for name in &names {
                if let (Some(schema), Some(part)) = (schema.member(name), members.get(name.as_str())) {
                    found.extend(below(&shown_step(format!("f:{name}")), schema, part));
                }
            }
            let unknown = unknown.map(|name| shown_step(format!("f:{name}")));
            found.extend(unknown.map(|place| format!("{place}: field not declared in schema")));
        }
        Value::Array(items) => {
            let mut seen = BTreeSet::new();
            let list = &schema.resolve().list;
            for (at, item) in items.iter().enumerate() {
                if let Some(why) = unplaced(schema, item) {
                    found.push(format!(": element {at}: {why}"));
                    break;
                }
                let place = match list {
                    ListType::Atomic => format!("[{at}]"),
                    ListType::Set | ListType::Map(_) => shown_step(item_step(schema, item)),
                };
                if *list != ListType::Atomic && !seen.insert(place.clone()) {
                    found.push(format!(": duplicate entries for key {place}"));
                }
                found.extend(below(&place, schema.item(), item));
            }
        }
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Schema {
        Schema::named("apps.v1.DeploymentSpec")
    }

    fn spec(image: &str) -> Value {
        json!({
            "replicas": 2,
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": {"app": "a"}, "finalizers": ["x/y"]},
                "spec": {"containers": [{"name": "main", "image": image, "args": ["a", "b"]}]},
            },
        })
    }

    #[test]
    fn a_set_has_the_form_kubernetes_writes_and_reads_back() {
        let fields = Fields::of(&deployment(), &spec("1"), false);
        let written = fields.to_json();
        assert_eq!(
            written,
            json!({
                "f:replicas": {},
                "f:selector": {},
                "f:template": {
                    "f:metadata": {"f:finalizers": {"v:\"x/y\"": {}}, "f:labels": {"f:app": {}}},
                    "f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {".": {}, "f:args": {}, "f:image": {}, "f:name": {}}}},
                },
            })
        );
        assert_eq!(Fields::from_json(&written), fields);
    }

    #[test]
    fn a_comparison_names_the_leaves_that_differ() {
        let (changed, removed) = Fields::compare(&deployment(), &spec("1"), &spec("2"));
        assert_eq!(changed.paths(), [".template.spec.containers[name=\"main\"].image"]);
        assert!(removed.is_empty());
        let mut without = spec("1");
        meta_labels(&mut without).shift_remove("app");
        let (changed, removed) = Fields::compare(&deployment(), &spec("1"), &without);
        assert!(changed.is_empty());
        assert_eq!(removed.paths(), [".template.metadata.labels.app"]);
    }

    #[test]
    fn a_key_that_is_no_scalar_is_shown_without_braces() {
        let ports = json!({"spec": {"ports": [{"port": 80, "protocol": {"a": ["b", 1]}}]}});
        let why = Fields::untyped(&Schema::named("core.v1.Service"), &ports).unwrap_or_default();
        assert!(why.starts_with(".spec.ports[port=80,protocol=a=[\"b\",1]].protocol: expected string, got"), "{why}");
    }

    fn meta_labels(spec: &mut Value) -> &mut Map<String, Value> {
        spec.pointer_mut("/template/metadata/labels").and_then(Value::as_object_mut).unwrap()
    }

    #[test]
    fn sets_are_sets() {
        let schema = deployment();
        let (one, two) = (
            Fields::of(&schema, &spec("1"), false),
            Fields::of(&schema, &json!({"replicas": 1, "paused": true}), false),
        );
        assert_eq!(one.intersection(&two).paths(), [".replicas"]);
        assert_eq!(two.difference(&one).paths(), [".paused"]);
        assert_eq!(two.clone().union(&one).difference(&one), two.difference(&one));
    }

    #[test]
    fn an_apply_takes_its_fields_and_what_held_them_but_not_what_others_want() {
        let schema = deployment();
        let (nothing, all) = (Fields::default(), Fields::of(&deployment(), &spec("1"), false));
        assert_eq!(all.pruned(&schema, &spec("1"), &nothing), Value::Null);
        let kept = Fields::of(&schema, &json!({"template": {"spec": {"containers": [{"name": "main"}]}}}), false);
        assert_eq!(
            all.pruned(&schema, &spec("1"), &kept),
            json!({"template": {"spec": {"containers": [{"name": "main"}]}}})
        );
    }

    #[test]
    fn what_nobody_owns_goes_with_what_held_it() {
        let schema = Schema::named("core.v1.Container");
        let probe = Fields::of(&schema, &json!({"name": "a", "readinessProbe": {"grpc": {"port": 1}}}), false);
        let live = json!({"name": "a", "readinessProbe": {"grpc": {"port": 1, "service": ""}, "periodSeconds": 10}});
        assert_eq!(probe.pruned(&schema, &live, &Fields::at("/name")), json!({"name": "a"}));
    }

    #[test]
    fn what_became_null_lost_its_members_and_did_not_change_itself() {
        let schema = Schema::named("core.v1.Container");
        let (full, null) = (json!({"resources": {"limits": {"cpu": "1"}}}), json!({"resources": null}));
        let (changed, removed) = Fields::compare(&schema, &full, &null);
        assert_eq!(
            (changed.paths().len(), removed.paths()),
            (0, vec![".resources.limits".into(), ".resources.limits.cpu".into()])
        );
        let (changed, _) = Fields::compare(&schema, &json!({"resources": {}}), &null);
        assert_eq!(changed.paths(), [".resources"]);
    }

    #[test]
    fn items_that_are_there_twice_are_one_field() {
        let schema = Schema::named("meta.v1.ObjectMeta");
        let (once, twice) = (json!({"finalizers": ["x/y"]}), json!({"finalizers": ["x/y", "x/y"]}));
        let place = [".finalizers[=\"x/y\"]"];
        for (old, new) in [(&once, &twice), (&twice, &once)] {
            let (changed, removed) = Fields::compare(&schema, old, new);
            assert_eq!(
                (changed.paths().as_slice(), removed.paths().as_slice()),
                (&place.map(String::from)[..], &place.map(String::from)[..])
            );
        }
        assert_eq!(Fields::of(&schema, &twice, false).paths(), place);
    }
}
