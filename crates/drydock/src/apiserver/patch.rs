//! Patching: the four languages in which a client can say what to change.

use serde_json::Value;

use super::error::{ApiError, Result};
use super::request::{Call, parse_body};
use super::server::{Answer, Reply, Server};

impl Server {
    /// `patch`, on an object or on a sub-resource that shows the whole object.
    pub(crate) fn patch(&self, call: &Call) -> Result<Reply> {
        let mut state = self.store.lock();
        let live = self.live(&state, call)?;
        let new = self.patched(call, &live)?;
        let written = self.replace(&mut state, call, &live, new)?;
        Ok(Reply { answer: Answer::Object(200, written.object), warnings: written.warnings })
    }

    /// What a patch other than server-side apply makes of an object.
    pub(crate) fn patched(&self, call: &Call, live: &Value) -> Result<Value> {
        let mut object = live.clone();
        match media_type(&call.content_type) {
            "application/merge-patch+json" => {
                json_patch::merge(&mut object, &parse_body(&call.body)?);
            }
            "application/json-patch+json" => {
                let patch: json_patch::Patch = serde_json::from_slice(&call.body)
                    .map_err(|error| ApiError::bad_request(format!("error decoding JSON patch: {error}")))?;
                json_patch::patch(&mut object, &patch).map_err(|error| {
                    ApiError::unprocessable(format!(
                        "the server rejected our request due to an error in our request: {error}"
                    ))
                })?;
            }
            other => return Err(unsupported(other)),
        }
        Ok(object)
    }
}

fn unsupported(media_type: &str) -> ApiError {
    ApiError::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, \
         application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml; got {media_type:?}"
    ))
}

fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}
