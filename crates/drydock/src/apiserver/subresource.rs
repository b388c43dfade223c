//! Sub-resources: a part of an object with an endpoint of its own.

use super::error::{ApiError, Result};
use super::pod_place::{bind, evict};
use super::request::Call;
use super::scale::scale;
use super::server::{Reply, Server};

/// Serves one sub-resource.
type Handler = fn(&Server, &Call) -> Result<Reply>;

/// The sub-resources this server knows; which resource has which is in the registry.
const HANDLERS: &[(&str, Handler)] =
    &[("binding", bind), ("eviction", evict), ("finalize", Server::update), ("scale", scale), ("status", status)];

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
