//! Merging by schema: what an applied configuration, or a strategic merge patch, makes of an object.
//!
//! Both walk the same schema and differ in what a list is identified by (`x-kubernetes-list-map-keys` against
//! `x-kubernetes-patch-merge-key`) and in how removal is said (by no longer mentioning it against by directives).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::error::{ApiError, Result};
use super::fields::item_step;
use super::go_json::shown;
use super::schema::{ListType, Schema};

/// The live value with everything the applied one says.
pub(crate) fn apply(schema: &Schema, live: &Value, applied: &Value) -> Value {
    match (live, applied) {
        (Value::Object(live), Value::Object(applied)) if !schema.resolve().atomic_map => {
            let mut merged = live.clone();
            for (name, value) in applied {
                let value = match (live.get(name), schema.member(name)) {
                    (Some(live), Some(schema)) => apply(schema, live, value),
                    _ => value.clone(),
                };
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        (Value::Array(live), Value::Array(applied)) if schema.resolve().list != ListType::Atomic => {
            Value::Array(apply_items(schema, live, applied))
        }
        // Nothing leaves a map or a list as it was, but for what the client itself had put there.
        (Value::Object(members), Value::Null) if !schema.resolve().atomic_map && !members.is_empty() => live.clone(),
        (Value::Array(items), Value::Null) if schema.resolve().list != ListType::Atomic && !items.is_empty() => {
            live.clone()
        }
        _ => applied.clone(),
    }
}

/// Items of both lists; shared ones merge and follow the applied order, the others stay where they were.
fn apply_items(schema: &Schema, live: &[Value], applied: &[Value]) -> Vec<Value> {
    // What is there twice is not merged with, but replaced.
    let mut known: BTreeMap<_, Option<&Value>> = BTreeMap::new();
    for item in live {
        known.entry(item_step(schema, item)).and_modify(|known| *known = None).or_insert(Some(item));
    }
    let wanted: BTreeSet<_> = applied.iter().map(|item| item_step(schema, item)).collect();
    let mut done = BTreeSet::new();
    let mut merged = Vec::new();
    let mut rest = live.iter().peekable();
    let mut new = applied.iter();
    loop {
        if let Some(item) = rest.next_if(|item| !wanted.contains(&item_step(schema, item))) {
            merged.push(item.clone());
        } else if rest.next_if(|item| done.contains(&item_step(schema, item))).is_some() {
        } else if let Some(item) = new.next() {
            let step = item_step(schema, item);
            let live = known.get(&step).copied().flatten();
            merged.push(live.map_or_else(|| item.clone(), |live| apply(schema.item(), live, item)));
            done.insert(step);
        } else {
            return merged;
        }
    }
}

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE_ITEMS: &str = "$deleteFromPrimitiveList/";

/// Changes an object as a strategic merge patch says.
pub(crate) fn strategic(schema: &Schema, live: &mut Value, patch: &Value) -> Result<()> {
    let Value::Object(patch) = patch else {
        *live = patch.clone();
        return Ok(());
    };
    match patch.get(PATCH).and_then(Value::as_str) {
        Some("replace") => {
            let kept = patch.iter().filter(|(name, _)| *name != PATCH);
            *live = Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect());
            return Ok(());
        }
        Some("delete") => {
            *live = Value::Object(Map::new());
            return Ok(());
        }
        None | Some("merge") => {}
        Some(other) => return Err(ApiError::unknown_directive(other, patch)),
    }
    // Nobody knows how the parts of what may be anything are merged.
    let merged = |(name, value): (&String, &Value)| match (live.get(name), value) {
        (Some(Value::Object(_)), Value::Object(_)) | (Some(Value::Array(_)), Value::Array(_)) => Some(name.clone()),
        _ => None,
    };
    if schema.is_raw()
        && let Some(name) = patch.iter().filter_map(merged).min()
    {
        let why = format!("unable to find api field in struct RawExtension for the json field {name:?}");
        return Err(ApiError::unforeseen(&why));
    }
    if !live.is_object() {
        *live = Value::Object(Map::new());
    }
    let Value::Object(members) = live else { return Ok(()) };
    if let Some(kept) = patch.get(RETAIN_KEYS).and_then(Value::as_array) {
        members.retain(|name, _| kept.iter().any(|kept| kept == name.as_str()));
    }
    for (name, order) in patch {
        if let Some(list) = name.strip_prefix(ORDER) {
            check_order(schema.member(list), order, patch.get(list))?;
        }
    }
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix(DELETE_ITEMS) {
            let gone = value.as_array().map_or(&[][..], Vec::as_slice);
            if let Some(Value::Array(items)) = members.get_mut(list) {
                items.retain(|item| !gone.contains(item));
            }
        } else if name.starts_with('$') {
            // Directives of this object and orders of its lists: the first are done, the second come last.
        } else if value.is_null() {
            members.shift_remove(name);
        } else {
            let unknown = Schema::default();
            let schema = schema.member(name).unwrap_or(&unknown);
            match (members.get_mut(name), value) {
                (Some(slot @ Value::Object(_)), Value::Object(_)) => strategic(schema, slot, value)?,
                (Some(slot @ Value::Array(_)), Value::Array(items)) if schema.merge => {
                    merge_items(schema, slot, items)?;
                }
                (Some(slot @ Value::Array(_)), Value::Array(_)) => *slot = value.clone(),
                // There is nothing to merge with, so nobody asks whether an item is there twice.
                _ => match undirected(value) {
                    Some(value) => drop(members.insert(name.clone(), value)),
                    None => drop(members.shift_remove(name)),
                },
            }
        }
    }
    for (name, order) in patch {
        if let (Some(list), Some(order)) = (name.strip_prefix(ORDER), order.as_array())
            && let (Some(Value::Array(items)), Some(schema)) = (members.get_mut(list), schema.member(list))
        {
            let list = std::mem::take(items);
            *items = ordered(schema, list.clone(), order, &list);
        }
    }
    Ok(())
}

/// Refuses an order that does not name the items of a patch, or names them in another order.
fn check_order(schema: Option<&Schema>, order: &Value, items: Option<&Value>) -> Result<()> {
    let Value::Array(wanted) = order else {
        let found = match order {
            Value::String(_) => "string",
            Value::Bool(_) => "bool",
            Value::Number(number) if number.is_f64() => "float64",
            Value::Number(_) => "int64",
            _ => "map[string]interface {}",
        };
        return Err(ApiError::unforeseen(&format!("expected a []interface {{}}, but received a {found}")));
    };
    let (Some(schema), Some(Value::Array(items))) = (schema, items) else { return Ok(()) };
    let key = schema.merge_key.as_deref();
    let same = |one: &Value, other: &Value| match key {
        Some(key) => one.get(key) == other.get(key),
        None => one == other,
    };
    let kept: Vec<_> = items.iter().filter(|item| item.get(PATCH).is_none()).collect();
    if let Some(key) = key
        && let Some(odd) = wanted.iter().find(|item| item.is_object() && item.get(key).is_none())
        && !kept.is_empty()
    {
        return Err(ApiError::unforeseen(&format!("map: {} does not contain declared merge key: {key}", shown(odd))));
    }
    let mut rest = kept.iter().peekable();
    for item in wanted {
        rest.next_if(|next| same(next, item));
    }
    if rest.peek().is_none() {
        return Ok(());
    }
    let lists = (shown(&Value::Array(items.clone())), shown(order));
    let why = format!("The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n", lists.0, lists.1);
    Err(ApiError::unforeseen(&why))
}

fn merge_items(schema: &Schema, live: &mut Value, patch: &[Value]) -> Result<()> {
    let mut items = match live.take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    let before = items.clone();
    if patch.iter().any(|item| {
        item.get(PATCH).and_then(Value::as_str) == Some("replace")
            && item.as_object().is_some_and(|item| item.len() == 1)
    }) {
        items.clear();
    }
    for item in patch {
        let Some(key) = &schema.merge_key else {
            if !items.contains(item) {
                items.push(item.clone());
            }
            continue;
        };
        let directive = item.get(PATCH).and_then(Value::as_str);
        let Some(id) = item.get(key) else {
            if directive == Some("replace") {
                continue;
            }
            if item.is_object() {
                let item = shown(item);
                return Err(ApiError::unforeseen(&format!("map: {item} does not contain declared merge key: {key}")));
            }
            let lists = [shown(&Value::Array(before)), shown(&Value::Array(patch.to_vec()))].join(" ");
            return Err(ApiError::unforeseen(&format!("list element types are not identical: [{lists}]")));
        };
        let at = items.iter().position(|known| known.get(key) == Some(id));
        match (directive, at) {
            (Some("delete"), _) => items.retain(|known| known.get(key) != Some(id)),
            (_, Some(at)) => strategic(schema.item(), &mut items[at], item)?,
            // Nobody reads what a new item says about its own lists.
            (_, None) => items.push(item.clone()),
        }
    }
    *live = Value::Array(ordered(schema, items, patch, &before));
    Ok(())
}

/// Items that an order names come in that order. The others keep theirs; each stands before the first named one that it
/// stood before, and behind all of them where nobody can tell.
fn ordered(schema: &Schema, items: Vec<Value>, order: &[Value], before: &[Value]) -> Vec<Value> {
    let same = |one: &Value, other: &Value| match &schema.merge_key {
        Some(key) => one.get(key).is_some() && one.get(key) == other.get(key),
        None => one == other,
    };
    let place = |list: &[Value], item: &Value| list.iter().position(|other| same(other, item));
    let (mut named, mut others): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| place(order, item).is_some());
    named.sort_by_key(|item| place(order, item));
    others.sort_by_key(|item| place(before, item));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut all = Vec::new();
    while let (Some(next), Some(other)) = (named.peek(), others.peek()) {
        let earlier = place(before, other).zip(place(before, next)).is_some_and(|(other, next)| other < next);
        all.extend(if earlier { others.next() } else { named.next() });
    }
    all.extend(named);
    all.extend(others);
    all
}

/// A value without the parts that say what to do with them, nor nulls; `None` if it is such a part itself.
fn undirected(value: &Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            Some(Value::Object(kept.filter_map(|(name, value)| Some((name.clone(), undirected(value)?))).collect()))
        }
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(undirected).collect())),
        scalar => Some(scalar.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod_spec() -> Schema {
        Schema::named("core.v1.PodSpec")
    }

    #[test]
    fn applied_items_merge_by_key_and_keep_foreign_ones() {
        let live =
            json!({"containers": [{"name": "sidecar", "image": "s"}, {"name": "main", "image": "1", "tty": true}]});
        let applied = json!({"containers": [{"name": "main", "image": "2"}, {"name": "new", "image": "n"}]});
        let merged = apply(&pod_spec(), &live, &applied);
        assert_eq!(
            merged,
            json!({"containers": [{"name": "sidecar", "image": "s"}, {"name": "main", "image": "2", "tty": true}, {"name": "new", "image": "n"}]})
        );
    }

    #[test]
    fn an_applied_item_replaces_those_that_are_there_twice() {
        let schema = Schema::named("core.v1.Container");
        let live =
            json!({"env": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "valueFrom": {"fieldRef": {}}}]});
        let merged = apply(&schema, &live, &json!({"env": [{"name": "A", "value": "2"}]}));
        assert_eq!(merged, json!({"env": [{"name": "A", "value": "2"}, {"name": "B"}]}));
    }

    #[test]
    fn strategic_patches_merge_delete_and_order() {
        let mut live = json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}, {"name": "c", "image": "1"}], "nodeName": "n"});
        let patch = json!({
            "nodeName": null,
            "containers": [{"name": "b", "$patch": "delete"}, {"name": "a", "image": "2"}, {"name": "d", "image": "4"}],
            "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}, {"name": "d"}],
        });
        strategic(&pod_spec(), &mut live, &patch).unwrap();
        assert_eq!(
            live,
            json!({"containers": [{"name": "c", "image": "1"}, {"name": "a", "image": "2"}, {"name": "d", "image": "4"}]})
        );
    }

    #[test]
    fn an_order_that_does_not_fit_the_items_is_refused() {
        for (order, fits) in
            [(json!([{"name": "d"}, {"name": "a"}]), false), (json!([{"name": "a"}, {"name": "d"}]), true)]
        {
            let patch = json!({"containers": [{"name": "a"}, {"name": "d"}], "$setElementOrder/containers": order});
            assert_eq!(strategic(&pod_spec(), &mut json!({"containers": [{"name": "a"}]}), &patch).is_ok(), fits);
        }
    }

    #[test]
    fn a_strategy_is_replaced_when_its_keys_are_retained() {
        let schema = Schema::named("apps.v1.DeploymentSpec");
        let mut live = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}});
        strategic(&schema, &mut live, &json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}})).unwrap();
        assert_eq!(live, json!({"strategy": {"type": "Recreate"}}));
    }
}
