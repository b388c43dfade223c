//! What is wrong with the taints of nodes that a pod tolerates.

use serde_json::{Value, json};

use super::error::Cause;
use super::meta;
use super::pod_rules::{given, supported};
use super::validate;

pub(super) fn tolerations(tolerations: &[Value], path: &str, causes: &mut Vec<Cause>) {
    for (at, toleration) in tolerations.iter().enumerate() {
        let path = format!("{path}[{at}]");
        let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
        let (key, operator, value, effect) = (text("key"), text("operator"), text("value"), text("effect"));
        let invalid =
            |field: &str, found: &str, why: &str| Cause::invalid(format!("{path}.{field}"), &json!(found), why);
        if !key.is_empty() {
            validate::qualified_key(key, &format!("{path}.key"), causes);
        } else if operator != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            causes.push(invalid("operator", operator, why));
        }
        if given(toleration, "tolerationSeconds").is_some() && effect != "NoExecute" {
            causes.push(invalid("effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"));
        }
        match operator {
            "Equal" | "" => {
                let wrong = validate::no_label_value(value);
                if !wrong.is_empty() {
                    causes.push(invalid("operator", value, &wrong.join(";")));
                }
            }
            "Exists" if !value.is_empty() => {
                causes.push(invalid("operator", value, "value must be empty when `operator` is 'Exists'"));
            }
            "Exists" => {}
            // Operators that compare numbers are known, but switched off.
            "Lt" | "Gt" => supported_operator(operator, &path, &["Equal", "Exists", "Lt", "Gt"], causes),
            other => supported_operator(other, &path, &["Equal", "Exists"], causes),
        }
        if !effect.is_empty() {
            supported(toleration, &path, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], causes);
        }
    }
}

fn supported_operator(found: &str, path: &str, words: &[&str], causes: &mut Vec<Cause>) {
    let allowed: Vec<_> = words.iter().map(|word| json!(word)).collect();
    causes.push(Cause::unsupported(&format!("{path}.operator"), &json!(found), &allowed));
}

/// Rules for a change of what a pod tolerates: it can tolerate more, and some of it for another time.
pub(super) fn more_tolerations(old: &[Value], new: &[Value], path: &str, causes: &mut Vec<Cause>) {
    let lasting = |toleration: &Value| {
        let mut lasting = toleration.clone();
        meta::members(&mut lasting).shift_remove("tolerationSeconds");
        lasting
    };
    if old.iter().any(|before| !new.iter().any(|after| lasting(after) == lasting(before))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(Cause::forbidden(path, why));
        return;
    }
    tolerations(new, path, causes);
}
