//! Sub-resources: a part of an object with an endpoint of its own.

use serde_json::{Value, json};

use super::delete::DeleteOptions;
use super::error::{ApiError, Result};
use super::meta;
use super::request::Call;
use super::scale::scale;
use super::server::{Answer, Reply, Server};

/// Serves one sub-resource.
type Handler = fn(&Server, &Call) -> Result<Reply>;

/// The sub-resources this server knows; which resource has which is in the registry.
const HANDLERS: &[(&str, Handler)] = &[("binding", bind), ("eviction", evict), ("scale", scale), ("status", status)];

impl Server {
    /// Any verb on a sub-resource.
    pub(crate) fn subresource(&self, call: &Call) -> Result<Reply> {
        let offered = call.served.version().subresources.get(&call.subresource).ok_or_else(|| {
            let resource = &call.served.resource;
            if resource.custom {
                return ApiError::not_found(resource, &call.name);
            }
            let name = format!("{}/{}", resource.plural, call.subresource);
            ApiError::not_offered(&resource.group, &call.served.version().name, &name)
        })?;
        if !offered.iter().any(|verb| verb == call.verb) {
            return Err(ApiError::method_not_allowed());
        }
        let handler = HANDLERS.iter().find(|(name, _)| *name == call.subresource).ok_or_else(ApiError::no_route)?;
        handler.1(self, call)
    }
}

/// The whole object, of which only the status can be written.
fn status(server: &Server, call: &Call) -> Result<Reply> {
    match call.verb {
        "get" => server.get(call).map(Reply::from),
        "update" => server.update(call),
        "patch" => server.patch(call),
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// Assigns a pod to a node. The only way a pod's node can be set after its creation.
fn bind(server: &Server, call: &Call) -> Result<Reply> {
    let binding = call.object()?;
    let node = meta::text(&binding, "/target/name");
    let mut state = server.store.lock();
    let live = call.live(&state)?;
    let resource = &call.served.resource;
    let uid = meta::uid(&binding);
    if !uid.is_empty() && uid != meta::uid(&live) {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", meta::uid(&live));
        return Err(ApiError::conflict(resource, &call.name, &why));
    }
    if meta::deleting(&live) {
        let why = format!("pod {} is being deleted, cannot be assigned to a host", call.name);
        return Err(ApiError::conflict(resource, &call.name, &why));
    }
    let current = meta::text(&live, "/spec/nodeName");
    if !current.is_empty() {
        let why = format!("pod {} is already assigned to node {current:?}", call.name);
        return Err(ApiError::conflict(resource, &call.name, &why));
    }
    let mut bound = Value::clone(&live);
    meta::child(&mut bound, "spec").insert("nodeName".into(), node.into());
    let scheduled = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": meta::seconds(server.clock.now()),
    });
    let conditions = meta::child(&mut bound, "status").entry("conditions").or_insert_with(|| json!([]));
    if let Value::Array(conditions) = conditions {
        conditions.retain(|condition| meta::text(condition, "/type") != "PodScheduled");
        conditions.push(scheduled);
    }
    if !call.dry_run() {
        server.put(&mut state, call.author(), call.id(), bound);
    }
    Ok(Answer::Plain(
        201,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    )
    .into())
}

/// Deletes a pod politely. There are no disruption budgets that could refuse it.
fn evict(server: &Server, call: &Call) -> Result<Reply> {
    let body = call.object()?;
    let options = match body.get("deleteOptions") {
        Some(options) => serde_json::from_value(options.clone())
            .map_err(|error| ApiError::bad_request(format!("invalid delete options: {error}")))?,
        None => DeleteOptions::default(),
    };
    let mut state = server.store.lock();
    let live = call.live(&state)?;
    if !call.dry_run() {
        server.delete_object(&mut state, call.author(), &call.served.resource, call.id(), &live, &options);
    }
    Ok(Answer::Plain(
        201,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    )
    .into())
}
