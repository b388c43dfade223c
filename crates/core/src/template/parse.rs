//! Tokens into a tree; everything that can be refused is refused here.
//!
//! The work is proportional to the number of tokens: the parser looks at most four of them ahead and never goes back.
//! Templates come from users and are parsed in the operator's own rounds.

use std::collections::{BTreeSet, VecDeque};

use super::lex::{Token, TokenKind, syntax};
use super::{MOST_DEPTH, TemplateError};

/// A piece of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Text(String),
    /// A pipeline whose value is written.
    Print(Pipeline),
    /// `$x := …` or `$x = …`, which write nothing.
    Set {
        name: String,
        declare: bool,
        value: Pipeline,
    },
    If {
        /// `with`: the value becomes the dot.
        with: bool,
        /// `$x := …` in the condition.
        name: Option<String>,
        condition: Pipeline,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Range {
        /// `$v :=` or `$k, $v :=`.
        names: Vec<String>,
        over: Pipeline,
        body: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Break,
    Continue,
}

/// Commands, each fed with the value of the one before.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pipeline {
    pub commands: Vec<Vec<Operand>>,
}

/// One word of a command.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Function(&'static str),
    Variable(String),
    Dot,
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(String),
    Nested(Box<Pipeline>),
    /// `.a.b` of something.
    Fields(Box<Operand>, Vec<String>),
}

/// Every function that exists: values of the canary, then Go's own.
const FUNCTIONS: [&str; 21] = [
    "name",
    "namespace",
    "target",
    "service",
    "ingress",
    "route",
    "interval",
    "variables",
    "and",
    "or",
    "not",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "len",
    "index",
    "print",
    "printf",
];

pub(super) fn parse(tokens: Vec<Token>) -> Result<Vec<Node>, TemplateError> {
    Parser::new(tokens).whole()
}

struct Parser {
    tokens: VecDeque<Token>,
    line: usize,
    /// Names of variables in sight, innermost last.
    scopes: Vec<BTreeSet<String>>,
    depth: usize,
    loops: usize,
    /// How often a token was looked at.
    #[cfg(test)]
    looks: usize,
}

/// How a block ended.
#[derive(PartialEq)]
enum Ending {
    Input,
    Closed,
    Else,
}

type Parsed<T> = Result<T, TemplateError>;

impl Parser {
    fn new(tokens: Vec<Token>) -> Self {
        Self {
            tokens: tokens.into(),
            line: 1,
            scopes: vec![BTreeSet::new()],
            depth: 0,
            loops: 0,
            #[cfg(test)]
            looks: 0,
        }
    }

    fn whole(&mut self) -> Parsed<Vec<Node>> {
        match self.block(true)? {
            (nodes, Ending::Input) => Ok(nodes),
            (_, Ending::Closed) => self.fail("unexpected {{end}}"),
            (_, Ending::Else) => self.fail("unexpected {{else}}"),
        }
    }

    fn next(&mut self) -> Option<TokenKind> {
        let token = self.tokens.pop_front()?;
        self.line = token.line;
        Some(token.kind)
    }

    fn peek(&mut self) -> Option<&TokenKind> {
        self.ahead(0)
    }

    /// The token after `distance` others. The only way to see one without taking it.
    fn ahead(&mut self, distance: usize) -> Option<&TokenKind> {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        self.tokens.get(distance).map(|token| &token.kind)
    }

    fn eat(&mut self, kind: &TokenKind) -> bool {
        let there = self.peek() == Some(kind);
        if there {
            self.next();
        }
        there
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let there = matches!(self.peek(), Some(TokenKind::Word(found)) if found == word);
        if there {
            self.next();
        }
        there
    }

    fn fail<T>(&self, problem: impl Into<String>) -> Parsed<T> {
        Err(syntax(self.line, problem))
    }

    fn close(&mut self) -> Parsed<()> {
        if self.eat(&TokenKind::Close) { Ok(()) } else { self.fail("unexpected text in action") }
    }

    fn deeper(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MOST_DEPTH { self.fail(format!("nested deeper than {MOST_DEPTH}")) } else { Ok(()) }
    }

    /// Nodes up to the end of the block. `top`: the input may end here.
    fn block(&mut self, top: bool) -> Parsed<(Vec<Node>, Ending)> {
        self.deeper()?;
        let mut nodes = Vec::new();
        let end = loop {
            match self.next() {
                None if top => break Ending::Input,
                None => return self.fail("unexpected end of template, {{end}} is missing"),
                Some(TokenKind::Text(text)) => nodes.push(Node::Text(text)),
                Some(TokenKind::Open) if self.eat_word("end") => {
                    self.close()?;
                    break Ending::Closed;
                }
                // What follows `else` is read by whoever wanted it.
                Some(TokenKind::Open) if self.eat_word("else") => break Ending::Else,
                Some(TokenKind::Open) => nodes.push(self.action()?),
                Some(_) => return self.fail("unexpected token"),
            }
        };
        self.depth -= 1;
        Ok((nodes, end))
    }

    fn action(&mut self) -> Parsed<Node> {
        for (word, with) in [("if", false), ("with", true)] {
            if self.eat_word(word) {
                return self.condition(with);
            }
        }
        if self.eat_word("range") {
            return self.range();
        }
        for (word, node) in [("break", Node::Break), ("continue", Node::Continue)] {
            if self.eat_word(word) {
                self.close()?;
                return if self.loops == 0 {
                    self.fail(format!("{{{{{word}}}}} outside {{{{range}}}}"))
                } else {
                    Ok(node)
                };
            }
        }
        let node = match self.assignment()? {
            Some((name, declare)) => {
                let value = self.pipeline()?;
                if declare {
                    self.declare(name.clone());
                }
                Node::Set { name, declare, value }
            }
            None => Node::Print(self.pipeline()?),
        };
        self.close()?;
        Ok(node)
    }

    /// `$x :=` or `$x =` at the beginning of an action.
    fn assignment(&mut self) -> Parsed<Option<(String, bool)>> {
        let Some(name) = self.variable_ahead(0) else { return Ok(None) };
        let declare = match self.ahead(1) {
            Some(TokenKind::Declare) => true,
            Some(TokenKind::Assign) => false,
            _ => return Ok(None),
        };
        self.next();
        self.next();
        if !declare {
            self.known(&name)?;
        }
        Ok(Some((name, declare)))
    }

    fn variable_ahead(&mut self, distance: usize) -> Option<String> {
        match self.ahead(distance) {
            Some(TokenKind::Variable(name)) => Some(name.clone()),
            _ => None,
        }
    }

    fn declare(&mut self, name: String) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name);
        }
    }

    fn known(&self, name: &str) -> Parsed<()> {
        let there = self.scopes.iter().any(|scope| scope.contains(name));
        if there { Ok(()) } else { self.fail(format!("undefined variable \"${name}\"")) }
    }

    fn condition(&mut self, with: bool) -> Parsed<Node> {
        self.scopes.push(BTreeSet::new());
        let name = self.assignment()?.map(|(name, _)| name);
        let condition = self.pipeline()?;
        self.close()?;
        if let Some(name) = &name {
            self.declare(name.clone());
        }
        let (then, end) = self.block(false)?;
        let otherwise = self.otherwise(&end, if with { "with" } else { "if" })?;
        self.scopes.pop();
        Ok(Node::If { with, name, condition, then, otherwise })
    }

    /// What follows `else`, up to the end of the block; `else if` is a block of its own that shares the end.
    fn otherwise(&mut self, end: &Ending, chained: &str) -> Parsed<Vec<Node>> {
        if *end != Ending::Else {
            return Ok(Vec::new());
        }
        if self.eat_word(chained) {
            self.deeper()?;
            let node = self.condition(chained == "with")?;
            self.depth -= 1;
            return Ok(vec![node]);
        }
        self.close()?;
        match self.block(false)? {
            (nodes, Ending::Closed) => Ok(nodes),
            _ => self.fail("expected {{end}}"),
        }
    }

    fn range(&mut self) -> Parsed<Node> {
        self.scopes.push(BTreeSet::new());
        let names = self.range_names();
        let over = self.pipeline()?;
        self.close()?;
        for name in &names {
            self.declare(name.clone());
        }
        self.loops += 1;
        let (body, end) = self.block(false)?;
        self.loops -= 1;
        let otherwise = self.otherwise(&end, "")?;
        self.scopes.pop();
        Ok(Node::Range { names, over, body, otherwise })
    }

    /// `$v :=` or `$k, $v :=`.
    fn range_names(&mut self) -> Vec<String> {
        let names = match (self.variable_ahead(0), self.variable_ahead(2)) {
            (Some(value), _) if self.ahead(1) == Some(&TokenKind::Declare) => vec![value],
            (Some(key), Some(value))
                if self.ahead(1) == Some(&TokenKind::Comma) && self.ahead(3) == Some(&TokenKind::Declare) =>
            {
                vec![key, value]
            }
            _ => return Vec::new(),
        };
        for _ in 0..names.len() * 2 {
            self.next();
        }
        names
    }

    fn pipeline(&mut self) -> Parsed<Pipeline> {
        let mut commands = vec![self.command()?];
        while self.eat(&TokenKind::Pipe) {
            let command = self.command()?;
            if !matches!(command.first(), Some(Operand::Function(_))) {
                return self.fail("only a function can be fed by a pipeline");
            }
            commands.push(command);
        }
        Ok(Pipeline { commands })
    }

    fn command(&mut self) -> Parsed<Vec<Operand>> {
        let mut operands = Vec::new();
        while !matches!(self.peek(), None | Some(TokenKind::Pipe | TokenKind::Close | TokenKind::Right)) {
            operands.push(self.operand()?);
        }
        match operands.as_slice() {
            [] => self.fail("missing value for command"),
            [Operand::Function(_), ..] | [_] => Ok(operands),
            _ => self.fail("can't give arguments to something that is not a function"),
        }
    }

    fn operand(&mut self) -> Parsed<Operand> {
        let operand = match self.next() {
            Some(TokenKind::Word(word)) => self.word(&word)?,
            Some(TokenKind::Variable(name)) => {
                self.known(&name)?;
                Operand::Variable(name)
            }
            Some(TokenKind::Dot) => Operand::Dot,
            Some(TokenKind::Field { name, .. }) => Operand::Fields(Box::new(Operand::Dot), vec![name]),
            Some(TokenKind::String(text)) => Operand::String(text),
            Some(TokenKind::Int(number)) => Operand::Int(number),
            Some(TokenKind::Float(number)) => Operand::Float(number),
            Some(TokenKind::Left) => {
                self.deeper()?;
                let pipeline = self.pipeline()?;
                self.depth -= 1;
                if !self.eat(&TokenKind::Right) {
                    return self.fail("unclosed left paren");
                }
                Operand::Nested(Box::new(pipeline))
            }
            _ => return self.fail("unexpected token in command"),
        };
        let mut fields = Vec::new();
        while let Some(TokenKind::Field { joined: true, .. }) = self.peek() {
            if let Some(TokenKind::Field { name, .. }) = self.next() {
                fields.push(name);
            }
        }
        Ok(if fields.is_empty() { operand } else { Operand::Fields(Box::new(operand), fields) })
    }

    fn word(&self, word: &str) -> Parsed<Operand> {
        match word {
            "true" => return Ok(Operand::Bool(true)),
            "false" => return Ok(Operand::Bool(false)),
            "nil" => return Ok(Operand::Nil),
            "define" | "template" | "block" => return self.fail(format!("{word} is not supported")),
            _ => {}
        }
        match FUNCTIONS.iter().find(|function| **function == word) {
            Some(function) => Ok(Operand::Function(function)),
            None => self.fail(format!("function \"{word}\" not defined")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lex::lex;
    use super::super::{MOST_INPUT, parse as parse_text};
    use super::*;

    #[test]
    fn the_work_grows_with_the_template_and_no_faster() {
        for piece in [
            "{{name}}",
            "{{$x:=1}}{{$x}}",
            "{{if 1}}{{end}}",
            "{{range $k,$v:=variables}}{{$k}}{{end}}",
            "{{with $y:=1}}{{else}}{{end}}",
            "{{(1)}}",
            "{{print 1 2|print}}",
        ] {
            let text = piece.repeat(MOST_INPUT / piece.len());
            let tokens = lex(&text).unwrap();
            let count = tokens.len();
            let mut parser = Parser::new(tokens);
            parser.whole().unwrap();
            let looks = parser.looks;
            assert!(looks <= 10 * count, "{piece}: {looks} looks at {count} tokens");
        }
    }

    #[test]
    fn a_variable_is_known_only_in_its_block() {
        for (text, fine) in [
            ("{{ if 1 }}{{ $x := 1 }}{{ $x }}{{ end }}", true),
            ("{{ with $x := 1 }}{{ end }}{{ $x }}", false),
            ("{{ range $k, $v := variables }}{{ $k }}{{ $v }}{{ end }}", true),
            ("{{ range $k, $v := variables }}{{ end }}{{ $v }}", false),
            ("{{ range $k, $v variables }}{{ end }}", false),
        ] {
            assert_eq!(parse_text(text).is_ok(), fine, "{text}");
        }
    }
}
