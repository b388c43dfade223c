//! Why a write cannot even begin: what an object needs beforehand cannot be had.

use super::{ApiError, Cause};
use crate::apiserver::registry::Resource;

/// A reason to stop before any rule is asked.
#[derive(Debug)]
pub(crate) enum Hitch {
    /// The object is wrong.
    Invalid(Vec<Cause>),
    /// The server failed, and says so.
    Failed(String),
    /// Nobody has thought of it.
    Unforeseen(String),
}

impl Hitch {
    /// Nothing to stop for where nothing is wrong.
    pub(crate) fn unless_right(causes: Vec<Cause>) -> Result<(), Self> {
        if causes.is_empty() { Ok(()) } else { Err(Self::Invalid(causes)) }
    }

    /// The refusal it comes to.
    pub(crate) fn refuse(self, resource: &Resource, name: &str) -> ApiError {
        match self {
            Self::Invalid(causes) => ApiError::invalid(resource, name, &causes),
            Self::Failed(why) => ApiError::internal(&why),
            Self::Unforeseen(why) => ApiError::unforeseen(&why),
        }
    }
}
