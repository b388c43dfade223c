//! Requests to the API server, and what can go wrong with one.
//!
//! Turns a [`Change`] into one HTTP request and its answer into an object or an [`ApiError`] that says whether trying
//! again helps. Every write first asks the [`Fence`]: a leader that lost its lease, or slept through it, sends nothing
//! more. What to send, and in which order, is not decided here.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use kube::Client;
use kube::client::Body;
use seaway_adapters::change::{Action, Change, ObjectRef};
use seaway_adapters::object::MANAGER;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::lease::Fence;

/// One request may take this long; real time, since it guards against a real connection.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// A server that asks for more patience than this is asked again all the same.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// The way to the API server.
#[derive(Clone)]
pub(crate) struct Requests {
    client: Client,
    clock: Arc<dyn Clock>,
    fence: Fence,
}

/// Why a request did not do what it should.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ApiError {
    /// HTTP status; 0 when there was no answer.
    pub(crate) code: u16,
    /// The server's own word, e.g. `AlreadyExists`.
    pub(crate) reason: String,
    /// The server's text.
    pub(crate) message: String,
    /// The server named the fields it will not have. A refused precondition of a JSON Patch has the same code and reason,
    /// but no such list.
    pub(crate) at_fault: bool,
    /// How long the server asks us to wait.
    pub(crate) retry_after: Option<Duration>,
}

/// What to do about an [`ApiError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// The decision was made on an older world: look again soon. The watch is probably bringing it already.
    Soon,
    /// The cluster is in trouble: wait longer every time.
    Backoff,
    /// The server understood and will not have such an object; only a change of something else helps.
    Corrected,
    /// We are not allowed to act now.
    Fenced,
}

impl ApiError {
    fn local(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.to_owned(), message: message.into(), at_fault: code == 422, retry_after: None }
    }

    /// Whether trying again helps, and when.
    pub(crate) fn retry(&self) -> Retry {
        match self.code {
            422 if self.at_fault => Retry::Corrected,
            404 | 409 | 412 | 422 => Retry::Soon,
            _ if self.reason == "Fenced" => Retry::Fenced,
            _ => Retry::Backoff,
        }
    }

    /// Another writer was faster, or the object is not the one the decision was made on.
    pub(crate) fn is_conflict(&self) -> bool {
        self.code == 409
    }

    /// An object of that name exists.
    pub(crate) fn is_taken(&self) -> bool {
        self.is_conflict() && self.reason == "AlreadyExists"
    }

    /// The object does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        self.code == 404
    }
}

impl Requests {
    /// Requests of `client`, as long as `fence` allows.
    pub(crate) fn new(client: Client, clock: Arc<dyn Clock>, fence: Fence) -> Self {
        Self { client, clock, fence }
    }

    /// Sends one change; the answer is the object after it, `None` for a deletion.
    pub(crate) async fn send(&self, change: &Change) -> Result<Option<Value>, ApiError> {
        let object = &change.object;
        let uri = uri(object)?;
        let answer = match &change.action {
            Action::Create { body, manager } => {
                let mut body = body.clone();
                identify(&mut body, object);
                self.write(Method::POST, &format!("{}?fieldManager={manager}", collection(object)?), JSON, &body)
                    .await?
            }
            Action::JsonPatch { operations } => {
                self.write(Method::PATCH, &managed(&uri), JSON_PATCH, operations).await?
            }
            Action::MergePatch { body } => self.write(Method::PATCH, &managed(&uri), MERGE_PATCH, body).await?,
            Action::Delete { uid } => {
                let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid } });
                self.write(Method::DELETE, &uri, JSON, &options).await?;
                return Ok(None);
            }
        };
        Ok(Some(answer))
    }

    /// Changes the status of an object; `body` names the uid and resourceVersion it was decided on.
    pub(crate) async fn patch_status(&self, object: &ObjectRef, body: &Value) -> Result<Value, ApiError> {
        self.write(Method::PATCH, &managed(&format!("{}/status", uri(object)?)), MERGE_PATCH, body).await
    }

    /// Replaces an object; `body` names the resourceVersion it was decided on.
    pub(crate) async fn replace(&self, object: &ObjectRef, body: &Value) -> Result<Value, ApiError> {
        self.request(Method::PUT, &uri(object)?, JSON, Some(body)).await
    }

    /// Creates an object outside the fence: Leases and Events, which are not effects.
    pub(crate) async fn create(&self, object: &ObjectRef, body: &Value) -> Result<Value, ApiError> {
        self.request(Method::POST, &collection(object)?, JSON, Some(body)).await
    }

    /// Merges into an object outside the fence.
    pub(crate) async fn merge(&self, object: &ObjectRef, body: &Value) -> Result<Value, ApiError> {
        self.request(Method::PATCH, &uri(object)?, MERGE_PATCH, Some(body)).await
    }

    /// Reads one object; `None` when it does not exist.
    pub(crate) async fn get(&self, object: &ObjectRef) -> Result<Option<Value>, ApiError> {
        match self.request(Method::GET, &uri(object)?, JSON, None).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn write(&self, method: Method, uri: &str, media: &str, body: &Value) -> Result<Value, ApiError> {
        if !self.fence.allows(&*self.clock) {
            return Err(ApiError::local(0, "Fenced", "no longer the leader"));
        }
        self.request(method, uri, media, Some(body)).await
    }

    async fn request(&self, method: Method, uri: &str, media: &str, body: Option<&Value>) -> Result<Value, ApiError> {
        let bytes = body.map(serde_json::to_vec).transpose();
        let bytes = bytes.map_err(|error| ApiError::local(0, "Encoding", error.to_string()))?.unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(header::ACCEPT, JSON)
            .header(header::CONTENT_TYPE, media)
            .body(Body::from(bytes))
            .map_err(|error| ApiError::local(0, "Request", error.to_string()))?;
        let answer = tokio::time::timeout(TIME_LIMIT, self.exchange(request));
        answer.await.unwrap_or_else(|_| Err(ApiError::local(0, "Timeout", "the API server did not answer in time")))
    }

    async fn exchange(&self, request: Request<Body>) -> Result<Value, ApiError> {
        let lost = |error: &dyn std::fmt::Display| ApiError::local(0, "Connection", error.to_string());
        let response = self.client.send(request).await.map_err(|error| lost(&error))?;
        let status = response.status();
        let wait = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let bytes = response.into_body().collect_bytes().await.map_err(|error| lost(&error))?;
        let body = serde_json::from_slice::<Value>(&bytes);
        if status.is_success() {
            return body.map_err(|error| ApiError::local(0, "Decoding", error.to_string()));
        }
        Err(refusal(status, &body.unwrap_or_default(), wait))
    }
}

const JSON: &str = "application/json";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// The error a Kubernetes `Status` object describes.
fn refusal(status: StatusCode, body: &Value, retry_after: Option<u64>) -> ApiError {
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let in_body = body.pointer("/details/retryAfterSeconds").and_then(Value::as_u64);
    let message = match text("message") {
        message if message.is_empty() => format!("status {status}"),
        message => message,
    };
    let retry_after = retry_after.or(in_body).filter(|seconds| *seconds > 0);
    let retry_after = retry_after.map(|seconds| Duration::from_secs(seconds).min(LONGEST_WAIT));
    let at_fault = body.pointer("/details/causes").and_then(Value::as_array).is_some_and(|causes| !causes.is_empty());
    ApiError { code: status.as_u16(), reason: text("reason"), message, at_fault, retry_after }
}

/// A write under our name, so that `managedFields` tells who set a weight.
fn managed(uri: &str) -> String {
    format!("{uri}?fieldManager={MANAGER}")
}

fn uri(object: &ObjectRef) -> Result<String, ApiError> {
    Ok(format!("{}/{}", collection(object)?, segment(&object.name)?))
}

fn collection(object: &ObjectRef) -> Result<String, ApiError> {
    let kind = object.kind;
    let root = if kind.group.is_empty() { "api" } else { "apis" };
    let (api_version, namespace) = (kind.api_version(), segment(&object.namespace)?);
    Ok(format!("/{root}/{api_version}/namespaces/{namespace}/{}", kind.plural))
}

/// Names come from users: only what can be a name gets into a path.
fn segment(name: &str) -> Result<&str, ApiError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    if name.is_empty() || name.starts_with('.') || !name.bytes().all(plain) {
        return Err(ApiError::local(422, "Invalid", format!("{name:?} cannot be the name of an object")));
    }
    Ok(name)
}

/// A body that is sent whole says what it is.
fn identify(body: &mut Value, object: &ObjectRef) {
    let Some(fields) = body.as_object_mut() else { return };
    fields.insert("apiVersion".into(), object.kind.api_version().into());
    fields.insert("kind".into(), object.kind.kind.into());
    if let Some(metadata) = fields.entry("metadata").or_insert_with(|| json!({})).as_object_mut() {
        metadata.insert("name".into(), object.name.clone().into());
        metadata.insert("namespace".into(), object.namespace.clone().into());
    }
}

#[cfg(test)]
mod tests {
    use seaway_adapters::kinds::{DEPLOYMENT, SERVICE};

    use super::*;

    fn object(kind: seaway_adapters::change::Kind, name: &str) -> ObjectRef {
        ObjectRef { kind, namespace: "test".into(), name: name.into() }
    }

    #[test]
    fn paths_are_the_servers() {
        assert_eq!(uri(&object(SERVICE, "podinfo")).unwrap(), "/api/v1/namespaces/test/services/podinfo");
        assert_eq!(uri(&object(DEPLOYMENT, "a.b")).unwrap(), "/apis/apps/v1/namespaces/test/deployments/a.b");
    }

    #[test]
    fn a_name_cannot_leave_its_place_in_the_path() {
        for name in ["", "..", "a/b", "../../secrets", "a?b", "a%2f", "Ä"] {
            assert_eq!(uri(&object(SERVICE, name)).unwrap_err().code, 422, "{name}");
        }
    }

    #[test]
    fn an_error_knows_whether_trying_again_helps() {
        let error = |code: u16, body: Value| refusal(StatusCode::from_u16(code).unwrap(), &body, None);
        assert_eq!(error(409, json!({ "reason": "AlreadyExists" })).retry(), Retry::Soon);
        assert_eq!(error(422, json!({ "details": {} })).retry(), Retry::Soon, "a JSON Patch whose test failed");
        let causes = json!([{ "field": "spec.ports[0].port", "reason": "FieldValueInvalid" }]);
        assert_eq!(error(422, json!({ "details": { "causes": causes } })).retry(), Retry::Corrected);
        assert_eq!(uri(&object(SERVICE, "a/b")).unwrap_err().retry(), Retry::Corrected);
        let busy = error(429, json!({ "message": "slow down", "details": { "retryAfterSeconds": 7 } }));
        assert_eq!((busy.retry(), busy.retry_after), (Retry::Backoff, Some(Duration::from_secs(7))));
        let rude = error(503, json!({ "details": { "retryAfterSeconds": 86_400 } }));
        assert_eq!(rude.retry_after, Some(LONGEST_WAIT));
        assert_eq!(error(503, Value::Null).message, "status 503 Service Unavailable");
        assert_eq!(ApiError::local(0, "Fenced", "").retry(), Retry::Fenced);
    }
}
