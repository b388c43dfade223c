//! Patterns as Go reads them. Most mean the same to us; what does not is written anew.

use regex::Regex;

/// How often something may be repeated at most.
const MOST: u32 = 1000;

/// The pattern, or why Go takes it for none.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let told = |why: String| format!("error parsing regexp: {why}");
    let mut reader = Reader { rest: pattern, written: String::with_capacity(pattern.len()), repeated: None };
    reader.read().map_err(told)?;
    Regex::new(&reader.written).map_err(|error| told(why_not(pattern, &error)))
}

/// Reads a pattern from its beginning.
struct Reader<'a> {
    rest: &'a str,
    /// What was read, in our words.
    written: String,
    /// The repetition that was just read: none may follow it.
    repeated: Option<&'a str>,
}

impl<'a> Reader<'a> {
    fn read(&mut self) -> Result<(), String> {
        while let Some(first) = self.rest.chars().next() {
            match first {
                '\\' => self.escape(false),
                '[' => self.class(),
                '*' | '+' | '?' => self.repeat(&self.rest[..1])?,
                '{' => match counts(self.rest) {
                    Some((counted, most)) if most.is_some_and(|most| most > MOST) => {
                        return Err(format!("invalid repeat count: `{counted}`"));
                    }
                    Some((counted, _)) => self.repeat(counted)?,
                    // A brace that counts nothing is a brace.
                    None => self.replace(1, "\\{"),
                },
                other => self.take(other.len_utf8()),
            }
        }
        Ok(())
    }

    /// Takes the next bytes as they are.
    fn take(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.written.push_str(taken);
        (self.rest, self.repeated) = (rest, None);
    }

    /// Takes the next bytes and writes something else.
    fn replace(&mut self, length: usize, written: &str) {
        self.written.push_str(written);
        (self.rest, self.repeated) = (&self.rest[length..], None);
    }

    fn repeat(&mut self, operator: &'a str) -> Result<(), String> {
        if let Some(before) = self.repeated {
            return Err(format!("invalid nested repetition operator: `{before}{operator}`"));
        }
        self.take(operator.len());
        let lazy = usize::from(self.rest.starts_with('?'));
        self.take(lazy);
        self.repeated = Some(operator);
        Ok(())
    }

    /// Digits, letters and spaces are those of ASCII.
    fn escape(&mut self, in_class: bool) {
        let ascii = |inside: &str| if in_class { inside.to_owned() } else { format!("[{inside}]") };
        let (digits, letters, spaces) = ("0-9", "0-9A-Za-z_", "\\t\\n\\f\\r\\x20");
        match self.rest[1..].chars().next() {
            Some('Q') if !in_class => {
                let quoted = &self.rest[2..];
                let end = quoted.find("\\E").unwrap_or(quoted.len());
                let length = (2 + end + 2).min(self.rest.len());
                self.replace(length, &regex::escape(&quoted[..end]));
            }
            Some('d') => self.replace(2, &ascii(digits)),
            Some('w') => self.replace(2, &ascii(letters)),
            Some('s') => self.replace(2, &ascii(spaces)),
            Some('D') => self.replace(2, &format!("[^{digits}]")),
            Some('W') => self.replace(2, &format!("[^{letters}]")),
            Some('S') => self.replace(2, &format!("[^{spaces}]")),
            Some(other) => self.take(1 + other.len_utf8()),
            None => self.take(1),
        }
    }

    /// A class of characters. In it a bracket is a bracket, and there is nothing to calculate with.
    fn class(&mut self) {
        self.take(1);
        if self.rest.starts_with('^') {
            self.take(1);
        }
        // One that closes nothing yet.
        if self.rest.starts_with(']') {
            self.replace(1, "\\]");
        }
        while let Some(next) = self.rest.chars().next() {
            match next {
                ']' => return self.take(1),
                '\\' => self.escape(true),
                '[' => match self.rest.find(":]").filter(|_| self.rest.starts_with("[:")) {
                    Some(end) => self.take(end + 2),
                    None => self.replace(1, "\\["),
                },
                '&' | '~' => self.replace(1, &format!("\\{next}")),
                other => self.take(other.len_utf8()),
            }
        }
    }
}

/// `{2}`, `{2,}` or `{2,5}` at the beginning, and the largest number in it.
fn counts(text: &str) -> Option<(&str, Option<u32>)> {
    let end = text.find('}')?;
    let (least, most) = text[1..end].split_once(',').unwrap_or((&text[1..end], ""));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(least) || !(most.is_empty() || is_number(most)) {
        return None;
    }
    let number = |text: &str| text.parse().unwrap_or(u32::MAX);
    let largest = [least, most].into_iter().filter(|text| !text.is_empty()).map(number).max();
    Some((&text[..=end], largest))
}

/// Go's words for a pattern that is none.
fn why_not(pattern: &str, error: &regex::Error) -> String {
    let (open, close) = (pattern.matches('(').count(), pattern.matches(')').count());
    match pattern {
        _ if open > close => format!("missing closing ): `{pattern}`"),
        _ if open < close => format!("unexpected ): `{pattern}`"),
        _ if pattern.contains('[') && !pattern.contains(']') => {
            let from = &pattern[pattern.find('[').unwrap_or(0)..];
            format!("missing closing ]: `{from}`")
        }
        _ if pattern.starts_with(['*', '+', '?']) => {
            format!("missing argument to repetition operator: `{}`", &pattern[..1])
        }
        // The last line of ours says what it is about; those before it draw the place.
        _ => error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::compile;

    #[test]
    fn go_reads_brackets_braces_and_quotes_its_own_way() {
        for (pattern, text) in [
            (r"^[^[\]]+$", "abc"),
            ("^{x}$", "{x}"),
            ("^x{,5}$", "x{,5}"),
            (r"^\Qa.b\E+$", "a.bb"),
            ("^[[:alpha:]]+$", "abc"),
            ("^[a&&b~~]+$", "a&b~"),
            (r"^[]a]+$", "]a"),
            (r"^(\d*(\.\d*)?µs)+$", "1.5µs"),
            ("^a{2,3}?$", "aaa"),
        ] {
            assert!(compile(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}")).is_match(text), "{pattern}");
        }
        assert!(!compile(r"^\d$").unwrap().is_match("٣"), "digits are those of ASCII");
    }

    #[test]
    fn go_refuses_what_is_no_pattern() {
        for (pattern, why) in [
            ("a**", "invalid nested repetition operator: `**`"),
            ("a{1,1001}", "invalid repeat count: `{1,1001}`"),
            ("(", "missing closing ): `(`"),
            ("a)", "unexpected ): `a)`"),
            ("*", "missing argument to repetition operator: `*`"),
        ] {
            assert_eq!(compile(pattern).unwrap_err(), format!("error parsing regexp: {why}"));
        }
        let told = compile("[z-a]").unwrap_err();
        assert!(!told.contains('\n'), "{told}");
    }
}
