//! YAML as a tree that remembers lines.
//!
//! Scalars mean what `kubectl` makes of them (`yes` is true, `0755` is octal), aliases and `<<` are followed, a key that
//! is written twice is a fault. The size of what aliases unfold to is bounded.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Number, Value};

/// Most nodes that the aliases of one file may add. What is written out is as large as the file and needs no bound.
const MOST_NODES: usize = 200_000;

/// A value and the line it was written on.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) content: Content,
}

/// What a node holds.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key with its own line and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: usize,
    pub(super) value: Node,
}

/// YAML that cannot be read.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) document: usize,
    pub(super) line: usize,
    pub(super) problem: String,
}

impl Node {
    /// The value without lines.
    pub(super) fn value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => Value::Array(items.iter().map(Self::value).collect()),
            Content::Map(entries) => {
                let fields: Map<_, _> = entries.iter().map(|entry| (entry.key.clone(), entry.value.value())).collect();
                Value::Object(fields)
            }
        }
    }

    /// The value of a key.
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.content {
            Content::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The node at the end of these keys.
    pub(super) fn get(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| Some(&node.entry(key)?.value))
    }

    /// The line of a field path, or of the deepest part of it that was written.
    pub(super) fn line_of(&self, path: &str) -> usize {
        let (mut node, mut line, mut rest) = (self, self.line, path);
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let Some((index, after)) = after.split_once(']') else { return line };
                let Content::List(items) = &node.content else { return line };
                let Some(item) = index.parse().ok().and_then(|index: usize| items.get(index)) else { return line };
                (node, line, rest) = (item, item.line, after);
            } else {
                rest = rest.strip_prefix('.').unwrap_or(rest);
                let Content::Map(entries) = &node.content else { return line };
                // A key may hold dots itself, so the longest that fits is the one.
                let fits = |key: &str| {
                    rest.strip_prefix(key).is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
                };
                let Some(entry) = entries.iter().filter(|entry| fits(&entry.key)).max_by_key(|entry| entry.key.len())
                else {
                    return line;
                };
                (node, line, rest) = (&entry.value, entry.line, &rest[entry.key.len()..]);
            }
        }
        line
    }

    /// The objects of a document: itself, or the items of a `List`.
    pub(super) fn objects(self) -> Vec<Self> {
        let is_list = self.get(&["kind"]).is_some_and(|kind| kind.value() == "List");
        match self.content {
            Content::Map(entries) if is_list => {
                let items = entries.into_iter().find(|entry| entry.key == "items").map(|entry| entry.value.content);
                if let Some(Content::List(items)) = items { items } else { Vec::new() }
            }
            content => vec![Self { line: self.line, content }],
        }
    }
}

/// The documents of a text, as far as it can be read, and where it cannot.
pub(super) fn read(text: &str) -> (Vec<Node>, Vec<Broken>) {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        nodes: 0,
        broken: Vec::new(),
        document: 0,
    };
    let mut documents = Vec::new();
    loop {
        match reader.next() {
            Ok(None) => break,
            Ok(Some((Event::DocumentStart(..), _))) => match reader.node() {
                Ok(Some(node)) => {
                    documents.push(node);
                    reader.document += 1;
                }
                Ok(None) => {}
                Err(broken) => {
                    reader.broken.push(broken);
                    break;
                }
            },
            Ok(Some(_)) => {}
            Err(broken) => {
                reader.broken.push(broken);
                break;
            }
        }
    }
    // Empty documents (a leading `---`, a comment) are no objects.
    documents.retain(|node| !matches!(node.content, Content::Scalar(Value::Null)));
    (documents, reader.broken)
}

struct Reader<'a> {
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    broken: Vec<Broken>,
    document: usize,
}

impl<'a> Reader<'a> {
    fn fault(&self, line: usize, problem: impl Into<String>) -> Broken {
        Broken { document: self.document, line, problem: problem.into() }
    }

    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, Broken> {
        match self.parser.next() {
            None => Ok(None),
            Some(Ok(next)) => Ok(Some(next)),
            Some(Err(error)) => Err(self.fault(error.marker().line(), error.kind().to_string())),
        }
    }

    /// The next node, or nothing at the end of a collection or document.
    fn node(&mut self) -> Result<Option<Node>, Broken> {
        let Some((event, span)) = self.next()? else { return Ok(None) };
        let line = span.start.line();
        let (content, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = style != ScalarStyle::Plain || tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
                (Content::Scalar(if is_text { Value::from(text.as_ref()) } else { plain(&text) }), anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                let mut items = Vec::new();
                while let Some(item) = self.node()? {
                    items.push(item);
                }
                (Content::List(items), anchor)
            }
            Event::MappingStart(_, anchor, _) => (Content::Map(self.entries()?), anchor),
            Event::Alias(id) => {
                let Some(target) = self.anchors.get(&id).cloned() else {
                    return Err(self.fault(line, "an alias to something that contains it"));
                };
                self.nodes += target.size();
                if self.nodes > MOST_NODES {
                    return Err(self.fault(line, "too large once its aliases are followed"));
                }
                return Ok(Some(Node { line, ..target }));
            }
            Event::SequenceEnd | Event::MappingEnd | Event::DocumentEnd | Event::StreamEnd => return Ok(None),
            // Comments and the like are no nodes.
            _ => return self.node(),
        };
        let node = Node { line, content };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(Some(node))
    }

    fn entries(&mut self) -> Result<Vec<Entry>, Broken> {
        let (mut entries, mut merged) = (Vec::<Entry>::new(), Vec::new());
        while let Some(key) = self.node()? {
            let Some(value) = self.node()? else { break };
            let line = key.line;
            let key = match key.content {
                Content::Scalar(Value::String(text)) => text,
                Content::Scalar(value) => value.to_string(),
                _ => return Err(self.fault(line, "a key that is not a plain value")),
            };
            if key == "<<" {
                merged.push(value);
            } else if entries.iter().any(|entry| entry.key == key) {
                let problem = format!("the key \"{key}\" is written twice");
                let fault = self.fault(line, problem);
                self.broken.push(fault);
            } else {
                entries.push(Entry { key, line, value });
            }
        }
        for node in merged {
            let sources = match node.content {
                Content::List(items) => items,
                content => vec![Node { line: node.line, content }],
            };
            for source in sources {
                let Content::Map(inherited) = source.content else { continue };
                for entry in inherited {
                    if !entries.iter().any(|own| own.key == entry.key) {
                        entries.push(entry);
                    }
                }
            }
        }
        Ok(entries)
    }
}

impl Node {
    fn size(&self) -> usize {
        1 + match &self.content {
            Content::Scalar(_) => 0,
            Content::List(items) => items.iter().map(Self::size).sum(),
            Content::Map(entries) => entries.iter().map(|entry| entry.value.size()).sum(),
        }
    }
}

/// What a plain scalar means.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return Value::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => return Value::Bool(false),
        _ => {}
    }
    integer(text).or_else(|| float(text)).unwrap_or_else(|| Value::from(text))
}

fn integer(text: &str) -> Option<Value> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let radix = |digits: &str, radix| u64::from_str_radix(digits, radix).ok();
    let number = if let Some(hex) = digits.strip_prefix("0x") {
        radix(hex, 16)?
    } else if let Some(octal) = digits.strip_prefix("0o") {
        radix(octal, 8)?
    } else if let Some(binary) = digits.strip_prefix("0b") {
        radix(binary, 2)?
    } else if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    } else if digits.len() > 1 && digits.starts_with('0') {
        radix(digits, 8).or_else(|| digits.parse().ok())?
    } else {
        digits.parse().ok()?
    };
    if negative { 0_i64.checked_sub_unsigned(number).map(Value::from) } else { Some(Value::from(number)) }
}

fn float(text: &str) -> Option<Value> {
    let looks_like_one = text.bytes().any(|c| c.is_ascii_digit())
        && text.bytes().all(|c| c.is_ascii_digit() || b"+-.eE".contains(&c))
        && !text.contains("..");
    let number = looks_like_one.then(|| text.parse::<f64>().ok()).flatten()?;
    // `10.0` is stored as 10.
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return Some(Value::from(number as i64));
    }
    Number::from_f64(number).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(text: &str) -> Node {
        let (mut documents, broken) = read(text);
        assert!(broken.is_empty(), "{broken:?}");
        documents.remove(0)
    }

    #[test]
    fn scalars_mean_what_kubectl_makes_of_them() {
        let text = "[1, -2, +3, 0x1F, 0755, 1.5, 10.0, 1e3, yes, off, ~, '1', \"yes\", 1m, 1.2.3, !!str 5, -, 9e999]";
        let expected =
            json!([1, -2, 3, 31, 493, 1.5, 10, 1000, true, false, null, "1", "yes", "1m", "1.2.3", "5", "-", "9e999"]);
        assert_eq!(one(&text.replace("-, ", "\"-\", ")).value(), expected);
    }

    #[test]
    fn lines_of_paths() {
        let node = one("a:\n  b:\n    - c: 1\n    - c: 2\n      app.io/x: 3\n");
        assert_eq!(node.line_of("a"), 1);
        assert_eq!(node.line_of("a.b[1].c"), 4);
        assert_eq!(node.line_of("a.b[1].app.io/x"), 5);
        assert_eq!(node.line_of("a.b[7].c"), 2);
        assert_eq!(node.line_of("a.missing.x"), 1);
    }

    #[test]
    fn aliases_and_merges_are_followed() {
        let node = one("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\ncopy: *b\n");
        assert_eq!(node.value()["use"], json!({ "y": 3, "x": 1 }));
        assert_eq!(node.value()["copy"], json!({ "x": 1, "y": 2 }));
    }

    #[test]
    fn faults_have_a_line() {
        let (documents, broken) = read("a: 1\n---\nb: [1\nc: 2\n");
        assert_eq!((documents.len(), broken.len()), (1, 1));
        assert!(broken[0].line >= 3 && !broken[0].problem.is_empty(), "{broken:?}");
        let (_, broken) = read("a: 1\nb: 2\na: 3\n");
        assert_eq!((broken[0].line, broken[0].problem.as_str()), (3, "the key \"a\" is written twice"));
    }

    #[test]
    fn laughter_is_bounded() {
        let level = |level: usize| {
            let alias = vec![format!("*a{}", level - 1); 10].join(", ");
            format!("a{level}: &a{level} [{alias}]")
        };
        let first = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned();
        let text = std::iter::once(first).chain((1..9).map(level)).collect::<Vec<_>>().join("\n");
        let (_, broken) = read(&text);
        assert!(broken[0].problem.contains("too large"), "{broken:?}");
    }

    #[test]
    fn empty_documents_and_lists() {
        let (documents, broken) = read("---\n# nothing\n---\nkind: List\nitems: [{a: 1}, {a: 2}]\n");
        assert!(broken.is_empty());
        let objects: Vec<_> = documents.into_iter().flat_map(Node::objects).collect();
        assert_eq!(objects.len(), 2);
    }
}
