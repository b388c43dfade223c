//! Differences that stay, each a feature of Kubernetes that drydock does not offer. The list is short and so is each entry's
//! reach; `docs/drydock.md` holds the sentences.

use serde_json::Value;

use super::compare::Difference;
use super::definitions::DEFINITIONS;
use super::runner::BROKEN_OFF;

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

/// Which entry explains a difference.
pub fn explanation(difference: &Difference) -> Option<usize> {
    EXPLAINED.iter().position(|entry| (entry.covers)(difference))
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
