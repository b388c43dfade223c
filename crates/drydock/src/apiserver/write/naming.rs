//! Where a new object goes: its namespace and its name.

use serde_json::Value;

use crate::apiserver::error::{ApiError, Cause, Result};
use crate::apiserver::meta;
use crate::apiserver::request::Call;
use crate::apiserver::server::Server;
use crate::apiserver::store::{Key, State};

/// How often a generated name is tried again when it is taken.
const NAME_ATTEMPTS: usize = 8;

impl Server {
    /// The namespace must exist, and not be on its way out.
    pub(super) fn check_namespace(&self, state: &State, call: &Call, object: &Value) -> Result<()> {
        let resource = &call.served.resource;
        let Some(namespace) = &call.namespace else {
            return if resource.namespaced {
                Err(ApiError::bad_request("an empty namespace may not be set during creation"))
            } else {
                Ok(())
            };
        };
        // That it lacks one is a complaint about the object.
        if namespace.is_empty() {
            return Ok(());
        }
        let sent = meta::namespace(object);
        if !sent.is_empty() && sent != namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let key = Key { namespace: String::new(), name: namespace.clone() };
        let Some(owner) = self.stored("namespaces") else { return Ok(()) };
        match state.get("namespaces", &key) {
            None => Err(ApiError::not_found(&owner.resource, namespace)),
            Some(found) if meta::deleting(found) => {
                let why =
                    format!("unable to create new content in namespace {namespace} because it is being terminated");
                let cause = Cause {
                    reason: "NamespaceTerminating",
                    message: format!("namespace {namespace} is being terminated"),
                    field: "metadata.namespace".to_owned(),
                };
                Err(ApiError::forbidden(resource, meta::name(object), &why).because(&[cause]))
            }
            Some(_) => Ok(()),
        }
    }

    /// The name in the path, in the object, or a generated one.
    pub(super) fn choose_name(&self, state: &State, call: &Call, object: &Value) -> Result<String> {
        let sent = meta::name(object);
        if !call.name.is_empty() && !sent.is_empty() && call.name != sent {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({sent}) does not match the name on the URL ({})",
                call.name
            )));
        }
        let given = if sent.is_empty() { &call.name } else { sent };
        let prefix = meta::field(object, "generateName");
        if !given.is_empty() || prefix.is_empty() {
            return Ok(given.to_owned());
        }
        let namespace = call.namespace.clone().unwrap_or_default();
        let head: String = prefix.chars().take(58).collect();
        let mut key = Key { namespace, name: String::new() };
        for _ in 0..NAME_ATTEMPTS {
            key.name = format!("{head}{}", self.seed.suffix(5));
            if state.get(&call.served.resource.id, &key).is_none() {
                break;
            }
        }
        Ok(key.name)
    }
}
