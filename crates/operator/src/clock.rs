//! Time as a value.
//!
//! Everything the operator does with time (ticks, leases, backoff, timestamps of Events) goes through a [`Clock`] that
//! is handed in, so that the same code runs on the wall clock and on a simulated one. Limits on a single request are
//! the exception: they guard against a real connection and stay real.

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

/// Completes when `clock` shows `when`, at once if it already does.
pub(crate) fn sleep_until(clock: &dyn Clock, when: Timestamp) -> BoxFuture<'static, ()> {
    clock.sleep(Duration::try_from(when.duration_since(clock.now())).unwrap_or_default())
}

/// `when` plus `duration`, the end of time if that is later than any timestamp.
pub(crate) fn later(when: Timestamp, duration: Duration) -> Timestamp {
    when.checked_add(duration).unwrap_or(Timestamp::MAX)
}
