//! What is left of a load when it is over: counts and latencies, per version.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Outcome, Record};

/// Latencies in buckets that are never wider than a sixty-fourth of their value.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    buckets: BTreeMap<u32, u64>,
    count: u64,
    sum: Duration,
    slowest: Duration,
    fastest: Option<Duration>,
}

/// Buckets per power of two.
const FINENESS: u32 = 64;

impl Latency {
    fn add(&mut self, latency: Duration) {
        *self.buckets.entry(bucket(latency)).or_default() += 1;
        self.count += 1;
        self.sum += latency;
        self.slowest = self.slowest.max(latency);
        self.fastest = Some(self.fastest.map_or(latency, |fastest| fastest.min(latency)));
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The arithmetic mean; zero if there is none.
    pub fn mean(&self) -> Duration {
        self.sum.div_f64(self.count.max(1) as f64)
    }

    /// The fastest.
    pub fn fastest(&self) -> Duration {
        self.fastest.unwrap_or_default()
    }

    /// The slowest.
    pub fn slowest(&self) -> Duration {
        self.slowest
    }

    /// The latency that the share `q` of all does not exceed, to within two per cent.
    pub fn quantile(&self, q: f64) -> Duration {
        let rank = (q.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in &self.buckets {
            seen += count;
            if seen >= rank {
                return upper_bound(*bucket).min(self.slowest);
            }
        }
        self.slowest
    }

    /// How many fall below each of the bounds, and how many above all.
    pub fn histogram(&self, bounds: &[Duration]) -> Vec<u64> {
        let mut counts = vec![0; bounds.len() + 1];
        for (bucket, count) in &self.buckets {
            let value = upper_bound(*bucket).min(self.slowest);
            let at = bounds.iter().position(|bound| value <= *bound).unwrap_or(bounds.len());
            if let Some(slot) = counts.get_mut(at) {
                *slot += count;
            }
        }
        counts
    }
}

fn bucket(latency: Duration) -> u32 {
    let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1);
    let power = micros.ilog2();
    if power < FINENESS.ilog2() {
        return micros as u32;
    }
    let within = (micros >> (power - FINENESS.ilog2())) as u32 - FINENESS;
    FINENESS + (power - FINENESS.ilog2()) * FINENESS + within
}

fn upper_bound(bucket: u32) -> Duration {
    if bucket < FINENESS {
        return Duration::from_micros(u64::from(bucket));
    }
    let (power, within) = ((bucket - FINENESS) / FINENESS, (bucket - FINENESS) % FINENESS);
    let next = u64::from(FINENESS + within + 1);
    Duration::from_micros((next << power) - 1)
}

/// The requests that one version answered.
#[derive(Clone, Debug, Default)]
pub struct VersionSummary {
    /// All of them.
    pub requests: u64,
    /// Those with a 5xx.
    pub failed: u64,
    /// Those of the failed whose pod confessed to a scripted fault.
    pub scripted: u64,
    /// By status code.
    pub statuses: BTreeMap<u16, u64>,
    /// How long they took.
    pub latency: Latency,
}

/// A whole load.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Requests sent.
    pub requests: u64,
    /// Requests without an answer or with a 5xx.
    pub failed: u64,
    /// Failed requests that no pod confessed to have scripted: what a rollout must never cause.
    pub unexplained: u64,
    /// By version; what answered without one is under `""`.
    pub versions: BTreeMap<String, VersionSummary>,
    /// Why requests broke, and how often.
    pub errors: BTreeMap<String, u64>,
    /// How long all answered requests took.
    pub latency: Latency,
    /// Bytes of all bodies.
    pub bytes: u64,
    /// Simulated time of the run.
    pub elapsed: Duration,
    /// The same in the runtime's time.
    pub elapsed_real: Duration,
}

/// Different error texts kept; further ones are counted under one.
const MAX_ERRORS: usize = 50;

impl Summary {
    /// Counts one request.
    pub fn add(&mut self, record: &Record) {
        self.requests += 1;
        self.failed += u64::from(record.failed());
        self.unexplained += u64::from(record.unexplained());
        self.bytes += record.bytes;
        match &record.outcome {
            Outcome::Broken(error) => {
                let known = self.errors.len() < MAX_ERRORS || self.errors.contains_key(error);
                let text = if known { error.as_str() } else { "other" };
                *self.errors.entry(text.to_owned()).or_default() += 1;
            }
            Outcome::Status(status) => {
                self.latency.add(record.latency);
                let version = self.versions.entry(record.version.clone().unwrap_or_default()).or_default();
                version.requests += 1;
                version.failed += u64::from(record.failed());
                version.scripted += u64::from(record.failed() && record.fault.is_some());
                *version.statuses.entry(*status).or_default() += 1;
                version.latency.add(record.latency);
            }
        }
    }

    /// Answers by status code, of all versions.
    pub fn statuses(&self) -> BTreeMap<u16, u64> {
        let mut all = BTreeMap::new();
        for (status, count) in self.versions.values().flat_map(|version| &version.statuses) {
            *all.entry(*status).or_default() += count;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_two_per_cent() {
        let mut latency = Latency::default();
        for micros in 1..=100_000_u64 {
            latency.add(Duration::from_micros(micros));
        }
        for (q, expected) in [(0.5, 50_000.0), (0.9, 90_000.0), (0.99, 99_000.0), (1.0, 100_000.0)] {
            let actual = latency.quantile(q).as_micros() as f64;
            assert!((actual / expected - 1.0).abs() < 0.02, "{q}: {actual}");
        }
        assert_eq!(latency.mean(), Duration::from_nanos(50_000_500));
        assert_eq!(latency.fastest(), Duration::from_micros(1));
        let bounds = [Duration::from_millis(50), Duration::from_millis(200)];
        assert_eq!(latency.histogram(&bounds).iter().sum::<u64>(), 100_000);
    }

    #[test]
    fn every_duration_has_a_bucket_that_holds_it() {
        for micros in [0, 1, 63, 64, 65, 127, 128, 129, 1_000, 123_456_789] {
            let latency = Duration::from_micros(micros);
            assert!(upper_bound(bucket(latency)) >= latency, "{micros}");
        }
    }
}
