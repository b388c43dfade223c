//! Bodies in protobuf, which typed Go clients send without being told to: read into the JSON everything else works with.
//!
//! Only requests are read. Answers are JSON, which every client that sends protobuf also takes. Numbers and names come
//! from a generated table, which also says what Go would have left out of JSON, so that a body means the same in both.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Number, Value, json};

/// The media type of such a body.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every such body starts with.
const MAGIC: &[u8] = b"k8s\0";

/// How deep messages may be nested.
const DEPTH: usize = 64;

/// What is wrong with a body, for people.
type Complaint = String;

/// One member of a message.
struct Field {
    number: u64,
    /// Its name in JSON; empty when its own members stand in its place.
    name: String,
    kind: Kind,
    /// Not written to JSON when it is zero.
    omit: bool,
}

enum Kind {
    Text,
    Bytes,
    Flag,
    Int,
    Float,
    Message(String),
    List(Box<Kind>),
    Map(Box<Kind>),
}

impl Kind {
    fn parse(text: &str) -> Self {
        if let Some(item) = text.strip_prefix("[]") {
            return Self::List(Box::new(Self::parse(item)));
        }
        if let Some(value) = text.strip_prefix("{}") {
            return Self::Map(Box::new(Self::parse(value)));
        }
        match text {
            "string" => Self::Text,
            "bytes" => Self::Bytes,
            "bool" => Self::Flag,
            "int" => Self::Int,
            "float" => Self::Float,
            name => Self::Message(name.to_owned()),
        }
    }
}

static MESSAGES: LazyLock<BTreeMap<String, Vec<Field>>> = LazyLock::new(|| {
    let table: BTreeMap<String, Vec<String>> =
        serde_json::from_str(include_str!("../schema/protobuf.json")).unwrap_or_default();
    let field = |text: &String| {
        let words: Vec<&str> = text.split(' ').collect();
        let [number, name, kind, how @ ..] = words.as_slice() else { return None };
        let name = if *name == "-" { String::new() } else { (*name).to_owned() };
        Some(Field { number: number.parse().ok()?, name, kind: Kind::parse(kind), omit: how.contains(&"omit") })
    };
    table.into_iter().map(|(name, fields)| (name, fields.iter().filter_map(field).collect())).collect()
});

/// Reads a body.
pub(crate) fn decode(body: &[u8]) -> Result<Value, Complaint> {
    let body = body.strip_prefix(MAGIC).ok_or("it does not begin as a protobuf body does")?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    each(body, |number, wire| {
        match (number, wire) {
            (1, Wire::Bytes(header)) => each(header, |number, wire| {
                match (number, wire) {
                    (1, Wire::Bytes(bytes)) => api_version = text(bytes)?,
                    (2, Wire::Bytes(bytes)) => kind = text(bytes)?,
                    _ => {}
                }
                Ok(())
            })?,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
        Ok(())
    })?;
    let name = type_name(&api_version, &kind);
    if !MESSAGES.contains_key(&name) {
        return Err(format!("{kind} of {api_version} is not offered in protobuf, only in JSON"));
    }
    let mut object = Map::from_iter([("apiVersion".to_owned(), json!(api_version)), ("kind".to_owned(), json!(kind))]);
    message(&name, raw, &mut object, 0)?;
    Ok(Value::Object(object))
}

/// Whether Go has a type for a kind.
pub(crate) fn is_known(api_version: &str, kind: &str) -> bool {
    MESSAGES.contains_key(&type_name(api_version, kind))
}

/// The members of a type that Go does not write to JSON when they are zero.
pub(crate) fn omitted(name: &str) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    for field in MESSAGES.get(name).map_or(&[][..], Vec::as_slice) {
        match &field.kind {
            Kind::Message(inner) if field.name.is_empty() => found.extend(omitted(inner)),
            _ if field.omit => drop(found.insert(field.name.as_str())),
            _ => {}
        }
    }
    found
}

/// The name a kind has in the tables.
fn type_name(api_version: &str, kind: &str) -> String {
    if kind == "DeleteOptions" {
        return "meta.v1.DeleteOptions".to_owned();
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    format!("{}.{version}.{kind}", group.split('.').next().unwrap_or_default())
}

/// Adds the members of a message to an object.
fn message(name: &str, bytes: &[u8], object: &mut Map<String, Value>, depth: usize) -> Result<(), Complaint> {
    if depth > DEPTH {
        return Err("it is nested too deeply".to_owned());
    }
    let fields = MESSAGES.get(name).map_or(&[][..], Vec::as_slice);
    each(bytes, |number, wire| {
        let Some(field) = fields.iter().find(|field| field.number == number) else { return Ok(()) };
        match (&field.kind, wire) {
            (Kind::Message(inner), Wire::Bytes(bytes)) if field.name.is_empty() => {
                message(inner, bytes, object, depth + 1)
            }
            (Kind::List(item), wire) => {
                let value = value(item, wire, depth)?;
                let list = object.entry(field.name.clone()).or_insert_with(|| json!([]));
                list.as_array_mut().into_iter().for_each(|list| list.push(value.clone()));
                Ok(())
            }
            (Kind::Map(kind), Wire::Bytes(bytes)) => {
                let (key, value) = entry(kind, bytes, depth)?;
                let map = object.entry(field.name.clone()).or_insert_with(|| json!({}));
                if let Some(map) = map.as_object_mut() {
                    map.insert(key, value);
                }
                Ok(())
            }
            (kind, wire) => {
                let value = value(kind, wire, depth)?;
                let left_out = value.is_null() || field.omit && is_zero(&value);
                if !left_out {
                    object.insert(field.name.clone(), value);
                }
                Ok(())
            }
        }
    })
}

/// A key and a value of a map.
fn entry(kind: &Kind, bytes: &[u8], depth: usize) -> Result<(String, Value), Complaint> {
    let (mut key, mut found) = (String::new(), Value::Null);
    each(bytes, |number, wire| {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => key = text(bytes)?,
            (2, wire) => found = value(kind, wire, depth)?,
            _ => {}
        }
        Ok(())
    })?;
    // What is not there is empty.
    if found.is_null() {
        found = value(kind, Wire::Bytes(&[]), depth).unwrap_or_default();
    }
    Ok((key, found))
}

fn value(kind: &Kind, wire: Wire<'_>, depth: usize) -> Result<Value, Complaint> {
    Ok(match (kind, wire) {
        (Kind::Text, Wire::Bytes(bytes)) => text(bytes)?.into(),
        (Kind::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Kind::Flag, Wire::Number(number)) => (number != 0).into(),
        (Kind::Int, Wire::Number(number)) => number.cast_signed().into(),
        (Kind::Float, Wire::Number(bits)) => Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number),
        (Kind::Message(name), Wire::Bytes(bytes)) => special(name, bytes)?.map_or_else(
            || {
                let mut object = Map::new();
                message(name, bytes, &mut object, depth + 1)?;
                Ok::<_, Complaint>(Value::Object(object))
            },
            Ok,
        )?,
        _ => return Err("a field is not of the type it should be".to_owned()),
    })
}

/// Types that are no objects in JSON.
fn special(name: &str, bytes: &[u8]) -> Result<Option<Value>, Complaint> {
    let (mut numbers, mut texts) = (BTreeMap::new(), BTreeMap::<u64, Vec<&[u8]>>::new());
    let known = matches!(
        name,
        "meta.v1.Time" | "meta.v1.MicroTime" | "meta.v1.FieldsV1" | "runtime.RawExtension" | "IntOrString" | "Quantity"
    );
    let list = name.ends_with(".ExtraValue");
    if !known && !list {
        return Ok(None);
    }
    each(bytes, |number, wire| {
        match wire {
            Wire::Number(value) => drop(numbers.insert(number, value.cast_signed())),
            Wire::Bytes(bytes) => texts.entry(number).or_default().push(bytes),
        }
        Ok(())
    })?;
    let number = |field: u64| numbers.get(&field).copied().unwrap_or_default();
    let first = |field: u64| texts.get(&field).and_then(|all| all.first().copied()).unwrap_or_default();
    Ok(Some(match name {
        // A time that was never set is sent as nothing.
        "meta.v1.Time" | "meta.v1.MicroTime" if bytes.is_empty() => Value::Null,
        "meta.v1.Time" | "meta.v1.MicroTime" => {
            let nanos = i32::try_from(number(2)).unwrap_or_default();
            let time = Timestamp::new(number(1), nanos).map_err(|error| error.to_string())?;
            let form = if name == "meta.v1.Time" { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%.6fZ" };
            time.strftime(form).to_string().into()
        }
        "IntOrString" if number(1) == 0 => number(2).into(),
        "IntOrString" => text(first(3))?.into(),
        "Quantity" => text(first(1))?.into(),
        "meta.v1.FieldsV1" | "runtime.RawExtension" => match first(1) {
            [] => Value::Null,
            raw => serde_json::from_slice(raw).map_err(|error| error.to_string())?,
        },
        _ => {
            let items = texts.get(&1).into_iter().flatten().map(|bytes| text(bytes).map(Value::from));
            items.collect::<Result<Vec<_>, _>>()?.into()
        }
    }))
}

pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn text(bytes: &[u8]) -> Result<String, Complaint> {
    String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())
}

/// A value as it is sent.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Calls with the number and the value of every field.
fn each<'a>(
    mut bytes: &'a [u8],
    mut take: impl FnMut(u64, Wire<'a>) -> Result<(), Complaint>,
) -> Result<(), Complaint> {
    let short = || "it ends too early".to_owned();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes).ok_or_else(short)?;
        let mut fixed = |length: usize| {
            let (head, rest) = bytes.split_at_checked(length)?;
            bytes = rest;
            Some(head.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        };
        let wire = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes).ok_or_else(short)?),
            1 => Wire::Number(fixed(8).ok_or_else(short)?),
            5 => Wire::Number(fixed(4).ok_or_else(short)?),
            2 => {
                let length = varint(&mut bytes).and_then(|length| usize::try_from(length).ok()).ok_or_else(short)?;
                let (head, rest) = bytes.split_at_checked(length).ok_or_else(short)?;
                bytes = rest;
                Wire::Bytes(head)
            }
            other => return Err(format!("it has a field of the unknown wire type {other}")),
        };
        take(tag >> 3, wire)?;
    }
    Ok(())
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field that holds bytes.
    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        let mut sent = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        sent.extend(content);
        sent
    }

    fn body(api_version: &str, kind: &str, content: &[u8]) -> Vec<u8> {
        let header = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), bytes(1, &header), bytes(2, content)].concat()
    }

    #[test]
    fn a_config_map_is_read_without_what_go_would_leave_out() {
        let metadata = [bytes(1, b"a"), bytes(2, b""), bytes(8, &[]), vec![7 << 3, 0]].concat();
        let entry = [bytes(1, b"key"), bytes(2, b"value")].concat();
        let content = [bytes(1, &metadata), bytes(2, &entry), vec![4 << 3, 0]].concat();
        assert_eq!(
            decode(&body("v1", "ConfigMap", &content)).unwrap(),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "value"}, "immutable": false})
        );
    }

    #[test]
    fn what_is_special_in_json_is_special_here() {
        let time = special("meta.v1.MicroTime", &[8, 1, 16, 0xe8, 7]).unwrap().unwrap();
        assert_eq!(time, json!("1970-01-01T00:00:01.000001Z"));
        assert_eq!(
            special("IntOrString", &bytes(3, b"http").iter().chain(&[8, 1]).copied().collect::<Vec<_>>()).unwrap(),
            Some(json!("http"))
        );
        assert_eq!(special("IntOrString", &[8, 0, 16, 80]).unwrap(), Some(json!(80)));
        assert_eq!(special("Quantity", &bytes(1, b"10m")).unwrap(), Some(json!("10m")));
        assert_eq!(special("authorization.v1.ExtraValue", &bytes(1, b"x")).unwrap(), Some(json!(["x"])));
        let negative = [
            MAGIC.to_vec(),
            bytes(1, &[bytes(1, b"apps/v1"), bytes(2, b"DeleteOptions")].concat()),
            bytes(2, &[8, 30]),
        ]
        .concat();
        assert_eq!(decode(&negative).unwrap()["gracePeriodSeconds"], 30);
    }

    #[test]
    fn inline_members_stand_in_their_parent() {
        let secret = bytes(1, b"word");
        let volume = [bytes(1, b"v"), bytes(2, &bytes(6, &secret))].concat();
        let mut object = Map::new();
        message("core.v1.Volume", &volume, &mut object, 0).unwrap();
        assert_eq!(Value::Object(object), json!({"name": "v", "secret": {"secretName": "word"}}));
    }

    #[test]
    fn broken_bodies_are_refused() {
        for broken in [&b"{}"[..], b"k8s\0\x0a", b"k8s\0\x0a\x7f", b"k8s\0\x0f", &[]] {
            assert!(decode(broken).is_err(), "{broken:?}");
        }
        assert!(decode(&body("flagger.app/v1beta1", "Canary", &[])).unwrap_err().contains("only in JSON"));
    }

    #[test]
    fn every_type_of_the_table_is_there() {
        for (name, fields) in MESSAGES.iter() {
            for field in fields {
                let mut kind = &field.kind;
                while let Kind::List(inner) | Kind::Map(inner) = kind {
                    kind = inner;
                }
                if let Kind::Message(inner) = kind {
                    let known = MESSAGES.contains_key(inner) || special(inner, &[]).unwrap().is_some();
                    assert!(known, "{name}.{} is a {inner}", field.name);
                }
            }
        }
        assert!(MESSAGES.len() > 250);
    }
}
