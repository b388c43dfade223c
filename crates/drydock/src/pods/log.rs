//! What one run of a container wrote: the last lines, and a way to follow.
//!
//! Bounded in lines and bytes: the oldest lines go first, as a node rotates its files. A reader that is slower than the
//! writer misses lines and never holds anybody up. Nothing is written to disk.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::apiserver::LogOptions;

/// Lines kept.
const MOST_LINES: usize = 10_000;
/// Bytes kept.
const MOST_BYTES: usize = 1024 * 1024;
/// Bytes of one line; the rest of a longer one is dropped.
const LONGEST_LINE: usize = 16 * 1024;
/// About so many bytes are handed on at a time.
const PIECE: usize = 32 * 1024;

/// The log; clones are the same one.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Shared>);

struct Shared {
    ring: Mutex<Ring>,
    /// Wakes followers.
    changed: watch::Sender<()>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { ring: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

#[derive(Default)]
struct Ring {
    lines: VecDeque<Line>,
    /// The number of the first line that is kept, counted from the beginning of the run.
    first: u64,
    bytes: usize,
    closed: bool,
}

struct Line {
    at: Timestamp,
    text: Box<str>,
}

impl Ring {
    fn end(&self) -> u64 {
        self.first + self.lines.len() as u64
    }

    fn push(&mut self, line: Line) {
        self.bytes += line.text.len();
        self.lines.push_back(line);
        while self.lines.len() > MOST_LINES || self.bytes > MOST_BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.text.len();
            self.first += 1;
        }
    }
}

/// As much of a line as is kept, in whole characters.
fn beginning(line: &str) -> &str {
    let end = (0..=LONGEST_LINE.min(line.len())).rev().find(|end| line.is_char_boundary(*end));
    end.and_then(|end| line.get(..end)).unwrap_or_default()
}

impl Shared {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    /// Adds text at a moment, line by line. Nothing is added once the run is over.
    pub(super) fn write(&self, at: Timestamp, text: &str) {
        {
            let mut ring = self.0.ring();
            if ring.closed {
                return;
            }
            for line in text.lines() {
                ring.push(Line { at, text: beginning(line).into() });
            }
        }
        self.0.changed.send_replace(());
    }

    /// The run is over: followers end.
    pub(super) fn close(&self) {
        self.0.ring().closed = true;
        self.0.changed.send_replace(());
    }

    /// Reads as the options say.
    pub(super) fn read(&self, options: &LogOptions) -> BoxStream<'static, Bytes> {
        let ring = self.0.ring();
        let tail = options.tail.map_or(u64::MAX, |tail| tail as u64);
        let cursor = Cursor {
            log: self.0.clone(),
            changed: self.0.changed.subscribe(),
            next: ring.end().saturating_sub(tail).max(ring.first),
            until: if options.follow { u64::MAX } else { ring.end() },
            since: options.since.unwrap_or(Timestamp::MIN),
            timestamps: options.timestamps,
            left: options.limit.unwrap_or(usize::MAX),
        };
        stream::unfold(cursor, Cursor::piece).boxed()
    }
}

/// How far somebody has read.
struct Cursor {
    log: Arc<Shared>,
    changed: watch::Receiver<()>,
    next: u64,
    /// Where reading ends; never, for a follower.
    until: u64,
    since: Timestamp,
    timestamps: bool,
    /// Bytes that may still be shown.
    left: usize,
}

impl Cursor {
    async fn piece(mut self) -> Option<(Bytes, Self)> {
        loop {
            // Before looking, so that what is written while we look is not missed.
            self.changed.borrow_and_update();
            let (text, over) = self.look();
            if !text.is_empty() {
                return Some((text.into(), self));
            }
            if over {
                return None;
            }
            self.changed.changed().await.ok()?;
        }
    }

    /// The lines that are there now, and whether there will be no more after them.
    fn look(&mut self) -> (Vec<u8>, bool) {
        let ring = self.log.ring();
        let mut text = Vec::new();
        let end = self.until.min(ring.end());
        self.next = self.next.max(ring.first);
        while self.next < end && text.len() < PIECE.min(self.left) {
            let line = usize::try_from(self.next - ring.first).ok().and_then(|at| ring.lines.get(at));
            self.next += 1;
            let Some(line) = line.filter(|line| line.at >= self.since) else { continue };
            if self.timestamps {
                text.extend_from_slice(format!("{:.9} ", line.at).as_bytes());
            }
            text.extend_from_slice(line.text.as_bytes());
            text.push(b'\n');
        }
        text.truncate(self.left);
        self.left -= text.len();
        (text, self.left == 0 || (self.next >= end && (ring.closed || self.until != u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    fn log(lines: i64) -> Log {
        let log = Log::default();
        for line in 0..lines {
            log.write(at(line), &format!("line {line}"));
        }
        log
    }

    async fn read(log: &Log, options: LogOptions) -> String {
        let pieces: Vec<Bytes> = log.read(&options).collect().await;
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[tokio::test]
    async fn options_choose_lines() {
        let log = log(5);
        let all = LogOptions::default;
        assert_eq!(read(&log, all()).await, "line 0\nline 1\nline 2\nline 3\nline 4\n");
        assert_eq!(read(&log, LogOptions { tail: Some(2), ..all() }).await, "line 3\nline 4\n");
        assert_eq!(read(&log, LogOptions { tail: Some(0), ..all() }).await, "");
        assert_eq!(read(&log, LogOptions { since: Some(at(4)), ..all() }).await, "line 4\n");
        assert_eq!(read(&log, LogOptions { since: Some(at(9)), ..all() }).await, "");
        assert_eq!(read(&log, LogOptions { tail: Some(3), since: Some(at(4)), ..all() }).await, "line 4\n");
        assert_eq!(read(&log, LogOptions { limit: Some(9), ..all() }).await, "line 0\nli");
        let stamped = read(&log, LogOptions { timestamps: true, tail: Some(1), ..all() }).await;
        assert_eq!(stamped, "2026-01-01T00:00:04.000000000Z line 4\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_sees_what_comes_until_the_end() {
        let log = log(1);
        let follower = tokio::spawn({
            let log = log.clone();
            async move { read(&log, LogOptions { follow: true, ..LogOptions::default() }).await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        log.write(at(1), "two\nat once\n");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!follower.is_finished());
        log.close();
        log.write(at(2), "too late");
        assert_eq!(follower.await.unwrap(), "line 0\ntwo\nat once\n");
        let again = read(&log, LogOptions { follow: true, tail: Some(1), ..LogOptions::default() }).await;
        assert_eq!(again, "at once\n", "a closed log has an end");
    }

    #[tokio::test]
    async fn only_the_last_lines_are_kept() {
        let log = log(MOST_LINES as i64 + 7);
        let text = read(&log, LogOptions::default()).await;
        assert_eq!(text.lines().count(), MOST_LINES);
        assert_eq!(text.lines().next(), Some("line 7"));

        let big = Log::default();
        let long = "ä".repeat(LONGEST_LINE);
        for _ in 0..200 {
            big.write(at(0), &long);
        }
        let ring = big.0.ring();
        assert!(ring.bytes <= MOST_BYTES && ring.lines.len() == MOST_BYTES / LONGEST_LINE, "{}", ring.bytes);
    }

    #[tokio::test]
    async fn a_slow_follower_misses_lines_and_goes_on() {
        let log = log(2);
        let mut lines = log.read(&LogOptions { follow: true, ..LogOptions::default() });
        assert_eq!(lines.next().await.unwrap(), "line 0\nline 1\n");
        for line in 0..=MOST_LINES {
            log.write(at(0), &format!("later {line}"));
        }
        let next = lines.next().await.unwrap();
        assert!(next.starts_with(b"later 1\n"));
    }
}
