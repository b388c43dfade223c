//! Screens as people see them: look at the snapshots.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use rstest::rstest;

use super::*;
use crate::screens::text::without_colours;
use crate::watch::fixture::{self, Stage, at, key};
use crate::watch::objects::Kind;
use crate::watch::world::{Sight, Trouble, World};

fn around() -> Surroundings<'static> {
    Surroundings {
        title: "podinfo · test · drydock".into(), footer: "↑↓ scroll · q quit", ..Surroundings::default()
    }
}

fn shown(world: &World, width: u16, height: u16) -> String {
    let view = View::of(world, &key(), at(615));
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, &view, around())).unwrap();
    let text = terminal.backend().to_string();
    text.lines().map(|line| line.trim_matches('"').trim_end()).collect::<Vec<_>>().join("\n")
}

#[rstest]
#[case::initialising(fixture::initialising())]
#[case::progressing(fixture::progressing())]
#[case::waiting(fixture::waiting())]
#[case::rolling_back(fixture::rolling_back())]
#[case::failed(fixture::failed())]
#[case::succeeded(fixture::succeeded())]
#[case::not_accepted(fixture::not_accepted())]
#[case::deleted(fixture::deleted())]
#[case::broken(fixture::broken())]
fn every_moment_of_a_rollout(#[case] world: World) {
    let name = std::thread::current().name().unwrap().rsplit("case_").next().unwrap().to_owned();
    insta::assert_snapshot!(name, shown(&world, 100, 30));
}

#[test]
fn the_usual_terminal_shows_the_whole_rollout() {
    insta::assert_snapshot!(shown(&fixture::progressing(), 80, 24));
}

#[test]
fn a_narrow_screen_keeps_what_matters() {
    insta::assert_snapshot!(shown(&fixture::rolling_back(), 60, 20));
}

#[test]
fn a_wide_screen_shows_everything() {
    insta::assert_snapshot!(shown(&fixture::progressing(), 160, 50));
}

#[test]
fn no_size_is_too_small_or_too_large() {
    let worlds = [fixture::progressing(), fixture::not_accepted(), World::new(at(0))];
    for world in &worlds {
        for (width, height) in [(1, 1), (2, 2), (3, 60), (20, 5), (40, 10), (60, 20), (95, 12), (96, 9), (300, 100)] {
            shown(world, width, height);
        }
    }
    for width in 0..=120 {
        shown(&worlds[0], width.max(1), 18);
        shown(&worlds[1], 80, (width / 2).max(1));
    }
}

#[test]
fn what_cannot_be_seen_is_said_at_the_top() {
    let trouble = |kind, trouble| Sight::Trouble(kind, trouble);
    let world = Stage(fixture::progressing())
        .sees(606, trouble(Kind::Pod, Trouble::Forbidden("pods is forbidden".into())))
        .sees(606, trouble(Kind::ReplicaSet, Trouble::Forbidden("replicasets is forbidden".into())))
        .sees(606, trouble(Kind::Route, Trouble::Unknown))
        .sees(607, trouble(Kind::Canary, Trouble::Lost("Connection refused (os error 111)".into())))
        .sees(609, trouble(Kind::Event, Trouble::Lost("later".into())));
    let text = shown(&world.0, 100, 30);
    assert!(text.contains("! no connection for 8s, trying again: Connection refused"), "{text}");
    assert!(text.contains("! not allowed to watch replicasets, pods"), "{text}");
    assert!(!text.contains("httproutes"), "a cluster without them has another router\n{text}");
}

#[test]
fn a_tree_that_is_too_long_can_be_scrolled() {
    let mut view = View::of(&fixture::progressing(), &key(), at(615));
    let node = view.tree[3].clone();
    view.tree.extend((0..40).map(|index| Node { name: format!("pod-{index}"), ..node.clone() }));
    let show = |scroll| {
        let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
        terminal.draw(|frame| draw(frame, &view, Surroundings { scroll, ..around() })).unwrap();
        terminal.backend().to_string()
    };
    assert!(show(0).contains("more below") && !show(0).contains("pod-39"));
    assert!(show(1000).contains("more above") && show(1000).contains("pod-39"));
    assert!(show(5).contains("5 more above"));
}

#[test]
fn without_colours_there_are_none() {
    let view = View::of(&fixture::rolling_back(), &key(), at(615));
    let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
    terminal.draw(|frame| draw(frame, &view, around())).unwrap();
    let mut buffer = terminal.backend().buffer().clone();
    assert!(buffer.content.iter().any(|cell| cell.fg == Color::Red));
    without_colours(&mut buffer);
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
}

#[test]
fn wide_letters_do_not_break_the_frame() {
    let text = "日本語のメッセージ 🚢 e\u{301} zurück ".repeat(8);
    let world = Stage(fixture::progressing()).events(&[(610, true, &text)]).0;
    for width in [60_u16, 61, 99, 100] {
        let view = View::of(&world, &key(), at(615));
        let mut terminal = Terminal::new(TestBackend::new(width, 30)).unwrap();
        terminal.draw(|frame| draw(frame, &view, around())).unwrap();
        let buffer = terminal.backend().buffer().clone();
        for row in 1..29 {
            assert_eq!(buffer[(width - 1, row)].symbol(), "│", "row {row} at width {width}");
        }
    }
}
