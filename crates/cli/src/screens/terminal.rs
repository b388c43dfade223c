//! Taking the terminal, reading its keys, and giving it back whatever happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};

use super::text::without_colours;
use crate::output::Paint;

/// The terminal, given back when dropped.
pub struct Screen {
    terminal: DefaultTerminal,
    over: Arc<AtomicBool>,
    resized: Arc<AtomicBool>,
    colours: bool,
}

impl Screen {
    /// Takes the terminal. Keys go to `pressed`, on a thread of their own.
    pub fn open(mut pressed: impl FnMut(KeyEvent) + Send + 'static) -> anyhow::Result<Self> {
        let terminal = ratatui::try_init().context("cannot draw on this terminal; ask for plain lines")?;
        let over = Arc::new(AtomicBool::new(false));
        let resized = Arc::new(AtomicBool::new(false));
        let (ended, size_changed) = (Arc::clone(&over), Arc::clone(&resized));
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                // Without a terminal to read from there are no keys, and signals still work.
                let Ok(ready) = event::poll(Duration::from_millis(100)) else { return };
                if !ready {
                    continue;
                }
                match event::read() {
                    Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => pressed(key),
                    Ok(Event::Resize(..)) => size_changed.store(true, Ordering::Relaxed),
                    Ok(_) => {}
                    Err(_) => return,
                }
            }
        });
        Ok(Self { terminal, over, resized, colours: Paint::on(&std::io::stdout()).has_colours() })
    }

    /// Whether the terminal has another size than when this was asked last.
    pub fn was_resized(&self) -> bool {
        self.resized.swap(false, Ordering::Relaxed)
    }

    /// Draws a frame, in the size that the terminal has now.
    pub fn draw(&mut self, paint: impl FnOnce(&mut Frame<'_>)) -> anyhow::Result<()> {
        let colours = self.colours;
        let drawn = self.terminal.draw(|frame| {
            paint(frame);
            if !colours {
                without_colours(frame.buffer_mut());
            }
        });
        drawn.map(drop).context("cannot draw the screen")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        ratatui::restore();
    }
}

/// In raw mode Ctrl-C is a key like any other.
pub fn is_interrupt(key: &KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}
