//! The demo's screen: the canary's own, with the story above it and what users meet beside it.
//!
//! Pure: a model in, cells out. Reading the keyboard and redrawing is `demo::narrate`'s business.

use std::cmp::Ordering;

use ratatui::Frame;
use ratatui::layout::Constraint;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::canary::{self, Panel, Surroundings};
use super::text::{fit, style};
use crate::demo::model::{Chapter, Model};
use crate::watch::view::{Tone, View, clock};

/// Draws the whole screen.
pub fn draw(model: &Model, frame: &mut Frame<'_>) {
    let title =
        format!("Seaway demo · a cluster in this process · {}x speed · {}", model.speed, clock(model.elapsed()));
    let view = View::of(&model.world, &Model::key(), model.now);
    let around = Surroundings {
        title,
        footer: "q quits",
        story: Some(story(model, usize::from(frame.area().width.saturating_sub(2)))),
        requests: Some(requests(model)),
        scroll: 0,
    };
    canary::draw(frame, &view, around);
}

/// The chapters, the current one marked. Where there is no room for all, those that are over are left out first.
fn story(model: &Model, room: usize) -> Line<'static> {
    let version = |index: usize| model.versions.get(index).cloned();
    let chapters = [
        (Chapter::Launch, format!("{} is launched", version(0).unwrap_or_default())),
        (Chapter::Promotion, version(1).map_or("a good release".to_owned(), |v| format!("{v} is promoted"))),
        (Chapter::Rollback, version(2).map_or("a bad release".to_owned(), |v| format!("{v} is rolled back"))),
    ];
    let over = chapters.iter().filter(|(chapter, _)| *chapter < model.chapter).count();
    let spans: Vec<Span<'static>> = Vec::from(chapters.map(|(chapter, text)| match chapter.cmp(&model.chapter) {
        Ordering::Less => Span::styled(format!("✔ {text}   "), style(Tone::Good)),
        Ordering::Equal => Span::from(format!("▸ {text}   ")).bold(),
        Ordering::Greater => Span::styled(format!("○ {text}   "), style(Tone::Faint)),
    }));
    let fits = |first: usize| spans.iter().skip(first).map(Span::width).sum::<usize>() <= room;
    let first = (0..over).find(|first| fits(*first)).unwrap_or(over);
    Line::from(spans.into_iter().skip(first).collect::<Vec<_>>())
}

/// What users met: of each version how many requests it answered, which share of the last ones, and how many failed.
fn requests(model: &Model) -> Panel {
    let rows = model.load.versions.iter().map(|(version, tally)| {
        let name = if version.is_empty() { "nobody" } else { version };
        let share = model.share(version).map(|share| format!("{share:.0}%")).unwrap_or_default();
        let tone = if tally.errors > 0 { Tone::Bad } else { Tone::Plain };
        vec![
            Span::from(fit(name, 14)),
            Span::from(tally.requests.to_string()),
            Span::from(share),
            Span::styled(tally.errors.to_string(), style(tone)),
        ]
    });
    let blamed = model.load.blamed;
    let tone = if blamed == 0 { Tone::Good } else { Tone::Bad };
    let title = vec![
        Span::from(format!(" {} requests, ", model.load.requests)),
        Span::styled(format!("lost to the rollout: {blamed} "), style(tone)),
    ];
    Panel {
        title: Line::from(title),
        header: vec!["version", "requests", "now", "errors"],
        rows: rows.collect(),
        widths: vec![Constraint::Fill(1), Constraint::Length(8), Constraint::Length(5), Constraint::Length(6)],
    }
}

#[cfg(test)]
#[path = "demo/tests.rs"]
mod tests;
