//! The demo's screen: the canary's own, with the story and the users around it.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::demo::model::{Load, Sight, Tally};
use crate::watch::fixture::{at, rolling_back};

fn shown(model: &Model, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(model, frame)).unwrap();
    let text = terminal.backend().to_string();
    text.lines().map(|line| line.trim_matches('"').trim_end()).collect::<Vec<_>>().join("\n")
}

fn load(last: u64) -> Sight {
    let versions = [("6.0.0", 1300, 0), ("6.0.1", 2710 + last * 9, 0), ("6.0.2-err25", 240 + last, 59)];
    let requests = versions.iter().map(|(_, requests, _)| requests).sum();
    let versions = versions.map(|(version, requests, errors)| (version.to_owned(), Tally { requests, errors })).into();
    Sight::Load(Load { requests, blamed: 0, versions })
}

fn in_the_middle_of_a_bad_release() -> Model {
    let mut model = Model::new(at(0), 20, "6.0.0");
    model.see(at(40), Sight::Chapter(Chapter::Promotion, "6.0.1".to_owned()));
    model.see(at(500), Sight::Chapter(Chapter::Rollback, "6.0.2-err25".to_owned()));
    model.world = rolling_back();
    model.see(at(610), load(0));
    model.see(at(615), load(10));
    model
}

#[test]
fn nothing_has_happened_yet() {
    insta::assert_snapshot!(shown(&Model::new(at(0), 20, "6.0.0"), 80, 12));
}

#[test]
fn a_bad_release_is_rolled_back() {
    insta::assert_snapshot!(shown(&in_the_middle_of_a_bad_release(), 100, 30));
}

#[test]
fn the_usual_terminal_shows_what_users_meet() {
    insta::assert_snapshot!(shown(&in_the_middle_of_a_bad_release(), 80, 24));
}

#[test]
fn a_very_small_terminal_shows_the_present_chapter() {
    insta::assert_snapshot!(shown(&in_the_middle_of_a_bad_release(), 40, 10));
}

#[test]
fn a_small_terminal_shows_what_fits() {
    for (width, height) in [(1, 1), (20, 5), (40, 10), (60, 20), (300, 100)] {
        shown(&in_the_middle_of_a_bad_release(), width, height);
    }
}
