//! Objects in few bytes. Those of one kind say nearly the same, so each is kept as its difference to some of them.

use std::sync::Arc;

use lz4_flex::block::{compress_with_dict, decompress_with_dict};
use serde_json::Value;

/// How many samples a kind has, and how much text of them, at most: the compression reaches no further, and each set of
/// samples lives as long as something that was packed by it.
const SAMPLES: (u8, usize) = (8, 32 * 1024);

/// What the objects of one kind usually say. Clones share the text.
#[derive(Clone, Default)]
pub(super) struct Samples {
    text: Arc<[u8]>,
    count: u8,
}

impl Samples {
    /// Takes over samples that know more.
    pub(super) fn learn(&mut self, other: Self) {
        if other.count > self.count {
            *self = other;
        }
    }

    fn add(&mut self, text: &[u8]) {
        if self.count < SAMPLES.0 && self.text.len() + text.len() <= SAMPLES.1 {
            *self = Self { text: [&self.text, text].concat().into(), count: self.count + 1 };
        }
    }
}

/// An object as compressed JSON text, with the samples it was compressed by.
pub(super) struct Packed {
    bytes: Box<[u8]>,
    length: usize,
    samples: Arc<[u8]>,
}

impl Packed {
    /// Packs an object. What does not resemble the samples becomes one, for those that are packed later.
    pub(super) fn of(object: &Value, samples: &mut Samples) -> Option<Self> {
        let text = serde_json::to_vec(object).ok()?;
        let bytes = compress_with_dict(&text, &samples.text).into_boxed_slice();
        let packed = Self { bytes, length: text.len(), samples: samples.text.clone() };
        if packed.bytes.len() > text.len() / 3 {
            samples.add(&text);
        }
        Some(packed)
    }

    /// The object as it was.
    pub(super) fn open(&self) -> Option<Value> {
        let text = decompress_with_dict(&self.bytes, self.length, &self.samples).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(number: u32, padding: &str) -> Value {
        json!({"metadata": {"name": format!("app-{number}"), "uid": number}, "spec": {"padding": padding}})
    }

    #[test]
    fn what_was_packed_comes_out_as_it_was() {
        let mut samples = Samples::default();
        let long = "x".repeat(SAMPLES.1 * 2);
        for padding in ["", "the same in all of them", "\u{1F6A2}", &long] {
            for number in 0..100 {
                let packed = Packed::of(&object(number, padding), &mut samples).unwrap();
                assert_eq!(packed.open(), Some(object(number, padding)));
            }
        }
        assert!(samples.count > 1 && samples.text.len() <= SAMPLES.1);
    }

    #[test]
    fn the_second_of_a_kind_is_small() {
        let mut samples = Samples::default();
        let padding = (0..200).map(|number| (number * 7919).to_string()).collect::<Vec<_>>().join(" ");
        let first = Packed::of(&object(1, &padding), &mut samples).unwrap();
        let second = Packed::of(&object(2, &padding), &mut samples).unwrap();
        assert!(second.bytes.len() * 10 < first.bytes.len(), "{} {}", first.bytes.len(), second.bytes.len());
        assert_eq!(second.open(), Some(object(2, &padding)));
    }
}
