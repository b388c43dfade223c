//! Scripted misbehaviour: by suffixes of the image tag, or by environment.
//!
//! | tag suffix | environment | effect |
//! |---|---|---|
//! | `-err50`, `-errors-5`, `-errors=5%` | `DRYDOCK_ERRORS=5` | so many of 100 requests fail with 500 |
//! | `-latency-500ms` | `DRYDOCK_LATENCY=500ms` | every request takes so much longer, in real time |
//! | `-crash` | `DRYDOCK_CRASH=1` | the container exits as soon as it starts |
//! | | `DRYDOCK_CRASH_AS=podinfo-primary` | the same, in pods with a label of that value |
//! | `-noready` | `DRYDOCK_NEVER_READY=1` | `/readyz` never answers 200 |
//! | `-slowstart-20s` | `DRYDOCK_SLOW_START=20s` | `/readyz` answers 200 after so long, in simulated time |
//!
//! Environment wins over the tag. Probes and metrics are never disturbed. Nothing is random: failures are spread
//! evenly over the requests a pod gets.

use std::collections::BTreeMap;
use std::time::Duration;

/// What is wrong with a version, if anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Failing requests out of a hundred.
    pub errors: f64,
    /// Added to every request, in real time.
    pub latency: Duration,
    /// Exit at once.
    pub crash: bool,
    /// Never become ready.
    pub never_ready: bool,
    /// Become ready this much later, in simulated time.
    pub slow_start: Duration,
}

impl Faults {
    /// Reads the script of an image tag and an environment. What is not a fault is a version and means nothing here.
    pub fn of(tag: &str, env: &BTreeMap<String, String>) -> Self {
        let mut faults = Self::default();
        let mut words = tag.split('-').skip(1).peekable();
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            match name {
                "errors" | "err" => faults.errors = value.or_else(|| words.next()).and_then(percent).unwrap_or(0.0),
                "latency" => faults.latency = value.or_else(|| words.next()).and_then(duration).unwrap_or_default(),
                "slowstart" => {
                    faults.slow_start = value.or_else(|| words.next()).and_then(duration).unwrap_or_default();
                }
                "crash" => faults.crash = true,
                "noready" => faults.never_ready = true,
                _ => {
                    if let Some(errors) = name.strip_prefix("err").and_then(percent) {
                        faults.errors = errors;
                    }
                }
            }
        }
        let set = |name: &str| env.get(name).map(|value| matches!(value.as_str(), "1" | "true" | "yes"));
        let length = |name: &str| env.get(name).and_then(|value| duration(value));
        faults.errors = env.get("DRYDOCK_ERRORS").and_then(|value| percent(value)).unwrap_or(faults.errors);
        faults.latency = length("DRYDOCK_LATENCY").unwrap_or(faults.latency);
        faults.crash = set("DRYDOCK_CRASH").unwrap_or(faults.crash);
        faults.never_ready = set("DRYDOCK_NEVER_READY").unwrap_or(faults.never_ready);
        faults.slow_start = length("DRYDOCK_SLOW_START").unwrap_or(faults.slow_start);
        faults
    }

    /// Whether the n-th request fails: the failures so far never differ from the wanted share by a whole one.
    pub(super) fn fails(&self, request: u64) -> bool {
        let failed_before = |request: u64| (request as f64 * self.errors / 100.0).floor();
        failed_before(request + 1) > failed_before(request)
    }
}

fn percent(text: &str) -> Option<f64> {
    let value: f64 = text.trim_end_matches('%').parse().ok()?;
    (0.0..=100.0).contains(&value).then_some(value)
}

/// `500ms`, `20s`, `1.5s`, `2m`. Kept to an hour, so that a slip of the pen is not a hang.
fn duration(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().ok()?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" => number,
        "m" => number * 60.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok().map(|duration| duration.min(Duration::from_secs(3600)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tag: &str) -> Faults {
        Faults::of(tag, &BTreeMap::new())
    }

    #[test]
    fn reads_tags() {
        let none = Faults::default;
        assert_eq!(of("6.0.1"), none());
        assert_eq!(of("6.0.1-rc1-alpine"), none());
        assert_eq!(of("6.0.2-err50"), Faults { errors: 50.0, ..none() });
        assert_eq!(of("6.0.2-errors-5"), Faults { errors: 5.0, ..none() });
        assert_eq!(of("6.0.2-errors=5%"), Faults { errors: 5.0, ..none() });
        assert_eq!(of("6.0.2-crash"), Faults { crash: true, ..none() });
        assert_eq!(of("6.0.2-noready"), Faults { never_ready: true, ..none() });
        let both = Faults { latency: Duration::from_millis(500), slow_start: Duration::from_secs(20), ..none() };
        assert_eq!(of("6.0.2-latency-500ms-slowstart-20s"), both);
    }

    #[test]
    fn environment_wins() {
        let env = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        assert_eq!(Faults::of("6.0.2-err50", &env("DRYDOCK_ERRORS", "5")), Faults { errors: 5.0, ..Faults::default() });
        assert!(Faults::of("6.0.2", &env("DRYDOCK_CRASH", "1")).crash);
        assert!(!Faults::of("6.0.2-crash", &env("DRYDOCK_CRASH", "0")).crash);
    }

    #[test]
    fn failures_are_spread_evenly() {
        for errors in [0_u8, 1, 5, 50, 100] {
            let faults = Faults { errors: errors.into(), ..Faults::default() };
            for start in [0, 37] {
                let failed = (start..start + 200).filter(|request| faults.fails(*request)).count();
                assert_eq!(failed, usize::from(errors) * 2, "{errors} % from {start}");
            }
        }
    }
}
