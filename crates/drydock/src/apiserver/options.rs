//! The options of a request: which query parameters may go together, and what the server says when they may not.

use serde_json::{Value, json};

use super::error::{ApiError, Cause, Result};
use super::patch::APPLY;
use super::request::{Call, Params, media_type};

/// The longest name of a field manager.
const MANAGER_LENGTH: usize = 128;

/// Options of `list` and `watch`: from which version to read, and how exactly.
pub(crate) fn check_list(params: &Params) -> Result<()> {
    let mut causes = Vec::new();
    let wanted = params.get("resourceVersionMatch");
    let initial = params.given("sendInitialEvents");
    let matching = |why: &str| Cause::forbidden("resourceVersionMatch", why);
    let unknown = |allowed: &[&str]| {
        let allowed: Vec<_> = allowed.iter().map(|word| json!(word)).collect();
        Cause::unsupported("resourceVersionMatch", &json!(wanted), &allowed)
    };
    if params.flag("watch") {
        if initial && wanted != "NotOlderThan" {
            causes.push(matching("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
        }
        if !wanted.is_empty() && !initial {
            causes.push(matching("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
        }
        if !wanted.is_empty() && wanted != "NotOlderThan" {
            causes.push(unknown(&["NotOlderThan"]));
        }
    } else {
        if !wanted.is_empty() && params.get("resourceVersion").is_empty() {
            causes.push(matching("resourceVersionMatch is forbidden unless resourceVersion is provided"));
        }
        if !matches!(wanted, "" | "Exact" | "NotOlderThan") {
            causes.push(unknown(&["Exact", "NotOlderThan", ""]));
        }
        if wanted == "Exact" && params.get("resourceVersion") == "0" {
            causes.push(matching("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
        }
        if initial {
            causes.push(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
    }
    if !wanted.is_empty() && !params.get("continue").is_empty() {
        causes.push(matching("resourceVersionMatch is forbidden when continue is provided"));
    }
    refuse("ListOptions", &causes)
}

/// Options of everything that writes an object.
pub(crate) fn check_write(call: &Call) -> Result<()> {
    let mut causes = Vec::new();
    let kind = match call.verb {
        "create" => "CreateOptions",
        "update" => "UpdateOptions",
        "patch" => "PatchOptions",
        _ => "DeleteOptions",
    };
    if call.verb == "patch" {
        let apply = media_type(&call.content_type) == APPLY;
        if apply && call.params.get("fieldManager").is_empty() {
            causes.push(Cause::required("fieldManager", "is required for apply patch"));
        }
        if !apply && call.params.given("force") {
            causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
        }
    }
    let manager = call.params.get("fieldManager");
    if manager.len() > MANAGER_LENGTH {
        causes.push(Cause::too_long("fieldManager", &format!("may not be more than {MANAGER_LENGTH} bytes")));
    }
    let hidden = |sign: char| sign.is_control() || sign.is_whitespace() && sign != ' ';
    for (at, sign) in manager.char_indices().filter(|(_, sign)| hidden(*sign)) {
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(sign));
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {}: {why}", quoted(manager)),
            field: "fieldManager".to_owned(),
        });
    }
    let dry_run = call.params.get("dryRun");
    if !matches!(dry_run, "" | "All") {
        causes.push(Cause::unsupported("dryRun", &json!([dry_run]), &[json!("All")]));
    }
    let validation = call.params.get("fieldValidation");
    if !matches!(validation, "" | "Ignore" | "Strict" | "Warn") {
        let allowed = ["", "Ignore", "Strict", "Warn"].map(|word| json!(word));
        causes.push(Cause::unsupported("fieldValidation", &json!(validation), &allowed));
    }
    refuse(kind, &causes)
}

/// A text as Go quotes it: signs that cannot be seen are numbers, but for the few that have names.
fn quoted(text: &str) -> String {
    let sign = |sign: char| match sign {
        '"' | '\\' => format!("\\{sign}"),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\x07' => "\\a".to_owned(),
        '\x08' => "\\b".to_owned(),
        '\x0b' => "\\v".to_owned(),
        '\x0c' => "\\f".to_owned(),
        sign if sign.is_ascii_control() => format!("\\x{:02x}", u32::from(sign)),
        sign if sign.is_control() => format!("\\u{:04x}", u32::from(sign)),
        sign => sign.to_string(),
    };
    format!("\"{}\"", text.chars().map(sign).collect::<String>())
}

/// The options of a deletion that are in the query, as they would be in a body.
pub(crate) fn delete_query(params: &Params) -> Value {
    let mut options = json!({});
    if !params.get("propagationPolicy").is_empty() {
        options["propagationPolicy"] = params.get("propagationPolicy").into();
    }
    if params.given("orphanDependents") {
        options["orphanDependents"] = params.flag("orphanDependents").into();
    }
    options
}

/// Options of a deletion.
pub(crate) fn check_delete(options: &Value) -> Result<()> {
    let mut causes = Vec::new();
    let policy = options.get("propagationPolicy").filter(|policy| !policy.is_null());
    if let Some(policy) = policy {
        let known = ["Foreground", "Background", "Orphan"];
        if options.get("orphanDependents").is_some_and(|orphan| !orphan.is_null()) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            causes.push(Cause::invalid("propagationPolicy", policy, why));
        }
        if policy.as_str().is_some_and(|policy| !known.contains(&policy)) {
            let allowed = ["Foreground", "Background", "Orphan", "nil"].map(|word| json!(word));
            causes.push(Cause::unsupported("propagationPolicy", policy, &allowed));
        }
    }
    let dry_run = options.get("dryRun").filter(|dry_run| dry_run.is_array());
    if let Some(dry_run) = dry_run.filter(|dry_run| dry_run.as_array().into_iter().flatten().any(|mode| mode != "All"))
    {
        causes.push(Cause::unsupported("dryRun", dry_run, &[json!("All")]));
    }
    refuse("DeleteOptions", &causes)
}

fn refuse(kind: &str, causes: &[Cause]) -> Result<()> {
    if causes.is_empty() { Ok(()) } else { Err(ApiError::bad_options(kind, causes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(query: &str) -> String {
        let refusal = check_list(&Params::parse(query)).err();
        refusal.map(|error| error.to_status()["message"].as_str().unwrap().to_owned()).unwrap_or_default()
    }

    #[test]
    fn versions_to_read_at_are_asked_for_in_known_ways() {
        assert_eq!(said("resourceVersion=5&resourceVersionMatch=Exact"), "");
        assert_eq!(said("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"), "");
        assert_eq!(
            said("resourceVersionMatch=Exact"),
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden \
             unless resourceVersion is provided"
        );
        assert!(
            said("watch=1&sendInitialEvents=true").contains("requires setting resourceVersionMatch to NotOlderThan")
        );
        assert!(said("watch=1&resourceVersionMatch=NotOlderThan").contains("forbidden for watch unless"));
        assert!(said("resourceVersion=0&resourceVersionMatch=Exact").contains("forbidden for resourceVersion \"0\""));
        assert!(said("resourceVersion=1&resourceVersionMatch=Newest").contains("Unsupported value: \"Newest\""));
        assert!(said("sendInitialEvents=true").contains("sendInitialEvents is forbidden for list"));
    }
}
