//! What an expression evaluates to.

use super::labels::Labels;
use super::storage::Sample;

/// Series with one value each.
pub(super) type Vector = Vec<(Labels, f64)>;

/// Series with the samples of a range.
pub(super) type Matrix = Vec<(Labels, Vec<Sample>)>;

/// The result of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Scalar(f64),
    Vector(Vector),
    Matrix(Matrix),
    Text(String),
}

/// Why a query has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QueryError {
    /// The query cannot be understood.
    BadData(String),
    /// It is understood and cannot be computed.
    Execution(String),
}

impl QueryError {
    pub fn execution(text: impl Into<String>) -> Self {
        Self::Execution(text.into())
    }
}

/// How Prometheus writes a number: as short as possible, never with an exponent.
pub(super) fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() }
    } else {
        value.to_string()
    }
}
