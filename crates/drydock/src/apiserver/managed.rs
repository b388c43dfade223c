//! Field management: who owns which fields of an object, as `metadata.managedFields` records it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::error::{ApiError, Cause};
use super::fields::Fields;
use super::lens::lens_of;
use super::meta;

/// How a manager came to its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Server-side apply: fields it stops to mention are removed.
    Apply,
    /// Everything else.
    Update,
}

/// Somebody who owns fields. Equal managers share one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    manager: Manager,
    time: String,
    fields: Fields,
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Managed(Vec<Entry>);

impl Managed {
    /// Reads `metadata.managedFields` as a client wrote it; `None` when an entry is not one.
    pub(crate) fn read(object: &Value) -> Option<Self> {
        let list = object.pointer("/metadata/managedFields")?.as_array()?;
        let whole = |entry: &Value| {
            matches!(meta::text(entry, "/operation"), "Apply" | "Update")
                && !meta::text(entry, "/apiVersion").is_empty()
                && meta::text(entry, "/fieldsType") == "FieldsV1"
        };
        list.iter().all(whole).then(|| Self::of(object))
    }

    /// The same without those who own nothing.
    pub(crate) fn without_idle(mut self) -> Self {
        self.0.retain(|entry| !entry.fields.is_empty());
        self
    }

    /// The same without those who wrote under another name of the object: who writes cannot read what they own.
    pub(crate) fn readable_to(mut self, writer: &Manager) -> Self {
        let is_newer = |manager: &Manager| lens_of(&manager.api_version).is_some();
        self.0.retain(|entry| is_newer(&entry.manager) == is_newer(writer));
        self
    }

    /// Whether nobody owns anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads `metadata.managedFields`.
    pub(crate) fn of(object: &Value) -> Self {
        let list = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        let entries = list.into_iter().flatten().map(|entry| Entry {
            manager: Manager {
                name: meta::text(entry, "/manager").to_owned(),
                operation: if meta::text(entry, "/operation") == "Apply" {
                    Operation::Apply
                } else {
                    Operation::Update
                },
                api_version: meta::text(entry, "/apiVersion").to_owned(),
                subresource: meta::text(entry, "/subresource").to_owned(),
            },
            time: meta::text(entry, "/time").to_owned(),
            fields: {
                let fields = Fields::from_json(entry.get("fieldsV1").unwrap_or(&Value::Null));
                match lens_of(meta::text(entry, "/apiVersion")) {
                    Some(lens) => lens.stored_fields(fields),
                    None => fields,
                }
            },
        });
        // Of two entries of one manager the real server reads the second.
        let mut known: Vec<Entry> = Vec::new();
        for entry in entries {
            known.retain(|other| other.manager != entry.manager);
            known.push(entry);
        }
        Self(known)
    }

    /// Writes `metadata.managedFields`.
    pub(crate) fn write_to(&self, object: &mut Value) {
        let entries: Vec<_> = self.sorted().map(Entry::to_json).collect();
        meta::set(meta::metadata(object), "managedFields", (!entries.is_empty()).then(|| entries.into()));
    }

    /// Whether the same managers own the same fields, whenever they wrote them.
    pub(crate) fn is_but_for_times(&self, other: &Self) -> bool {
        let undated = |managed: &Self| {
            let entries = managed.sorted().map(|entry| Entry { time: String::new(), ..entry.clone() });
            entries.collect::<Vec<_>>()
        };
        undated(self) == undated(other)
    }

    /// In the order in which they are stored: who applied first, then whoever wrote earlier, then by name.
    fn sorted(&self) -> impl Iterator<Item = &Entry> {
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_by_key(|entry| {
            let Manager { name, operation, api_version, subresource } = &entry.manager;
            (*operation == Operation::Update, &entry.time, name, api_version, subresource)
        });
        entries.into_iter()
    }

    /// The fields of one manager.
    pub(crate) fn fields(&self, manager: &Manager) -> Fields {
        self.0.iter().find(|entry| entry.manager == *manager).map(|entry| entry.fields.clone()).unwrap_or_default()
    }

    /// When a manager last changed something; empty if it never did.
    pub(crate) fn time(&self, manager: &Manager) -> String {
        self.0.iter().find(|entry| entry.manager == *manager).map(|entry| entry.time.clone()).unwrap_or_default()
    }

    /// The fields of everybody else.
    pub(crate) fn others(&self, manager: &Manager) -> Fields {
        let others = self.0.iter().filter(|entry| entry.manager != *manager);
        others.fold(Fields::default(), |all, entry| all.union(&entry.fields))
    }

    /// Gives a manager exactly these fields.
    pub(crate) fn set(&mut self, manager: &Manager, fields: Fields, time: &str) {
        match self.0.iter_mut().find(|entry| entry.manager == *manager) {
            Some(entry) => {
                entry.fields = fields;
                time.clone_into(&mut entry.time);
            }
            None => self.0.push(Entry { manager: manager.clone(), time: time.to_owned(), fields }),
        }
        self.0.retain(|entry| !entry.fields.is_empty());
    }

    /// Takes fields away from everybody but one manager.
    pub(crate) fn take(&mut self, fields: &Fields, manager: &Manager) {
        for entry in self.0.iter_mut().filter(|entry| entry.manager != *manager) {
            entry.fields = entry.fields.difference(fields);
        }
        self.0.retain(|entry| !entry.fields.is_empty());
    }

    /// Takes fields that are no longer there away from everybody. What somebody owns that never was there stays theirs.
    pub(crate) fn lose(&mut self, removed: &Fields) {
        for entry in &mut self.0 {
            entry.fields = entry.fields.difference(removed);
        }
        self.0.retain(|entry| !entry.fields.is_empty());
    }

    /// Records a write that was no apply: changed fields belong to the writer, removed ones to nobody.
    pub(crate) fn record(&mut self, changed: &Fields, removed: &Fields, manager: &Manager, time: &str) {
        if changed.is_empty() && removed.is_empty() {
            return;
        }
        self.lose(removed);
        self.take(changed, manager);
        if changed.is_empty() {
            return;
        }
        let own = self.fields(manager).union(changed);
        self.set(manager, own, time);
    }

    /// Records a write through the scale sub-resource, from one number of replicas to another. The real server works this
    /// out on the Scale, which does not mention zero, and on the way back recognises only those who applied: everybody
    /// else's replicas end up in an entry of their own, which has no time.
    pub(crate) fn rescale(&mut self, replicas: &Fields, (before, after): (i64, i64), writer: &Manager) {
        let mut owners = self.owners(replicas);
        // What nobody owns stays so.
        if before != after && !owners.is_empty() {
            owners = if after == 0 { Vec::new() } else { vec![writer.clone()] };
        }
        self.split(replicas, owners);
    }

    /// Records an apply through the scale sub-resource. Others who own the replicas mind if it changes them without force.
    pub(crate) fn rescale_applied(
        &mut self,
        replicas: &Fields,
        (changes, force): (bool, bool),
        writer: &Manager,
    ) -> Result<(), ApiError> {
        let mut owners = self.owners(replicas);
        owners.retain(|owner| owner != writer);
        let shown = Fields::at("/spec/replicas");
        let as_scale = |manager: &Manager| Entry {
            manager: Manager { api_version: "autoscaling/v1".to_owned(), ..manager.clone() },
            time: String::new(),
            fields: shown.clone(),
        };
        if changes && !force {
            let others = Self(owners.iter().map(as_scale).collect());
            others.conflicts(&shown, writer).map_or(Ok(()), Err)?;
        }
        if changes {
            owners.clear();
        }
        owners.push(writer.clone());
        let own = self.fields(writer).union(replicas);
        let time = self.time(writer);
        self.set(writer, own, &time);
        self.split(replicas, owners);
        Ok(())
    }

    /// Those who own a field.
    fn owners(&self, field: &Fields) -> Vec<Manager> {
        let owned = self.0.iter().filter(|entry| !entry.fields.intersection(field).is_empty());
        owned.map(|entry| entry.manager.clone()).collect()
    }

    /// Gives the replicas to these managers: who applied keeps them, everybody else has them in an entry of their own.
    fn split(&mut self, replicas: &Fields, owners: Vec<Manager>) {
        for entry in &mut self.0 {
            if entry.manager.operation == Operation::Update || !owners.contains(&entry.manager) {
                entry.fields = entry.fields.difference(replicas);
            }
        }
        self.0.retain(|entry| !entry.fields.is_empty());
        let split = owners.into_iter().filter(|owner| owner.operation == Operation::Update);
        let split = split.map(|manager| Entry { manager, time: String::new(), fields: replicas.clone() });
        // What has no time comes first.
        self.0.splice(0..0, split.collect::<Vec<_>>());
    }

    /// The refusal of an apply that would change what others own; `None` when nobody minds.
    pub(crate) fn conflicts(&self, changed: &Fields, manager: &Manager) -> Option<ApiError> {
        let mut causes = Vec::new();
        let mut groups = Vec::new();
        for entry in self.0.iter().filter(|entry| entry.manager != *manager) {
            let paths = entry.in_own_words(entry.fields.intersection(changed)).paths();
            let who = entry.describe();
            causes.extend(paths.iter().map(|path| Cause {
                reason: "FieldManagerConflict",
                message: format!("conflict with {who}"),
                field: path.clone(),
            }));
            if !paths.is_empty() {
                groups.push((entry.identifier(), who, paths));
            }
        }
        groups.sort_unstable();
        let text = match (causes.as_slice(), groups.as_slice()) {
            ([], _) => return None,
            ([one], _) => format!("1 conflict: {}: {}", one.message, one.field),
            (_, groups) => {
                let lists =
                    groups.iter().map(|(_, who, paths)| format!("conflicts with {who}:\n- {}", paths.join("\n- ")));
                format!("{} conflicts: {}", causes.len(), lists.collect::<Vec<_>>().join("\n"))
            }
        };
        Some(ApiError::managed_by_others(format!("Apply failed with {text}"), &causes))
    }
}

impl Entry {
    /// What a real server keeps managers in order by.
    fn identifier(&self) -> String {
        let Manager { name, operation, api_version, subresource } = &self.manager;
        let mut text = match operation {
            Operation::Apply => format!(r#"{{"manager":{name:?},"operation":"Apply""#),
            Operation::Update => format!(r#"{{"manager":{name:?},"operation":"Update","apiVersion":{api_version:?}"#),
        };
        if !subresource.is_empty() {
            let _ = write!(text, r#","subresource":{subresource:?}"#);
        }
        text + "}"
    }

    fn describe(&self) -> String {
        let Manager { name, operation, api_version, subresource } = &self.manager;
        let mut text = format!("{name:?}");
        if !subresource.is_empty() {
            text = format!("{text} with subresource {subresource:?}");
        }
        match operation {
            Operation::Apply => text,
            Operation::Update => format!("{text} using {api_version}"),
        }
    }

    /// Fields as the version calls them in which the manager wrote.
    fn in_own_words(&self, fields: Fields) -> Fields {
        match lens_of(&self.manager.api_version) {
            Some(lens) => lens.shown_fields(fields),
            None => fields,
        }
    }

    fn to_json(&self) -> Value {
        let operation = match self.manager.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        let mut entry = json!({
            "manager": self.manager.name, "operation": operation, "apiVersion": self.manager.api_version,
            "fieldsType": "FieldsV1", "fieldsV1": self.in_own_words(self.fields.clone()).to_json(),
        });
        if !self.time.is_empty() {
            entry["time"] = self.time.clone().into();
        }
        if !self.manager.subresource.is_empty() {
            entry["subresource"] = self.manager.subresource.clone().into();
        }
        entry
    }
}

/// Without the fields that belong to the server, or that only say which object is meant.
pub(crate) fn without_server_fields(mut fields: Fields) -> Fields {
    for step in ["f:apiVersion", "f:kind"] {
        fields.children.remove(step);
    }
    if let Some(metadata) = fields.children.get_mut("f:metadata") {
        for step in [
            "f:name",
            "f:namespace",
            "f:creationTimestamp",
            "f:selfLink",
            "f:uid",
            "f:generation",
            "f:managedFields",
            "f:resourceVersion",
        ] {
            metadata.children.remove(step);
        }
        metadata.member = false;
        if metadata.is_empty() {
            fields.children.remove("f:metadata");
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned() -> Value {
        let entry = json!({"manager": "m", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
            "time": "2026-01-02T03:04:05Z", "fieldsV1": {"f:spec": {"f:paused": {}, "f:replicas": {}}}});
        json!({"metadata": {"managedFields": [entry]}})
    }

    #[test]
    fn whoever_writes_a_scale_that_changes_nothing_splits_the_owner_and_the_next_write_forgets_half() {
        let mut object = owned();
        let mut managed = Managed::of(&object);
        let writer = managed.0[0].manager.clone();
        managed.rescale(&Fields::at("/spec/replicas"), (2, 2), &Manager { subresource: "scale".into(), ..writer });
        managed.write_to(&mut object);
        let fields = |at: usize| object.pointer(&format!("/metadata/managedFields/{at}/fieldsV1")).unwrap();
        assert_eq!(
            (fields(0), fields(1)),
            (&json!({"f:spec": {"f:replicas": {}}}), &json!({"f:spec": {"f:paused": {}}}))
        );
        assert!(object.pointer("/metadata/managedFields/0/time").is_none());
        let read = Managed::of(&object);
        assert_eq!((read.0.len(), read.0[0].fields.paths()), (1, vec![".spec.paused".to_owned()]));
    }

    #[test]
    fn a_scale_that_changes_belongs_to_its_writer_unless_it_is_zero() {
        for (after, owner) in [(5, "scale"), (0, "")] {
            let mut managed = Managed::of(&owned());
            let writer = Manager { subresource: "scale".into(), ..managed.0[0].manager.clone() };
            managed.rescale(&Fields::at("/spec/replicas"), (2, after), &writer);
            assert_eq!(managed.0[0].manager.subresource, owner, "{after}");
            assert_eq!(managed.fields(&writer).is_empty(), after == 0);
        }
    }
}
