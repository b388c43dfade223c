//! The demo's screen: where the story is, who gets the traffic, what the checks say, what happened last.
//!
//! Pure: a model in, cells out. Reading the keyboard and redrawing is `demo::narrate`'s business.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table};
use seaway_api::Phase;
use seaway_api::number::go_float;

use crate::demo::model::{Chapter, Check, Model, clock};

/// Draws the whole screen. Anything that does not fit is left out from the bottom.
pub fn draw(model: &Model, frame: &mut Frame<'_>) {
    let title =
        format!(" Seaway demo · a cluster in this process · {}x speed · {} ", model.speed, clock(model.elapsed()));
    let outer = Block::bordered().title(title.bold()).title_bottom(" q quits ");
    let area = outer.inner(frame.area());
    frame.render_widget(outer, frame.area());
    let middle = u16::try_from(model.load.versions.len().max(model.checks.len())).unwrap_or(u16::MAX);
    let [head, tables, events] =
        Layout::vertical([Constraint::Length(5), Constraint::Length(middle.clamp(2, 6) + 3), Constraint::Min(0)])
            .areas(area);
    frame.render_widget(Paragraph::new(headlines(model, head.width)), head);
    let [left, right] = Layout::horizontal([Constraint::Percentage(45), Constraint::Percentage(55)]).areas(tables);
    frame.render_widget(requests(model), left);
    frame.render_widget(checks(model), right);
    frame.render_widget(last_events(model, events), events);
}

fn headlines(model: &Model, width: u16) -> Vec<Line<'static>> {
    let canary = &model.canary;
    let phase = match (canary.phase, canary.rolling_back) {
        (Phase::Unset, _) => Span::from("starting").dim(),
        (_, true) => Span::from("rolling back").red().bold(),
        (Phase::Failed, _) => Span::from("Failed").red().bold(),
        (Phase::Initialized | Phase::Succeeded, _) => Span::from(canary.phase.as_str()).green().bold(),
        (phase, _) => Span::from(phase.as_str()).yellow().bold(),
    };
    let step = model.next_step().map(|left| format!("   next step in {}", clock(left))).unwrap_or_default();
    let failed = match canary.failed_checks {
        0 => Span::default(),
        n => Span::from(format!("   failed checks {n} of {}", canary.threshold)).red(),
    };
    vec![
        story(model),
        Line::default(),
        Line::from(vec![Span::from("phase   ").dim(), phase, Span::from(step), failed]),
        split(model, width),
    ]
}

/// The chapters, the current one marked.
fn story(model: &Model) -> Line<'static> {
    let version = |index: usize| model.versions.get(index).cloned();
    let chapters = [
        (Chapter::Launch, format!("{} is launched", version(0).unwrap_or_default())),
        (Chapter::Promotion, version(1).map_or("a good release".to_owned(), |v| format!("{v} is promoted"))),
        (Chapter::Rollback, version(2).map_or("a bad release".to_owned(), |v| format!("{v} is rolled back"))),
    ];
    let mut spans = vec![Span::from("story   ").dim()];
    for (chapter, text) in chapters {
        spans.push(match chapter.cmp(&model.chapter) {
            std::cmp::Ordering::Less => Span::from(format!("✓ {text}   ")).green(),
            std::cmp::Ordering::Equal => Span::from(format!("▸ {text}   ")).bold(),
            std::cmp::Ordering::Greater => Span::from(format!("· {text}   ")).dim(),
        });
    }
    Line::from(spans)
}

/// A bar as wide as the screen allows: primary first, canary after it.
fn split(model: &Model, width: u16) -> Line<'static> {
    let label = Span::from("split   ").dim();
    let Some((primary, canary)) = model.split else {
        return Line::from(vec![label, Span::from("no route yet").dim()]);
    };
    let text = format!("  primary {primary} / canary {canary}");
    let room = usize::from(width).saturating_sub(8 + text.chars().count() + 1).clamp(10, 60);
    // A canary with any traffic is visible, however little it is.
    let share = (room * usize::from(canary)).div_ceil(100);
    Line::from(vec![
        label,
        Span::styled("█".repeat(room - share), Style::new().fg(Color::Blue)),
        Span::styled("▒".repeat(share), Style::new().fg(Color::Yellow)),
        Span::from(text),
    ])
}

fn heading() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn requests(model: &Model) -> Table<'static> {
    let rows = model.load.versions.iter().map(|(version, tally)| {
        let name = if version.is_empty() { "nobody".to_owned() } else { version.clone() };
        let errors = Cell::from(tally.errors.to_string());
        Row::new([
            Cell::from(name),
            Cell::from(tally.requests.to_string()),
            if tally.errors > 0 { errors.red() } else { errors },
        ])
    });
    let blamed = Span::from(format!(" lost to the rollout: {} ", model.load.blamed));
    let blamed = if model.load.blamed == 0 { blamed.green() } else { blamed.red() };
    Table::new(rows, [Constraint::Fill(1), Constraint::Length(9), Constraint::Length(7)])
        .header(Row::new(["version", "requests", "errors"]).style(heading()))
        .block(Block::bordered().title(format!(" {} requests ", model.load.requests)).title_bottom(blamed))
}

fn checks(model: &Model) -> Table<'static> {
    let rows = model.checks.iter().map(|check| {
        let verdict = Cell::from(check.verdict.clone());
        let verdict = if check.verdict == "pass" { verdict.green() } else { verdict.red() };
        let value = figure(check.value);
        Row::new([Cell::from(check.name.clone()), Cell::from(value), Cell::from(bounds(check)), verdict])
    });
    Table::new(rows, [Constraint::Fill(2), Constraint::Fill(1), Constraint::Fill(1), Constraint::Length(12)])
        .header(Row::new(["check", "value", "bound", "verdict"]).style(heading()))
        .block(Block::bordered().title(" checks "))
}

/// A value with as many digits as help.
pub(crate) fn figure(value: Option<f64>) -> String {
    match value {
        None => "no data".to_owned(),
        Some(value) if value != 0.0 && value.abs() < 1.0 => format!("{value:.3}"),
        Some(value) => format!("{value:.2}"),
    }
}

/// `≤ 1`, `≥ 99` or both.
pub(crate) fn bounds(check: &Check) -> String {
    let min = check.min.map(|min| format!("≥ {}", go_float(min)));
    let max = check.max.map(|max| format!("≤ {}", go_float(max)));
    [min, max].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn last_events(model: &Model, area: Rect) -> Paragraph<'static> {
    let room = usize::from(area.height.saturating_sub(2));
    let start = model.events.len().saturating_sub(room);
    let lines = model.events.iter().skip(start).map(|(at, event)| {
        let since = std::time::Duration::try_from(at.duration_since(model.began)).unwrap_or_default();
        let text = Span::from(event.text.clone());
        let text = if event.warning { text.yellow() } else { text };
        Line::from(vec![Span::from(format!("{:>6}  ", clock(since))).dim(), text])
    });
    Paragraph::new(lines.collect::<Vec<_>>()).block(Block::bordered().title(" events "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use jiff::Timestamp;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::*;
    use crate::demo::model::{CanaryView, EventLine, Load, Sight, Tally};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn shown(model: &Model, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(model, frame)).unwrap();
        terminal.backend().to_string()
    }

    fn in_the_middle_of_a_bad_release() -> Model {
        let mut model = Model::new(at(0), 20, "6.0.0");
        model.see(at(40), Sight::Chapter(Chapter::Promotion, "6.0.1".to_owned()));
        model.see(at(500), Sight::Chapter(Chapter::Rollback, "6.0.2-err25".to_owned()));
        let record = |name: &str, value: f64, max: f64, verdict: &str| json!({"check": name, "value": value, "max": max, "verdict": verdict});
        model.see(
            at(640),
            Sight::Canary(Box::new(CanaryView {
                phase: Phase::Progressing,
                weight: 10,
                failed_checks: 2,
                threshold: 5,
                interval: Duration::from_secs(60),
                moved: Some(at(620)),
                rolling_back: false,
                decisions: vec![record("error-rate", 24.731, 1.0, "fail"), record("latency", 0.0049, 0.5, "pass")],
            })),
        );
        model.see(at(641), Sight::Split(90, 10));
        for (second, warning, text) in [
            (560, false, "Starting canary analysis for podinfo.test"),
            (560, false, "Pre-rollout check smoke-test passed"),
            (560, false, "Advance podinfo.test canary weight 10"),
            (620, true, "Halt podinfo.test advancement error-rate 24.73 > 1"),
        ] {
            let name = text.to_owned();
            model.now = at(second);
            model.see(at(second), Sight::Event(EventLine { text: name.clone(), name, warning, count: 1 }));
        }
        let versions = [("6.0.0", 1300, 0), ("6.0.1", 2710, 0), ("6.0.2-err25", 240, 59)];
        let versions: BTreeMap<_, _> =
            versions.map(|(version, requests, errors)| (version.to_owned(), Tally { requests, errors })).into();
        model.see(at(642), Sight::Load(Load { requests: 4250, blamed: 0, versions }));
        model
    }

    #[test]
    fn nothing_has_happened_yet() {
        insta::assert_snapshot!(shown(&Model::new(at(0), 20, "6.0.0"), 80, 20));
    }

    #[test]
    fn a_bad_release_is_under_analysis() {
        insta::assert_snapshot!(shown(&in_the_middle_of_a_bad_release(), 90, 24));
    }

    #[test]
    fn a_small_terminal_shows_what_fits() {
        for (width, height) in [(1, 1), (20, 5), (40, 10), (300, 100)] {
            shown(&in_the_middle_of_a_bad_release(), width, height);
        }
    }
}
