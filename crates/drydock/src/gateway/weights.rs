//! Who gets the next request: fair turns in an order nobody can fall in step with, and fractions for mirrors.
//!
//! Each backend has a credit that grows by its weight with every request and pays for the ones it gets. The next one is
//! drawn among those in credit, from a fixed sequence. So counts never drift from the weights by more than a request,
//! a test can count, and two clients that take turns do not split the variants between them.

use std::sync::{Mutex, PoisonError};

use crate::seed;

/// Picks indices in proportion to weights.
#[derive(Debug)]
pub(super) struct Balancer {
    weights: Vec<u32>,
    turns: Mutex<Turns>,
}

#[derive(Debug)]
struct Turns {
    credit: Vec<i64>,
    drawn: u64,
}

impl Balancer {
    pub fn new(weights: Vec<u32>) -> Self {
        let turns = Mutex::new(Turns { credit: vec![0; weights.len()], drawn: 0 });
        Self { weights, turns }
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
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        for (credit, weight) in turns.credit.iter_mut().zip(&self.weights) {
            *credit += i64::from(*weight);
        }
        turns.drawn += 1;
        let chosen = draw(&turns.credit, total, turns.drawn)?;
        if let Some(credit) = turns.credit.get_mut(chosen) {
            *credit -= total;
        }
        Some(chosen)
    }
}

/// Whoever is owed a whole request gets it; otherwise one in credit is drawn, the more credit the likelier.
fn draw(credit: &[i64], total: i64, number: u64) -> Option<usize> {
    if let Some(owed) = credit.iter().position(|credit| *credit >= total) {
        return Some(owed);
    }
    let in_credit: i64 = credit.iter().filter(|credit| **credit > 0).sum();
    let mut left = (seed::draw(number) % u64::try_from(in_credit.max(1)).ok()?) as i64;
    for (index, credit) in credit.iter().enumerate().filter(|(_, credit)| **credit > 0) {
        if left < *credit {
            return Some(index);
        }
        left -= credit;
    }
    None
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
    fn counts_never_drift_by_more_than_a_request() {
        let balancer = Balancer::new(vec![70, 30]);
        let mut canary = 0_i64;
        for request in 1..=2000_i64 {
            canary += i64::from(balancer.next() == Some(1));
            assert!((canary * 100 - request * 30).abs() <= 100, "{canary} of {request}");
        }
    }

    #[test]
    fn clients_that_take_turns_both_meet_the_canary() {
        let balancer = Balancer::new(vec![90, 10]);
        let mut met = [0_u32; 2];
        for request in 0..1000 {
            if balancer.next() == Some(1) {
                met[request % 2] += 1;
            }
        }
        assert!(met.iter().all(|met| *met > 25), "{met:?}");
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
