//! A story: commands, and what they print.
//!
//! ```text
//! # What it shows.
//! namespace: kubectl-apply
//!
//! $ kubectl get configmaps --no-headers
//! harbour   1   [AGE]
//!
//! @pods
//! $~ kubectl get pods
//! No resources found in kubectl-apply namespace.
//!
//! $ kubectl apply -f - <<EOF
//! > apiVersion: v1
//! > EOF
//! error: [..]
//! ? 1
//! ```
//!
//! `$` runs a shell command, `$~` one that may be run again until it prints what it should, `>` continues it. What
//! follows is what it prints, standard error included; `? n` is its exit code when that is not 0. `@word` leaves the next
//! step out where the server does not have that. Columns are compared by their words, not by their width, since widths
//! follow from what is masked. `[..]` stands for any text in a line, [`MASKS`] for text of a known form, a line of three
//! dots for any lines.

use std::path::Path;
use std::time::{Duration, Instant};

use regex::Regex;

use super::ground::{Printed, Scene};

/// How long a `$~` step may take to come true.
const SOON: Duration = Duration::from_secs(30);

/// What changes from run to run, and what it looks like.
const MASKS: &[(&str, &str)] = &[
    ("[..]", ".*?"),
    ("[AGE]", r"(?:\d+[smhdy])+|<invalid>"),
    ("[DATE]", r"[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} [+-]\d{4}"),
    ("[HASH]", "[a-z0-9]{8,10}"),
    ("[IP]", r"\d+\.\d+\.\d+\.\d+"),
    ("[N]", r"\d+"),
    ("[SUFFIX]", "[a-z0-9]{5}"),
    ("[TIME]", r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z"),
    ("[UID]", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
];

/// A file of steps.
pub struct Story {
    pub name: String,
    pub namespace: Option<String>,
    pub steps: Vec<Step>,
}

/// A command and what it should print.
#[derive(Default)]
pub struct Step {
    /// Where it is in its file.
    pub line: usize,
    command: String,
    /// What the server must have.
    needs: Option<String>,
    patient: bool,
    expected: String,
    code: i32,
}

/// What became of a step.
pub enum Outcome {
    Passed,
    /// For what the server does not have.
    LeftOut(String),
    Failed(String),
}

impl Story {
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Self::parse(name, &text)
    }

    fn parse(name: String, text: &str) -> Self {
        let mut story = Self { name, namespace: None, steps: Vec::new() };
        let mut needs = None;
        for (at, line) in text.lines().enumerate() {
            if let Some(word) = line.strip_prefix('@').filter(|word| word.chars().all(char::is_alphanumeric)) {
                needs = Some(word.to_owned());
            } else if let Some((patient, command)) =
                line.strip_prefix("$ ").map(|it| (false, it)).or_else(|| line.strip_prefix("$~ ").map(|it| (true, it)))
            {
                let command = command.to_owned();
                story.steps.push(Step { line: at + 1, command, needs: needs.take(), patient, ..Step::default() });
            } else if line.starts_with('#') {
            } else if let Some(step) = story.steps.last_mut() {
                if let (Some(more), true) = (line.strip_prefix("> "), step.expected.is_empty()) {
                    step.command.push('\n');
                    step.command.push_str(more);
                } else if let Some(code) = line.strip_prefix("? ") {
                    step.code = code.trim().parse().unwrap();
                } else {
                    step.expected.push_str(line);
                    step.expected.push('\n');
                }
            } else if let Some(namespace) = line.strip_prefix("namespace:") {
                story.namespace = Some(namespace.trim().to_owned());
            }
        }
        story
    }
}

impl Step {
    /// Runs it, if the server has what it needs.
    pub fn run(&self, scene: &Scene<'_>) -> Outcome {
        if let Some(word) = self.needs.as_ref().filter(|word| !scene.has(word)) {
            return Outcome::LeftOut(word.clone());
        }
        let soon = Instant::now() + if self.patient { SOON } else { Duration::ZERO };
        loop {
            let printed = scene.run(&self.command);
            match self.compare(&printed) {
                None => return Outcome::Passed,
                Some(difference) if Instant::now() >= soon => return Outcome::Failed(difference),
                Some(_) => std::thread::sleep(Duration::from_millis(200)),
            }
        }
    }

    /// What is different, as a diff; `None` when nothing is.
    fn compare(&self, printed: &Printed) -> Option<String> {
        let expected: Vec<_> = self.expected.trim_end().lines().collect();
        let found: Vec<_> = printed.text.trim_end().lines().collect();
        if printed.code == self.code && matches(&expected, &found) {
            return None;
        }
        // Lines that fit are shown as they are expected, so that only the others differ.
        let shown = |line: &&str| expected.iter().find(|wanted| fits(wanted, line)).copied().unwrap_or(line).to_owned();
        let mut lines: Vec<_> = found.iter().map(shown).collect();
        let mut wanted: Vec<_> = expected.iter().map(|line| (*line).to_owned()).collect();
        wanted.push(format!("? {}", self.code));
        lines.push(format!("? {}", printed.code));
        Some(format!("$ {}\n{}", self.command, difference(&wanted, &lines)))
    }
}

/// The two texts as one, with signs before the lines that only one of them has.
fn difference(one: &[String], other: &[String]) -> String {
    // The longest common part of what follows each pair of places.
    let mut common = vec![vec![0; other.len() + 1]; one.len() + 1];
    for (at, line) in one.iter().enumerate().rev() {
        for (place, found) in other.iter().enumerate().rev() {
            common[at][place] = if line == found {
                common[at + 1][place + 1] + 1
            } else {
                common[at + 1][place].max(common[at][place + 1])
            };
        }
    }
    let (mut at, mut place, mut text) = (0, 0, String::new());
    while at < one.len() || place < other.len() {
        let same = at < one.len() && place < other.len() && one[at] == other[place];
        let gone = at < one.len() && (place == other.len() || common[at + 1][place] >= common[at][place + 1]);
        let (sign, line) = match (same, gone) {
            (true, _) => (' ', &one[at]),
            (false, true) => ('-', &one[at]),
            (false, false) => ('+', &other[place]),
        };
        text.push(sign);
        text.push_str(line);
        text.push('\n');
        at += usize::from(same || gone);
        place += usize::from(same || !gone);
    }
    text
}

/// Whether all lines fit; three dots stand for any number of them.
fn matches(expected: &[&str], found: &[&str]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((&"...", rest)) => {
            (0..=found.len()).any(|skipped| matches(rest, found.get(skipped..).unwrap_or_default()))
        }
        Some((first, rest)) => {
            found.split_first().is_some_and(|(line, others)| fits(first, line) && matches(rest, others))
        }
    }
}

/// Whether a line is what was expected, masks aside.
fn fits(expected: &str, line: &str) -> bool {
    let mut pattern = regex::escape(&squeeze(expected));
    for (mask, form) in MASKS {
        pattern = pattern.replace(&regex::escape(mask), &format!("(?:{form})"));
    }
    Regex::new(&format!("^{pattern}$")).unwrap().is_match(&squeeze(line))
}

/// The line with every gap between columns of the same width. Indentation stays.
fn squeeze(line: &str) -> String {
    let text = line.trim_start();
    if text.is_empty() {
        return String::new();
    }
    let indentation = line.get(..line.len() - text.len()).unwrap_or_default();
    let mut words = String::new();
    for word in text.trim_end().replace('\t', "  ").split("  ").map(str::trim).filter(|word| !word.is_empty()) {
        if !words.is_empty() {
            words.push_str("  ");
        }
        words.push_str(word);
    }
    format!("{indentation}{words}")
}

#[test]
fn stories_are_read_and_compared() {
    let story = Story::parse(
        "a".into(),
        "# About.\nnamespace: here\n\n$ one\n> two\nNAME   AGE\na      [AGE]\n...\n? 1\n\n@pods\n$~ three\n",
    );
    assert_eq!(story.namespace.as_deref(), Some("here"));
    let [first, second] = story.steps.as_slice() else { panic!("two steps") };
    assert_eq!((first.command.as_str(), first.code, first.patient, first.line), ("one\ntwo", 1, false, 4));
    assert_eq!((second.needs.as_deref(), second.patient), (Some("pods"), true));
    let printed = |text: &str| Printed { text: text.into(), code: 1 };
    assert!(first.compare(&printed("NAME AGE\n")).is_some());
    assert!(first.compare(&printed("NAME    AGE\na  5m3s\nmore\n")).is_none());
    let difference = first.compare(&printed("NAME    AGE\nb  5m3s\n")).unwrap();
    assert!(difference.contains("-a      [AGE]") && difference.contains("+b  5m3s"), "{difference}");
}
