//! The cluster's one clock.
//!
//! Simulated time runs `speed` times as fast as tokio's. On an ordinary runtime that is the *scaled* clock of the
//! demo; on a runtime whose time is paused, tokio jumps to the next timer whenever nothing is runnable, and the same
//! type is the *paused* clock of the tests. Nothing in drydock asks the operating system for the time.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Simulated time; cheap to clone, and all clones agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Timestamp,
    start: Instant,
    speed: u32,
}

impl Clock {
    /// A clock that shows `epoch` now and runs `speed` times as fast as the runtime's.
    pub fn starting_at(epoch: Timestamp, speed: u32) -> Self {
        Self { epoch, start: Instant::now(), speed: speed.max(1) }
    }

    /// Simulated seconds per second of the runtime.
    pub fn speed(&self) -> u32 {
        self.speed
    }

    /// The simulated time.
    pub fn now(&self) -> Timestamp {
        self.epoch + self.start.elapsed() * self.speed
    }

    /// Waits for a simulated duration.
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration / self.speed).await;
    }

    /// Waits until the clock shows `when`; returns at once if it already does.
    pub async fn sleep_until(&self, when: Timestamp) {
        let left = when.duration_since(self.now());
        if let Ok(left) = Duration::try_from(left) {
            self.sleep(left).await;
        }
    }
}
