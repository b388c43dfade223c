//! Functions over the samples of a range: rates with Prometheus' extrapolation, and plain ones.

use super::storage::Sample;

/// The range a selector asked for, in milliseconds; open at its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub start: i64,
    pub end: i64,
}

/// What a rate function counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Per second, counter resets taken out.
    Rate,
    /// Over the window, counter resets taken out.
    Increase,
    /// Over the window, for gauges.
    Delta,
}

/// `rate`, `increase` and `delta`: the change between first and last sample, extended to the ends of the window.
///
/// The samples seldom lie exactly at the ends, so the change is extrapolated: to the end itself if the gap is not more
/// than a tenth longer than the average distance of two samples, otherwise by half that distance. A counter is not
/// extrapolated below zero.
pub(super) fn extrapolated(samples: &[Sample], window: Window, kind: Kind) -> Option<f64> {
    let (first, last) = (samples.first()?, samples.last()?);
    if samples.len() < 2 {
        return None;
    }
    let counter = kind != Kind::Delta;
    let mut change = last.value - first.value;
    if counter {
        let resets = samples.windows(2).filter_map(|pair| match pair {
            [before, after] if after.value < before.value => Some(before.value),
            _ => None,
        });
        change += resets.sum::<f64>();
    }
    let seconds = |millis: i64| millis as f64 / 1_000.0;
    let mut to_start = seconds(first.time - window.start);
    let mut to_end = seconds(window.end - last.time);
    let sampled = seconds(last.time - first.time);
    let average = sampled / (samples.len() - 1) as f64;
    let threshold = average * 1.1;
    if to_start >= threshold {
        to_start = average / 2.0;
    }
    if counter && change > 0.0 && first.value >= 0.0 {
        to_start = to_start.min(sampled * (first.value / change));
    }
    if to_end >= threshold {
        to_end = average / 2.0;
    }
    let mut factor = (sampled + to_start + to_end) / sampled;
    if kind == Kind::Rate {
        factor /= seconds(window.end - window.start);
    }
    Some(change * factor)
}

/// `irate` and `idelta`: from the last two samples.
pub(super) fn instant(samples: &[Sample], rate: bool) -> Option<f64> {
    let [.., before, last] = samples else { return None };
    let interval = (last.time - before.time) as f64 / 1_000.0;
    if interval <= 0.0 {
        return None;
    }
    if rate {
        let reset = last.value < before.value;
        let change = if reset { last.value } else { last.value - before.value };
        Some(change / interval)
    } else {
        Some(last.value - before.value)
    }
}

/// A function of the samples of a range alone.
pub(super) type OverTime = fn(&[Sample]) -> Option<f64>;

/// `avg_over_time` and its like; `None` if the name is not one of them.
pub(super) fn over_time(name: &str) -> Option<OverTime> {
    fn values(samples: &[Sample]) -> impl Iterator<Item = f64> {
        samples.iter().map(|sample| sample.value)
    }
    fn extreme(samples: &[Sample], better: fn(f64, f64) -> bool) -> Option<f64> {
        values(samples).reduce(|best, value| if best.is_nan() || better(value, best) { value } else { best })
    }
    let function: OverTime = match name {
        "avg_over_time" => |samples| Some(super::aggregate::sum(values(samples)) / samples.len() as f64),
        "sum_over_time" => |samples| Some(super::aggregate::sum(values(samples))),
        "min_over_time" => |samples| extreme(samples, |value, best| value < best),
        "max_over_time" => |samples| extreme(samples, |value, best| value > best),
        "count_over_time" => |samples| Some(samples.len() as f64),
        "last_over_time" => |samples| samples.last().map(|sample| sample.value),
        "present_over_time" => |_| Some(1.0),
        "changes" => |samples| {
            // Two NaNs are no change, whatever IEEE 754 says.
            let same = |one: f64, two: f64| {
                one.partial_cmp(&two).is_none_or(std::cmp::Ordering::is_eq) && one.is_nan() == two.is_nan()
            };
            Some(samples.windows(2).filter(|pair| !same(pair[0].value, pair[1].value)).count() as f64)
        },
        "resets" => |samples| Some(samples.windows(2).filter(|pair| pair[1].value < pair[0].value).count() as f64),
        _ => return None,
    };
    Some(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(points: &[(i64, f64)]) -> Vec<Sample> {
        points.iter().map(|(seconds, value)| Sample { time: seconds * 1_000, value: *value }).collect()
    }

    fn window(start: i64, end: i64) -> Window {
        Window { start: start * 1_000, end: end * 1_000 }
    }

    fn close(actual: Option<f64>, expected: f64) {
        let actual = actual.unwrap();
        assert!((actual - expected).abs() < 1e-12, "{actual} is not {expected}");
    }

    /// The table of `increase` in Prometheus' own documentation of extrapolation: 5 samples 15 s apart.
    #[test]
    fn a_steady_counter_is_extrapolated_to_the_whole_window() {
        let steady = samples(&[(5, 10.0), (20, 20.0), (35, 30.0), (50, 40.0)]);
        // 30 over 45 s; 5 s to the start and 10 s to the end are both below 16.5 s: 30 * 60/45 = 40.
        close(extrapolated(&steady, window(0, 60), Kind::Increase), 40.0);
        close(extrapolated(&steady, window(0, 60), Kind::Rate), 40.0 / 60.0);
        close(extrapolated(&steady, window(0, 60), Kind::Delta), 40.0);
    }

    #[test]
    fn a_counter_is_not_extrapolated_below_zero() {
        let young = samples(&[(10, 1.0), (20, 11.0), (30, 21.0)]);
        // 20 over 20 s, to zero it is 1 s although the window starts 10 s earlier; 10 s to the end: 20 * 31/20.
        close(extrapolated(&young, window(0, 40), Kind::Increase), 31.0);
        close(extrapolated(&young, window(0, 40), Kind::Delta), 40.0);
    }

    #[test]
    fn far_ends_get_half_a_step() {
        let middle = samples(&[(100, 1000.0), (110, 1010.0), (120, 1020.0)]);
        // 80 s and 60 s are more than 11 s: 5 s each. 20 * 30/20 = 30.
        close(extrapolated(&middle, window(20, 180), Kind::Increase), 30.0);
    }

    #[test]
    fn resets_are_taken_out() {
        let reset = samples(&[(0, 100.0), (10, 110.0), (20, 5.0), (30, 15.0)]);
        // 110 - 100, then 5, then 10: 25 over 30 s; nothing to extrapolate.
        close(extrapolated(&reset, window(0, 30), Kind::Increase), 25.0);
        close(extrapolated(&reset, window(0, 30), Kind::Delta), -85.0);
        close(instant(&reset[..3], true), 0.5);
        close(instant(&reset, false), 10.0);
    }

    #[test]
    fn one_sample_is_no_rate() {
        assert_eq!(extrapolated(&samples(&[(5, 1.0)]), window(0, 10), Kind::Rate), None);
        assert_eq!(instant(&samples(&[(5, 1.0)]), true), None);
    }
}
