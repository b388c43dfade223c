//! The one source of randomness: everything that looks random in drydock (uids, name suffixes, jitter) comes from here.
//!
//! The same seed gives the same cluster. It is a counter put through a mixing function (SplitMix64): small, fast, and
//! good enough for names. It is no source of secrets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Characters of generated names; no vowels, so that no words appear, and nothing that reads like another character.
pub(crate) const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// How far the counter goes with every draw.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A deterministic generator; clones share its state.
#[derive(Clone, Debug)]
pub struct Seed(Arc<AtomicU64>);

impl Seed {
    /// A generator that repeats itself exactly when started from the same number.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed)))
    }

    /// An independent generator, so that one part of the cluster drawing more does not change another's names.
    pub fn fork(&self, label: &str) -> Self {
        let start = self.0.load(Ordering::Relaxed);
        Self::new(label.bytes().fold(start ^ 0x5ea3_a795_5ea3_a795, |hash, byte| mix(hash ^ u64::from(byte))))
    }

    /// The next 64 bits.
    pub fn next_u64(&self) -> u64 {
        mix(self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP))
    }

    /// A number below `bound`; 0 when the bound is 0.
    pub fn below(&self, bound: u64) -> u64 {
        // The bias of the remainder is below 2^-40 for every bound used here.
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// `length` characters as Kubernetes puts behind a `generateName`.
    pub fn suffix(&self, length: usize) -> String {
        (0..length).map(|_| char::from(ALPHABET[self.below(ALPHABET.len() as u64) as usize])).collect()
    }

    /// An identifier in the form of a version 4 UUID.
    pub fn uid(&self) -> String {
        let (high, low) = (self.next_u64(), self.next_u64());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            (low >> 48) & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        )
    }
}

/// What a generator started from 0 gives the `number`th time, for those who count themselves.
pub(crate) fn draw(number: u64) -> u64 {
    mix(number.wrapping_mul(STEP))
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_names() {
        let (one, other) = (Seed::new(7), Seed::new(7));
        assert_eq!(one.uid(), other.uid());
        assert_eq!(one.suffix(5), other.suffix(5));
        assert_ne!(one.uid(), one.uid());
    }

    #[test]
    fn a_fork_does_not_disturb_its_parent() {
        let (one, other) = (Seed::new(7), Seed::new(7));
        one.fork("pods").next_u64();
        assert_eq!(one.next_u64(), other.next_u64());
    }

    #[test]
    fn a_uid_has_the_form_of_a_uuid() {
        let uid = Seed::new(1).uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(uid.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&uid.as_bytes()[19]), "{uid}");
    }
}
