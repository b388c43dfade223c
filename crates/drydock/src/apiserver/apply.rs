//! Server-side apply: a client says what it wants, the server knows what it wanted before and what others want.

use super::error::{ApiError, Result};
use super::fields::Fields;
use super::managed::{Managed, Manager, Operation, without_server_fields};
use super::merge;
use super::meta;
use super::request::{Call, parse_body};
use super::server::{Answer, Reply, Server};
use super::write::{Ownership, shape};

impl Server {
    /// A patch in the language of server-side apply; creates the object when there is none.
    pub(crate) fn apply(&self, call: &Call) -> Result<Reply> {
        if call.params.get("fieldManager").is_empty() {
            return Err(ApiError::unprocessable(
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
            ));
        }
        let mut applied = parse_body(&call.body)?;
        for field in ["apiVersion", "kind"] {
            if meta::text(&applied, &format!("/{field}")).is_empty() {
                return Err(ApiError::bad_request(format!("{field} must be set in an apply patch")));
            }
        }
        if applied.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        if meta::name(&applied).is_empty() {
            meta::metadata(&mut applied).insert("name".into(), call.name.clone().into());
        }
        let warnings = shape(call, &mut applied)?;
        let schema = call.served.version().schema();
        let manager = call.field_manager(Operation::Apply);
        let wanted = call.own_part(Fields::of(schema, &applied, false));
        let time = meta::seconds(self.clock.now());
        let mut state = self.store.lock();
        let live = match call.live(&state) {
            Ok(live) => live,
            Err(error) if !call.subresource.is_empty() => return Err(error),
            Err(_) if !meta::uid(&applied).is_empty() => {
                let why = format!(
                    "uid mismatch: the provided object specified uid {}, and no existing object was found",
                    meta::uid(&applied)
                );
                return Err(ApiError::conflict(&call.served.resource, &call.name, &why));
            }
            Err(_) => {
                let mut managed = Managed::default();
                managed.set(&manager, wanted, &time);
                let written = self.insert(&mut state, call, applied, Ownership::Applied(managed))?;
                return Ok(Reply { answer: Answer::Object(201, written.object), warnings });
            }
        };
        let mut managed = Managed::of(&live);
        let mut merged = merge::apply(schema, &live, &applied);
        let (changed, _) = Fields::compare(schema, &live, &merged);
        let changed = call.own_part(changed);
        if call.params.flag("force") {
            managed.take(&changed, &manager);
        } else if let Some(conflict) = managed.conflicts(&changed, &manager) {
            return Err(conflict);
        }
        let kept = managed.others(&manager).union(&wanted);
        managed.fields(&manager).difference(&kept).remove_from(schema, &mut merged, &kept);
        managed.set(&manager, wanted, &time);
        let written = self.replace(&mut state, call, &live, merged, Ownership::Applied(managed))?;
        Ok(Reply { answer: Answer::Object(200, written.object), warnings })
    }
}

impl Call {
    /// The fields that can be owned through this endpoint: status has one of its own.
    pub(crate) fn own_part(&self, fields: Fields) -> Fields {
        let fields = without_server_fields(fields);
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
