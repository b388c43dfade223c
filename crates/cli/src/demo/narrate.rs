//! Tells what is seen: on a live screen, as plain lines, or as JSON.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::model::{Change, Chapter, Model, Sight, clock};
use super::story::{BAD, FIRST, GOOD};
use super::summary::Summary;
use crate::output::{self, Paint};
use crate::screens;

/// How it is told.
pub enum Voice {
    /// A screen that is redrawn.
    Screen(Box<Screen>),
    /// A line for each change.
    Plain(Paint),
    /// A JSON object for each change.
    Json,
}

/// The terminal, given back when dropped.
pub struct Screen {
    terminal: DefaultTerminal,
    over: Arc<AtomicBool>,
}

/// Keeps the model and tells what changes in it.
pub struct Narrator {
    /// What has been seen.
    pub model: Model,
    voice: Voice,
    heard: bool,
}

impl Screen {
    /// Takes the terminal. Keys that mean "stop" cancel `stop`; a second one leaves at once, as a second signal does.
    pub fn open(stop: CancellationToken) -> anyhow::Result<Self> {
        let terminal = ratatui::try_init().context("cannot draw on this terminal; use --plain")?;
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                // Without a terminal to read from there are no keys, and signals still work.
                let Ok(ready) = event::poll(Duration::from_millis(100)) else { return };
                if ready && event::read().is_ok_and(|event| means_stop(&event)) {
                    if stop.is_cancelled() {
                        ratatui::restore();
                        std::process::exit(1);
                    }
                    stop.cancel();
                }
            }
        });
        Ok(Self { terminal, over })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        ratatui::restore();
    }
}

/// In raw mode Ctrl-C is a key like any other.
fn means_stop(event: &Event) -> bool {
    matches!(event, Event::Key(key) if matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
        || (key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)))
}

impl Narrator {
    /// A narrator who has not seen anything yet.
    pub fn new(began: Timestamp, speed: u32, voice: Voice) -> Self {
        Self { model: Model::new(began, speed, FIRST), voice, heard: true }
    }

    /// Takes in a sight and tells what is new about it.
    pub fn see(&mut self, now: Timestamp, sight: Sight) {
        for change in self.model.see(now, sight) {
            self.heard &= match &self.voice {
                Voice::Screen(_) => true,
                Voice::Plain(paint) => output::line(&line(&self.model, &change, *paint)),
                Voice::Json => output::line(&record(&self.model, &change).to_string()),
            };
        }
    }

    /// Whether somebody still reads. False once a line could not be written (`seaway demo | head`).
    pub fn is_heard(&self) -> bool {
        self.heard
    }

    /// Shows the time that has passed.
    pub fn redraw(&mut self, now: Timestamp) -> anyhow::Result<()> {
        self.model.now = self.model.now.max(now);
        if let Voice::Screen(screen) = &mut self.voice {
            let model = &self.model;
            screen.terminal.draw(|frame| screens::demo::draw(model, frame)).context("cannot draw the screen")?;
        }
        Ok(())
    }

    /// Gives the terminal back and tells how it ended.
    pub fn conclude(self, summary: &Summary) {
        match self.voice {
            Voice::Json => output::line(&json!({ "summary": summary }).to_string()),
            Voice::Plain(paint) => output::line(&format!("\n{}", summary.text(paint))),
            Voice::Screen(screen) => {
                drop(screen);
                output::line(&summary.text(Paint::on(&std::io::stdout())))
            }
        };
    }
}

/// A change as one line of text.
fn line(model: &Model, change: &Change, paint: Paint) -> String {
    let at = paint.faint(&format!("{:>6}", clock(model.elapsed())));
    let text = match change {
        Change::Chapter { chapter, version } => paint.bold(&match chapter {
            Chapter::Launch => format!("— podinfo {version} is launched"),
            Chapter::Promotion => format!("— release {version}: a good version"),
            Chapter::Rollback => format!("— release {version}: a quarter of its answers are errors"),
            Chapter::End => "— the end".to_owned(),
        }),
        Change::Phase { phase } => format!("phase    {}", paint.bold(phase.as_str())),
        Change::Split { primary, canary } => format!("split    primary {primary} / canary {canary}"),
        Change::Check(check) => {
            let value = screens::demo::figure(check.value);
            let verdict = match check.verdict.as_str() {
                "pass" => paint.good("pass"),
                other => paint.bad(other),
            };
            format!("check    {} {value} ({}) {verdict}", check.name, screens::demo::bounds(check))
        }
        Change::Event(event) => {
            format!("event    {}", if event.warning { paint.warn(&event.text) } else { event.text.clone() })
        }
    };
    format!("{at}  {text}")
}

/// A change as JSON, with the time it was seen.
fn record(model: &Model, change: &Change) -> serde_json::Value {
    let mut record = json!({ "time": model.now, "elapsedSeconds": model.elapsed().as_secs() });
    if let (Some(record), Ok(serde_json::Value::Object(members))) =
        (record.as_object_mut(), serde_json::to_value(change))
    {
        record.extend(members);
    }
    record
}

/// What will happen, for those who read lines.
pub fn prologue(speed: u32) -> String {
    format!(
        "A cluster in this process, {speed} times as fast as yours. podinfo {FIRST} runs behind a gateway;\n\
         first {GOOD} is released, which is good, then {BAD}, which is not.\n"
    )
}

#[cfg(test)]
mod tests {
    use seaway_api::Phase;

    use super::*;
    use crate::demo::model::{Check, EventLine};

    fn all() -> Vec<Change> {
        let check = Check {
            name: "error-rate".to_owned(),
            value: Some(24.7),
            min: None,
            max: Some(1.0),
            verdict: "fail".to_owned(),
        };
        let event =
            EventLine { name: "x".to_owned(), warning: true, text: "Rolling back podinfo.test".to_owned(), count: 2 };
        vec![
            Change::Chapter { chapter: Chapter::Rollback, version: BAD.to_owned() },
            Change::Phase { phase: Phase::Progressing },
            Change::Split { primary: 90, canary: 10 },
            Change::Check(check),
            Change::Event(event),
        ]
    }

    fn model() -> Model {
        let mut model = Model::new(Timestamp::UNIX_EPOCH, 20, FIRST);
        model.now = Timestamp::from_second(191).unwrap();
        model
    }

    #[test]
    fn plain_lines_can_be_read_aloud() {
        let lines: Vec<String> = all().iter().map(|change| line(&model(), change, Paint::plain())).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn json_records_can_be_filtered() {
        let lines: Vec<String> = all().iter().map(|change| record(&model(), change).to_string()).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
