//! Samples in memory, for as long as the retention says.
//!
//! A series that stops being scraped gets a *stale marker*, a NaN of a bit pattern of its own: an instant selector then
//! no longer sees the series, instead of its last value for five more minutes.

use std::collections::{BTreeMap, VecDeque};

use promql_parser::label::{Matcher, Matchers};

use super::labels::{Labels, NAME};

/// A value at a time in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub time: i64,
    pub value: f64,
}

const STALE: u64 = 0x7ff0_0000_0000_0002;

/// The marker that says a series has ended.
pub(super) fn stale() -> f64 {
    f64::from_bits(STALE)
}

pub(super) fn is_stale(value: f64) -> bool {
    value.to_bits() == STALE
}

/// More series than a test cluster has; beyond it new ones are not stored.
const MAX_SERIES: usize = 100_000;

/// All series, by metric name and labels.
pub(super) struct Storage {
    metrics: BTreeMap<String, BTreeMap<Labels, VecDeque<Sample>>>,
    count: usize,
    retention: i64,
}

impl Storage {
    /// An empty storage that keeps samples for `retention` milliseconds.
    pub fn new(retention: i64) -> Self {
        Self { metrics: BTreeMap::new(), count: 0, retention }
    }

    /// Adds a sample; one that is not newer than the last is ignored.
    pub fn append(&mut self, labels: &Labels, sample: Sample) {
        let metric = self.metrics.entry(labels.get(NAME).to_owned()).or_default();
        if !metric.contains_key(labels) {
            if self.count >= MAX_SERIES {
                return;
            }
            self.count += 1;
            metric.insert(labels.clone(), VecDeque::new());
        }
        let Some(samples) = metric.get_mut(labels) else { return };
        if samples.back().is_none_or(|last| last.time < sample.time) {
            samples.push_back(sample);
        }
        let oldest = sample.time - self.retention;
        while samples.front().is_some_and(|first| first.time < oldest) {
            samples.pop_front();
        }
    }

    /// Forgets series that have no sample within the retention.
    pub fn expire(&mut self, now: i64) {
        let oldest = now - self.retention;
        let mut count = 0;
        self.metrics.retain(|_, metric| {
            metric.retain(|_, samples| samples.back().is_some_and(|last| last.time >= oldest));
            count += metric.len();
            !metric.is_empty()
        });
        self.count = count;
    }

    /// The samples of every matching series in `(after, until]`, stale markers included.
    pub fn select<'s>(
        &'s self,
        name: Option<&'s str>,
        matchers: &'s Matchers,
        after: i64,
        until: i64,
    ) -> impl Iterator<Item = (&'s Labels, Vec<Sample>)> {
        let exact = name.or_else(|| {
            let equal =
                |matcher: &&Matcher| matcher.name == NAME && matches!(matcher.op, promql_parser::label::MatchOp::Equal);
            matchers.matchers.iter().find(equal).map(|matcher| matcher.value.as_str())
        });
        let metrics = self.metrics.iter().filter(move |(metric, _)| exact.is_none_or(|name| name == metric.as_str()));
        metrics.flat_map(|(_, metric)| metric).filter(move |(labels, _)| matches(matchers, labels)).map(
            move |(labels, samples)| {
                let from = samples.partition_point(|sample| sample.time <= after);
                let to = samples.partition_point(|sample| sample.time <= until);
                (labels, samples.range(from..to.max(from)).copied().collect())
            },
        )
    }
}

fn matches(matchers: &Matchers, labels: &Labels) -> bool {
    let all = |list: &[Matcher]| list.iter().all(|matcher| matcher.is_match(labels.get(&matcher.name)));
    all(&matchers.matchers) && (matchers.or_matchers.is_empty() || matchers.or_matchers.iter().any(|list| all(list)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(name: &str, job: &str) -> Labels {
        [(NAME, name), ("job", job)].into_iter().collect()
    }

    #[test]
    fn memory_is_bounded_by_the_retention() {
        let mut storage = Storage::new(10_000);
        for time in (0..100_000).step_by(1_000) {
            storage.append(&labels("up", "a"), Sample { time, value: 1.0 });
        }
        let all = Matchers::empty();
        let kept: Vec<_> = storage.select(Some("up"), &all, i64::MIN, i64::MAX).collect();
        assert_eq!(kept[0].1.len(), 11);
        storage.expire(200_000);
        assert_eq!(storage.count, 0);
    }

    #[test]
    fn old_and_repeated_samples_are_ignored() {
        let mut storage = Storage::new(10_000);
        for (time, value) in [(1_000, 1.0), (1_000, 2.0), (500, 3.0), (2_000, 4.0)] {
            storage.append(&labels("up", "a"), Sample { time, value });
        }
        let all = Matchers::empty();
        let (_, kept) = storage.select(None, &all, 0, 5_000).next().unwrap();
        assert_eq!(kept, [Sample { time: 1_000, value: 1.0 }, Sample { time: 2_000, value: 4.0 }]);
        let (_, open) = storage.select(None, &all, 1_000, 2_000).next().unwrap();
        assert_eq!(open.len(), 1, "the left end is open");
    }
}
