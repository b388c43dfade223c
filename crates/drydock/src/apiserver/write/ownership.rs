//! To whom the fields of a write belong.

use serde_json::Value;

use crate::apiserver::fields::Fields;
use crate::apiserver::go_json;
use crate::apiserver::managed::{Managed, Operation};
use crate::apiserver::meta;
use crate::apiserver::quantity::Quantity;
use crate::apiserver::request::Call;
use crate::apiserver::server::Server;
use crate::apiserver::zero::written_out;

/// To whom the fields of a write belong.
pub(crate) enum Ownership {
    /// Whoever wrote owns what changed.
    Written,
    /// Server-side apply has worked it out.
    Applied {
        managed: Managed,
        /// Whether a real server would store more than it shows.
        untidy: bool,
    },
}

impl Ownership {
    pub(super) fn is_untidy(&self) -> bool {
        matches!(self, Self::Applied { untidy: true, .. })
    }
}

impl Server {
    /// Records who owns what after a write.
    pub(super) fn own(
        &self,
        call: &Call,
        old: &Value,
        new: &Value,
        mut managed: Managed,
        ownership: Ownership,
    ) -> Managed {
        match ownership {
            Ownership::Applied { managed: applied, .. } => applied,
            Ownership::Written => {
                if let Some(replicas) = call.replicas_path() {
                    let numbers = (replicas_at(replicas, old), replicas_at(replicas, new));
                    managed.rescale(&Fields::at(replicas), numbers, &call.field_manager(Operation::Update));
                    return managed;
                }
                let (changed, removed) = compared(call, old, new);
                let changed = call.never_the_same(new).fold(changed, |all, list| all.union(&Fields::at(list)));
                let changed = call.emptied().fold(changed, |all, list| all.union(&Fields::at(&format!("/{list}"))));
                let time = meta::seconds(self.clock.now());
                let (changed, removed) = (call.own_part(changed), call.own_part(removed));
                let writer = call.field_manager(Operation::Update);
                let mut managed = managed.readable_to(&writer);
                managed.record(&changed, &removed, &writer, &time);
                managed
            }
        }
    }
}

/// Whether more is stored of an applied object than anybody will see of it. A real server stores custom resources as they
/// were applied, with all that is empty in their metadata, and drops that when it reads them: what it reads never equals what
/// it has, so the next write is one even if it changes nothing.
pub(crate) fn is_untidy(call: &Call, applied: &Value) -> bool {
    const STORED_AS_SENT: [&str; 5] = ["annotations", "finalizers", "generateName", "labels", "ownerReferences"];
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    let metadata = applied.get("metadata").filter(|_| call.served.resource.custom && call.subresource.is_empty());
    let at = |field: &&str| metadata.and_then(|metadata| metadata.get(*field));
    STORED_AS_SENT.iter().filter_map(at).any(is_nothing)
}

impl Call {
    /// Lists that are not the same to a real server although nobody changed them: it looks where large amounts are kept, not
    /// at what they are, and reads them to a new place for every write. Whoever only tries reads nothing anew.
    fn never_the_same<'a>(&self, object: &'a Value) -> impl Iterator<Item = &'static str> + use<'a, '_> {
        let lists = self.served.resource.behaviour.amounts.iter().copied().filter(|_| !self.dry_run());
        lists.filter(|list| object.pointer(list).is_some_and(holds_large_amount))
    }

    /// Lists that were sent empty. To Go that is something else than none, until it is stored.
    fn emptied(&self) -> impl Iterator<Item = &'static str> {
        let sent = match self.verb {
            "create" | "update" => self.object().ok(),
            "patch" => go_json::parse(&self.body).ok(),
            _ => None,
        };
        let is_empty = |list: Option<&Value>| list.and_then(Value::as_array).is_some_and(Vec::is_empty);
        let lists = written_out(self.served.stored_schema());
        lists.filter(move |list| match &sent {
            Some(Value::Array(operations)) => {
                let at_list = |one: &&Value| meta::text(one, "/path").strip_prefix('/') == Some(*list);
                operations.iter().filter(at_list).any(|one| is_empty(one.get("value")))
            }
            sent => is_empty(sent.as_ref().and_then(|sent| sent.get(list))),
        })
    }

    /// Where a Scale that is written keeps its replicas.
    fn replicas_path(&self) -> Option<&str> {
        let paths = self.served.version().scale.as_ref().filter(|_| self.subresource == "scale")?;
        Some(&paths.spec_replicas)
    }
}

/// Whether a metric, or one of several, has an amount that Go keeps apart.
fn holds_large_amount(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_large_amount),
        Value::Object(members) => members.iter().any(|(name, part)| match part.as_str() {
            Some(text) => ["averageValue", "value"].contains(&name.as_str()) && Quantity::is_kept_apart(text),
            None => holds_large_amount(part),
        }),
        _ => false,
    }
}

/// What a write has changed, and what it has taken away, as far as the version shows it that it came in.
fn compared(call: &Call, old: &Value, new: &Value) -> (Fields, Fields) {
    let Some(lens) = call.served.lens() else { return Fields::compare(call.served.stored_schema(), old, new) };
    let [old, new] = [old, new].map(|object| {
        let mut shown = object.clone();
        lens.show(&mut shown);
        shown
    });
    let (changed, removed) = Fields::compare(call.served.version().schema(), &old, &new);
    (lens.stored_fields(changed), lens.stored_fields(removed))
}

fn replicas_at(pointer: &str, object: &Value) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// Who owned what before a write. A client may say so itself, which is how tools move fields from one manager to
/// another; what is no list of owners, or comes through a sub-resource, is not listened to.
pub(super) fn managed_before(call: &Call, live: &Value, new: &Value) -> Managed {
    let said = new.pointer("/metadata/managedFields").and_then(Value::as_array).filter(|_| call.subresource.is_empty());
    match said.map(Vec::as_slice) {
        None => Managed::of(live),
        // Only Go's types can tell a list that is empty from none.
        Some([]) if !call.served.resource.custom => Managed::default(),
        Some([one]) if one.as_object().is_some_and(serde_json::Map::is_empty) => Managed::default(),
        Some(_) => match Managed::read(new).filter(|managed| !managed.is_empty()) {
            // Who owns nothing is forgotten.
            Some(managed) => managed.without_idle(),
            None => Managed::of(live),
        },
    }
}
