//! Text into tokens, with Go's trim markers already applied.

use super::TemplateError;

/// One token, with the line it is on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub line: usize,
    pub kind: TokenKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// Text outside of actions.
    Text(String),
    /// `{{`
    Open,
    /// `}}`
    Close,
    /// A keyword or a function.
    Word(String),
    /// `$x`; `$` alone is empty.
    Variable(String),
    /// `.x`, directly after an operand or on its own.
    Field {
        name: String,
        /// Nothing stands between this and the token before.
        joined: bool,
    },
    /// `.`
    Dot,
    String(String),
    Int(i64),
    Float(f64),
    /// `|`
    Pipe,
    /// `,`
    Comma,
    /// `:=`
    Declare,
    /// `=`
    Assign,
    /// `(`
    Left,
    /// `)`
    Right,
}

pub(super) fn syntax(line: usize, problem: impl Into<String>) -> TemplateError {
    TemplateError::Syntax { line, problem: problem.into() }
}

pub(super) fn lex(text: &str) -> Result<Vec<Token>, TemplateError> {
    let mut lexer = Lexer { rest: text, line: 1, tokens: Vec::new() };
    lexer.run()?;
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    tokens: Vec<Token>,
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

impl<'a> Lexer<'a> {
    fn run(&mut self) -> Result<(), TemplateError> {
        let mut trim = false;
        loop {
            let open = self.rest.find("{{");
            let text = self.take(open.unwrap_or(self.rest.len()));
            let text = if trim { text.trim_start_matches(is_space) } else { text };
            let trims_before = self.rest.strip_prefix("{{-").is_some_and(|rest| rest.starts_with(is_space));
            let text = if trims_before { text.trim_end_matches(is_space) } else { text };
            if !text.is_empty() {
                self.push(TokenKind::Text(text.to_owned()));
            }
            if open.is_none() {
                return Ok(());
            }
            self.take(if trims_before { 3 } else { 2 });
            trim = if self.rest.trim_start_matches(is_space).starts_with("/*") {
                self.comment()?
            } else {
                self.push(TokenKind::Open);
                let trim = self.action()?;
                self.push(TokenKind::Close);
                trim
            };
        }
    }

    fn push(&mut self, kind: TokenKind) {
        self.tokens.push(Token { line: self.line, kind });
    }

    /// Consumes `length` bytes, which end at a character.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// The end of an action: whether it trims what follows.
    fn closing(&mut self) -> Option<bool> {
        let spaces = self.rest.len() - self.rest.trim_start_matches(is_space).len();
        let (_, after) = self.rest.split_at_checked(spaces)?;
        if spaces > 0 && after.starts_with("-}}") {
            self.take(spaces + 3);
            return Some(true);
        }
        if after.starts_with("}}") {
            self.take(spaces + 2);
            return Some(false);
        }
        None
    }

    fn comment(&mut self) -> Result<bool, TemplateError> {
        let line = self.line;
        let end = self.rest.find("*/").ok_or_else(|| syntax(line, "unclosed comment"))?;
        self.take(end + 2);
        self.closing().ok_or_else(|| syntax(line, "comment ends before closing delimiter"))
    }

    fn action(&mut self) -> Result<bool, TemplateError> {
        loop {
            if let Some(trim) = self.closing() {
                return Ok(trim);
            }
            let spaces = self.rest.len() - self.rest.trim_start_matches(is_space).len();
            self.take(spaces);
            let Some(first) = self.rest.chars().next() else { return Err(syntax(self.line, "unclosed action")) };
            self.token(first, spaces == 0)?;
        }
    }

    fn token(&mut self, first: char, joined: bool) -> Result<(), TemplateError> {
        let simple = match first {
            '|' => Some((1, TokenKind::Pipe)),
            ',' => Some((1, TokenKind::Comma)),
            '(' => Some((1, TokenKind::Left)),
            ')' => Some((1, TokenKind::Right)),
            '=' => Some((1, TokenKind::Assign)),
            ':' if self.rest.starts_with(":=") => Some((2, TokenKind::Declare)),
            _ => None,
        };
        if let Some((length, kind)) = simple {
            self.take(length);
            self.push(kind);
            return Ok(());
        }
        match first {
            '"' => self.quoted(),
            '`' => self.raw(),
            '\'' => self.character(),
            '$' => {
                self.take(1);
                let name = self.word();
                self.push(TokenKind::Variable(name));
                Ok(())
            }
            '.' if self.rest.chars().nth(1).is_some_and(is_word) && !self.number_follows_dot() => {
                self.take(1);
                let name = self.word();
                self.push(TokenKind::Field { name, joined });
                Ok(())
            }
            '.' if !self.number_follows_dot() => {
                self.take(1);
                self.push(TokenKind::Dot);
                Ok(())
            }
            '0'..='9' | '+' | '-' | '.' => self.number(),
            first if is_word(first) => {
                let word = self.word();
                self.push(TokenKind::Word(word));
                Ok(())
            }
            other => Err(syntax(self.line, format!("unexpected {other:?}"))),
        }
    }

    fn number_follows_dot(&self) -> bool {
        self.rest.chars().nth(1).is_some_and(|c| c.is_ascii_digit())
    }

    fn word(&mut self) -> String {
        let length = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        self.take(length).to_owned()
    }

    fn number(&mut self) -> Result<(), TemplateError> {
        let bytes = self.rest.as_bytes();
        let in_number = |index: &usize| {
            let byte = bytes.get(*index).copied().unwrap_or(b' ');
            let sign = matches!(byte, b'+' | b'-');
            let exponent = *index > 0 && matches!(bytes.get(index - 1), Some(b'e' | b'E'));
            byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || (sign && (*index == 0 || exponent))
        };
        let length = (0..bytes.len()).take_while(in_number).count();
        let line = self.line;
        let text = self.take(length).to_owned();
        self.push(number(&text).ok_or_else(|| syntax(line, format!("bad number {text:?}")))?);
        Ok(())
    }

    fn quoted(&mut self) -> Result<(), TemplateError> {
        let line = self.line;
        let mut escaped = false;
        let end = self.rest.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends || *c == '\n'
        });
        match end {
            Some((index, '"')) => {
                let literal = self.take(index + 1).to_owned();
                let text = unquote(&literal).ok_or_else(|| syntax(line, format!("bad string {literal}")))?;
                self.push(TokenKind::String(text));
                Ok(())
            }
            _ => Err(syntax(line, "unterminated quoted string")),
        }
    }

    fn raw(&mut self) -> Result<(), TemplateError> {
        let line = self.line;
        let end = self.rest.get(1..).and_then(|rest| rest.find('`'));
        let end = end.ok_or_else(|| syntax(line, "unterminated raw string"))?;
        let literal = self.take(end + 2);
        let text = literal.trim_matches('`').to_owned();
        self.push(TokenKind::String(text));
        Ok(())
    }

    fn character(&mut self) -> Result<(), TemplateError> {
        let line = self.line;
        let mut chars = self.rest.chars().skip(1);
        match (chars.next(), chars.next()) {
            (Some(c), Some('\'')) if c != '\\' && c != '\'' => {
                self.take(2 + c.len_utf8());
                self.push(TokenKind::Int(i64::from(u32::from(c))));
                Ok(())
            }
            _ => Err(syntax(line, "bad character constant")),
        }
    }
}

fn number(text: &str) -> Option<TokenKind> {
    let plain = text.replace('_', "");
    let (negative, digits) = match plain.strip_prefix(['+', '-']) {
        Some(digits) => (plain.starts_with('-'), digits),
        None => (false, plain.as_str()),
    };
    let lower = digits.to_ascii_lowercase();
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)];
    let integer = match radix.iter().find_map(|(prefix, radix)| Some((lower.strip_prefix(prefix)?, *radix))) {
        Some((digits, radix)) => i64::from_str_radix(digits, radix).ok(),
        None => digits.parse::<i64>().ok(),
    };
    if let Some(integer) = integer {
        return Some(TokenKind::Int(if negative { -integer } else { integer }));
    }
    let float = lower.starts_with(|c: char| c.is_ascii_digit() || c == '.').then(|| plain.parse::<f64>().ok())?;
    float.filter(|float| float.is_finite()).map(TokenKind::Float)
}

/// A Go string literal; the escapes that JSON shares plus the simple ones it lacks.
fn unquote(literal: &str) -> Option<String> {
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        let digits = match chars.next()? {
            'n' => {
                text.push('\n');
                continue;
            }
            't' => {
                text.push('\t');
                continue;
            }
            'r' => {
                text.push('\r');
                continue;
            }
            c @ ('"' | '\\') => {
                text.push(c);
                continue;
            }
            'u' => 4,
            'U' => 8,
            _ => return None,
        };
        let code: String = chars.by_ref().take(digits).collect();
        text.push(char::from_u32(u32::from_str_radix(&code, 16).ok().filter(|_| code.len() == digits)?)?);
    }
    Some(text)
}
