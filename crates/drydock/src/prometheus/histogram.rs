//! `histogram_quantile` over classic buckets.

use std::collections::BTreeMap;

use super::labels::{Labels, NAME};
use super::value::Vector;

/// Differences of cumulative counts smaller than this share are rounding, not data.
const SMALL: f64 = 1e-12;

#[derive(Clone, Copy, Debug)]
struct Bucket {
    bound: f64,
    count: f64,
}

/// The quantile of every histogram among the given `le` series.
pub(super) fn quantiles(q: f64, buckets: &Vector) -> Vector {
    let mut groups: BTreeMap<Labels, Vec<Bucket>> = BTreeMap::new();
    for (labels, count) in buckets {
        let Some(bound) = bound(labels.get("le")) else { continue };
        let group = labels.retain(|name| name != "le" && name != NAME);
        groups.entry(group).or_default().push(Bucket { bound, count: *count });
    }
    groups.into_iter().map(|(labels, buckets)| (labels, quantile(q, buckets))).collect()
}

fn bound(text: &str) -> Option<f64> {
    match text {
        "+Inf" | "Inf" => Some(f64::INFINITY),
        other => other.parse().ok(),
    }
}

fn quantile(q: f64, mut buckets: Vec<Bucket>) -> f64 {
    if q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    buckets.sort_by(|one, two| one.bound.total_cmp(&two.bound));
    if buckets.last().is_none_or(|last| last.bound != f64::INFINITY) {
        return f64::NAN;
    }
    let mut merged: Vec<Bucket> = Vec::with_capacity(buckets.len());
    for bucket in buckets {
        match merged.last_mut() {
            Some(last) if last.bound.total_cmp(&bucket.bound).is_eq() => last.count += bucket.count,
            _ => merged.push(bucket),
        }
    }
    make_monotonic(&mut merged);
    let [finite @ .., last] = merged.as_slice() else { return f64::NAN };
    let Some(highest) = finite.last() else { return f64::NAN };
    if last.count == 0.0 {
        return f64::NAN;
    }
    let mut rank = q * last.count;
    let Some(at) = finite.iter().position(|bucket| bucket.count >= rank) else {
        // The quantile lies in the last bucket, of which only the lower bound is known.
        return highest.bound;
    };
    let Some(bucket) = finite.get(at) else { return f64::NAN };
    let below = at.checked_sub(1).and_then(|before| finite.get(before));
    if below.is_none() && bucket.bound <= 0.0 {
        return bucket.bound;
    }
    let mut start = 0.0;
    let mut count = bucket.count;
    if let Some(below) = below {
        start = below.bound;
        count -= below.count;
        rank -= below.count;
    }
    start + (bucket.bound - start) * (rank / count)
}

/// Rates of single buckets may cross by rounding or by scrapes at different times; cumulative counts may not.
fn make_monotonic(buckets: &mut [Bucket]) {
    let mut before: Option<f64> = None;
    for bucket in buckets {
        if let Some(before) = before {
            let sum = (before.abs() + bucket.count.abs()).min(f64::MAX);
            let equal = (before - bucket.count).abs() < SMALL * sum;
            if equal || bucket.count < before {
                bucket.count = before;
            }
        }
        before = Some(bucket.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(q: f64, buckets: &[(f64, f64)]) -> f64 {
        quantile(q, buckets.iter().map(|(bound, count)| Bucket { bound: *bound, count: *count }).collect())
    }

    const INF: f64 = f64::INFINITY;

    #[test]
    fn values_lie_on_the_line_within_a_bucket() {
        let buckets = [(0.1, 50.0), (0.2, 80.0), (0.5, 95.0), (INF, 100.0)];
        assert!((at(0.5, &buckets) - 0.1).abs() < 1e-12);
        assert!((at(0.25, &buckets) - 0.05).abs() < 1e-12);
        // Rank 65 lies half way through the second bucket.
        assert!((at(0.65, &buckets) - 0.15).abs() < 1e-12);
        assert!((at(0.99, &buckets) - 0.5).abs() < 1e-12, "the last bucket answers with its lower bound");
    }

    #[test]
    fn odd_histograms_answer_as_prometheus_does() {
        assert!(at(0.5, &[(1.0, 5.0)]).is_nan(), "no +Inf bucket");
        assert!(at(0.5, &[(INF, 5.0)]).is_nan(), "one bucket");
        assert!(at(0.5, &[(1.0, 0.0), (INF, 0.0)]).is_nan(), "no observations");
        assert!(at(f64::NAN, &[(1.0, 1.0), (INF, 1.0)]).is_nan());
        assert!(at(-0.1, &[(1.0, 1.0), (INF, 1.0)]).is_infinite());
        assert!((at(0.5, &[(-1.0, 5.0), (INF, 5.0)]) + 1.0).abs() < 1e-12, "a first bound below zero");
        assert!((at(0.5, &[(1.0, 10.0), (2.0, 9.0), (INF, 10.0)]) - 0.5).abs() < 1e-12, "counts that fall are lifted");
    }
}
