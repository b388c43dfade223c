//! What the server answers when it refuses: Kubernetes `Status` objects with the texts that clients parse.

mod cause;
mod hitch;
mod left_out;
mod server;
mod unreadable;

use serde_json::{Value, json};

use super::registry::Resource;
pub(crate) use cause::Cause;
pub(crate) use hitch::Hitch;
use left_out::LEFT_OUT;
pub(crate) use unreadable::unregistered;

/// A refused request.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    code: u16,
    reason: &'static str,
    message: String,
    details: Box<Value>,
    /// What else the client should know.
    warnings: Vec<String>,
}

/// The result of a verb.
pub(crate) type Result<T, E = ApiError> = std::result::Result<T, E>;

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Box::default(), warnings: Vec::new() }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        *self.details = details(name, &resource.group, &resource.plural);
        self
    }

    /// With causes, for machines.
    pub(crate) fn because(mut self, causes: &[Cause]) -> Self {
        self.details["causes"] = causes.iter().map(Cause::to_json).collect();
        self
    }

    /// With the warnings that were due before it was refused.
    pub(crate) fn after(mut self, warnings: &[String]) -> Self {
        self.warnings.splice(0..0, warnings.iter().cloned());
        self
    }

    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The HTTP status code.
    pub(crate) fn code(&self) -> u16 {
        self.code
    }

    /// No such object.
    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", resource.name())).about(resource, name)
    }

    /// A part of Kubernetes that is left out here; what nobody has is not found, as everywhere.
    pub(crate) fn not_offered(group: &str, version: &str, resource: &str) -> Self {
        if !LEFT_OUT.contains(&resource) || group.contains('.') && !group.ends_with(".k8s.io") {
            return Self::no_route();
        }
        let place = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let mut error = Self::new(404, "NotFound", format!("drydock does not offer {resource} ({place})"));
        *error.details = details("", group, resource);
        error
    }

    /// No such path.
    pub(crate) fn no_route() -> Self {
        let mut error = Self::new(404, "NotFound", "the server could not find the requested resource");
        *error.details = json!({});
        error
    }

    /// The name is taken.
    pub(crate) fn already_exists(resource: &Resource, name: &str, deleting: bool) -> Self {
        let note = if deleting { "object is being deleted: " } else { "" };
        let message = format!("{note}{} {name:?} already exists", resource.name());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    /// The same where the client gave a beginning for a name that is free as well.
    pub(crate) fn despite_a_beginning(mut self) -> Self {
        self.message.push_str(", the server was not able to generate a unique name for the object");
        self.details["retryAfterSeconds"] = json!(1);
        self
    }

    /// The object is not what the client believed it to be.
    pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.name());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// The same where a sub-resource was meant.
    pub(crate) fn conflict_at(place: &str, name: &str, why: &str) -> Self {
        let mut error = Self::new(409, "Conflict", format!("Operation cannot be fulfilled on {place} {name:?}: {why}"));
        *error.details = details(name, "", place);
        error
    }

    /// The client means an object that had this name before, or has it elsewhere. In the words of a server that keeps its
    /// objects in etcd, at this key.
    pub(crate) fn other_uid(resource: &Resource, name: &str, key: &str, uids: (&str, &str)) -> Self {
        Self::stored_otherwise(resource, name, key, "UID", uids)
    }

    /// The same of any part of its metadata.
    pub(crate) fn stored_otherwise(
        resource: &Resource,
        name: &str,
        key: &str,
        what: &str,
        (meant, found): (&str, &str),
    ) -> Self {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
             {what} in precondition: {meant}, {what} in object meta: {found}"
        );
        Self::conflict(resource, name, &why)
    }

    /// The client read an older version than the one it wants to replace.
    pub(crate) fn modified(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// Fields that another manager owns. `message` lists them for people, `causes` for machines.
    pub(crate) fn managed_by_others(message: String, causes: &[Cause]) -> Self {
        let mut error = Self::new(409, "Conflict", message);
        *error.details = json!({"causes": causes.iter().map(Cause::to_json).collect::<Vec<_>>()});
        error
    }

    /// The object is wrong.
    pub(crate) fn invalid(resource: &Resource, name: &str, causes: &[Cause]) -> Self {
        // What has another name here is judged under its own, which is in the core group.
        let group = if resource.lens.is_some() { "" } else { &resource.group };
        Self::wrong_kind(group, &resource.kind, name, causes)
    }

    /// The same by the names that are told, as of a custom resource of another kind than its place.
    pub(crate) fn wrong_kind(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut error = Self::new(422, "Invalid", format!("{qualified} {name:?} is invalid: {}", lines(causes)));
        *error.details = details(name, group, kind);
        error.details["causes"] = causes.iter().map(Cause::to_json).collect();
        error
    }

    /// A number of replicas that nothing can have.
    pub(crate) fn invalid_scale(name: &str, causes: &[Cause]) -> Self {
        let mut error = Self::new(422, "Invalid", format!("Scale.autoscaling {name:?} is invalid: {}", lines(causes)));
        *error.details = details(name, "autoscaling", "Scale");
        error.details["causes"] = causes.iter().map(Cause::to_json).collect();
        error
    }

    /// The object is not the one that was to be deleted. The real server names the kind here, not the resource.
    pub(crate) fn not_meant(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified_kind());
        let mut error = Self::new(409, "Conflict", message);
        *error.details = details(name, &resource.group, &resource.kind);
        error
    }

    /// The same of a kind that asks for itself.
    pub(crate) fn precondition_failed(resource: &Resource, name: &str, why: &str) -> Self {
        let resource_name = resource.name();
        let message = format!("Operation cannot be fulfilled on {resource_name} {name:?}: Precondition failed: {why}");
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// Parameters that do not go together.
    pub(crate) fn bad_options(kind: &str, causes: &[Cause]) -> Self {
        let mut error = Self::new(422, "Invalid", format!("{kind}.meta.k8s.io \"\" is invalid: {}", lines(causes)));
        *error.details = json!({"group": "meta.k8s.io", "kind": kind});
        error.details["causes"] = causes.iter().map(Cause::to_json).collect();
        error
    }

    /// A question that makes no sense. The real server does not say of which kind it was either.
    pub(crate) fn bad_question(resource: &Resource, causes: &[Cause]) -> Self {
        let mut error = Self::new(422, "Invalid", format!(".{} \"\" is invalid: {}", resource.group, lines(causes)));
        *error.details = json!({"group": resource.group});
        error.details["causes"] = causes.iter().map(Cause::to_json).collect();
        error
    }

    /// An update that does not say which version it replaces, of a kind that must be told.
    pub(crate) fn unseen(resource: &Resource, name: &str) -> Self {
        let cause = Cause {
            reason: "FieldValueInvalid",
            message: "Invalid value: 0: must be specified for an update".into(),
            field: "metadata.resourceVersion".into(),
        };
        let mut error = Self::invalid(resource, name, std::slice::from_ref(&cause));
        error.message = format!("{} {name:?} is invalid: {}", resource.name(), cause.line());
        error.details["kind"] = resource.plural.as_str().into();
        error
    }

    /// The request is well formed but cannot be carried out (a JSON Patch whose `test` fails).
    pub(crate) fn unprocessable(message: impl Into<String>) -> Self {
        let mut error = Self::new(422, "Invalid", message);
        *error.details = json!({});
        error
    }

    /// The request makes no sense.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// An update must name what it updates.
    pub(crate) fn nameless(url: &str) -> Self {
        let why = "was undeterminable: name must be provided";
        Self::bad_request(format!("the name of the object ({url} based on URL) {why}"))
    }

    /// A rule of the cluster forbids it.
    pub(crate) fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", resource.name());
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    /// Options of a request (`PodLogOptions`) that make no sense.
    pub(crate) fn invalid_options(kind: &str, name: &str, causes: &[Cause]) -> Self {
        let lines: Vec<_> = causes.iter().map(Cause::line).collect();
        let list = if let [one] = lines.as_slice() { one.clone() } else { format!("[{}]", lines.join(", ")) };
        let mut error = Self::new(422, "Invalid", format!("{kind} {name:?} is invalid: {list}"));
        *error.details = details(name, "", kind);
        error.details["causes"] = causes.iter().map(Cause::to_json).collect();
        error
    }

    /// The same where nobody expected it: the real server has no better word for it.
    pub(crate) fn unread(self) -> Self {
        Self::unforeseen(self.message.trim_start_matches("invalid resource version: "))
    }

    /// Something the real server has no answer for either.
    pub(crate) fn unforeseen(message: &str) -> Self {
        Self::new(500, "", message)
    }

    /// The `Status` object.
    pub(crate) fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !self.details.is_null() {
            status["details"] = (*self.details).clone();
        }
        status["code"] = self.code.into();
        status
    }
}

/// All that is wrong, in one line.
fn lines(causes: &[Cause]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in causes.iter().map(Cause::line) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if let [one] = lines.as_slice() { one.clone() } else { format!("[{}]", lines.join(", ")) }
}

fn details(name: &str, group: &str, kind: &str) -> Value {
    let mut details = json!({});
    if !name.is_empty() {
        details["name"] = name.into();
    }
    if !group.is_empty() {
        details["group"] = group.into();
    }
    details["kind"] = kind.into();
    details
}

/// The `Status` object that answers a finished deletion.
pub(crate) fn success(resource: &Resource, name: &str, uid: &str) -> Value {
    let mut details = details(name, &resource.group, &resource.plural);
    if !uid.is_empty() {
        details["uid"] = uid.into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
