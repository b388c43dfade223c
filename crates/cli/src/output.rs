//! How commands speak to people: colours only where a terminal shows them, errors with their causes.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal, Write as _};

/// Whether text may carry colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    colours: bool,
}

impl Paint {
    /// Colours if `stream` is a terminal and nobody asked for none (`NO_COLOR`, `TERM=dumb`).
    pub fn on(stream: &impl IsTerminal) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colours: stream.is_terminal() && !unwanted && !is_dumb() }
    }

    /// Whether there are any.
    pub const fn has_colours(self) -> bool {
        self.colours
    }

    /// No colours at all.
    pub const fn plain() -> Self {
        Self { colours: false }
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Something that went well.
    pub fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// Something that went wrong.
    pub fn bad(self, text: &str) -> String {
        self.wrap("31", text)
    }

    /// Something to look at.
    pub fn warn(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// A heading.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Something less important.
    pub fn faint(self, text: &str) -> String {
        self.wrap("2", text)
    }
}

/// Prints a line to stdout. False when nobody reads any more (`seaway … | head`): the caller should stop.
pub fn line(text: &str) -> bool {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).is_ok()
}

/// Prints a whole text to stdout. A reader who leaves early (`… | head -1`) has seen enough, which is no error.
pub fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints an error with all its causes to stderr.
pub fn error(error: &anyhow::Error) {
    eprintln!("{}", in_words(error, Paint::on(&io::stderr())));
}

/// An error and its causes, a line each. Many errors repeat their cause in their own text; once is enough.
fn in_words(error: &anyhow::Error, paint: Paint) -> String {
    let mut text = format!("{} {error}", paint.bad("error:"));
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            let _ = write!(text, "\n  because: {cause}");
        }
    }
    text
}

/// Whether stdout is a terminal that a screen can be drawn on.
pub fn can_draw() -> bool {
    io::stdout().is_terminal() && !is_dumb()
}

/// A terminal that shows letters and nothing else, as inside editors.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_plain() {
        assert_eq!(Paint::plain().bad("no"), "no");
        assert_eq!(Paint { colours: true }.bad("no"), "\x1b[31mno\x1b[0m");
    }

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow::anyhow!("no such file").context("cannot read a: no such file").context("no cluster");
        let expected = "error: no cluster\n  because: cannot read a: no such file";
        assert_eq!(in_words(&error, Paint::plain()), expected);
    }
}
