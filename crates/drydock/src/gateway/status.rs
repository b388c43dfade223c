//! What the gateway says about objects, as JSON: conditions that change their time only when they change.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::table::{ListenerReport, ParentReport, Verdict};
use super::{CLASSES, GROUP};

/// The time of a condition as the API writes it.
fn text(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A condition; its time stays while its status stays.
fn condition(kind: &str, verdict: &Verdict, generation: i64, before: &Value, now: Timestamp) -> Value {
    let status = if verdict.holds { "True" } else { "False" };
    let old = before.as_array().into_iter().flatten().find(|old| old["type"] == kind);
    let since = old
        .filter(|old| old["status"] == status)
        .and_then(|old| old["lastTransitionTime"].as_str().map(str::to_owned))
        .unwrap_or_else(|| text(now));
    json!({
        "type": kind,
        "status": status,
        "reason": verdict.reason,
        "message": verdict.message,
        "observedGeneration": generation,
        "lastTransitionTime": since,
    })
}

/// `status` of a GatewayClass of ours; `None` if it already says so.
pub(super) fn of_class(generation: i64, before: &Value, now: Timestamp) -> Option<Value> {
    let accepted = condition("Accepted", &Verdict::yes("Accepted"), generation, &before["conditions"], now);
    let ours = before["conditions"].as_array().is_some_and(|conditions| conditions.contains(&accepted));
    (!ours).then(|| json!({"conditions": [accepted]}))
}

/// `status` of a Gateway; `None` if nothing changed. `address` is missing until its Service has one.
pub(super) fn of_gateway(
    listeners: &[ListenerReport],
    address: Option<&str>,
    generation: i64,
    before: &Value,
    now: Timestamp,
) -> Option<Value> {
    let accepted = if listeners.iter().any(|listener| listener.accepted.holds) {
        Verdict::yes("Accepted")
    } else {
        Verdict::no("ListenersNotValid", "no listener can be served")
    };
    let programmed = match address {
        _ if !accepted.holds => Verdict::no("Invalid", "no listener can be served"),
        Some(_) => Verdict::yes("Programmed"),
        None => Verdict::no("AddressNotAssigned", "the Service has no address yet"),
    };
    let conditions = &before["conditions"];
    let reports: Vec<Value> = listeners
        .iter()
        .map(|listener| {
            let old = before["listeners"].as_array().into_iter().flatten().find(|old| old["name"] == listener.name);
            let old = old.map_or(&Value::Null, |old| &old["conditions"]);
            let programmed = if listener.accepted.holds {
                programmed.clone()
            } else {
                Verdict::no("Invalid", listener.accepted.message.as_str())
            };
            let resolved = Verdict::yes("ResolvedRefs");
            json!({
                "name": listener.name,
                "attachedRoutes": listener.attached,
                "supportedKinds": [{"group": GROUP, "kind": "HTTPRoute"}],
                "conditions": [
                    condition("Accepted", &listener.accepted, generation, old, now),
                    condition("Programmed", &programmed, generation, old, now),
                    condition("ResolvedRefs", &resolved, generation, old, now),
                ],
            })
        })
        .collect();
    let addresses: Vec<Value> = address.iter().map(|address| json!({"type": "IPAddress", "value": address})).collect();
    let after = json!({
        "addresses": addresses,
        "conditions": [
            condition("Accepted", &accepted, generation, conditions, now),
            condition("Programmed", &programmed, generation, conditions, now),
        ],
        "listeners": reports,
    });
    let same = ["addresses", "conditions", "listeners"].iter().all(|field| equal(&before[*field], &after[*field]));
    (!same).then_some(after)
}

/// `status.parents` of an HTTPRoute with our entries replaced and those of others kept; `None` if nothing changed.
pub(super) fn of_route(reports: &[ParentReport], generation: i64, before: &Value, now: Timestamp) -> Option<Value> {
    let old: Vec<Value> = before["parents"].as_array().cloned().unwrap_or_default();
    let is_ours = |entry: &Value| CLASSES.iter().any(|(_, controller)| entry["controllerName"] == *controller);
    let mut parents: Vec<Value> = old.iter().filter(|entry| !is_ours(entry)).cloned().collect();
    for report in reports {
        let same =
            |entry: &&Value| entry["controllerName"] == report.controller && entry["parentRef"] == report.parent_ref;
        let conditions = old.iter().find(same).map_or(&Value::Null, |entry| &entry["conditions"]);
        parents.push(json!({
            "parentRef": report.parent_ref,
            "controllerName": report.controller,
            "conditions": [
                condition("Accepted", &report.accepted, generation, conditions, now),
                condition("ResolvedRefs", &report.resolved, generation, conditions, now),
            ],
        }));
    }
    (!equal(&Value::Array(old), &Value::Array(parents.clone()))).then(|| json!({"parents": parents}))
}

/// Equality that takes nothing for an empty list.
fn equal(one: &Value, two: &Value) -> bool {
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    one == two || (empty(one) && empty(two))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(accepted: Verdict) -> ParentReport {
        ParentReport {
            parent_ref: json!({"name": "gateway"}),
            controller: CLASSES[0].1,
            accepted,
            resolved: Verdict::yes("ResolvedRefs"),
        }
    }

    #[test]
    fn a_status_is_written_once_and_times_stand_still() {
        let first: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let later: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        let other = json!({"parentRef": {"name": "x"}, "controllerName": "example.com/other", "conditions": []});
        let before = json!({"parents": [other.clone()]});
        let reports = [report(Verdict::yes("Accepted"))];
        let status = of_route(&reports, 1, &before, first).unwrap();
        assert_eq!(status["parents"][0], other);
        assert!(of_route(&reports, 1, &status, later).is_none());

        let status = of_route(&reports, 2, &status, later).unwrap();
        let condition = &status["parents"][1]["conditions"][0];
        assert_eq!(condition["observedGeneration"], 2);
        assert_eq!(condition["lastTransitionTime"], "2026-01-01T00:00:00Z");

        let status = of_route(&[report(Verdict::no("NoMatchingParent", ""))], 2, &status, later).unwrap();
        assert_eq!(status["parents"][1]["conditions"][0]["lastTransitionTime"], "2026-01-01T01:00:00Z");
        assert_eq!(of_route(&[], 2, &status, later).unwrap()["parents"], json!([other]));
    }
}
