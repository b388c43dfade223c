//! Differences that stay, each a feature of Kubernetes that drydock does not offer. The list is short and so is each entry's
//! reach; `docs/drydock.md` holds the sentences.

use serde_json::{Value, json};

use super::asked::by_operator;
use super::compare::Difference;
use super::definitions::DEFINITIONS;
use super::runner::BROKEN_OFF;
use super::script::{Body, Step};

/// A difference that is meant.
pub struct Explained {
    /// The sentence in `docs/drydock.md`.
    pub sentence: &'static str,
    pub covers: fn(&Difference) -> bool,
}

/// All of them.
pub static EXPLAINED: &[Explained] = &[
    Explained {
        sentence: "Answers are JSON: a client that accepts none of JSON, YAML and protobuf is told of JSON only.",
        covers: |difference| {
            difference.step.header("accept") == "application/xml"
                && both(difference, 406)
                && ["/body/message", "/body/details"].contains(&difference.field.as_str())
        },
    },
    Explained {
        sentence: "Who writes a role or a binding is warned that nothing enforces it.",
        covers: |difference| {
            let mut drydock = difference.answers.1["warnings"].clone();
            if let Some(warnings) = drydock.as_array_mut() {
                warnings.retain(|said| !said.as_str().is_some_and(|said| said.contains("stores roles and bindings")));
            }
            difference.step.path.contains("/rbac.authorization.k8s.io/")
                && difference.field.starts_with("/warnings/")
                && drydock == difference.answers.0["warnings"]
        },
    },
    Explained {
        sentence: "A refused change of a pod names the fields that may change, without the diff of Go's structs.",
        covers: |difference| {
            let said = |said: &Option<Value>| said.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
            let (real, drydock) = (said(&difference.real), said(&difference.drydock));
            difference.step.path.contains("/pods/")
                && both(difference, 422)
                && drydock.contains("pod updates may not change fields other than")
                && real.strip_prefix(drydock.trim_end_matches(']')).is_some_and(|diff| diff.starts_with("\n@@ "))
        },
    },
    Explained {
        sentence: "A definition over which a real server breaks down (fields to select by in a schema that cannot be read) is refused.",
        covers: |difference| {
            difference.step.path.starts_with(DEFINITIONS)
                && difference.answers.0["code"] == BROKEN_OFF
                && difference.answers.1["code"] == 422
        },
    },
];

fn both(difference: &Difference, code: u16) -> bool {
    difference.answers.0["code"] == code && difference.answers.1["code"] == code
}

/// Which entry explains a difference. None does in what the operator could send.
pub fn explanation(difference: &Difference) -> Option<usize> {
    let entry = EXPLAINED.iter().position(|entry| (entry.covers)(difference));
    entry.filter(|_| !by_operator(&difference.step))
}

#[test]
fn nothing_is_explained_in_what_the_operator_could_send() {
    let refused = |code: u16, body: Value| json!({"code": code, "warnings": [], "body": body});
    let difference = |path: &str, accept: &str| Difference {
        step: Step {
            id: 0,
            method: "PATCH",
            path: path.to_owned(),
            headers: vec![("accept", accept.to_owned())],
            body: Body::Text(String::new()),
        },
        field: "/warnings/0".to_owned(),
        real: None,
        drydock: None,
        answers: (
            refused(200, Value::Null),
            json!({"code": 200, "warnings": ["drydock stores roles and bindings"], "body": null}),
        ),
    };
    // The same words, about a role and (were there such a path) about a kind that the operator patches.
    let role = "/apis/rbac.authorization.k8s.io/v1/namespaces/<<ns>>/roles/a";
    assert!(explanation(&difference(role, "application/json")).is_some());
    for grant in ["/api/v1/namespaces/rbac.authorization.k8s.io/services/a", "/apis/apps/v1/namespaces/x/deployments/a"]
    {
        assert_eq!(explanation(&difference(grant, "application/json")), None, "{grant}");
    }
    let odd = "/api/v1/namespaces/rbac.authorization.k8s.io/services/a";
    assert!((EXPLAINED[1].covers)(&difference(odd, "application/json")), "an entry that reaches too far");
}

#[test]
fn every_explained_difference_is_in_the_documentation() {
    let documentation = include_str!("../../../../../docs/drydock.md");
    let (_, known) = documentation.split_once("### Conformance").unwrap();
    let (known, _) = known.split_once("\n### ").unwrap();
    let known: Vec<_> = known.split("\n- ").skip(1).map(|entry| entry.split("\n\n").next().unwrap()).collect();
    let known: Vec<_> = known.iter().map(|entry| entry.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert!(known.len() > EXPLAINED.len() && known.len() <= 25, "{} known differences: {known:#?}", known.len());
    for entry in EXPLAINED {
        assert!(known.iter().any(|known| known == entry.sentence), "docs/drydock.md lacks: {}", entry.sentence);
    }
}
