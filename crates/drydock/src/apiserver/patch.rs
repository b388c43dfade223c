//! Patching: the four languages in which a client can say what to change.

use bytes::Bytes;
use serde_json::Value;

use super::error::{ApiError, Result};
use super::merge;
use super::registry::Resource;
use super::request::{Call, media_type, parse_body};
use super::schema::Schema;
use super::server::{Answer, Reply, Server};
use super::write::Ownership;

/// The media type of server-side apply.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

impl Server {
    /// `patch`, on an object or on a sub-resource that shows the whole object.
    pub(crate) fn patch(&self, call: &Call) -> Result<Reply> {
        if media_type(&call.content_type) == APPLY {
            return self.apply(call);
        }
        let mut state = self.store.lock();
        let live = call.live(&state)?;
        let new = patched(call, &call.versioned(&live), call.served.version().schema())?;
        let written = self.replace(&mut state, call, &live, new, Ownership::Written)?;
        Ok(Reply { answer: Answer::Object(200, written.object), warnings: written.warnings })
    }
}

/// What a patch other than server-side apply makes of an object.
pub(crate) fn patched(call: &Call, live: &Value, schema: &Schema) -> Result<Value> {
    let mut object = live.clone();
    match media_type(&call.content_type) {
        "application/merge-patch+json" => json_patch::merge(&mut object, &patch_body(&call.body)?),
        "application/json-patch+json" => {
            let patch: json_patch::Patch = serde_json::from_slice(&call.body)
                .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
            // The real server does not say which operation failed either.
            let refused = |_| ApiError::unprocessable("the server rejected our request due to an error in our request");
            json_patch::patch(&mut object, &patch).map_err(refused)?;
        }
        "application/strategic-merge-patch+json" if !call.served.resource.custom => {
            merge::strategic(schema, &mut object, &patch_body(&call.body)?)?;
        }
        _ => return Err(ApiError::unsupported_media_type(languages(&call.served.resource))),
    }
    Ok(object)
}

/// A patch that is JSON and nothing else.
fn patch_body(body: &Bytes) -> Result<Value> {
    match serde_json::from_slice::<Value>(body) {
        Err(error) if error.is_eof() => Err(ApiError::bad_request("unexpected end of JSON input")),
        _ => parse_body(body),
    }
}

/// The languages a resource can be patched in.
pub(crate) fn languages(resource: &Resource) -> &'static [&'static str] {
    const ALL: &[&str] = &[
        "application/json-patch+json",
        "application/merge-patch+json",
        APPLY,
        "application/strategic-merge-patch+json",
    ];
    if resource.custom { ALL.get(..3).unwrap_or(ALL) } else { ALL }
}
