//! Reads a line of shell: commands joined by `;`, `&&`, `||` or a line break, with quotes and variables.
//!
//! What it cannot do (pipes, redirection, substitution, background) it refuses by name; it never does something else
//! instead. A variable stands for one word, whatever it holds.

use std::iter::Peekable;
use std::str::Chars;

/// One command and what must have happened before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) joint: Joint,
    pub(super) words: Vec<String>,
}

/// How a command follows the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    /// In any case.
    Then,
    /// If it succeeded.
    And,
    /// If it failed.
    Or,
}

impl Joint {
    /// Whether the next command runs after this exit code.
    pub(super) fn goes_on_after(self, code: i32) -> bool {
        match self {
            Self::Then => true,
            Self::And => code == 0,
            Self::Or => code != 0,
        }
    }
}

/// Takes a script apart; `variable` gives values, or nothing.
pub(super) fn parse(script: &str, variable: impl Fn(&str) -> String) -> Result<Vec<Step>, String> {
    let mut rest = script.chars().peekable();
    let mut steps = Vec::new();
    let mut step = Step { joint: Joint::Then, words: Vec::new() };
    let mut word: Option<String> = None;
    while let Some(letter) = rest.next() {
        let joint = match letter {
            ';' | '\n' => Some(Joint::Then),
            '&' if rest.next_if_eq(&'&').is_some() => Some(Joint::And),
            '|' if rest.next_if_eq(&'|').is_some() => Some(Joint::Or),
            _ => None,
        };
        if let Some(joint) = joint {
            step.words.extend(word.take());
            match (step.words.is_empty(), letter) {
                (false, _) => steps.push(std::mem::replace(&mut step, Step { joint, words: Vec::new() })),
                // A line without a command; also after `&&`, which goes on with the next one.
                (true, '\n') => {}
                (true, _) => return Err(format!("syntax error: unexpected {letter:?}")),
            }
            continue;
        }
        match letter {
            letter if letter.is_whitespace() => step.words.extend(word.take()),
            '#' if word.is_none() => while rest.next_if(|letter| *letter != '\n').is_some() {},
            '|' | '&' | '<' | '>' | '(' | ')' | '`' => return Err(not_offered(letter)),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        Some('\'') => break,
                        Some(letter) => word.push(letter),
                        None => return Err("syntax error: a quote is not closed".to_owned()),
                    }
                }
            }
            '"' => quoted(&mut rest, word.get_or_insert_default(), &variable)?,
            '\\' => word.get_or_insert_default().extend(rest.next()),
            '$' => word.get_or_insert_default().push_str(&value(&mut rest, &variable)?),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    step.words.extend(word);
    match (step.words.is_empty(), step.joint) {
        (false, _) => steps.push(step),
        (true, Joint::Then) => {}
        (true, _) => return Err("syntax error: unexpected end".to_owned()),
    }
    Ok(steps)
}

/// The rest of a text in double quotes.
fn quoted(rest: &mut Peekable<Chars<'_>>, word: &mut String, variable: &impl Fn(&str) -> String) -> Result<(), String> {
    loop {
        match rest.next() {
            Some('"') => return Ok(()),
            Some('`') => return Err(not_offered('`')),
            Some('$') => word.push_str(&value(rest, variable)?),
            Some('\\') => match rest.next() {
                Some(letter @ ('"' | '\\' | '$' | '`')) => word.push(letter),
                other => {
                    word.push('\\');
                    word.extend(other);
                }
            },
            Some(letter) => word.push(letter),
            None => return Err("syntax error: a quote is not closed".to_owned()),
        }
    }
}

/// What stands after a dollar sign.
fn value(rest: &mut Peekable<Chars<'_>>, variable: &impl Fn(&str) -> String) -> Result<String, String> {
    let braces = rest.next_if_eq(&'{').is_some();
    let mut name = String::new();
    while let Some(letter) = rest.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '_') {
        name.push(letter);
    }
    match (braces, rest.peek()) {
        (true, Some('}')) if !name.is_empty() => {
            rest.next();
            Ok(variable(&name))
        }
        (true, _) => Err("drydock's shell knows ${NAME} and no other use of ${".to_owned()),
        (false, _) if !name.is_empty() => Ok(variable(&name)),
        (false, None | Some('"' | ' ' | '\n')) => Ok("$".to_owned()),
        (false, Some(letter)) => Err(format!("drydock's shell has no \"${letter}\"")),
    }
}

fn not_offered(letter: char) -> String {
    format!("drydock's shell has no {letter:?}; it knows ; && || quotes and variables")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(script: &str) -> Result<Vec<(Joint, Vec<String>)>, String> {
        let variable = |name: &str| if name == "COLOR" { "dark blue".to_owned() } else { String::new() };
        Ok(parse(script, variable)?.into_iter().map(|step| (step.joint, step.words)).collect())
    }

    fn words(script: &str) -> Vec<String> {
        let steps = read(script).unwrap();
        let [(Joint::Then, words)] = steps.as_slice() else { panic!("{steps:?}") };
        words.clone()
    }

    #[test]
    fn words_and_quotes() {
        assert_eq!(words("curl  -s 'a b' \"c d\" e\\ f"), ["curl", "-s", "a b", "c d", "e f"]);
        assert_eq!(words("echo ''"), ["echo", ""]);
        assert_eq!(words("echo a'b'\"c\"d # e"), ["echo", "abcd"]);
        assert_eq!(words("echo \"a \\\" \\n\""), ["echo", "a \" \\n"]);
        assert_eq!(words("curl http://x/?a=b*"), ["curl", "http://x/?a=b*"]);
    }

    #[test]
    fn variables_are_one_word() {
        assert_eq!(
            words("echo $COLOR ${COLOR}s '$COLOR' \"$COLOR\" \\$COLOR"),
            ["echo", "dark blue", "dark blues", "$COLOR", "dark blue", "$COLOR"]
        );
        assert_eq!(words("echo $NOTHING. 5$"), ["echo", ".", "5$"]);
    }

    #[test]
    fn commands_are_joined() {
        let step = |joint, word: &str| (joint, vec![word.to_owned()]);
        let expected = vec![
            step(Joint::Then, "a"),
            step(Joint::And, "b"),
            step(Joint::Or, "c"),
            step(Joint::Then, "d"),
            step(Joint::Then, "e"),
        ];
        assert_eq!(read("a && b||c;d\n\n e;"), Ok(expected));
        assert_eq!(read("\n# nothing\n"), Ok(Vec::new()));
        assert!(Joint::Or.goes_on_after(1) && !Joint::And.goes_on_after(1) && Joint::Then.goes_on_after(1));
    }

    #[test]
    fn what_it_cannot_do_is_refused() {
        for script in ["a | b", "a &", "a > f", "a < f", "(a)", "a `b`", "\"`b`\"", "a $(b)", "a ${b:-c}", "a $?"] {
            let problem = read(script).unwrap_err();
            assert!(problem.starts_with("drydock's shell"), "{script}: {problem}");
        }
        for script in ["; a", "a &&", "&& a", "a;; b", "'a", "\"a"] {
            let problem = read(script).unwrap_err();
            assert!(problem.starts_with("syntax error"), "{script}: {problem}");
        }
    }
}
