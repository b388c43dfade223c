//! What the fault layer may ask of the server beyond its API: the past, an object without a request, and refusals in
//! the server's own words.
//!
//! Nothing here is reachable from outside the crate, and nothing here changes the cluster.

use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use http::{HeaderValue, Method, Response, Uri, header};
use serde_json::{Value, json};

use super::error::ApiError;
use super::request::{Call, Params, Target};
use super::server::respond;
use super::store::{Change, Key};
use super::view::{Form, View};
use super::{ApiServer, Body, full};

/// Put into a request's extensions, it makes a read answer as of a revision: a server that lags behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsOf(pub(crate) u64);

impl ApiServer {
    /// The current state of the object a path names.
    pub(crate) fn object(&self, target: &Target) -> Option<Arc<Value>> {
        let served = self.served(target)?;
        let key = Key { namespace: target.namespace.clone().unwrap_or_default(), name: target.name.clone() };
        self.0.store.lock().get(&served.resource.id, &key).cloned()
    }

    /// An object of a watched collection as it was at a revision, in the form the watch shows objects.
    pub(crate) fn shown_at(
        &self,
        watched: &Target,
        namespace: &str,
        name: &str,
        revision: u64,
        accept: &str,
    ) -> Option<Value> {
        let served = self.served(watched)?;
        let key = Key { namespace: namespace.to_owned(), name: name.to_owned() };
        let object = self.0.store.lock().at(&served.resource.id, &key, revision).cloned()?;
        Some(View::new(served, Form::negotiate(accept, true).ok()?).object(&object, self.0.clock.now()))
    }

    /// The revision just before the `versions`-th last change of what a read would show; `None` when there were not so
    /// many, when history no longer knows, or when the client asks for something newer.
    pub(crate) fn ago(&self, uri: &Uri, versions: u64) -> Option<u64> {
        let target = Target::parse(uri.path())?;
        let params = Params::parse(uri.query().unwrap_or_default());
        let verb = target.verb(&Method::GET, &params)?;
        let call = Call {
            user: String::new(),
            verb,
            served: self.served(&target)?,
            namespace: target.namespace,
            name: target.name,
            subresource: target.subresource,
            params,
            content_type: String::new(),
            body: Bytes::new(),
            as_of: None,
        };
        let selector = call.selector().ok()?;
        let shows = |change: &Arc<Change>| {
            call.namespace.as_ref().is_none_or(|namespace| *namespace == change.id.1.namespace)
                && (selector.matches(&change.after)
                    || change.before.as_ref().is_some_and(|before| selector.matches(before)))
        };
        let state = self.0.store.lock();
        let last = versions.checked_sub(1)? as usize;
        let change = state.latest(&call.served.resource.id).filter(|change| shows(change)).nth(last)?;
        let revision = change.revision.checked_sub(1)?;
        let asked = call.params.revision().ok()?.unwrap_or(0);
        (call.params.get("continue").is_empty() && revision >= state.compacted() && revision >= asked)
            .then_some(revision)
    }

    /// What the server says to who wants to replace a version that is no longer the latest.
    pub(crate) fn conflict(&self, target: &Target) -> Option<Response<Body>> {
        let served = self.served(target)?;
        Some(answer(&ApiError::modified(&served.resource, &target.name)))
    }

    fn served(&self, target: &Target) -> Option<super::registry::Served> {
        let registry = self.0.registry.read().unwrap_or_else(PoisonError::into_inner);
        registry.find(&target.group, &target.version, &target.plural)
    }
}

/// An answer of the server with nothing but a code to go by. `retry_after` is in seconds.
pub(crate) fn refusal(code: u16, retry_after: Option<u64>) -> Response<Body> {
    let error = match code {
        429 => ApiError::too_many_requests(retry_after.unwrap_or(1)),
        500 => ApiError::internal("etcdserver: leader changed"),
        503 => ApiError::unavailable(),
        504 => ApiError::timeout(),
        code => ApiError::unexplained(code),
    };
    let mut response = answer(&error);
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The event that ends a watch whose history is gone.
pub(crate) fn expired(asked: &str, compacted: u64) -> Bytes {
    let status = ApiError::expired(format!("too old resource version: {asked} ({compacted})")).to_status();
    let mut line = json!({"type": "ERROR", "object": status}).to_string();
    line.push('\n');
    line.into()
}

fn answer(error: &ApiError) -> Response<Body> {
    respond(error.code(), "application/json", full(error.to_status().to_string().into()), &[])
}
