//! Why an effect cannot become changes now.
//!
//! A refusal is decided before anything is sent; what the API server refuses is the operator's business. It knows who
//! is to blame, because a user's mistake becomes a condition and a stale cache only another round.

use seaway_api::FieldError;

/// Whose doing it is, and so what helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The user has to change something: say it in a condition, try again when an object changes.
    User,
    /// The cluster is not there yet (a missing object, a stale cache): try again soon.
    Cluster,
}

/// An effect that was not turned into changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// Whose doing it is.
    pub blame: Blame,
    /// The whole text for people, in Flagger's words where it has any.
    pub text: String,
}

impl Refusal {
    /// The user has to change something.
    pub fn user(text: impl Into<String>) -> Self {
        Self { blame: Blame::User, text: text.into() }
    }

    /// The cluster is not there yet.
    pub fn cluster(text: impl Into<String>) -> Self {
        Self { blame: Blame::Cluster, text: text.into() }
    }

    /// The same refusal with a prefix, in the way Flagger chains errors.
    pub fn within(self, context: &str) -> Self {
        Self { text: format!("{context}: {}", self.text), ..self }
    }
}

impl From<FieldError> for Refusal {
    fn from(error: FieldError) -> Self {
        Self::user(error.sentence())
    }
}
