//! When a container that ended is started again: at once, then after 10 s, 20 s, 40 s and so on up to 5 minutes.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(300);
/// A run this long was a good one: the next end counts as the first.
const FORGIVEN: Duration = Duration::from_secs(600);

/// How often a container ended in short succession.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff(u32);

impl Backoff {
    /// Counts an end after a run of this length and answers how long to wait.
    pub(super) fn ended_after(&mut self, run: Duration) -> Duration {
        if run >= FORGIVEN {
            self.0 = 0;
        }
        let wait = match self.0 {
            0 => Duration::ZERO,
            ends => FIRST.saturating_mul(1 << (ends - 1).min(10)).min(LONGEST),
        };
        self.0 = self.0.saturating_add(1);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_a_long_run_is_forgiven() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..8).map(|_| backoff.ended_after(Duration::ZERO).as_secs()).collect();
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(backoff.ended_after(FORGIVEN), Duration::ZERO);
    }
}
