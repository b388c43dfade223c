//! The tree into text, within limits.

use std::collections::BTreeMap;

use super::format;
use super::parse::{Node, Operand, Pipeline};
use super::{MOST_OUTPUT, MOST_STEPS, TemplateError, Vars};

/// A value while rendering.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Map(BTreeMap<String, String>),
}

type Result<T> = std::result::Result<T, TemplateError>;

pub(super) fn wrong<T>(problem: impl Into<String>) -> Result<T> {
    Err(TemplateError::Type(problem.into()))
}

pub(super) fn render(nodes: &[Node], vars: &Vars) -> Result<String> {
    let mut machine = Machine { vars, steps: 0, out: String::new(), variables: Vec::new() };
    machine.run(nodes, &Value::Nil)?;
    Ok(machine.out)
}

struct Machine<'a> {
    vars: &'a Vars,
    steps: u32,
    out: String,
    /// Innermost last; a block forgets its own when it ends.
    variables: Vec<(String, Value)>,
}

/// How a list of nodes ended.
#[derive(PartialEq)]
enum Flow {
    Next,
    Break,
    Continue,
}

impl Value {
    /// Go's truth: everything but false, zero, empty and nothing.
    fn is_true(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(value) => !value.is_empty(),
            Self::Map(value) => !value.is_empty(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::Map(_) => "map",
        }
    }
}

impl Machine<'_> {
    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(TemplateError::Limit(format!("the template takes more than {MOST_STEPS} steps")));
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<()> {
        if self.out.len() + text.len() > MOST_OUTPUT {
            return Err(TemplateError::Limit(format!("the text is longer than {MOST_OUTPUT} bytes")));
        }
        self.out.push_str(text);
        Ok(())
    }

    fn run(&mut self, nodes: &[Node], dot: &Value) -> Result<Flow> {
        let scope = self.variables.len();
        let mut flow = Flow::Next;
        for node in nodes {
            self.step()?;
            flow = self.node(node, dot)?;
            if flow != Flow::Next {
                break;
            }
        }
        self.variables.truncate(scope);
        Ok(flow)
    }

    fn node(&mut self, node: &Node, dot: &Value) -> Result<Flow> {
        match node {
            Node::Text(text) => self.write(text)?,
            Node::Print(pipeline) => {
                let value = self.pipeline(pipeline, dot)?;
                let text = format::plain(&value)?;
                self.write(&text)?;
            }
            Node::Set { name, declare, value } => {
                let value = self.pipeline(value, dot)?;
                self.set(name, *declare, value);
            }
            Node::If { with, name, condition, then, otherwise } => {
                let scope = self.variables.len();
                let value = self.pipeline(condition, dot)?;
                if let Some(name) = name {
                    self.set(name, true, value.clone());
                }
                let branch = if value.is_true() { then } else { otherwise };
                let inner = if *with && value.is_true() { &value } else { dot };
                let flow = self.run(branch, inner)?;
                self.variables.truncate(scope);
                return Ok(flow);
            }
            Node::Range { names, over, body, otherwise } => return self.range(names, over, body, otherwise, dot),
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn set(&mut self, name: &str, declare: bool, value: Value) {
        match self.variables.iter_mut().rev().find(|(known, _)| known == name) {
            Some((_, old)) if !declare => *old = value,
            _ => self.variables.push((name.to_owned(), value)),
        }
    }

    fn range(
        &mut self,
        names: &[String],
        over: &Pipeline,
        body: &[Node],
        otherwise: &[Node],
        dot: &Value,
    ) -> Result<Flow> {
        let turns: Box<dyn Iterator<Item = (Value, Value)>> = match self.pipeline(over, dot)? {
            Value::Map(map) => Box::new(map.into_iter().map(|(key, value)| (Value::Text(key), Value::Text(value)))),
            Value::Int(count) => Box::new((0..count.max(0)).map(|turn| (Value::Int(turn), Value::Int(turn)))),
            other => return wrong(format!("range can't iterate over {}", other.kind())),
        };
        let mut turned = false;
        for (key, value) in turns {
            turned = true;
            self.step()?;
            let scope = self.variables.len();
            match names {
                [only] => self.set(only, true, value.clone()),
                [first, second] => {
                    self.set(first, true, key);
                    self.set(second, true, value.clone());
                }
                _ => {}
            }
            let flow = self.run(body, &value)?;
            self.variables.truncate(scope);
            if flow == Flow::Break {
                break;
            }
        }
        if turned { Ok(Flow::Next) } else { self.run(otherwise, dot) }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, dot: &Value) -> Result<Value> {
        let mut fed = None;
        for command in &pipeline.commands {
            self.step()?;
            fed = Some(self.command(command, dot, fed)?);
        }
        Ok(fed.unwrap_or(Value::Nil))
    }

    fn command(&mut self, command: &[Operand], dot: &Value, fed: Option<Value>) -> Result<Value> {
        match command {
            [Operand::Function(function), arguments @ ..] => self.call(function, arguments, dot, fed),
            [operand] => self.operand(operand, dot),
            _ => wrong("nothing to evaluate"),
        }
    }

    fn operand(&mut self, operand: &Operand, dot: &Value) -> Result<Value> {
        Ok(match operand {
            Operand::Function(function) => self.call(function, &[], dot, None)?,
            Operand::Variable(name) => {
                let known = self.variables.iter().rev().find(|(known, _)| known == name);
                known.map_or(Value::Nil, |(_, value)| value.clone())
            }
            Operand::Dot => dot.clone(),
            Operand::Nil => Value::Nil,
            Operand::Bool(value) => Value::Bool(*value),
            Operand::Int(value) => Value::Int(*value),
            Operand::Float(value) => Value::Float(*value),
            Operand::String(value) => Value::Text(value.clone()),
            Operand::Nested(pipeline) => self.pipeline(pipeline, dot)?,
            Operand::Fields(operand, fields) => {
                let mut value = self.operand(operand, dot)?;
                for name in fields {
                    value = field(&value, name)?;
                }
                value
            }
        })
    }

    fn call(&mut self, function: &str, arguments: &[Operand], dot: &Value, fed: Option<Value>) -> Result<Value> {
        self.step()?;
        if let "and" | "or" = function {
            return self.choose(function == "or", arguments, dot, fed);
        }
        let mut values = Vec::with_capacity(arguments.len() + 1);
        for argument in arguments {
            values.push(self.operand(argument, dot)?);
        }
        values.extend(fed);
        let value = match function {
            "printf" => Value::Text(format::printf(&values)?),
            "print" => Value::Text(format::print(&values)?),
            "not" | "len" | "index" | "eq" | "ne" | "lt" | "le" | "gt" | "ge" => builtin(function, &values)?,
            _ if !values.is_empty() => return wrong(format!("{function} takes no arguments")),
            _ => self.of_canary(function)?,
        };
        match &value {
            Value::Text(text) if text.len() > MOST_OUTPUT => {
                Err(TemplateError::Limit(format!("a value is longer than {MOST_OUTPUT} bytes")))
            }
            _ => Ok(value),
        }
    }

    /// `and` and `or` give back the value that decided, and look no further.
    fn choose(&mut self, or: bool, arguments: &[Operand], dot: &Value, fed: Option<Value>) -> Result<Value> {
        let mut last = None;
        for argument in arguments {
            let value = self.operand(argument, dot)?;
            if value.is_true() == or {
                return Ok(value);
            }
            last = Some(value);
        }
        fed.or(last).map_or_else(|| wrong("and and or need an argument"), Ok)
    }

    fn of_canary(&self, function: &str) -> Result<Value> {
        let vars = self.vars;
        let text = match function {
            "name" => &vars.name,
            "namespace" => &vars.namespace,
            "target" => &vars.target,
            "service" => &vars.service,
            "ingress" => &vars.ingress,
            "route" => &vars.route,
            "interval" => &vars.interval,
            "variables" => return Ok(Value::Map(vars.variables.clone())),
            other => return wrong(format!("function \"{other}\" not defined")),
        };
        Ok(Value::Text(text.clone()))
    }
}

fn field(value: &Value, name: &str) -> Result<Value> {
    match value {
        Value::Map(map) => match map.get(name) {
            Some(text) => Ok(Value::Text(text.clone())),
            None => Err(TemplateError::MissingKey(name.to_owned())),
        },
        other => wrong(format!("can't evaluate field {name} in {}", other.kind())),
    }
}

fn builtin(function: &str, values: &[Value]) -> Result<Value> {
    let value = match (function, values) {
        ("not", [value]) => Value::Bool(!value.is_true()),
        ("len", [Value::Text(text)]) => Value::Int(text.len() as i64),
        ("len", [Value::Map(map)]) => Value::Int(map.len() as i64),
        ("index", [Value::Map(map), Value::Text(key)]) => match map.get(key) {
            Some(text) => Value::Text(text.clone()),
            None => return Err(TemplateError::MissingKey(key.clone())),
        },
        ("eq", [first, rest @ ..]) if !rest.is_empty() => {
            let mut equal = false;
            for other in rest {
                equal |= compare(first, other)? == Some(std::cmp::Ordering::Equal);
            }
            Value::Bool(equal)
        }
        ("ne" | "lt" | "le" | "gt" | "ge", [first, second]) => {
            let order = compare(first, second)?;
            Value::Bool(match (function, order) {
                ("ne", order) => order.is_none_or(std::cmp::Ordering::is_ne),
                ("lt", Some(order)) => order.is_lt(),
                ("le", Some(order)) => order.is_le(),
                ("gt", Some(order)) => order.is_gt(),
                ("ge", Some(order)) => order.is_ge(),
                _ => false,
            })
        }
        _ => return wrong(format!("wrong arguments for {function}")),
    };
    Ok(value)
}

fn compare(first: &Value, second: &Value) -> Result<Option<std::cmp::Ordering>> {
    match (first, second) {
        (Value::Int(a), Value::Int(b)) => Ok(Some(a.cmp(b))),
        (Value::Float(a), Value::Float(b)) => Ok(a.partial_cmp(b)),
        (Value::Text(a), Value::Text(b)) => Ok(Some(a.cmp(b))),
        (Value::Bool(a), Value::Bool(b)) => Ok(Some(a.cmp(b))),
        _ => wrong(format!("incompatible types for comparison: {} and {}", first.kind(), second.kind())),
    }
}
