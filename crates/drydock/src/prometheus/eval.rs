//! Evaluates PromQL at one moment.
//!
//! What is understood: selectors with `offset` and `@`, rates, `*_over_time`, aggregations, operators with vector
//! matching, `histogram_quantile` and the simple functions. Subqueries, native histograms and the rest of the language
//! are refused by name, never answered wrongly.

use std::time::{Duration, SystemTime};

use promql_parser::label::MatchOp;
use promql_parser::parser::{self, AtModifier, Call, Expr, MatrixSelector, Offset, VectorSelector};

use super::aggregate::aggregate;
use super::binary::{binary, unique};
use super::histogram;
use super::labels::{Labels, NAME};
use super::range::{self, Kind, Window};
use super::storage::{Sample, Storage, is_stale};
use super::value::{Matrix, QueryError, Value, Vector};

/// How far back an instant selector looks for the last sample.
const LOOKBACK: i64 = 300_000;

/// Longer and deeper queries are refused before they can exhaust the stack.
const MAX_LENGTH: usize = 4_096;
const MAX_DEPTH: usize = 128;

/// A parsed query.
#[derive(Debug)]
pub(super) struct Query(Expr);

impl Query {
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        if text.len() > MAX_LENGTH {
            return Err(QueryError::BadData(format!("the query is longer than {MAX_LENGTH} bytes")));
        }
        parser::parse(text)
            .map(Self)
            .map_err(|error| QueryError::BadData(format!("invalid parameter \"query\": {error}")))
    }

    /// The value at `time`; `start` and `end` are those of the whole request.
    pub fn evaluate(&self, storage: &Storage, time: i64, start: i64, end: i64) -> Result<Value, QueryError> {
        Moment { storage, time, start, end }.value(&self.0, 0)
    }
}

struct Moment<'s> {
    storage: &'s Storage,
    time: i64,
    start: i64,
    end: i64,
}

impl Moment<'_> {
    fn value(&self, expr: &Expr, depth: usize) -> Result<Value, QueryError> {
        if depth > MAX_DEPTH {
            return Err(QueryError::BadData("the query is nested too deeply".to_owned()));
        }
        let depth = depth + 1;
        match expr {
            Expr::NumberLiteral(number) => Ok(Value::Scalar(number.val)),
            Expr::StringLiteral(text) => Ok(Value::Text(text.val.clone())),
            Expr::Paren(inner) => self.value(&inner.expr, depth),
            Expr::Unary(unary) => match self.value(&unary.expr, depth)? {
                Value::Scalar(value) => Ok(Value::Scalar(-value)),
                Value::Vector(vector) => Ok(Value::Vector(mapped(vector, |value| -value)?)),
                _ => Err(QueryError::BadData("unary minus takes a scalar or an instant vector".to_owned())),
            },
            Expr::Binary(expr) => {
                let (left, right) = (self.value(&expr.lhs, depth)?, self.value(&expr.rhs, depth)?);
                binary(expr.op, expr.modifier.as_ref(), left, right)
            }
            Expr::Aggregate(expr) => match (self.value(&expr.expr, depth)?, &expr.param) {
                (Value::Vector(vector), None) => aggregate(expr.op, expr.modifier.as_ref(), vector).map(Value::Vector),
                (_, Some(_)) => Err(QueryError::execution(format!("aggregation {} is not supported", expr.op))),
                _ => Err(QueryError::BadData(format!("{} takes an instant vector", expr.op))),
            },
            Expr::VectorSelector(selector) => self.instant(selector).map(Value::Vector),
            Expr::MatrixSelector(selector) => Ok(Value::Matrix(self.range(selector).0)),
            Expr::Call(call) => self.call(call, depth),
            Expr::Subquery(_) => Err(QueryError::execution("subqueries are not supported")),
            Expr::Extension(_) => Err(QueryError::execution("extensions are not supported")),
        }
    }

    /// The moment a selector means.
    fn moment(&self, selector: &VectorSelector) -> i64 {
        let at = match &selector.at {
            None => self.time,
            Some(AtModifier::Start) => self.start,
            Some(AtModifier::End) => self.end,
            Some(AtModifier::At(time)) => match time.duration_since(SystemTime::UNIX_EPOCH) {
                Ok(since) => millis(since),
                Err(before) => -millis(before.duration()),
            },
        };
        match &selector.offset {
            None => at,
            Some(Offset::Pos(offset)) => at.saturating_sub(millis(*offset)),
            Some(Offset::Neg(offset)) => at.saturating_add(millis(*offset)),
        }
    }

    fn instant(&self, selector: &VectorSelector) -> Result<Vector, QueryError> {
        let time = self.moment(selector);
        let found =
            self.storage.select(selector.name.as_deref(), &selector.matchers, time.saturating_sub(LOOKBACK), time);
        let last = found.filter_map(|(labels, samples)| Some((labels.clone(), samples.last()?.value)));
        unique(last.filter(|(_, value)| !is_stale(*value)).collect())
    }

    fn range(&self, selector: &MatrixSelector) -> (Matrix, Window) {
        let end = self.moment(&selector.vs);
        let window = Window { start: end.saturating_sub(millis(selector.range)), end };
        let found = self.storage.select(selector.vs.name.as_deref(), &selector.vs.matchers, window.start, window.end);
        let live = |samples: Vec<Sample>| samples.into_iter().filter(|sample| !is_stale(sample.value)).collect();
        let matrix = found.map(|(labels, samples)| (labels.clone(), live(samples)));
        (matrix.filter(|(_, samples): &(_, Vec<Sample>)| !samples.is_empty()).collect(), window)
    }

    fn call(&self, call: &Call, depth: usize) -> Result<Value, QueryError> {
        let name = call.func.name;
        if let Some(vector) = self.over_range(call)? {
            return Ok(Value::Vector(vector));
        }
        let arguments = Arguments { moment: self, call, depth };
        let vector = match name {
            "time" => return Ok(Value::Scalar(self.time as f64 / 1_000.0)),
            "scalar" => {
                return Ok(Value::Scalar(match arguments.vector(0)?.as_slice() {
                    [(_, value)] => *value,
                    _ => f64::NAN,
                }));
            }
            "vector" => vec![(Labels::default(), arguments.scalar(0)?)],
            "absent" => {
                let found = arguments.vector(0)?;
                if found.is_empty() {
                    vec![(absent(call.args.args.first().map(AsRef::as_ref)), 1.0)]
                } else {
                    Vector::new()
                }
            }
            "histogram_quantile" => histogram::quantiles(arguments.scalar(0)?, &arguments.vector(1)?),
            "abs" => mapped(arguments.vector(0)?, f64::abs)?,
            "ceil" => mapped(arguments.vector(0)?, f64::ceil)?,
            "floor" => mapped(arguments.vector(0)?, f64::floor)?,
            "sqrt" => mapped(arguments.vector(0)?, f64::sqrt)?,
            "exp" => mapped(arguments.vector(0)?, f64::exp)?,
            "ln" => mapped(arguments.vector(0)?, f64::ln)?,
            "log2" => mapped(arguments.vector(0)?, f64::log2)?,
            "log10" => mapped(arguments.vector(0)?, f64::log10)?,
            "round" => {
                // Ties go up, and dividing by the inverse avoids the rounding errors of decimal fractions.
                let inverse = 1.0 / arguments.optional(1, 1.0)?;
                mapped(arguments.vector(0)?, |value| (value * inverse + 0.5).floor() / inverse)?
            }
            "clamp" => {
                let (low, high) = (arguments.scalar(1)?, arguments.scalar(2)?);
                if low > high {
                    Vector::new()
                } else {
                    mapped(arguments.vector(0)?, |value| at_least(at_most(value, high), low))?
                }
            }
            "clamp_min" => {
                let low = arguments.scalar(1)?;
                mapped(arguments.vector(0)?, |value| at_least(value, low))?
            }
            "clamp_max" => {
                let high = arguments.scalar(1)?;
                mapped(arguments.vector(0)?, |value| at_most(value, high))?
            }
            "sort" | "sort_desc" => {
                let mut vector = arguments.vector(0)?;
                vector.sort_by(|(_, one), (_, two)| {
                    let order = one.is_nan().cmp(&two.is_nan());
                    let values = if name == "sort" { one.total_cmp(two) } else { two.total_cmp(one) };
                    order.then(values)
                });
                vector
            }
            other => return Err(QueryError::execution(format!("function {other} is not supported"))),
        };
        Ok(Value::Vector(vector))
    }

    /// The functions over a range selector; `None` if this is not one of them.
    fn over_range(&self, call: &Call) -> Result<Option<Vector>, QueryError> {
        type Function = Box<dyn Fn(&[Sample], Window) -> Option<f64>>;
        let name = call.func.name;
        let function: Function = match name {
            "rate" => Box::new(|samples, window| range::extrapolated(samples, window, Kind::Rate)),
            "increase" => Box::new(|samples, window| range::extrapolated(samples, window, Kind::Increase)),
            "delta" => Box::new(|samples, window| range::extrapolated(samples, window, Kind::Delta)),
            "irate" => Box::new(|samples, _| range::instant(samples, true)),
            "idelta" => Box::new(|samples, _| range::instant(samples, false)),
            other => match range::over_time(other) {
                Some(function) => Box::new(move |samples, _| function(samples)),
                None => return Ok(None),
            },
        };
        let mut argument = call.args.args.first().map(AsRef::as_ref);
        while let Some(Expr::Paren(inner)) = argument {
            argument = Some(&inner.expr);
        }
        let Some(Expr::MatrixSelector(selector)) = argument else {
            return Err(QueryError::execution(format!("{name} is supported over a range selector only")));
        };
        let (matrix, window) = self.range(selector);
        let keeps_name = name == "last_over_time";
        let computed = matrix.into_iter().filter_map(|(labels, samples)| {
            let labels = if keeps_name { labels } else { labels.without_name() };
            Some((labels, function(&samples, window)?))
        });
        unique(computed.collect()).map(Some)
    }
}

fn at_most(value: f64, high: f64) -> f64 {
    if value.is_nan() || high.is_nan() { f64::NAN } else { value.min(high) }
}

fn at_least(value: f64, low: f64) -> f64 {
    if value.is_nan() || low.is_nan() { f64::NAN } else { value.max(low) }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4)
}

/// Every value changed; a computed value has no metric name.
fn mapped(vector: Vector, change: impl Fn(f64) -> f64) -> Result<Vector, QueryError> {
    unique(vector.into_iter().map(|(labels, value)| (labels.without_name(), change(value))).collect())
}

/// The labels that `absent` can know: those a selector fixes by one equality.
fn absent(argument: Option<&Expr>) -> Labels {
    let matchers = match argument {
        Some(Expr::VectorSelector(selector)) => &selector.matchers.matchers,
        _ => return Labels::default(),
    };
    let fixed = matchers.iter().filter(|matcher| {
        let alone = matchers.iter().filter(|other| other.name == matcher.name).count() == 1;
        alone && matcher.name != NAME && matches!(matcher.op, MatchOp::Equal)
    });
    fixed.map(|matcher| (matcher.name.as_str(), matcher.value.as_str())).collect()
}

/// The arguments of a call, evaluated when asked for.
struct Arguments<'a> {
    moment: &'a Moment<'a>,
    call: &'a Call,
    depth: usize,
}

impl Arguments<'_> {
    fn value(&self, index: usize) -> Result<Value, QueryError> {
        let missing = || QueryError::BadData(format!("{} lacks an argument", self.call.func.name));
        self.moment.value(self.call.args.args.get(index).ok_or_else(missing)?, self.depth)
    }

    fn scalar(&self, index: usize) -> Result<f64, QueryError> {
        match self.value(index)? {
            Value::Scalar(value) => Ok(value),
            _ => Err(QueryError::BadData(format!("{} takes a scalar there", self.call.func.name))),
        }
    }

    fn optional(&self, index: usize, default: f64) -> Result<f64, QueryError> {
        if self.call.args.args.len() > index { self.scalar(index) } else { Ok(default) }
    }

    fn vector(&self, index: usize) -> Result<Vector, QueryError> {
        match self.value(index)? {
            Value::Vector(vector) => Ok(vector),
            _ => Err(QueryError::BadData(format!("{} takes an instant vector there", self.call.func.name))),
        }
    }
}
