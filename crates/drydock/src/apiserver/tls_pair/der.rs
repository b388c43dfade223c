//! The form that certificates and keys are written in: a tag, a length, and so many bytes.

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BITS: u8 = 0x03;
pub(super) const BYTES: u8 = 0x04;
pub(super) const NAME: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;

/// The tag of a part that has a number instead of a type.
pub(super) const fn numbered(number: u8) -> u8 {
    0xa0 | number
}

/// What is still to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Der<'a>(pub(super) &'a [u8]);

impl<'a> Der<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn is_next(self, tag: u8) -> bool {
        self.0.first() == Some(&tag)
    }

    /// The contents of the next part, if it has this tag.
    pub(super) fn read(&mut self, tag: u8) -> Option<&'a [u8]> {
        if !self.is_next(tag) {
            return None;
        }
        let (length, rest) = length(self.0.get(1..)?)?;
        let (contents, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(contents)
    }

    /// The same for a part that holds others.
    pub(super) fn inside(&mut self, tag: u8) -> Option<Self> {
        self.read(tag).map(Self)
    }

    /// The bytes of a number, without those that say nothing.
    pub(super) fn integer(&mut self) -> Option<&'a [u8]> {
        let bytes = self.read(INTEGER)?;
        let is_shortest = match bytes {
            [] => false,
            [0, next, ..] => *next >= 0x80,
            [0xff, next, ..] => *next < 0x80,
            _ => true,
        };
        match bytes {
            _ if !is_shortest => None,
            [0, rest @ ..] if !rest.is_empty() => Some(rest),
            other => Some(other),
        }
    }

    /// Whole bytes that are written as bits.
    pub(super) fn bits(&mut self) -> Option<&'a [u8]> {
        self.read(BITS)?.strip_prefix(&[0])
    }
}

/// A length and what follows it. There is one way to write each.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    if *first < 0x80 {
        return Some((usize::from(*first), rest));
    }
    let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f)).filter(|(digits, _)| digits.len() <= 4)?;
    let length = digits.iter().fold(0_usize, |all, digit| all << 8 | usize::from(*digit));
    let is_shortest = length >= 0x80 && digits.first() != Some(&0);
    is_shortest.then_some((length, rest))
}
