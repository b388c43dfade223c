//! Time as a value.
//!
//! Everything the operator does with time (ticks, leases, backoff, timestamps of Events) goes through a [`Clock`] that
//! is handed in, so that the same code runs on the wall clock and on a simulated one. Limits on a single request are
//! the exception: they guard against a real connection and stay real.
//!
//! There are two ways to tell time, and two types for them. A date ([`Timestamp`]) is what others can read, and somebody
//! may set the clock it comes from, by an hour, while we work. Passed time ([`Duration`] since a fixed moment) is only ours.
//! Everything that this process waits for or measures is passed time; a date is written, or read from what an earlier
//! process has written, and nothing else.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use jiff::Timestamp;

/// Where the operator's time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;
    /// Time passed since a fixed moment; never goes back and never jumps. Its default is right for a clock that nobody can
    /// set, as simulated ones are.
    fn elapsed(&self) -> Duration {
        Duration::try_from(self.now().duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default()
    }
    /// Completes after `duration` of this clock's time.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// The computer's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn elapsed(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// One moment by both ways of telling time. Passed time stands still while a computer sleeps, a date can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The date, by a clock that may be wrong.
    pub(crate) date: Timestamp,
    /// Time passed, see [`Clock::elapsed`].
    pub(crate) elapsed: Duration,
}

impl Moment {
    /// This moment.
    pub(crate) fn now(clock: &dyn Clock) -> Self {
        Self { date: clock.now(), elapsed: clock.elapsed() }
    }

    /// The moment after `duration`.
    pub(crate) fn after(self, duration: Duration) -> Self {
        Self { date: later(self.date, duration), elapsed: self.elapsed.saturating_add(duration) }
    }

    /// The date of an earlier moment, as the clock would have shown it then had nobody set it since.
    pub(crate) fn date_of(self, earlier: Duration) -> Timestamp {
        self.date.checked_sub(self.elapsed.saturating_sub(earlier)).unwrap_or(Timestamp::MIN)
    }

    /// The other way round: when `date` comes, or now if it has come.
    pub(crate) fn elapsed_at(self, date: Timestamp) -> Duration {
        self.elapsed.saturating_add(Duration::try_from(date.duration_since(self.date)).unwrap_or_default())
    }

    /// How long ago `date` was. A date that is still to come was written by a clock that was wrong then, or ours is now:
    /// that counts as this moment.
    pub(crate) fn age_of(self, date: Timestamp) -> Duration {
        Duration::try_from(self.date.duration_since(date)).unwrap_or_default()
    }
}

/// Completes when this much time has passed by `clock`, at once if it already has.
pub(crate) fn sleep_until(clock: &dyn Clock, when: Duration) -> BoxFuture<'static, ()> {
    clock.sleep(when.saturating_sub(clock.elapsed()))
}

/// `when` plus `duration`, the end of time if that is later than any timestamp.
pub(crate) fn later(when: Timestamp, duration: Duration) -> Timestamp {
    when.checked_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_passed_time_are_translated_at_one_moment() {
        let second = |second: i64| Timestamp::from_second(second).unwrap();
        let now = Moment { date: second(1_000_000), elapsed: Duration::from_secs(50) };
        assert_eq!(now.date_of(Duration::from_secs(20)), second(999_970));
        assert_eq!(now.elapsed_at(second(1_000_010)), Duration::from_secs(60));
        assert_eq!(now.elapsed_at(second(999_000)), Duration::from_secs(50), "it has come");
        assert_eq!(now.age_of(second(999_000)), Duration::from_secs(1000), "older than this process");
        assert_eq!(now.age_of(second(1_003_600)), Duration::ZERO, "a date to come");
    }
}
