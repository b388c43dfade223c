//! Objects in few bytes. Those of one kind say nearly the same, so each is kept as its difference to some of them.

use std::sync::Arc;

use lz4_flex::block::{compress_with_dict, decompress_with_dict};
use serde_json::Value;

/// How much text of samples a kind has at most; the reach of the compression is not much longer.
const SAMPLES: usize = 32 * 1024;

/// What the objects of one kind usually say. Clones share the text.
#[derive(Clone, Default)]
pub(super) struct Samples(Arc<[u8]>);

impl Samples {
    /// Takes over samples that know more.
    pub(super) fn take_longer(&mut self, other: Self) {
        if other.0.len() > self.0.len() {
            *self = other;
        }
    }
}

/// An object as compressed JSON text, with the samples it was compressed by.
pub(super) struct Packed {
    bytes: Box<[u8]>,
    length: usize,
    samples: Samples,
}

impl Packed {
    /// Packs an object. What does not resemble the samples becomes one, for those that are packed later.
    pub(super) fn of(object: &Value, samples: &mut Samples) -> Option<Self> {
        let text = serde_json::to_vec(object).ok()?;
        let bytes = compress_with_dict(&text, &samples.0).into_boxed_slice();
        let packed = Self { bytes, length: text.len(), samples: samples.clone() };
        if packed.bytes.len() > text.len() / 3 && samples.0.len() + text.len() <= SAMPLES {
            *samples = Samples([&samples.0, text.as_slice()].concat().into());
        }
        Some(packed)
    }

    /// The object as it was.
    pub(super) fn open(&self) -> Option<Value> {
        let text = decompress_with_dict(&self.bytes, self.length, &self.samples.0).ok()?;
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
        let long = "x".repeat(SAMPLES * 2);
        for padding in ["", "the same in all of them", "\u{1F6A2}", &long] {
            for number in 0..100 {
                let packed = Packed::of(&object(number, padding), &mut samples).unwrap();
                assert_eq!(packed.open(), Some(object(number, padding)));
            }
        }
        assert!(samples.0.len() <= SAMPLES);
    }

    #[test]
    fn the_second_of_a_kind_is_small() {
        let mut samples = Samples::default();
        let padding = (0..200).map(|number| format!("word{} ", number * 7919)).collect::<String>();
        let first = Packed::of(&object(1, &padding), &mut samples).unwrap();
        let second = Packed::of(&object(2, &padding), &mut samples).unwrap();
        assert!(second.bytes.len() * 10 < first.bytes.len(), "{} {}", first.bytes.len(), second.bytes.len());
        assert_eq!(second.open(), Some(object(2, &padding)));
    }
}
