//! What keys do in `seaway watch`: choose in the list, open one, go back, filter, leave. Pure.

use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::terminal::is_interrupt;
use crate::watch::objects::Key;

/// Where a person is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The canary that is open; none in the list.
    pub open: Option<Key>,
    /// Whether there is a list to go back to.
    pub listed: bool,
    /// The chosen line of the list.
    pub selected: Option<Key>,
    /// What the list is filtered by.
    pub filter: String,
    /// Whether the filter is being typed.
    pub typing: bool,
    /// Lines of the tree above its window.
    pub scroll: usize,
}

/// What comes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The screen may look different.
    Stay,
    /// It is over.
    Leave,
}

impl Place {
    /// Before the list.
    pub fn list() -> Self {
        Self { listed: true, ..Self::default() }
    }

    /// Before one canary.
    pub fn one(key: Key) -> Self {
        Self { open: Some(key), ..Self::default() }
    }

    /// A key was pressed while these canaries were in the list, and the tree had so many lines.
    pub fn press(&mut self, key: KeyEvent, rows: &[Key], lines: usize) -> Outcome {
        if is_interrupt(&key) {
            return Outcome::Leave;
        }
        if self.typing {
            self.type_filter(key.code);
            return Outcome::Stay;
        }
        if self.open.is_some() { self.press_in_one(key.code, lines) } else { self.press_in_list(key.code, rows) }
    }

    fn press_in_one(&mut self, code: KeyCode, lines: usize) -> Outcome {
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll = (self.scroll + 1).min(lines.saturating_sub(1)),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::PageDown => self.scroll = (self.scroll + 10).min(lines.saturating_sub(1)),
            KeyCode::Home => self.scroll = 0,
            KeyCode::Esc | KeyCode::Char('q') | KeyCode::Left | KeyCode::Backspace if self.listed => {
                self.open = None;
                self.scroll = 0;
            }
            KeyCode::Esc | KeyCode::Char('q') => return Outcome::Leave,
            _ => {}
        }
        Outcome::Stay
    }

    fn press_in_list(&mut self, code: KeyCode, rows: &[Key]) -> Outcome {
        let chosen = self.selected.as_ref().and_then(|key| rows.iter().position(|row| row == key)).unwrap_or(0);
        let last = rows.len().saturating_sub(1);
        let target = match code {
            KeyCode::Up | KeyCode::Char('k') => chosen.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (chosen + 1).min(last),
            KeyCode::PageUp => chosen.saturating_sub(10),
            KeyCode::PageDown => (chosen + 10).min(last),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            KeyCode::Enter | KeyCode::Right => {
                self.open = rows.get(chosen).cloned();
                chosen
            }
            KeyCode::Char('/') => {
                self.typing = true;
                chosen
            }
            KeyCode::Esc if !self.filter.is_empty() => {
                self.filter.clear();
                return Outcome::Stay;
            }
            KeyCode::Esc | KeyCode::Char('q') => return Outcome::Leave,
            _ => chosen,
        };
        self.selected = rows.get(target).cloned();
        Outcome::Stay
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) if !c.is_control() => self.filter.push(c),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::KeyModifiers;

    use super::*;

    fn rows() -> Vec<Key> {
        ["a", "b", "c"].map(|name| Key::new("test", name)).into()
    }

    fn press(place: &mut Place, codes: &[KeyCode]) -> Outcome {
        let outcomes = codes.iter().map(|code| place.press(KeyEvent::new(*code, KeyModifiers::NONE), &rows(), 3));
        outcomes.last().unwrap()
    }

    #[test]
    fn one_is_chosen_opened_and_left_again() {
        let mut place = Place::list();
        press(&mut place, &[KeyCode::Char('j'), KeyCode::Down, KeyCode::Down, KeyCode::Up]);
        assert_eq!(place.selected, Some(Key::new("test", "b")));
        press(&mut place, &[KeyCode::Enter]);
        assert_eq!(place.open, Some(Key::new("test", "b")));
        press(&mut place, &[KeyCode::Down, KeyCode::Down, KeyCode::Down]);
        assert_eq!(place.scroll, 2);
        assert_eq!(press(&mut place, &[KeyCode::Char('q')]), Outcome::Stay, "back to the list");
        assert_eq!((place.open.clone(), place.scroll), (None, 0));
        assert_eq!(press(&mut place, &[KeyCode::Char('q')]), Outcome::Leave);
    }

    #[test]
    fn without_a_list_there_is_nothing_to_go_back_to() {
        let mut place = Place::one(Key::new("test", "a"));
        assert_eq!(press(&mut place, &[KeyCode::Esc]), Outcome::Leave);
    }

    #[test]
    fn a_filter_takes_every_letter_until_it_is_kept() {
        let mut place = Place::list();
        press(&mut place, &[KeyCode::Char('/'), KeyCode::Char('q'), KeyCode::Char('j'), KeyCode::Backspace]);
        assert_eq!((place.filter.as_str(), place.typing), ("q", true));
        press(&mut place, &[KeyCode::Enter]);
        assert!(!place.typing);
        assert_eq!(press(&mut place, &[KeyCode::Esc]), Outcome::Stay, "the first Esc clears the filter");
        assert_eq!(place.filter, "");
        assert_eq!(press(&mut place, &[KeyCode::Esc]), Outcome::Leave);
    }

    #[test]
    fn what_was_chosen_may_be_gone() {
        let mut place = Place { selected: Some(Key::new("test", "z")), ..Place::list() };
        press(&mut place, &[KeyCode::Down]);
        assert_eq!(place.selected, Some(Key::new("test", "b")));
        assert_eq!(place.press(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE), &[], 0), Outcome::Stay);
        assert_eq!((place.open, place.selected), (None, None));
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(Place { typing: true, ..Place::list() }.press(interrupt, &rows(), 0), Outcome::Leave);
    }
}
