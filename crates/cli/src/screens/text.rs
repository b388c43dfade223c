//! Text to measure: cut, wrapped, drawn as bars. Widths are columns of a terminal, not bytes and not characters. Pure.

use std::time::Duration;

use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

use crate::watch::view::{Look, Tone};

/// How a tone is shown.
pub fn style(tone: Tone) -> Style {
    match tone {
        Tone::Good => Style::new().fg(Color::Green),
        Tone::Busy => Style::new().fg(Color::Yellow),
        Tone::Bad => Style::new().fg(Color::Red),
        Tone::Faint => Style::new().add_modifier(Modifier::DIM),
        Tone::Plain => Style::new(),
    }
}

/// A sign and its word.
pub fn look(look: &Look) -> Span<'static> {
    let text = if look.word.is_empty() { look.glyph.to_owned() } else { format!("{} {}", look.glyph, look.word) };
    Span::styled(text, style(look.tone))
}

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// The text cut to `room` columns, with a mark where something is missing.
pub fn fit(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
    for grapheme in Span::raw(text).styled_graphemes(Style::new()) {
        let wide = width(grapheme.symbol);
        if used + wide + 1 > room {
            break;
        }
        used += wide;
        kept.push_str(grapheme.symbol);
    }
    if room > 0 {
        kept.truncate(kept.trim_end().len());
        kept.push('…');
    }
    kept
}

/// The text in at most `most` lines of `room` columns, broken between words; the last one is cut.
pub fn wrap(text: &str, room: usize, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() && lines.len() < most {
        if lines.len() + 1 == most || width(rest) <= room {
            lines.push(fit(rest, room));
            break;
        }
        let fitting =
            rest.char_indices().map(|(index, c)| index + c.len_utf8()).take_while(|end| width(&rest[..*end]) <= room);
        let end = fitting.last().unwrap_or(0);
        let whole = rest[end..].starts_with(' ');
        let end = if whole { end } else { rest[..end].rfind(' ').filter(|space| *space > 0).unwrap_or(end) };
        if end == 0 {
            break;
        }
        lines.push(rest[..end].trim_end().to_owned());
        rest = rest[end..].trim_start();
    }
    lines
}

/// How many of `room` cells a share of a hundred takes. Whoever has any traffic is visible, however little it is.
pub fn cells(share: u8, room: usize) -> usize {
    match share {
        0 => 0,
        100.. => room,
        _ => ((room * usize::from(share) + 50) / 100).clamp(1, room.saturating_sub(1).max(1)),
    }
}

/// A bar to scale: the primary first, the canary after it.
pub fn bar(canary: u8, room: usize) -> [Span<'static>; 2] {
    let share = cells(canary, room).min(room);
    [
        Span::styled("█".repeat(room - share), Style::new().fg(Color::Blue)),
        Span::styled("▒".repeat(share), Style::new().fg(Color::Yellow)),
    ]
}

/// The weight over time, a column for each `step` until `now`. Before anything is known there is nothing.
pub fn sparkline(weights: &[(Timestamp, u8)], now: Timestamp, step: Duration, columns: usize) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let Some((first, _)) = weights.first() else { return String::new() };
    let column = |back: usize| {
        let time = now.checked_sub(step.saturating_mul(u32::try_from(back).unwrap_or(u32::MAX))).ok()?;
        if time < *first {
            return None;
        }
        // Within one column the highest weight counts, or a short step could fall between two.
        let before = weights.partition_point(|(at, _)| *at <= time);
        let begin = time.checked_sub(step).unwrap_or(time);
        let recent = weights[..before].iter().rev().take_while(|(at, _)| *at > begin).map(|(_, weight)| *weight);
        let standing = weights[..before].iter().rev().find(|(at, _)| *at <= begin).map(|(_, weight)| *weight);
        let weight =
            if back == 0 { weights[..before].last().map(|(_, weight)| *weight) } else { recent.chain(standing).max() };
        let level = (usize::from(weight?) * (LEVELS.len() - 1)).div_ceil(100);
        LEVELS.get(level).copied()
    };
    (0..columns).rev().filter_map(column).collect()
}

/// Takes every colour out, for those who asked for none.
pub fn without_colours(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        cell.fg = Color::Reset;
        cell.bg = Color::Reset;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn text_is_cut_by_columns() {
        assert_eq!(fit("podinfo", 7), "podinfo");
        assert_eq!(fit("podinfo-primary", 7), "podinf…");
        assert_eq!(fit("日本語の名前", 7), "日本語…", "each of these is two columns wide");
        assert_eq!((fit("abc", 1), fit("abc", 0)), ("…".to_owned(), String::new()));
        for room in 0..20 {
            assert!(width(&fit("e\u{301}日本👩‍👩‍👧x", room)) <= room, "{room}");
        }
    }

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(wrap("one two three", 7, 5), ["one two", "three"]);
        assert_eq!(wrap("one two three four", 7, 2), ["one two", "three…"]);
        assert_eq!(wrap("unbreakable", 4, 5), ["unbr", "eaka", "ble"]);
        assert!(wrap("", 10, 2).is_empty() && wrap("日", 1, 3).is_empty() && wrap("a b", 0, 2).is_empty());
    }

    #[test]
    fn a_bar_is_to_scale_and_shows_the_least() {
        assert_eq!([0, 1, 50, 99, 100].map(|share| cells(share, 20)), [0, 1, 10, 19, 20]);
        for room in 0..3 {
            for share in 0..=100 {
                let parts = bar(share, room);
                assert_eq!(parts.iter().map(Span::width).sum::<usize>(), room);
            }
        }
    }

    #[test]
    fn the_weights_of_the_past_are_a_line() {
        let weights = [(at(0), 0), (at(60), 10), (at(120), 50), (at(180), 100), (at(240), 0)];
        let step = Duration::from_secs(30);
        assert_eq!(sparkline(&weights, at(270), step, 20), "▁▁▂▂▅▅███▁");
        assert_eq!(sparkline(&weights, at(270), step, 3), "██▁");
        assert_eq!(sparkline(&[], at(270), step, 3), "");
        assert_eq!(sparkline(&weights, at(-5), step, 3), "");
    }
}
