//! Differences that stay, each a feature of Kubernetes that drydock does not offer. The list is short and so is each entry's
//! reach; `docs/drydock.md` holds the sentences.

use super::compare::Difference;

/// A difference that is meant.
pub struct Explained {
    /// The sentence in `docs/drydock.md`.
    pub sentence: &'static str,
    pub covers: fn(&Difference) -> bool,
}

/// All of them.
pub static EXPLAINED: &[Explained] = &[Explained {
    sentence: "Answers are JSON: a client that accepts none of JSON, YAML and protobuf is told of JSON only.",
    covers: |difference| {
        difference.step.header("accept") == "application/xml"
            && difference.answers.0["code"] == 406
            && difference.answers.1["code"] == 406
            && ["/body/message", "/body/details"].contains(&difference.field.as_str())
    },
}];

/// Which entry explains a difference.
pub fn explanation(difference: &Difference) -> Option<usize> {
    EXPLAINED.iter().position(|entry| (entry.covers)(difference))
}

#[test]
fn every_explained_difference_is_in_the_documentation() {
    let text = include_str!("../../../../../docs/drydock.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(EXPLAINED.len() <= 25);
    for entry in EXPLAINED {
        assert!(text.contains(entry.sentence), "docs/drydock.md lacks: {}", entry.sentence);
    }
}
