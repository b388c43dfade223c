//! Refusals that say nothing of an object: the server, the node or the manner of the request is why.

use serde_json::json;

use super::ApiError;

impl ApiError {
    /// The history the client asks for is gone.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// The client asks for a version that was never handed out.
    pub(crate) fn too_large_revision(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut error = Self::new(504, "Timeout", message);
        *error.details = json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}], "retryAfterSeconds": 1});
        error
    }

    /// The resource does not offer the verb.
    pub(crate) fn method_not_allowed() -> Self {
        let mut error =
            Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
        *error.details = json!({});
        error
    }

    /// The body is in a format the resource does not take.
    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// The same, where the request was turned away before anybody looked at the resource.
    pub(crate) fn unknown_language() -> Self {
        let mut error = Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
        *error.details = json!({});
        error
    }

    /// The client wants the answer in a format this server does not speak.
    pub(crate) fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json";
        Self::new(406, "NotAcceptable", message)
    }

    /// The client wants the answer in a form it cannot have.
    pub(crate) fn not_of_that_form(why: &str) -> Self {
        Self::new(406, "NotAcceptable", why)
    }

    /// Too big.
    pub(crate) fn too_large(why: &str) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: {why}"))
    }

    /// Something went wrong that the client has no part in.
    pub(crate) fn internal(why: &str) -> Self {
        let mut error = Self::new(500, "InternalError", format!("Internal error occurred: {why}"));
        *error.details = json!({"causes": [{"message": why}]});
        error
    }

    /// The server is there but cannot work.
    pub(crate) fn unavailable() -> Self {
        let mut error = Self::new(503, "ServiceUnavailable", "the server is currently unable to handle the request");
        *error.details = json!({});
        error
    }

    /// The server gave up waiting; what it waited for may have happened.
    pub(crate) fn timeout() -> Self {
        let message = "Timeout: request did not complete within requested timeout - context deadline exceeded";
        let mut error = Self::new(504, "Timeout", message);
        *error.details = json!({});
        error
    }

    /// The client is asked to come back later.
    pub(crate) fn too_many_requests(retry_after: u64) -> Self {
        let mut error = Self::new(
            429,
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        );
        *error.details = json!({"retryAfterSeconds": retry_after});
        error
    }

    /// A code without a reason of its own.
    pub(crate) fn unexplained(code: u16) -> Self {
        let message = format!("the server responded with the status code {code} but did not return more information");
        let mut error = Self::new(code, "", message);
        *error.details = json!({});
        error
    }

    /// What a node said, or why it could not be asked.
    pub(crate) fn of_node(code: u16, message: impl Into<String>) -> Self {
        let reason = match code {
            400 => "BadRequest",
            404 => "NotFound",
            _ => "",
        };
        Self::new(code, reason, message)
    }

    /// A web page has no business here.
    pub(crate) fn web_page() -> Self {
        let message = "web pages may not use this server, which lets everybody who reaches it run commands";
        Self::new(403, "Forbidden", message)
    }
}
