//! Reviews: questions in the form of objects. They are answered and never stored.
//!
//! There is no authorisation here, so the truthful answer to "may I?" is always yes, with the reason; and everybody is
//! who a real server would take a client without credentials for.

use serde_json::{Value, json};

use super::error::{ApiError, Cause, Result};
use super::meta;
use super::request::Call;

/// Why everything is allowed.
const REASON: &str = "drydock does not authorise requests: everybody may do everything";

/// Fills in the status of a review.
pub(crate) type Answer = fn(&Call, &mut Value) -> Result<()>;

/// May this user do that? Serves the three kinds of access reviews.
pub(crate) fn access(call: &Call, review: &mut Value) -> Result<()> {
    let resource = &call.served.resource;
    let has = |field: &str| review.pointer(&format!("/spec/{field}")).is_some_and(|value| !value.is_null());
    let mut causes = Vec::new();
    match (has("resourceAttributes"), has("nonResourceAttributes")) {
        (true, true) => causes.push(Cause::invalid(
            "spec.nonResourceAttributes",
            &review["spec"]["nonResourceAttributes"],
            "cannot be specified in combination with resourceAttributes",
        )),
        (false, false) => causes.push(Cause::invalid(
            "spec.resourceAttributes",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    let about_others = resource.kind != "SelfSubjectAccessReview";
    let groups = review.pointer("/spec/groups").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if about_others && meta::text(review, "/spec/user").is_empty() && groups.is_empty() {
        causes.push(Cause::invalid("spec.user", &json!(""), "at least one of user or group must be specified"));
    }
    let asked = meta::text(review, "/spec/resourceAttributes/namespace");
    if call.namespace.as_deref().is_some_and(|namespace| namespace != asked) {
        let why = "must match metadata.namespace";
        causes.push(Cause::invalid("spec.resourceAttributes.namespace", &json!(asked), why));
    }
    if !causes.is_empty() {
        return Err(ApiError::bad_question(resource, &causes));
    }
    meta::members(review).insert("status".into(), json!({"allowed": true, "reason": REASON}));
    Ok(())
}

/// What may I do in this namespace?
pub(crate) fn rules(_: &Call, review: &mut Value) -> Result<()> {
    if meta::text(review, "/spec/namespace").is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let status = json!({
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": false,
    });
    let members = meta::members(review);
    members.insert("status".into(), status);
    // The answer does not repeat the question, nor who asked it.
    members.insert("spec".into(), json!({}));
    meta::metadata(review).shift_remove("managedFields");
    Ok(())
}

/// Who am I?
#[expect(clippy::unnecessary_wraps, reason = "other reviews can be refused")]
pub(crate) fn identity(_: &Call, review: &mut Value) -> Result<()> {
    let user = json!({"username": "system:anonymous", "groups": ["system:unauthenticated"]});
    meta::members(review).insert("status".into(), json!({"userInfo": user}));
    Ok(())
}
