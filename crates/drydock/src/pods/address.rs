//! Pod addresses: handed out in order from 10.244/16 and taken back when the pod ends.
//!
//! The search goes on from the last address given, so that an address rests before somebody else gets it and a
//! connection that was kept open to a dead pod does not reach a stranger.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// The first and last host number of the range: .0.1 is the node, and from .254.0 on live gateways.
const FIRST: u16 = 2;
const LAST: u16 = 0xfdff;

#[derive(Default)]
struct State {
    last: u16,
    taken: BTreeSet<u16>,
}

/// The addresses of one node; clones share them.
#[derive(Clone, Default)]
pub(super) struct Addresses(Arc<Mutex<State>>);

/// An address in use; free again when dropped.
pub(super) struct Lease {
    host: u16,
    pool: Addresses,
}

impl Addresses {
    /// The next free address; `None` when all are taken.
    pub(super) fn lease(&self) -> Option<Lease> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = state.last.saturating_add(1).clamp(FIRST, LAST);
        let host = (next..=LAST).chain(FIRST..next).find(|host| !state.taken.contains(host))?;
        state.taken.insert(host);
        state.last = host;
        Some(Lease { host, pool: self.clone() })
    }
}

impl Lease {
    /// The virtual address.
    pub(super) fn ip(&self) -> IpAddr {
        let [high, low] = self.host.to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(10, 244, high, low))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.pool.0.lock().unwrap_or_else(PoisonError::into_inner).taken.remove(&self.host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_rests_before_it_is_given_again() {
        let pool = Addresses::default();
        let first = pool.lease().unwrap();
        assert_eq!(first.ip().to_string(), "10.244.0.2");
        drop(first);
        let second = pool.lease().unwrap();
        assert_eq!(second.ip().to_string(), "10.244.0.3");
        let all: Vec<_> = std::iter::from_fn(|| pool.lease()).collect();
        assert_eq!(all.len(), usize::from(LAST - FIRST));
        assert_eq!(all.last().unwrap().ip().to_string(), "10.244.0.2");
    }
}
