//! Who gets the next request: smooth weighted round robin, and fractions for mirrors.
//!
//! No dice: over every `total` requests in a row each backend gets exactly its weight, and requests of one backend are
//! spread evenly among the others. So a test can count, and a canary at 1 % sees its request within the first hundred.

use std::sync::{Mutex, PoisonError};

/// Picks indices in proportion to weights.
#[derive(Debug)]
pub(super) struct Balancer {
    weights: Vec<u32>,
    current: Mutex<Vec<i64>>,
}

impl Balancer {
    pub fn new(weights: Vec<u32>) -> Self {
        let current = Mutex::new(vec![0; weights.len()]);
        Self { weights, current }
    }

    pub fn weights(&self) -> &[u32] {
        &self.weights
    }

    /// The next index; `None` if every weight is zero.
    pub fn next(&self) -> Option<usize> {
        let total: i64 = self.weights.iter().copied().map(i64::from).sum();
        if total == 0 {
            return None;
        }
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        for (value, weight) in current.iter_mut().zip(&self.weights) {
            *value += i64::from(*weight);
        }
        // The first of equals, so that the order is the one written in the route.
        let (chosen, _) = current
            .iter()
            .enumerate()
            .filter(|(index, _)| self.weights.get(*index).is_some_and(|weight| *weight > 0))
            .min_by_key(|(_, value)| std::cmp::Reverse(**value))?;
        if let Some(value) = current.get_mut(chosen) {
            *value -= total;
        }
        Some(chosen)
    }
}

/// Says yes to `numerator` of every `denominator` requests, evenly spread.
#[derive(Debug)]
pub(super) struct Share {
    numerator: u64,
    denominator: u64,
    debt: Mutex<u64>,
}

impl Share {
    pub fn new(numerator: u32, denominator: u32) -> Self {
        let denominator = u64::from(denominator.max(1));
        Self { numerator: u64::from(numerator).min(denominator), denominator, debt: Mutex::default() }
    }

    /// Whether both take the same part.
    pub fn same_as(&self, other: &Self) -> bool {
        (self.numerator, self.denominator) == (other.numerator, other.denominator)
    }

    /// Whether this request is one of them.
    pub fn next(&self) -> bool {
        let mut debt = self.debt.lock().unwrap_or_else(PoisonError::into_inner);
        *debt += self.numerator;
        let due = *debt >= self.denominator;
        if due {
            *debt -= self.denominator;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(weights: &[u32], requests: usize) -> Vec<usize> {
        let balancer = Balancer::new(weights.to_vec());
        let mut counts = vec![0; weights.len()];
        for _ in 0..requests {
            counts[balancer.next().unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn a_thousand_requests_are_split_exactly() {
        assert_eq!(counts(&[90, 10], 1000), [900, 100]);
        assert_eq!(counts(&[100, 0], 1000), [1000, 0]);
        assert_eq!(counts(&[1, 1, 2], 1000), [250, 250, 500]);
        assert_eq!(counts(&[999_999, 1], 1000), [1000, 0]);
    }

    #[test]
    fn requests_are_spread_evenly() {
        let balancer = Balancer::new(vec![3, 1]);
        let order: Vec<usize> = (0..8).filter_map(|_| balancer.next()).collect();
        assert_eq!(order, [0, 0, 1, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn without_weight_nobody_is_chosen() {
        assert_eq!(Balancer::new(vec![0, 0]).next(), None);
        assert_eq!(Balancer::new(vec![]).next(), None);
    }

    #[test]
    fn a_share_is_exact() {
        let share = Share::new(30, 100);
        assert_eq!((0..1000).filter(|_| share.next()).count(), 300);
        assert!((0..10).all(|_| Share::new(100, 100).next()));
        assert!(!Share::new(0, 100).next());
    }
}
