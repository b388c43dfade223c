//! Label selectors as text: `app=podinfo,tier in (web,edge),!old`.
//!
//! A word at a time, as Kubernetes reads them, so that what is wrong is said in the same words.

use std::collections::BTreeSet;

use super::error::{ApiError, Result};
use super::validate::{no_label_value, unqualified};

/// One condition on one label.
#[derive(Clone, Debug)]
pub(crate) struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Exists,
    Missing,
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Above(i64),
    Below(i64),
}

impl Requirement {
    /// The label it is about.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Whether the label, if it is there, meets it.
    pub(crate) fn holds(&self, label: Option<&str>) -> bool {
        let number = || label.and_then(|text| text.parse::<i64>().ok());
        match &self.test {
            Test::Exists => label.is_some(),
            Test::Missing => label.is_none(),
            Test::In(values) => label.is_some_and(|text| values.contains(text)),
            Test::NotIn(values) => label.is_none_or(|text| !values.contains(text)),
            Test::Above(bound) => number().is_some_and(|number| number > *bound),
            Test::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// Reads all requirements of a selector.
pub(crate) fn parse(text: &str) -> Result<Vec<Requirement>> {
    Words { words: split(text), at: 0 }.requirements().map_err(ApiError::bad_request)
}

/// Signs that stand for themselves; longer ones first.
const SIGNS: [&str; 9] = ["==", "!=", "=", "!", ">", "<", "(", ")", ","];

/// The words of a selector: names, and the signs between them.
fn split(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            Some(sign) => sign.len(),
            None => rest
                .find(|it: char| it.is_whitespace() || SIGNS.iter().any(|sign| sign.starts_with(it)))
                .unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after.trim_start();
    }
    words
}

/// What is wrong, for people.
type Complaint = String;

struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Words<'a> {
    /// The next word; the empty one is the end.
    fn peek(&self) -> &'a str {
        self.words.get(self.at).copied().unwrap_or_default()
    }

    fn next(&mut self) -> &'a str {
        let word = self.peek();
        self.at += 1;
        word
    }

    fn requirements(mut self) -> Result<Vec<Requirement>, Complaint> {
        let mut all = Vec::new();
        loop {
            match self.peek() {
                "" => return Ok(all),
                word if is_name(word) || word == "!" => {
                    all.push(self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?);
                }
                word => return Err(format!("found '{word}', expected: !, identifier, or 'end of string'")),
            }
            match self.next() {
                "" => return Ok(all),
                "," => {
                    let word = self.peek();
                    if !is_name(word) && word != "!" {
                        return Err(format!("found '{word}', expected: identifier after ','"));
                    }
                }
                word => return Err(format!("found '{word}', expected: ',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, Complaint> {
        let missing = self.peek() == "!";
        if missing {
            self.next();
        }
        let key = match self.next() {
            word if is_name(word) => word.to_owned(),
            word => return Err(format!("found '{word}', expected: identifier")),
        };
        let test = match self.peek() {
            _ if missing => Test::Missing,
            "" | "," => Test::Exists,
            _ => self.test()?,
        };
        possible(Requirement { key, test })
    }

    fn test(&mut self) -> Result<Test, Complaint> {
        Ok(match self.next() {
            "in" => Test::In(self.values()?),
            "notin" => Test::NotIn(self.values()?),
            "=" | "==" => Test::In(self.value()?),
            "!=" => Test::NotIn(self.value()?),
            ">" => Test::Above(self.bound()?),
            "<" => Test::Below(self.bound()?),
            word => return Err(format!("found '{word}', expected: in, notin, =, ==, !=, gt, lt")),
        })
    }

    /// One value, which may be left out.
    fn value(&mut self) -> Result<BTreeSet<String>, Complaint> {
        if matches!(self.peek(), "" | ",") {
            return Ok(BTreeSet::from([String::new()]));
        }
        match self.next() {
            word if is_name(word) => Ok(BTreeSet::from([word.to_owned()])),
            word => Err(format!("found '{word}', expected: identifier")),
        }
    }

    fn bound(&mut self) -> Result<i64, Complaint> {
        let values = self.value()?;
        let number = values.first().and_then(|value| value.parse().ok());
        number.ok_or_else(|| {
            let shown = values.first().map(String::as_str).unwrap_or_default();
            format!("values[0]: Invalid value: {shown:?}: for 'Gt', 'Lt' operators, the value must be an integer")
        })
    }

    /// A list in parentheses.
    fn values(&mut self) -> Result<BTreeSet<String>, Complaint> {
        let open = self.next();
        if open != "(" {
            return Err(format!("found '{open}' expected: '('"));
        }
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                ")" => {
                    values.insert(String::new());
                    return Ok(values);
                }
                // Nothing before a comma, or between two, is an empty value.
                "," => values.extend(Some(String::new())),
                word if is_name(word) => {
                    values.insert(word.to_owned());
                    match self.next() {
                        "," => {}
                        ")" => return Ok(values),
                        word => return Err(format!("found '{word}', expected: ',' or ')'")),
                    }
                }
                word => return Err(format!("found '{word}', expected: ',', ')' or identifier")),
            }
        }
    }
}

/// Labels that no object can have are not asked for.
fn possible(requirement: Requirement) -> Result<Requirement, Complaint> {
    let key = &requirement.key;
    let mut wrong = Vec::new();
    let why = unqualified(key);
    if !why.is_empty() {
        wrong.push(format!("<nil>: Invalid value: {key:?}: {}", why.join("; ")));
    }
    if let Test::In(values) | Test::NotIn(values) = &requirement.test {
        for (at, value) in values.iter().enumerate() {
            let why = no_label_value(value);
            if !why.is_empty() {
                wrong.push(format!("values[{at}][{key}]: Invalid value: {value:?}: {}", why.join("; ")));
            }
        }
    }
    match wrong.as_slice() {
        [] => Ok(requirement),
        [one] => Err(one.clone()),
        all => Err(format!("[{}]", all.join(", "))),
    }
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && !SIGNS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(text: &str) -> bool {
        let labels = [("app", "podinfo"), ("tier", "web"), ("size", "7")];
        let label = |key: &str| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
        parse(text).unwrap().iter().all(|requirement| requirement.holds(label(requirement.key())))
    }

    #[test]
    fn labels_that_nobody_can_have_are_refused() {
        for no in ["a/b/c=1", "!a/b/c", "-a=b", "a-=b", "X.y/a=1", "/a=1", "a/", "a in (-b)", "a=b_"] {
            let refusal = format!("{:?}", parse(no).err());
            assert!(refusal.contains("unable to parse requirement: "), "{no}: {refusal}");
        }
    }

    #[test]
    fn every_operator() {
        for yes in [
            "",
            "app=podinfo",
            "app==podinfo,tier=web",
            "app!=x",
            "app in (a, podinfo)",
            "app notin (a,b)",
            "tier",
            "!x",
            "size>6",
            "size < 8",
            "missing!=x",
            "missing notin (x)",
        ] {
            assert!(selects(yes), "{yes}");
        }
        for no in [
            "app=x",
            "app!=podinfo",
            "app in (a)",
            "app notin (podinfo)",
            "!app",
            "missing",
            "size>7",
            "x in (y)",
            "app=",
        ] {
            assert!(!selects(no), "{no}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = |text| parse(text).unwrap_err().to_status()["message"].as_str().unwrap().to_owned();
        assert_eq!(said("tier=("), "unable to parse requirement: found '(', expected: identifier");
        assert_eq!(said("a b"), "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
        assert_eq!(said("a in b"), "unable to parse requirement: found 'b' expected: '('");
        assert_eq!(said("a=b,"), "found '', expected: identifier after ','");
        assert_eq!(said("=a"), "found '=', expected: !, identifier, or 'end of string'");
        assert_eq!(said("a=b)"), "found ')', expected: ',' or 'end of string'");
    }
}
