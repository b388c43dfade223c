//! What one write of ours shows by itself: I6, bytes that are not ours stay, and I10, every write says what it was
//! decided on.

use seaway_drydock::apiserver::Commit;
use seaway_drydock::fault::Call;
use serde_json::Value;

use super::board::text;

/// Labels and annotations of other people start like this in the stories.
pub const FOREIGN: &str = "example.com/";

/// I6: what one of our commits changed of things that are not ours.
pub fn foreign_bytes(commit: &Commit) -> Vec<String> {
    let mut breaches = Vec::new();
    let (Some(before), Some(after)) = (&commit.before, &commit.after) else { return breaches };
    let name = text(after, "/metadata/name");
    let mut breach = |what: String| breaches.push(format!("I6: {what} of {} {name} changed", commit.resource));
    for map in ["/metadata/labels", "/metadata/annotations"] {
        for (key, value) in before.pointer(map).and_then(Value::as_object).into_iter().flatten() {
            if key.starts_with(FOREIGN) && after.pointer(map).and_then(|all| all.get(key)) != Some(value) {
                breach(key.clone());
            }
        }
    }
    match (commit.resource.as_str(), name.as_str()) {
        ("deployments", "podinfo") => {
            let mut paths = Vec::new();
            changed("", before, after, &mut paths);
            let ours = |path: &str| path == "/spec/replicas" || BOOKKEEPING.iter().any(|own| path.starts_with(own));
            paths.iter().filter(|path| !ours(path)).for_each(|path| breach(path.clone()));
        }
        ("configmaps", name) if !name.contains("-primary") => breach("data".to_owned()),
        ("httproutes", _) => {
            let kept = rules(after);
            for rule in rules(before).into_iter().filter(|rule| is_foreign(rule)) {
                if !kept.contains(&rule) {
                    breach("a foreign rule".to_owned());
                }
            }
        }
        _ => {}
    }
    breaches
}

/// What the server itself writes into every object.
const BOOKKEEPING: [&str; 3] = ["/metadata/resourceVersion", "/metadata/generation", "/metadata/managedFields"];

fn rules(route: &Value) -> Vec<&Value> {
    route.pointer("/spec/rules").and_then(Value::as_array).into_iter().flatten().collect()
}

/// A rule that names none of the Services of the Canary.
fn is_foreign(rule: &Value) -> bool {
    let refs = rule["backendRefs"].as_array().map(Vec::as_slice).unwrap_or_default();
    !refs.is_empty() && refs.iter().all(|one| !one["name"].as_str().unwrap_or_default().starts_with("podinfo"))
}

/// Every path at which two values differ.
pub fn changed(path: &str, before: &Value, after: &Value, paths: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let missing = Value::Null;
                let (one, other) = (one.get(key).unwrap_or(&missing), other.get(key).unwrap_or(&missing));
                changed(&format!("{path}/{key}"), one, other, paths);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                changed(&format!("{path}/{index}"), one, other, paths);
            }
        }
        (one, other) if one != other => paths.push(path.to_owned()),
        _ => {}
    }
}

/// I10: a write that does not say which object it changes and in which state that was when it was decided. Creations
/// cannot, and Events are no effects. A deletion means the object, in whatever state.
pub fn careless(call: &Call) -> Option<String> {
    if !call.is_write() || call.verb == "create" || call.resource == "events" {
        return None;
    }
    let body: Value = serde_json::from_slice(&call.body).unwrap_or_default();
    let guarded = match &body {
        Value::Array(operations) => {
            let tests = |field: &str| operations.iter().any(|one| one["op"] == "test" && one["path"] == field);
            tests("/metadata/uid") && (tests("/metadata/resourceVersion") || tests("/metadata/generation"))
        }
        body if call.verb == "delete" => body.pointer("/preconditions/uid").is_some(),
        body => body.pointer("/metadata/resourceVersion").is_some(),
    };
    (!guarded).then(|| format!("I10: {call} without a precondition"))
}
