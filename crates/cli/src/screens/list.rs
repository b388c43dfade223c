//! The screen of many canaries: a line each, one of them chosen. Pure: rows in, cells out.

use std::time::Duration;

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table};

use super::text::{bar, fit, look, style, width};
use crate::watch::objects::Key;
use crate::watch::view::{Look, Place, Tone, age, look as look_of, since, steps};
use crate::watch::world::{Known, World};

/// One canary in one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Where it is.
    pub key: Key,
    /// Its phase.
    pub look: Look,
    /// The canary's share of the traffic.
    pub weight: u8,
    /// Steps done or begun, and all of them.
    pub step: Option<(usize, usize)>,
    /// Failed checks, and how many cause a rollback.
    pub failed: (i64, i64),
    /// Since it moved last.
    pub moved: Option<Duration>,
    /// What it says about itself.
    pub message: String,
}

/// Every canary whose namespace, name, phase or message contains `filter`, in the order of namespaces and names.
pub fn entries(world: &World, filter: &str, now: Timestamp) -> Vec<Entry> {
    let wanted = filter.to_lowercase();
    let matches = |entry: &Entry| {
        let texts = [entry.key.to_string(), entry.look.word.clone(), entry.message.clone()];
        wanted.is_empty() || texts.iter().any(|text| text.to_lowercase().contains(&wanted))
    };
    world.canaries().map(|(key, known)| entry(key, known, now)).filter(matches).collect()
}

fn entry(key: &Key, known: &Known, now: Timestamp) -> Entry {
    let facts = &known.facts;
    let steps = steps(facts);
    // The promotion after the steps is none of them.
    let all = steps.len().saturating_sub(1);
    let done = steps.iter().take(all).filter(|step| step.place != Place::Ahead).count();
    let rounds = facts.rounds.and_then(|of| {
        let done = facts.status.iterations.clamp(0, of);
        Some((usize::try_from(done).ok()?, usize::try_from(of).ok()?))
    });
    Entry {
        key: key.clone(),
        look: look_of(known),
        weight: known.split.map_or(facts.weight(), |(_, canary)| canary),
        step: rounds.or_else(|| (all > 0).then_some((done, all))),
        failed: (facts.status.failed_checks, facts.threshold),
        moved: facts.status.last_transition_time.map(|time| since(time, now)),
        message: facts.message(),
    }
}

/// What is shown besides the canaries.
#[derive(Default)]
pub struct Listing<'a> {
    /// Title of the screen.
    pub title: String,
    /// The chosen canary.
    pub selected: Option<&'a Key>,
    /// What the list is filtered by.
    pub filter: &'a str,
    /// Whether the filter is being typed.
    pub typing: bool,
    /// What cannot be seen.
    pub troubles: Vec<String>,
    /// Canaries there are, filtered or not.
    pub total: usize,
}

/// Draws the whole screen. The chosen line stays in sight.
pub fn draw(frame: &mut Frame<'_>, entries: &[Entry], listing: &Listing<'_>) {
    let room = usize::from(frame.area().width.saturating_sub(4));
    let (footer, summary) = (footer(listing, entries.len()), summary(entries));
    let mut outer = Block::bordered()
        .title(Span::from(fit(&format!(" {} ", listing.title), room)).bold())
        .title_bottom(Span::from(fit(&footer, room)).dim());
    if width(&footer) + summary.width() < room {
        outer = outer.title_bottom(summary.right_aligned());
    }
    let area = outer.inner(frame.area());
    frame.render_widget(outer, frame.area());
    let troubles: Vec<Line<'_>> = listing
        .troubles
        .iter()
        .map(|text| Line::from(fit(&format!("! {text}"), usize::from(area.width))).style(style(Tone::Bad)))
        .collect();
    let [above, table] = Layout::vertical([Constraint::Length(troubles.len() as u16), Constraint::Min(0)]).areas(area);
    frame.render_widget(Paragraph::new(troubles), above);
    if entries.is_empty() {
        let text = if listing.total == 0 { "there are no canaries" } else { "nothing matches the filter" };
        frame.render_widget(Paragraph::new(text).dim(), table);
        return;
    }
    let window = usize::from(table.height.saturating_sub(1));
    let chosen = entries.iter().position(|entry| Some(&entry.key) == listing.selected).unwrap_or(0);
    let first = (chosen + 1).saturating_sub(window.div_ceil(2) + window / 4).min(entries.len().saturating_sub(window));
    let columns = Columns::of(entries, table.width);
    let rows =
        entries.iter().enumerate().skip(first).take(window).map(|(index, entry)| columns.row(entry, index == chosen));
    frame.render_widget(Table::new(rows, columns.widths()).header(columns.header()), table);
}

fn footer(listing: &Listing<'_>, shown: usize) -> String {
    let count = if shown == listing.total { format!("{shown}") } else { format!("{shown} of {}", listing.total) };
    if listing.typing {
        return format!(" filter: {}▏ · {count} · Enter keeps it, Esc clears it ", listing.filter);
    }
    let filter = if listing.filter.is_empty() { "/ filter".to_owned() } else { format!("/ {}", listing.filter) };
    format!(" {count} · ↑↓ choose · Enter open · {filter} · q quit ")
}

/// How many are not at rest, for those who cannot see all of them.
fn summary(entries: &[Entry]) -> Line<'static> {
    let told = |(tone, what): (Tone, &str)| {
        let count = entries.iter().filter(|entry| entry.look.tone == tone).count();
        (count > 0).then(|| Span::styled(format!(" {count} {what} "), style(tone)))
    };
    Line::from([(Tone::Busy, "under way"), (Tone::Bad, "in trouble")].into_iter().filter_map(told).collect::<Vec<_>>())
}

/// Columns from which a message says something.
const LEAST_MESSAGE: u16 = 16;

/// Which columns there is room for.
struct Columns {
    names: u16,
    namespaces: u16,
    bar: u16,
    steps: bool,
    moved: bool,
    /// Columns for the message.
    message: usize,
}

impl Columns {
    fn of(entries: &[Entry], room: u16) -> Self {
        let widest = |of: fn(&Entry) -> usize, least: usize, most: usize| {
            entries.iter().map(of).max().unwrap_or(0).clamp(least, most) as u16
        };
        let share = usize::from(room / 4).max(9);
        let namespaces = if room < 50 { 0 } else { widest(|entry| width(&entry.key.namespace), 9, share) };
        let names = widest(|entry| width(&entry.key.name), 4, share.max(12));
        let bar = if room < 64 { 0 } else { 10 };
        // What is always there: mark, namespace, name, phase and share, with a space after each. Then, as far as there is
        // room: step and failed, moved, message.
        let space = u16::from(namespaces > 0);
        let mut rest = room.saturating_sub(2 + namespaces + space + names + 1 + 19 + bar + if bar > 0 { 5 } else { 4 });
        let mut take = |columns: u16| {
            let fits = rest >= columns;
            rest -= if fits { columns } else { 0 };
            fits
        };
        let (steps, moved) = (take(1 + 5 + 1 + 6), take(1 + 5));
        let message = if moved && rest >= LEAST_MESSAGE { usize::from(rest - 1) } else { 0 };
        Self { names, namespaces, bar, steps, moved, message }
    }

    fn widths(&self) -> Vec<Constraint> {
        let mut widths = vec![Constraint::Length(1)];
        if self.namespaces > 0 {
            widths.push(Constraint::Length(self.namespaces));
        }
        widths.extend([Constraint::Length(self.names), Constraint::Length(18)]);
        widths.push(Constraint::Length(self.bar + if self.bar > 0 { 5 } else { 4 }));
        if self.steps {
            widths.extend([Constraint::Length(5), Constraint::Length(6)]);
        }
        if self.moved {
            widths.push(Constraint::Length(5));
        }
        widths.push(Constraint::Fill(1));
        widths
    }

    fn header(&self) -> Row<'static> {
        let mut names = vec![""];
        if self.namespaces > 0 {
            names.push("namespace");
        }
        names.extend(["name", "phase", if self.bar > 0 { "canary's share" } else { "%" }]);
        if self.steps {
            names.extend(["step", "failed"]);
        }
        if self.moved {
            names.push("moved");
        }
        if self.message > 0 {
            names.push("message");
        }
        Row::new(names).style(style(Tone::Faint))
    }

    fn row(&self, entry: &Entry, chosen: bool) -> Row<'static> {
        let mut cells = vec![Cell::from(if chosen { "▸" } else { " " })];
        if self.namespaces > 0 {
            cells.push(Cell::from(fit(&entry.key.namespace, usize::from(self.namespaces))));
        }
        cells.push(Cell::from(fit(&entry.key.name, usize::from(self.names))));
        cells.push(Cell::from(look(&entry.look)));
        let mut share: Vec<Span<'static>> = bar(entry.weight, usize::from(self.bar)).into();
        share.push(Span::from(format!("{:>4}", format!("{}%", entry.weight))));
        cells.push(Cell::from(Line::from(share)));
        if self.steps {
            let step = entry.step.map(|(done, of)| format!("{done}/{of}")).unwrap_or_default();
            let (failed, threshold) = entry.failed;
            let tone = if failed > 0 { Tone::Bad } else { Tone::Faint };
            cells.push(Cell::from(step));
            cells.push(Cell::from(Span::styled(format!("{failed}/{threshold}"), style(tone))));
        }
        if self.moved {
            cells.push(Cell::from(entry.moved.map(age).unwrap_or_default()));
        }
        if self.message > 0 {
            cells.push(Cell::from(Span::from(fit(&entry.message, self.message)).dim()));
        }
        let row = Row::new(cells);
        if chosen { row.style(Style::new().add_modifier(Modifier::BOLD)) } else { row }
    }
}

#[cfg(test)]
#[path = "list/tests.rs"]
mod tests;
