//! `sum by (…)` and its like.

use std::collections::BTreeMap;

use promql_parser::parser::LabelModifier;
use promql_parser::parser::token::{T_AVG, T_COUNT, T_GROUP, T_MAX, T_MIN, T_SUM, TokenType};

use super::labels::{Labels, NAME};
use super::value::{QueryError, Vector};

/// The aggregation `op` over groups of series.
pub(super) fn aggregate(op: TokenType, modifier: Option<&LabelModifier>, vector: Vector) -> Result<Vector, QueryError> {
    let mut groups: BTreeMap<Labels, Vec<f64>> = BTreeMap::new();
    for (labels, value) in vector {
        groups.entry(group(&labels, modifier)).or_default().push(value);
    }
    let extreme = |values: Vec<f64>, better: fn(&f64, &f64) -> bool| {
        values.into_iter().reduce(|best, value| if best.is_nan() || better(&value, &best) { value } else { best })
    };
    let compute = |values: Vec<f64>| -> Result<f64, QueryError> {
        let count = values.len() as f64;
        Ok(match op.id() {
            T_SUM => sum(values.into_iter()),
            T_AVG => sum(values.into_iter()) / count,
            T_COUNT => count,
            T_GROUP => 1.0,
            T_MIN => extreme(values, |value, best| value < best).unwrap_or(f64::NAN),
            T_MAX => extreme(values, |value, best| value > best).unwrap_or(f64::NAN),
            _ => return Err(QueryError::execution(format!("aggregation {op} is not supported"))),
        })
    };
    groups.into_iter().map(|(labels, values)| Ok((labels, compute(values)?))).collect()
}

fn group(labels: &Labels, modifier: Option<&LabelModifier>) -> Labels {
    match modifier {
        None => Labels::default(),
        Some(LabelModifier::Include(by)) => labels.retain(|name| by.labels.iter().any(|kept| kept == name)),
        Some(LabelModifier::Exclude(without)) => {
            labels.retain(|name| name != NAME && without.labels.iter().all(|dropped| dropped != name))
        }
    }
}

/// A sum that loses as little as possible to rounding (Kahan's, with Neumaier's correction), as in Prometheus.
pub(super) fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for value in values {
        let next = sum + value;
        if next.is_infinite() {
            lost = 0.0;
        } else if sum.abs() >= value.abs() {
            lost += (sum - next) + value;
        } else {
            lost += (value - next) + sum;
        }
        sum = next;
    }
    sum + lost
}
