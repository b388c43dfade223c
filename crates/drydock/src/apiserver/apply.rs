//! Server-side apply: a client says what it wants, the server knows what it wanted before and what others want.

use bytes::Bytes;
use serde_json::Value;

use super::convert::convert;
use super::error::{ApiError, Result};
use super::fields::Fields;
use super::go_json::kind_of;
use super::managed::{Managed, Manager, Operation, without_server_fields};
use super::merge;
use super::meta;
use super::plain_numbers::write_plainly;
use super::repeated_yaml::repeated_keys;
use super::request::{Call, yaml};
use super::schema::Schema;
use super::server::{Answer, Reply, Server};
use super::write::{Ownership, is_untidy, shape};
use super::zero::zero;

/// The manager that both kinds of apply of `kubectl` belong to.
const KUBECTL: &str = "kubectl";
/// Whoever wrote an object whose fields belong to nobody.
const BEFORE: &str = "before-first-apply";
/// Where client-side apply keeps what it applied.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const LAST_APPLIED: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

impl Server {
    /// A patch in the language of server-side apply; creates the object when there is none.
    pub(crate) fn apply(&self, call: &Call) -> Result<Reply> {
        let mut applied = yaml_body(&call.body)?;
        let (version, kind) = (meta::text(&applied, "/apiVersion"), meta::text(&applied, "/kind"));
        if kind != call.served.resource.kind || version != call.served.api_version() {
            let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
            return Err(ApiError::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")));
        }
        if applied.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        let nameless = meta::name(&applied).is_empty() && call.subresource.is_empty();
        let resource = &call.served.resource;
        if let Some(why) = Fields::untyped(call.served.version().schema(), &applied) {
            if !call.subresource.is_empty() {
                call.live(&self.store.lock())?;
            }
            return Err(ApiError::untyped(resource, &call.served.version().name, &applied, &why));
        }
        // A value that does not fit its type is noticed last of all.
        let unfitting = if resource.custom {
            None
        } else {
            let version = &call.served.version().name;
            let why = convert(call.served.version().schema(), &mut applied).err();
            why.map(|why| ApiError::unfitting_apply(resource, version, &applied, &why))
        };
        // What is applied is YAML, which is made JSON first, and that writes whole numbers without a point.
        if resource.custom {
            write_plainly(call.served.version().schema(), &mut applied);
        }
        let said = applied.clone();
        let warnings = if unfitting.is_none() { shape(call, &mut applied, &[])? } else { Vec::new() };
        let schema = call.served.stored_schema();
        let manager = call.field_manager(Operation::Apply);
        // What is null, empty or zero is wanted too, although Go leaves it out of what is stored.
        let wanted_state = if resource.lens.is_some() { applied.clone() } else { said.clone() };
        let wanted = call.own_part(Fields::of(schema, &wanted_state, false));
        let time = meta::seconds(self.clock.now());
        let mut state = self.store.lock();
        let live = match call.live(&state) {
            Ok(live) => live,
            Err(error) if !call.subresource.is_empty() => {
                // Where an update may create, the name is looked at first.
                let creates = resource.behaviour.create_on_update && meta::name(&applied).is_empty();
                return Err(if creates { ApiError::nameless(&call.name) } else { error });
            }
            Err(_) if !meta::uid(&applied).is_empty() && !nameless && unfitting.is_none() => {
                let why = format!(
                    "uid mismatch: the provided object specified uid {}, and no existing object was found",
                    meta::uid(&applied)
                );
                return Err(ApiError::conflict(&call.served.resource, &call.name, &why));
            }
            Err(_) => {
                if let Some(error) = unfitting {
                    return Err(error);
                }
                check_twice(call)?;
                if nameless {
                    return Err(ApiError::nameless(&call.name));
                }
                let mut managed = Managed::default();
                managed.set(&manager, wanted, &time);
                if !call.dry_run() {
                    meta::metadata(&mut applied).shift_remove("resourceVersion");
                }
                let ownership = Ownership::Applied { managed, untidy: is_untidy(call, &said) };
                let written = self.insert(&mut state, call, call.versioned(&applied), ownership)?;
                let warnings = together(warnings, written.warnings);
                return Ok(Reply { answer: Answer::Object(201, written.object), warnings });
            }
        };
        let known = Managed::of(&live);
        let is_unowned = known.is_empty();
        let mut managed = known.readable_to(&manager);
        if is_unowned {
            // Nobody knows who wrote what is there, only that it was before this.
            let before = Manager { name: BEFORE.to_owned(), operation: Operation::Update, ..manager.clone() };
            let (there, _) = Fields::compare(schema, &zero(schema), &live);
            managed.set(&before, call.own_part(there), &time);
        }
        let merged = merge::apply(schema, &live, &wanted_state);
        // What says which object is meant belongs to nobody, but it was said.
        let kept = managed.others(&manager).union(&Fields::of(schema, &wanted_state, false));
        let mut merged = managed.fields(&manager).pruned(schema, &merged, &kept);
        let (changed, removed) = Fields::compare(schema, &live, &merged);
        let (changed, removed) = (call.own_part(changed), call.own_part(removed));
        if call.params.flag("force") {
            managed.take(&changed, &manager);
        } else {
            // What the client itself applied before it came to the server is no conflict.
            let own = if manager.name == KUBECTL { last_applied(schema, &live) } else { Fields::default() };
            if let Some(conflict) = managed.conflicts(&changed.difference(&own), &manager) {
                return Err(conflict);
            }
            managed.take(&changed, &manager);
        }
        managed.lose(&removed);
        if let Some(error) = unfitting {
            return Err(error);
        }
        check_twice(call)?;
        if nameless {
            return Err(ApiError::nameless(&call.name));
        }
        // Whoever applies what is there already has not changed anything, at any time.
        let time = if merged == *live { managed.time(&manager) } else { time };
        managed.set(&manager, wanted, &time);
        if manager.name == KUBECTL && !meta::text(&merged, LAST_APPLIED).is_empty() {
            refresh_last_applied(&mut merged, said);
        }
        let ownership = Ownership::Applied { managed, untidy: is_untidy(call, &merged) };
        let written = self.replace(&mut state, call, &live, (call.versioned(&merged), &[]), ownership)?;
        let warnings = together(warnings, written.warnings);
        Ok(Reply { answer: Answer::Object(200, written.object), warnings })
    }
}

/// Warnings about what was sent and about what was written, each once.
fn together(mut sent: Vec<String>, written: Vec<String>) -> Vec<String> {
    sent.extend(written.into_iter().filter(|warning| !sent.contains(warning)).collect::<Vec<_>>());
    sent
}

/// Whoever wants to be told is not allowed to say anything twice. Nobody looks before all else is well.
fn check_twice(call: &Call) -> Result<()> {
    let repeated = repeated_keys(&call.body);
    if call.params.get("fieldValidation") != "Strict" || repeated.is_empty() {
        return Ok(());
    }
    let why = format!("yaml: unmarshal errors:\n  {}", repeated.join("\n  "));
    Err(ApiError::bad_request(format!("error strict decoding YAML: error converting YAML to JSON: {why}")))
}

/// An object in YAML. Nothing is an object too.
fn yaml_body(body: &Bytes) -> Result<Value> {
    let wrong = |why: &str| ApiError::bad_request(format!("error decoding YAML: {why}"));
    match yaml(body)
        .map_err(|()| wrong("error converting YAML to JSON: yaml: line 1: did not find expected node content"))?
    {
        object @ Value::Object(_) => Ok(object),
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        other => {
            let found = kind_of(&other);
            let why = format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
            Err(wrong(&format!("error unmarshaling JSON: while decoding JSON: {why}")))
        }
    }
}

/// The fields of the last client-side apply that are still as it left them.
fn last_applied(schema: &Schema, live: &Value) -> Fields {
    let Ok(applied) = serde_json::from_str::<Value>(meta::text(live, LAST_APPLIED)) else { return Fields::default() };
    if applied.get("apiVersion") != live.get("apiVersion") {
        return Fields::default();
    }
    let (changed, removed) = Fields::compare(schema, &merge::apply(schema, live, &applied), live);
    Fields::of(schema, &applied, false).difference(&changed).difference(&removed)
}

/// Keeps the record of client-side apply true, so that a client may go back to it.
fn refresh_last_applied(object: &mut Value, mut applied: Value) {
    if let Some(annotations) = applied.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.shift_remove(ANNOTATION);
    }
    applied.sort_all_objects();
    let annotations = meta::metadata(object).entry("annotations").or_insert(Value::Null);
    meta::members(annotations).insert(ANNOTATION.into(), format!("{applied}\n").into());
}

impl Call {
    /// The fields that can be owned through this endpoint: status has one of its own.
    pub(crate) fn own_part(&self, fields: Fields) -> Fields {
        let fields = without_server_fields(fields);
        if self.subresource == "status" && !self.served.resource.custom {
            let (status, mut metadata) =
                (fields.clone().restricted("status", true), fields.restricted("metadata", true));
            // What such a write cannot change it cannot own either.
            if let Some(metadata) = metadata.children.get_mut("f:metadata") {
                let fixed = self.served.resource.behaviour.fixed_by_status;
                metadata.children.retain(|step, _| !fixed.contains(&step.trim_start_matches("f:")));
            }
            metadata.children.retain(|_, fields| !fields.is_empty());
            return status.union(&metadata);
        }
        if self.served.has("status") { fields.restricted("status", self.subresource == "status") } else { fields }
    }

    /// Whom the fields written by this request belong to.
    pub(crate) fn field_manager(&self, operation: Operation) -> Manager {
        Manager {
            name: self.manager().to_owned(),
            operation,
            api_version: self.served.api_version(),
            subresource: self.subresource.clone(),
        }
    }
}
