//! What the server answers when it refuses: Kubernetes `Status` objects with the texts that clients parse.

use serde_json::{Value, json};

use super::go_json::shown;
use super::registry::Resource;

/// Resources of Kubernetes that this server does not have.
const LEFT_OUT: &[&str] = &[
    "apiservices",
    "bindings",
    "certificatesigningrequests",
    "clustertrustbundles",
    "componentstatuses",
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "deviceclasses",
    "flowschemas",
    "ingressclasses",
    "ipaddresses",
    "limitranges",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "nodes/proxy",
    "pods/attach",
    "pods/ephemeralcontainers",
    "pods/proxy",
    "pods/resize",
    "podtemplates",
    "priorityclasses",
    "prioritylevelconfigurations",
    "resourceclaims",
    "resourceclaimtemplates",
    "resourcequotas",
    "resourceslices",
    "runtimeclasses",
    "serviceaccounts/token",
    "servicecidrs",
    "services/proxy",
    "storageclasses",
    "tokenreviews",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "volumeattachments",
    "volumeattributesclasses",
];

/// One thing wrong with an object, at one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// Why, in one word (`FieldValueInvalid`, ...).
    pub(crate) reason: &'static str,
    /// What is wrong, for people.
    pub(crate) message: String,
    /// Where (`spec.ports[0].port`).
    pub(crate) field: String,
}

impl Cause {
    /// A value that breaks a rule.
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self { reason: "FieldValueInvalid", message: format!("Invalid value: {value}: {why}"), field: field.into() }
    }

    /// A value that breaks a rule and is too big to be shown.
    pub(crate) fn invalid_unshown(field: impl Into<String>, why: &str) -> Self {
        Self { reason: "FieldValueInvalid", message: format!("Invalid value: {why}"), field: field.into() }
    }

    /// A value of the wrong JSON type; the type stands where the value would.
    pub(crate) fn wrong_type(field: &str, expected: &str, found: &str) -> Self {
        Self {
            reason: "FieldValueTypeInvalid",
            message: format!("Invalid value: {found:?}: {field} in body must be of type {expected}: {found:?}"),
            field: field.to_owned(),
        }
    }

    /// A field that must be there.
    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let message = if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self { reason: "FieldValueRequired", message, field: field.into() }
    }

    /// A value outside an enumeration.
    pub(crate) fn unsupported(field: &str, value: &Value, allowed: &[Value]) -> Self {
        let quoted = |value: &Value| value.as_str().map_or_else(|| format!("\"{value}\""), |text| format!("{text:?}"));
        let allowed: Vec<_> = allowed.iter().map(quoted).collect();
        Self {
            reason: "FieldValueNotSupported",
            message: format!("Unsupported value: {value}: supported values: {}", allowed.join(", ")),
            field: field.to_owned(),
        }
    }

    /// Something that is not allowed here at all.
    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {why}"), field: field.into() }
    }

    /// Too many bytes to be shown.
    pub(crate) fn too_long(field: impl Into<String>, why: &str) -> Self {
        Self { reason: "FieldValueTooLong", message: format!("Too long: {why}"), field: field.into() }
    }

    /// A list entry that is there twice.
    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self { reason: "FieldValueDuplicate", message: format!("Duplicate value: {value}"), field: field.into() }
    }

    /// Something that is named but nowhere to be found.
    pub(crate) fn missing(field: impl Into<String>, value: &Value) -> Self {
        Self { reason: "FieldValueNotFound", message: format!("Not found: {value}"), field: field.into() }
    }

    /// An object that fits none or too many of several schemas. The real server does not say where.
    pub(crate) fn ambiguous(path: &str, why: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: \"\": {path:?} {why}"),
            field: "<nil>".to_owned(),
        }
    }

    /// Rules that could not be looked at, since the object is not what they are about.
    pub(crate) fn unchecked() -> Self {
        let why = "some validation rules were not checked because the object was invalid; correct the existing errors to \
                   complete validation";
        Self::invalid("<nil>", &Value::Null, why)
    }

    /// Whether the object is not of the shape that rules rely on, as opposed to having a bad value.
    pub(crate) fn blocks_rules(&self) -> bool {
        [
            "FieldValueNotSupported",
            "FieldValueRequired",
            "FieldValueTooLong",
            "FieldValueTooMany",
            "FieldValueTypeInvalid",
        ]
        .contains(&self.reason)
    }

    pub(crate) fn line(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }

    fn to_json(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}

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

    /// With the warnings that were due before it was refused.
    pub(crate) fn after(mut self, warnings: &[String]) -> Self {
        self.warnings.extend_from_slice(warnings);
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

    /// The object is not what the client believed it to be.
    pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.name());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// The client means an object that had this name before, or has it elsewhere. In the words of a server that keeps its
    /// objects in etcd, at this key.
    pub(crate) fn other_uid(resource: &Resource, name: &str, key: &str, uids: (&str, &str)) -> Self {
        let (meant, found) = uids;
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
             UID in precondition: {meant}, UID in object meta: {found}"
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
        let message = format!("{} {name:?} is invalid: {}", resource.qualified_kind(), lines(causes));
        let mut error = Self::new(422, "Invalid", message);
        *error.details = details(name, &resource.group, &resource.kind);
        error.details["causes"] = causes.iter().map(Cause::to_json).collect();
        error
    }

    /// A custom resource of another kind than its place.
    pub(crate) fn wrong_kind(resource: &Resource, kind: &str, name: &str, causes: &[Cause]) -> Self {
        let group = &resource.group;
        let mut error = Self::new(422, "Invalid", format!("{kind}.{group} {name:?} is invalid: {}", lines(causes)));
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

    /// What was sent cannot be taken for an object of the kind that is wanted.
    pub(crate) fn cannot_be(version: &str, kind: &str, wanted: &str, why: &str) -> Self {
        Self::bad_request(format!("{kind} in version {version:?} cannot be handled as a {wanted}: {why}"))
    }

    /// The same, of a kind that no type of Go is for.
    pub(crate) fn unregistered(api_version: &str, kind: &str, wanted: &str) -> Self {
        let version = api_version.rsplit('/').next().unwrap_or(api_version);
        let scheme = "scheme \"pkg/api/legacyscheme/scheme.go:30\"";
        let why = format!("no kind {kind:?} is registered for version {api_version:?} in {scheme}");
        Self::cannot_be(version, kind, wanted, &why)
    }

    /// Options of a request that are something else.
    pub(crate) fn no_options(api_version: &str, kind: &str) -> Self {
        let version = if api_version.is_empty() { "meta.k8s.io/v1" } else { api_version };
        let scheme = "scheme \"pkg/api/legacyscheme/scheme.go:30\"";
        Self::bad_request(format!("no kind {kind:?} is registered for version {version:?} in {scheme}"))
    }

    /// A patch makes something of an object that cannot be read.
    pub(crate) fn unreadable_patch(object: &Value, why: &str) -> Self {
        let mut sorted = object.clone();
        sorted.sort_all_objects();
        let cause = Cause::invalid("patch", &Value::from(sorted.to_string()), why);
        let mut error = Self::new(422, "Invalid", format!(" \"\" is invalid: {}", cause.line()));
        *error.details = json!({"causes": [cause.to_json()]});
        error
    }

    /// A strategic merge patch makes something of an object that does not fit its type.
    pub(crate) fn unfitting_patch(patch: &Value, why: &str) -> Self {
        let cause = Cause::invalid("patch", &Value::from(shown(&without_nulls(patch))), why);
        let mut error = Self::new(422, "Invalid", format!(" \"\" is invalid: {}", cause.line()));
        *error.details = json!({"causes": [cause.to_json()]});
        error
    }

    /// An apply patch that has the right fields with values that do not fit.
    pub(crate) fn unfitting_apply(resource: &Resource, version: &str, object: &Value, why: &str) -> Self {
        let (place, group, kind) = (place(object), &resource.group, &resource.kind);
        Self::unforeseen(&format!(
            "failed to convert new object ({place}; {group}/{version}, Kind={kind}) to proper version: unable to convert \
             unstructured object to {group}/{version}, Kind={kind}: {why}"
        ))
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

    /// A strategic merge patch says something that nobody understands.
    pub(crate) fn unknown_directive(directive: &str, patch: &serde_json::Map<String, Value>) -> Self {
        let patch = shown(&Value::Object(patch.clone()));
        Self::unforeseen(&format!("unknown patch type: {directive} in map: {patch}"))
    }

    /// An apply patch that does not have the types its kind has.
    pub(crate) fn untyped(resource: &Resource, version: &str, object: &Value, why: &str) -> Self {
        let place = place(object);
        let (group, kind) = (&resource.group, &resource.kind);
        Self::unforeseen(&format!(
            "failed to create typed patch object ({place}; {group}/{version}, Kind={kind}): {why}"
        ))
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

    /// Options of a request (`PodLogOptions`) that make no sense.
    pub(crate) fn invalid_options(kind: &str, name: &str, causes: &[Cause]) -> Self {
        let lines: Vec<_> = causes.iter().map(Cause::line).collect();
        let list = if let [one] = lines.as_slice() { one.clone() } else { format!("[{}]", lines.join(", ")) };
        let mut error = Self::new(422, "Invalid", format!("{kind} {name:?} is invalid: {list}"));
        *error.details = details(name, "", kind);
        error.details["causes"] = causes.iter().map(Cause::to_json).collect();
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

/// The namespace and the name of an object.
fn place(object: &Value) -> String {
    let metadata = |name: &str| object.get("metadata").and_then(|it| it.get(name)).and_then(Value::as_str);
    format!("{}/{}", metadata("namespace").unwrap_or_default(), metadata("name").unwrap_or_default())
}

/// What is null in a patch is no longer there when it has been carried out.
fn without_nulls(patch: &Value) -> Value {
    match patch {
        Value::Object(members) => {
            let left = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(left.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        other => other.clone(),
    }
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
