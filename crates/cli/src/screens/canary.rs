//! The screen of one canary: where it is, who gets the traffic, what the checks say, what it consists of, what happened
//! last. `seaway watch` shows it alone, `seaway demo` with its story around it.
//!
//! Pure: a view in, cells out, on any size. What does not fit is left out, the least important first.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table};

use super::text::{bar, fit, look, sparkline, style, width, wrap};
use crate::watch::checks::Check;
use crate::watch::tree::Node;
use crate::watch::view::{Place, Said, Tone, View, age, clock, pause};

/// Columns from which two panels stand side by side.
const WIDE: u16 = 96;
/// Columns of what stands on the right.
const SIDE: u16 = 40;
/// Lines from which there is room for what is good to know.
const TALL: u16 = 20;
/// Columns of the labels on the left.
const LABEL: usize = 9;

/// What surrounds the canary.
#[derive(Default)]
pub struct Surroundings<'a> {
    /// Title of the whole screen.
    pub title: String,
    /// What keys do.
    pub footer: &'a str,
    /// A line above everything.
    pub story: Option<Line<'static>>,
    /// One more panel beside the checks.
    pub requests: Option<Panel>,
    /// Lines of the tree that are above its window.
    pub scroll: usize,
}

/// A small table.
pub struct Panel {
    /// What it shows; without one, the names of the columns have to do.
    pub title: Line<'static>,
    /// Names of the columns.
    pub header: Vec<&'static str>,
    /// Rows of cells.
    pub rows: Vec<Vec<Span<'static>>>,
    /// Widths of the columns.
    pub widths: Vec<Constraint>,
}

/// Draws the whole screen.
pub fn draw(frame: &mut Frame<'_>, view: &View, around: Surroundings<'_>) {
    let outer = Block::bordered()
        .title(
            Span::from(fit(&format!(" {} ", around.title), usize::from(frame.area().width.saturating_sub(4)))).bold(),
        )
        .title_bottom(
            Span::from(fit(&format!(" {} ", around.footer), usize::from(frame.area().width.saturating_sub(4)))).dim(),
        );
    let area = outer.inner(frame.area());
    frame.render_widget(outer, frame.area());
    let mut notes: Vec<Line<'static>> = around.story.into_iter().collect();
    let room = usize::from(area.width);
    notes.extend(view.troubles.iter().map(|text| Line::from(fit(&format!("! {text}"), room)).style(style(Tone::Bad))));
    let [above, area] = Layout::vertical([Constraint::Length(notes.len() as u16), Constraint::Min(0)]).areas(area);
    frame.render_widget(Paragraph::new(notes), above);
    let checks = checks(&view.checks);
    if area.width >= WIDE {
        wide(frame, area, view, checks, around.requests, around.scroll);
    } else {
        narrow(frame, area, view, checks, around.requests, around.scroll);
    }
}

/// Checks beside the head, the tree in the middle, Events at the bottom with the requests beside them, if any.
fn wide(frame: &mut Frame<'_>, area: Rect, view: &View, checks: Panel, requests: Option<Panel>, scroll: usize) {
    let beside = |area| -> [Rect; 3] {
        Layout::horizontal([Constraint::Min(0), Constraint::Length(1), Constraint::Length(SIDE)]).areas(area)
    };
    let [left, ..] = beside(area);
    let head = head(view, left);
    let top = height(head.len(), 0).max(checks.height());
    let side = requests.as_ref().map_or(0, Panel::height);
    let bottom =
        height(view.events.len().clamp(1, 8), 1).max(side).min((area.height.saturating_sub(top) / 3).max(side));
    let tree = tree_height(view, area.height.saturating_sub(top + bottom));
    let [top, tree, bottom] =
        Layout::vertical([Constraint::Length(top), Constraint::Length(tree), Constraint::Min(0)]).areas(area);
    let [left, _, right] = beside(top);
    frame.render_widget(Paragraph::new(head), left);
    checks.draw(frame, right);
    draw_tree(frame, tree, &view.tree, scroll);
    match requests.filter(|_| side > 0) {
        Some(requests) => {
            let [left, _, right] = beside(bottom);
            draw_events(frame, left, &view.events);
            requests.draw(frame, right);
        }
        None => draw_events(frame, bottom, &view.events),
    }
}

/// Everything below each other. Events keep a third of the room, and the tree gets what the tables leave, if that is
/// enough for anything.
fn narrow(frame: &mut Frame<'_>, area: Rect, view: &View, checks: Panel, requests: Option<Panel>, scroll: usize) {
    let head = head(view, area);
    let [top, area] = Layout::vertical([Constraint::Length(height(head.len(), 0)), Constraint::Min(0)]).areas(area);
    frame.render_widget(Paragraph::new(head), top);
    let events = height(view.events.len().clamp(1, 8), 1).min((area.height / 3).max(3));
    let mut room = area.height.saturating_sub(events);
    // A heading alone says nothing.
    let checked = checks.height().min(room / 2);
    let checked = if checked > checks.heading() { checked } else { 0 };
    room -= checked;
    // What users meet comes before what it all consists of, but not by halves.
    let requested = requests.as_ref().map_or(0, Panel::height);
    let requested = if requested <= room { requested } else { 0 };
    room -= requested;
    let tree = tree_height(view, room);
    let [first, second, third, last] = Layout::vertical([
        Constraint::Length(checked),
        Constraint::Length(requested),
        Constraint::Length(tree),
        Constraint::Min(0),
    ])
    .areas(area);
    checks.draw(frame, first);
    if let Some(requests) = requests.filter(|_| requested > 0) {
        requests.draw(frame, second);
    }
    draw_tree(frame, third, &view.tree, scroll);
    draw_events(frame, last, &view.events);
}

/// The lines of the tree in this room; none if not even one node fits under its heading.
fn tree_height(view: &View, room: u16) -> u16 {
    let wanted = height(view.tree.len(), 2).min(room);
    if wanted > 2 { wanted } else { 0 }
}

fn height(rows: usize, heading: u16) -> u16 {
    u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(heading)
}

/// The lines at the top. On a low screen only those without which the rest says nothing.
fn head(view: &View, area: Rect) -> Vec<Line<'static>> {
    let room = usize::from(area.width);
    let (low, tall) = (area.height < 12, area.height >= TALL);
    let mut lines = vec![phase(view)];
    let urgent = view.look.tone == Tone::Bad;
    if !low || urgent {
        let message = wrap(&view.message, room, if urgent { 4 } else { 1 });
        let looks = style(if urgent { Tone::Plain } else { Tone::Faint });
        lines.extend(message.into_iter().map(|text| Line::from(text).style(looks)));
    }
    // Nothing more is known of a canary that was never seen.
    if view.tree.is_empty() {
        return lines;
    }
    if tall && !view.target.is_empty() {
        lines.push(labelled("target", fit(&target(view), room.saturating_sub(LABEL))));
    }
    if let (Some(old), Some(new)) = &view.images
        && !low
    {
        let text = if old == new { old.clone() } else { format!("{old} → {new}") };
        lines.push(labelled("image", fit(&text, room.saturating_sub(LABEL))));
    }
    lines.extend(steps(view, room));
    lines.push(split(view, room));
    if tall {
        lines.extend(history(view, room));
    }
    lines
}

fn label(name: &str) -> Span<'static> {
    Span::from(format!("{name:<LABEL$}")).dim()
}

fn labelled(name: &str, text: String) -> Line<'static> {
    Line::from(vec![label(name), Span::from(text)])
}

fn phase(view: &View) -> Line<'static> {
    let mut spans = vec![look(&view.look).bold()];
    if let Some(left) = view.next_check {
        let text = if left.is_zero() { "checking now".to_owned() } else { format!("next check in {}", clock(left)) };
        spans.push(Span::from(format!("   {text}")));
    }
    let (failed, threshold) = view.failed;
    if failed > 0 {
        spans.push(Span::styled(format!("   failed checks {failed} of {threshold}"), style(Tone::Bad)));
    }
    if let Some(moved) = view.moved.filter(|_| view.next_check.is_none()) {
        spans.push(Span::from(format!("   moved {} ago", age(moved))).dim());
    }
    Line::from(spans)
}

fn target(view: &View) -> String {
    let checks = if view.unjudged {
        "promoted without analysis".to_owned()
    } else {
        format!("checks every {}", pause(view.interval))
    };
    let parts = [view.target.clone(), checks, view.provider.clone()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// `● 10 ─ ◉ 20 ─ ○ 30 ─ ○ promote`. Where there are more steps than room, those around the present one.
fn steps(view: &View, room: usize) -> Option<Line<'static>> {
    let room = room.saturating_sub(LABEL);
    if let Some((done, of)) = view.rounds {
        let filled = usize::try_from(done * 20 / of.max(1)).unwrap_or(0).min(20);
        let text = format!("{}{} round {done} of {of}", "●".repeat(filled), "○".repeat(20 - filled));
        return Some(labelled("rounds", fit(&text, room)));
    }
    let here = view.steps.iter().position(|step| matches!(step.place, Place::Here | Place::Broken));
    let here = here.or_else(|| view.steps.iter().rposition(|step| step.place == Place::Done)).unwrap_or(0);
    let size = |step: &crate::watch::view::Step| width(&step.name) + 3;
    let mut first = here;
    let mut after = here + 1;
    let mut used = view.steps.get(here).map(size)?;
    // Grows to both sides as long as there is room, with a mark where something is left out.
    loop {
        let right = view.steps.get(after).map(size).filter(|wide| used + wide + 6 <= room);
        let left = first.checked_sub(1).and_then(|index| view.steps.get(index)).map(size);
        let left = left.filter(|wide| used + right.unwrap_or(0) + wide + 6 <= room);
        used += right.unwrap_or(0) + left.unwrap_or(0);
        after += usize::from(right.is_some());
        first -= usize::from(left.is_some());
        if right.is_none() && left.is_none() {
            break;
        }
    }
    let mut spans = vec![label("steps")];
    if first > 0 {
        spans.push(Span::from("… ").dim());
    }
    for step in view.steps.get(first..after).unwrap_or_default() {
        let (glyph, tone) = match step.place {
            Place::Done => ("●", Tone::Good),
            Place::Here => ("◉", Tone::Busy),
            Place::Broken => ("✖", Tone::Bad),
            Place::Ahead => ("○", Tone::Faint),
        };
        let mut looks = style(tone);
        if matches!(step.place, Place::Here | Place::Broken) {
            looks = looks.add_modifier(Modifier::BOLD);
        }
        spans.push(Span::styled(format!("{glyph} {}  ", step.name), looks));
    }
    if after < view.steps.len() {
        spans.push(Span::from("…").dim());
    }
    Some(Line::from(spans))
}

/// A bar as wide as the screen allows: primary first, canary after it.
fn split(view: &View, room: usize) -> Line<'static> {
    let (primary, canary) = view.split;
    let wanted = if view.routed { "" } else { " (by the status)" };
    let text = format!("  primary {primary} / canary {canary}{wanted}");
    let cells = room.saturating_sub(LABEL + width(&text)).clamp(5, 60);
    let mut spans = vec![label("split")];
    spans.extend(bar(canary, cells));
    spans.push(Span::from(text));
    Line::from(spans)
}

/// The canary's share over time, three columns for each interval.
fn history(view: &View, room: usize) -> Option<Line<'static>> {
    let columns = room.saturating_sub(LABEL + 8).min(60);
    let line = sparkline(&view.weights, view.now, (view.interval / 3).max(std::time::Duration::from_secs(1)), columns);
    let peak = view.weights.iter().map(|(_, weight)| *weight).max()?;
    (peak > 0).then(|| Line::from(vec![label("history"), Span::styled(line, style(Tone::Busy))]))
}

impl Panel {
    fn heading(&self) -> u16 {
        if self.title.width() > 0 { 2 } else { 1 }
    }

    fn height(&self) -> u16 {
        if self.rows.is_empty() { 0 } else { height(self.rows.len(), self.heading()) }
    }

    fn draw(self, frame: &mut Frame<'_>, area: Rect) {
        if self.rows.is_empty() || area.height <= self.heading() {
            return;
        }
        let block =
            if self.heading() > 1 { Block::new().borders(Borders::TOP).title(self.title) } else { Block::new() };
        let rows = self.rows.into_iter().map(|cells| Row::new(cells.into_iter().map(Cell::from)));
        let table = Table::new(rows, self.widths).header(Row::new(self.header).style(style(Tone::Faint))).block(block);
        frame.render_widget(table, area);
    }
}

fn checks(checks: &[Check]) -> Panel {
    let rows = checks.iter().map(|check| {
        let (glyph, tone) = match check.verdict.as_str() {
            "" => ("○", Tone::Faint),
            "pass" => ("✔", Tone::Good),
            "fail" => ("✖", Tone::Bad),
            _ => ("?", Tone::Bad),
        };
        let value = match (check.verdict.as_str(), check.hook) {
            ("", _) => String::new(),
            ("pass", Some(_)) => "passed".to_owned(),
            _ => check.figure(),
        };
        vec![
            Span::styled(glyph, style(tone)),
            Span::from(fit(&check.name, 20)),
            Span::styled(value, style(if tone == Tone::Bad { Tone::Bad } else { Tone::Plain })),
            Span::from(check.bounds()).dim(),
        ]
    });
    Panel {
        title: Line::default(),
        header: vec!["", "check", "value", "bound"],
        rows: rows.collect(),
        widths: vec![Constraint::Length(1), Constraint::Length(20), Constraint::Fill(1), Constraint::Length(8)],
    }
}

fn draw_tree(frame: &mut Frame<'_>, area: Rect, nodes: &[Node], scroll: usize) {
    if nodes.is_empty() || area.height < 3 {
        return;
    }
    let window = usize::from(area.height - 2);
    let first = scroll.min(nodes.len().saturating_sub(window));
    let shown = nodes.iter().skip(first).take(window);
    let below = nodes.len().saturating_sub(first + window);
    let title = match (first, below) {
        (0, 0) => " objects ".to_owned(),
        (0, below) => format!(" objects, {below} more below "),
        (above, 0) => format!(" objects, {above} more above "),
        (above, below) => format!(" objects, {above} more above, {below} below "),
    };
    let room = usize::from(area.width);
    let widest = |of: &dyn Fn(&Node) -> usize| nodes.iter().map(of).max().unwrap_or(0);
    let states = widest(&|node| look(&node.look).width()).min(20);
    let (kinds, ages, infos) = (if room < 70 { 6 } else { 10 }, if room < 40 { 0 } else { 5 }, room / 4);
    // Whole names where there is room, because people copy them; else what a name adds to the one above.
    let full = widest(&|node| width(&node.branch) + width(&node.name));
    let brief = full + kinds + states + ages + infos + 4 > room;
    let name = |node: &Node| if brief { node.short.clone() } else { node.name.clone() };
    let names = widest(&|node| width(&node.branch) + width(&name(node)));
    let names = names.min(room.saturating_sub(kinds + states + ages + 3).max(8));
    let rest = room.saturating_sub(names + kinds + states + ages + 4);
    let rows = shown.map(|node| {
        let name = fit(&name(node), names.saturating_sub(width(&node.branch)));
        Row::new(vec![
            Cell::from(Line::from(vec![Span::from(node.branch.clone()).dim(), Span::from(name)])),
            Cell::from(Span::from(if kinds < 10 { short_kind(node.kind) } else { node.kind }).dim()),
            Cell::from(Span::styled(fit(look(&node.look).content.as_ref(), states), style(node.look.tone))),
            Cell::from(Span::from(node.age.map(age).unwrap_or_default()).dim()),
            Cell::from(fit(&node.info, rest)),
        ])
    });
    let widths =
        [names, kinds, states, ages].map(|columns| Constraint::Length(u16::try_from(columns).unwrap_or(u16::MAX)));
    let widths = widths.into_iter().chain([Constraint::Fill(1)]);
    let header = ["name", "kind", "status", "age", ""];
    let block = Block::new().borders(Borders::TOP).title(title);
    let table = Table::new(rows, widths).header(Row::new(header).style(style(Tone::Faint))).block(block);
    frame.render_widget(table, area);
}

/// Kinds as kubectl shortens them.
fn short_kind(kind: &'static str) -> &'static str {
    match kind {
        "Deployment" => "deploy",
        "DaemonSet" => "ds",
        "ReplicaSet" => "rs",
        "Pod" => "pod",
        "Service" => "svc",
        "HTTPRoute" => "route",
        "Canary" => "canary",
        other => other,
    }
}

fn draw_events(frame: &mut Frame<'_>, area: Rect, events: &[Said]) {
    let room = usize::from(area.height.saturating_sub(1));
    if area.height < 2 {
        return;
    }
    let columns = usize::from(area.width).saturating_sub(8);
    let lines = events.iter().skip(events.len().saturating_sub(room)).map(|said| {
        let mark = if said.warning { "!" } else { " " };
        let text = Span::styled(fit(&said.text, columns), style(if said.warning { Tone::Busy } else { Tone::Plain }));
        Line::from(vec![Span::from(format!("{:>6}{mark} ", said.age.map(age).unwrap_or_default())).dim(), text])
    });
    let block = Block::new().borders(Borders::TOP).title(" events ");
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}

#[cfg(test)]
#[path = "canary/tests.rs"]
mod tests;
