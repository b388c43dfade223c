//! The list as people see it: look at the snapshots.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::watch::fixture::{at, hundred};

fn shown(world: &World, filter: &str, selected: Option<&Key>, width: u16, height: u16) -> String {
    let entries = entries(world, filter, at(615));
    let listing = Listing {
        title: "canaries · all namespaces · drydock".into(),
        selected,
        filter,
        typing: false,
        troubles: Vec::new(),
        total: world.canaries().count(),
    };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, &entries, &listing)).unwrap();
    let text = terminal.backend().to_string();
    text.lines().map(|line| line.trim_matches('"').trim_end()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_hundred_canaries() {
    insta::assert_snapshot!(shown(&hundred(), "", Some(&Key::new("search", "app-42")), 140, 30));
}

#[test]
fn the_usual_terminal_shows_steps_and_failed_checks_too() {
    insta::assert_snapshot!(shown(&hundred(), "web", None, 80, 12));
}

#[test]
fn a_narrow_list_keeps_name_phase_and_share() {
    insta::assert_snapshot!(shown(&hundred(), "failed", None, 60, 12));
}

#[test]
fn nothing_there_and_nothing_found_are_two_things() {
    assert!(shown(&World::new(at(0)), "", None, 60, 12).contains("there are no canaries"));
    assert!(shown(&hundred(), "nonsense", None, 60, 12).contains("nothing matches the filter"));
}

#[test]
fn the_chosen_one_is_always_in_sight() {
    let world = hundred();
    let keys: Vec<Key> = world.canaries().map(|(key, _)| key.clone()).collect();
    for key in &keys {
        for height in [4, 5, 11, 30] {
            let text = shown(&world, "", Some(key), 100, height);
            let line = text.lines().find(|line| line.contains('▸')).unwrap_or_default();
            assert!(line.contains(&key.name), "{key} at height {height}\n{text}");
        }
    }
    for (width, height) in [(1, 1), (5, 2), (30, 3), (49, 9), (300, 100)] {
        shown(&world, "", keys.last(), width, height);
    }
}
