//! Arithmetic, comparison and set operators between scalars and vectors.

use std::collections::{BTreeMap, BTreeSet};

use promql_parser::parser::token::{
    T_ADD, T_ATAN2, T_DIV, T_EQLC, T_GTE, T_GTR, T_LAND, T_LOR, T_LSS, T_LTE, T_LUNLESS, T_MOD, T_MUL, T_NEQ, T_POW,
    T_SUB, TokenType,
};
use promql_parser::parser::{BinModifier, LabelModifier, VectorMatchCardinality};

use super::labels::{Labels, NAME};
use super::value::{QueryError, Value, Vector};

/// Evaluates `left op right`.
pub(super) fn binary(
    op: TokenType,
    modifier: Option<&BinModifier>,
    left: Value,
    right: Value,
) -> Result<Value, QueryError> {
    let modifier = modifier.cloned().unwrap_or_default();
    if modifier.fill_values.lhs.is_some() || modifier.fill_values.rhs.is_some() {
        return Err(QueryError::execution("fill modifiers are not supported"));
    }
    match (left, right) {
        (Value::Scalar(left), Value::Scalar(right)) => match compute(op, left, right)? {
            Computed::Number(value) => Ok(Value::Scalar(value)),
            Computed::Truth(truth) if modifier.return_bool => Ok(Value::Scalar(f64::from(u8::from(truth)))),
            Computed::Truth(_) => {
                Err(QueryError::BadData("comparisons between scalars must use BOOL modifier".to_owned()))
            }
        },
        (Value::Vector(vector), Value::Scalar(scalar)) => {
            with_scalar(op, &modifier, vector, |value| (value, scalar)).map(Value::Vector)
        }
        (Value::Scalar(scalar), Value::Vector(vector)) => {
            with_scalar(op, &modifier, vector, |value| (scalar, value)).map(Value::Vector)
        }
        (Value::Vector(left), Value::Vector(right)) if op.is_set_operator() => {
            Ok(Value::Vector(set(op, &modifier, left, right)))
        }
        (Value::Vector(left), Value::Vector(right)) => matched(op, &modifier, left, right).map(Value::Vector),
        _ => Err(QueryError::BadData(format!("operator {op} takes scalars and instant vectors"))),
    }
}

enum Computed {
    Number(f64),
    Truth(bool),
}

fn compute(op: TokenType, left: f64, right: f64) -> Result<Computed, QueryError> {
    Ok(match op.id() {
        T_ADD => Computed::Number(left + right),
        T_SUB => Computed::Number(left - right),
        T_MUL => Computed::Number(left * right),
        T_DIV => Computed::Number(left / right),
        T_MOD => Computed::Number(left % right),
        T_POW => Computed::Number(left.powf(right)),
        T_ATAN2 => Computed::Number(left.atan2(right)),
        #[allow(clippy::float_cmp)] // What `==` means in PromQL.
        T_EQLC => Computed::Truth(left == right),
        #[allow(clippy::float_cmp)]
        T_NEQ => Computed::Truth(left != right),
        T_GTR => Computed::Truth(left > right),
        T_LSS => Computed::Truth(left < right),
        T_GTE => Computed::Truth(left >= right),
        T_LTE => Computed::Truth(left <= right),
        _ => return Err(QueryError::BadData(format!("operator {op} is not for these operands"))),
    })
}

/// The value of one pair: a number, 0 or 1 with `bool`, otherwise `kept` where the comparison holds.
fn outcome(op: TokenType, modifier: &BinModifier, pair: (f64, f64), kept: f64) -> Result<Option<f64>, QueryError> {
    Ok(match compute(op, pair.0, pair.1)? {
        Computed::Number(value) => Some(value),
        Computed::Truth(truth) if modifier.return_bool => Some(f64::from(u8::from(truth))),
        Computed::Truth(truth) => truth.then_some(kept),
    })
}

/// A filter keeps the metric's name, a computed value has none.
fn renamed(op: TokenType, modifier: &BinModifier, labels: &Labels) -> Labels {
    if op.is_comparison_operator() && !modifier.return_bool { labels.clone() } else { labels.without_name() }
}

fn with_scalar(
    op: TokenType,
    modifier: &BinModifier,
    vector: Vector,
    pair: impl Fn(f64) -> (f64, f64),
) -> Result<Vector, QueryError> {
    let mut result = Vector::new();
    for (labels, value) in vector {
        if let Some(computed) = outcome(op, modifier, pair(value), value)? {
            result.push((renamed(op, modifier, &labels), computed));
        }
    }
    unique(result)
}

/// Refuses two series with the same labels, which appear when names are dropped.
pub(super) fn unique(vector: Vector) -> Result<Vector, QueryError> {
    let mut seen = BTreeSet::new();
    if vector.iter().all(|(labels, _)| seen.insert(labels)) {
        Ok(vector)
    } else {
        Err(QueryError::execution("vector cannot contain metrics with the same labelset"))
    }
}

/// The labels by which two series are partners.
fn signature(modifier: &BinModifier, labels: &Labels) -> Labels {
    match &modifier.matching {
        Some(LabelModifier::Include(on)) => labels.retain(|name| on.labels.iter().any(|kept| kept == name)),
        Some(LabelModifier::Exclude(ignoring)) => {
            labels.retain(|name| name != NAME && ignoring.labels.iter().all(|dropped| dropped != name))
        }
        None => labels.without_name(),
    }
}

fn set(op: TokenType, modifier: &BinModifier, left: Vector, right: Vector) -> Vector {
    let signatures = |vector: &Vector| -> BTreeSet<Labels> {
        vector.iter().map(|(labels, _)| signature(modifier, labels)).collect()
    };
    let filter = |vector: Vector, others: &BTreeSet<Labels>, wanted: bool| -> Vector {
        vector.into_iter().filter(|(labels, _)| others.contains(&signature(modifier, labels)) == wanted).collect()
    };
    match op.id() {
        T_LAND => filter(left, &signatures(&right), true),
        T_LUNLESS => filter(left, &signatures(&right), false),
        T_LOR => {
            let own = signatures(&left);
            let mut all = left;
            all.extend(filter(right, &own, false));
            all
        }
        _ => Vector::new(),
    }
}

/// Pairs series of two vectors, one to one or with `group_left`/`group_right` many to one.
fn matched(op: TokenType, modifier: &BinModifier, left: Vector, right: Vector) -> Result<Vector, QueryError> {
    let swapped = matches!(modifier.card, VectorMatchCardinality::OneToMany(_));
    let grouped = swapped || matches!(modifier.card, VectorMatchCardinality::ManyToOne(_));
    let (many, one) = if swapped { (right, left) } else { (left, right) };
    let mut partners: BTreeMap<Labels, (Labels, f64)> = BTreeMap::new();
    for (labels, value) in one {
        if partners.insert(signature(modifier, &labels), (labels, value)).is_some() {
            let side = if swapped { "left" } else { "right" };
            return Err(QueryError::execution(format!(
                "found duplicate series for the match group on the {side} hand-side of the operation; many-to-many \
                 matching not allowed: matching labels must be unique on one side"
            )));
        }
    }
    let mut used = BTreeSet::new();
    let mut result = Vector::new();
    for (labels, value) in many {
        let signature = signature(modifier, &labels);
        let Some((partner, other)) = partners.get(&signature) else { continue };
        let pair = if swapped { (*other, value) } else { (value, *other) };
        let Some(computed) = outcome(op, modifier, pair, pair.0)? else { continue };
        let mut labels = renamed(op, modifier, &labels);
        if grouped {
            let include = modifier.card.labels().map(|labels| labels.labels.as_slice()).unwrap_or_default();
            labels = labels.with(include.iter().map(|name| (name.as_str(), partner.get(name))));
        } else {
            labels = match &modifier.matching {
                Some(LabelModifier::Include(on)) => labels.retain(|name| on.labels.iter().any(|kept| kept == name)),
                Some(LabelModifier::Exclude(off)) => labels.retain(|name| off.labels.iter().all(|drop| drop != name)),
                None => labels,
            };
            if !used.insert(signature) {
                return Err(QueryError::execution(
                    "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)",
                ));
            }
        }
        result.push((labels, computed));
    }
    let mut seen = BTreeSet::new();
    if result.iter().all(|(labels, _)| seen.insert(labels)) {
        Ok(result)
    } else {
        Err(QueryError::execution("multiple matches for labels: grouping labels must ensure unique matches"))
    }
}
