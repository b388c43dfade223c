//! Tells what is seen: on a live screen, as plain lines, or as JSON.

use jiff::Timestamp;
use ratatui::crossterm::event::KeyCode;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::model::{Change, Chapter, Model, Sight};
use super::story::{BAD, FIRST, GOOD};
use super::summary::Summary;
use crate::output::{self, Paint};
use crate::screens;
use crate::screens::terminal::{Screen, is_interrupt};
use crate::watch::tell;
use crate::watch::view::clock;

/// How it is told.
pub enum Voice {
    /// A screen that is redrawn.
    Screen(Box<Screen>),
    /// A line for each change.
    Plain(Paint),
    /// A JSON object for each change.
    Json,
}

/// Keeps the model and tells what changes in it.
pub struct Narrator {
    /// What has been seen.
    pub model: Model,
    voice: Voice,
    heard: bool,
}

impl Voice {
    /// A screen. Keys that mean "stop" cancel `stop`; a second one leaves at once, as a second signal does.
    pub fn screen(stop: CancellationToken) -> anyhow::Result<Self> {
        let screen = Screen::open(move |key| {
            if !matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) && !is_interrupt(&key) {
                return;
            }
            if stop.is_cancelled() {
                ratatui::restore();
                std::process::exit(1);
            }
            stop.cancel();
        })?;
        Ok(Self::Screen(Box::new(screen)))
    }
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
            screen.draw(|frame| screens::demo::draw(model, frame))?;
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
        Change::Canary(change) => tell::words(change, paint),
    };
    format!("{at}  {text}")
}

/// A change as JSON, with the time it was seen.
fn record(model: &Model, change: &Change) -> serde_json::Value {
    let when = json!({ "time": model.now, "elapsedSeconds": model.elapsed().as_secs() });
    match change {
        Change::Chapter { chapter, version } => {
            tell::record(when, &json!({ "change": "chapter", "chapter": chapter, "version": version }))
        }
        Change::Canary(change) => tell::record(when, change),
    }
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
    use crate::watch::checks::Check;
    use crate::watch::objects::EventLine;
    use crate::watch::world;

    fn all() -> Vec<Change> {
        let check = Check {
            name: "error-rate".to_owned(),
            value: Some(24.7),
            max: Some(1.0),
            verdict: "fail".to_owned(),
            ..Check::default()
        };
        let event = EventLine {
            name: "x".to_owned(),
            about: Model::key(),
            at: None,
            warning: true,
            text: "Rolling back podinfo.test".to_owned(),
            count: 2,
            writes: 2,
        };
        let changes = [
            world::Change::Phase { phase: Phase::Progressing },
            world::Change::Split { primary: 90, canary: 10 },
            world::Change::Check(check),
            world::Change::Event(event),
        ];
        let chapter = Change::Chapter { chapter: Chapter::Rollback, version: BAD.to_owned() };
        std::iter::once(chapter).chain(changes.map(Change::Canary)).collect()
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
