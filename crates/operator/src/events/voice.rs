//! Which texts of one canary share an Event.
//!
//! Plain data: what was said goes in, what to write comes out. Nothing here knows the API server.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use seaway_core::effect::Severity;

use super::{About, Note};
use crate::clock::later;

/// Distinct texts of one type until they are combined.
const DISTINCT: usize = 10;
/// Silence after which distinct texts are counted anew.
const WINDOW: Duration = Duration::from_secs(600);
/// Texts per canary and type whose Event is remembered.
const REMEMBERED: usize = 64;
/// Bytes of a text; the API server takes no more.
const LONGEST: usize = 1024;

/// What one canary has said.
#[derive(Default)]
pub(super) struct Voice {
    uid: String,
    normal: Tone,
    warning: Tone,
    /// The last time used in a name; names must differ.
    named: i128,
}

/// What one canary has said in one type.
#[derive(Default)]
struct Tone {
    distinct: BTreeSet<String>,
    last: Option<Timestamp>,
    /// Events already made, the one used last at the end. The text is `None` for the combined one.
    events: Vec<(Option<String>, Made)>,
}

#[derive(Clone)]
struct Made {
    name: String,
    count: u32,
    first: Timestamp,
}

impl Voice {
    /// What to write so that `text` is told.
    pub(super) fn note(&mut self, about: &About, severity: Severity, text: &str, now: Timestamp) -> Note {
        if self.uid != about.uid {
            *self = Self { uid: about.uid.clone(), named: self.named, ..Self::default() };
        }
        let tone = match severity {
            Severity::Normal => &mut self.normal,
            Severity::Warning => &mut self.warning,
        };
        let text = shorten(text);
        let combined = tone.is_one_too_many(&text, now);
        let key = (!combined).then(|| text.clone());
        let made = if let Some(at) = tone.events.iter().position(|(known, _)| *known == key) {
            let (_, made) = tone.events.remove(at);
            Made { count: made.count + 1, ..made }
        } else {
            self.named = now.as_nanosecond().max(self.named + 1);
            Made { name: format!("{}.{:x}", about.key.name, self.named), count: 1, first: now }
        };
        tone.events.push((key, made.clone()));
        if tone.events.len() > REMEMBERED {
            tone.events.remove(0);
        }
        let text = if combined { shorten(&format!("(combined from similar events): {text}")) } else { text };
        let Made { name, count, first } = made;
        Note { about: about.clone(), name, severity, text, count, first, last: now }
    }

    /// The Event that was to be `from` is `to` now.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        let made = self.normal.events.iter_mut().chain(&mut self.warning.events).map(|(_, made)| made);
        for made in made.filter(|made| made.name == from) {
            to.clone_into(&mut made.name);
        }
    }
}

impl Tone {
    fn is_one_too_many(&mut self, text: &str, now: Timestamp) -> bool {
        if self.last.is_some_and(|last| later(last, WINDOW) < now) {
            self.distinct.clear();
        }
        self.last = Some(now);
        self.distinct.insert(text.to_owned());
        if self.distinct.len() < DISTINCT {
            return false;
        }
        // Texts known before go on being counted by themselves.
        self.distinct.remove(text);
        true
    }
}

fn shorten(text: &str) -> String {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::CanaryKey;

    fn about() -> About {
        About { key: CanaryKey::new("test", "podinfo"), uid: "u1".into(), version: "7".into() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn equal_texts_are_counted_on_one_event() {
        let mut voice = Voice::default();
        let first = voice.note(&about(), Severity::Normal, "Advance", at(1));
        let second = voice.note(&about(), Severity::Normal, "Advance", at(2));
        let warning = voice.note(&about(), Severity::Warning, "Advance", at(2));
        assert_eq!((first.count, second.count, warning.count), (1, 2, 1));
        assert_eq!((&second.name, second.first), (&first.name, at(1)));
        assert_ne!(warning.name, first.name);
    }

    #[test]
    fn the_tenth_distinct_text_is_combined_as_in_client_go() {
        let mut voice = Voice::default();
        let mut say = |text: &str, second| {
            let note = voice.note(&about(), Severity::Normal, text, at(second));
            (note.text, note.count)
        };
        for n in 1..10 {
            assert_eq!(say(&format!("text {n}"), n), (format!("text {n}"), 1));
        }
        assert_eq!(say("text 10", 10), ("(combined from similar events): text 10".into(), 1));
        assert_eq!(say("text 11", 11), ("(combined from similar events): text 11".into(), 2));
        assert_eq!(say("text 3", 12), ("text 3".into(), 2), "a known text is still counted by itself");
        assert_eq!(say("text 12", 613), ("text 12".into(), 1), "after ten silent minutes everything starts anew");
    }

    #[test]
    fn a_canary_of_the_same_name_starts_anew() {
        let mut voice = Voice::default();
        voice.note(&about(), Severity::Normal, "Advance", at(1));
        let reborn = About { uid: "u2".into(), ..about() };
        assert_eq!(voice.note(&reborn, Severity::Normal, "Advance", at(2)).count, 1);
    }

    #[test]
    fn memory_and_texts_are_bounded() {
        let mut voice = Voice::default();
        for n in 0..1000 {
            voice.note(&about(), Severity::Warning, &format!("{n} {}", "ä".repeat(2000)), at(n * 1000));
        }
        assert_eq!(voice.warning.events.len(), REMEMBERED);
        assert!(voice.warning.events.iter().all(|(text, _)| text.as_ref().is_none_or(|text| text.len() <= LONGEST)));
    }
}
