//! A bell that wakes everyone who listens, in the order in which they began to wait.
//!
//! tokio's `watch` channel does the same but spreads its receivers over several lists at random, so that two runs of
//! one seed wake them in different orders. It carries no value: a listener looks for itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
struct Shared {
    waiting: Notify,
    rung: AtomicU64,
    gone: AtomicBool,
}

/// The side that rings; listeners learn when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Bell(Arc<Shared>);

/// One that waits; a ring between two waits is not missed.
#[derive(Debug)]
pub(crate) struct Listener {
    shared: Arc<Shared>,
    heard: u64,
}

/// The bell is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

impl Bell {
    /// Wakes every listener.
    pub(crate) fn ring(&self) {
        self.0.rung.fetch_add(1, Ordering::Relaxed);
        self.0.waiting.notify_waiters();
    }

    /// Listens from now on.
    pub(crate) fn listen(&self) -> Listener {
        Listener { shared: self.0.clone(), heard: self.0.rung.load(Ordering::Relaxed) }
    }

    /// Waits until a condition holds; it is looked at now and after every ring.
    pub(crate) async fn until(&self, condition: impl Fn() -> bool) {
        let mut listener = self.listen();
        while !condition() && listener.rung().await.is_ok() {}
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.0.gone.store(true, Ordering::Relaxed);
        self.0.waiting.notify_waiters();
    }
}

impl Listener {
    /// Returns when the bell was rung since the last time.
    pub(crate) async fn rung(&mut self) -> Result<(), Gone> {
        loop {
            let mut notified = std::pin::pin!(self.shared.waiting.notified());
            // From here on no ring is missed, also on a runtime with more than one thread.
            notified.as_mut().enable();
            let rung = self.shared.rung.load(Ordering::Relaxed);
            if rung != self.heard {
                self.heard = rung;
                return Ok(());
            }
            if self.shared.gone.load(Ordering::Relaxed) {
                return Err(Gone);
            }
            notified.await;
        }
    }

    /// Forgets what was rung so far.
    pub(crate) fn catch_up(&mut self) {
        self.heard = self.shared.rung.load(Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn listeners_wake_in_the_order_in_which_they_waited() {
        let bell = Bell::default();
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..50 {
            let (mut listener, woken) = (bell.listen(), woken.clone());
            tasks.spawn(async move {
                listener.rung().await.unwrap();
                woken.lock().unwrap().push(number);
            });
        }
        tokio::task::yield_now().await;
        bell.ring();
        tasks.join_all().await;
        assert_eq!(*woken.lock().unwrap(), (0..50).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_ring_between_two_waits_is_heard_once_and_the_end_always() {
        let bell = Bell::default();
        let mut listener = bell.listen();
        bell.ring();
        bell.ring();
        assert_eq!(listener.rung().await, Ok(()));
        bell.ring();
        listener.catch_up();
        drop(bell);
        assert_eq!(listener.rung().await, Err(Gone));
    }
}
