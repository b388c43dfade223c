//! OpenAPI v2 in protobuf, the only form in which `kubectl` asks for it: for kinds it finds nowhere else, and for
//! `explain` in its old style.
//!
//! Written from the JSON form, field by field, with the numbers of the published message types. Keywords that nobody
//! reads from it (bounds of numbers, lengths) are left out.

use serde_json::Value;

use super::meta;

/// What clients call it, in the order of age; the first is no proper media type, so the second is what they get.
pub(crate) const ASKED: [&str; 2] = ["application/com.github.proto-openapi.spec.v2@v1.0+protobuf", MEDIA_TYPE];
/// What it is called.
pub(crate) const MEDIA_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The document in protobuf.
pub(crate) fn encode(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, meta::text(document, "/swagger"));
    let mut info = Message::default();
    info.text(1, meta::text(document, "/info/title"));
    info.text(2, meta::text(document, "/info/version"));
    message.message(2, &info);
    let mut paths = Message::default();
    for (name, item) in members(document.get("paths")) {
        paths.message(2, &named(name, &path_item(item)));
    }
    message.message(8, &paths);
    let mut definitions = Message::default();
    for (name, definition) in members(document.get("definitions")) {
        definitions.message(1, &named(name, &schema(definition)));
    }
    message.message(9, &definitions);
    message.0
}

fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    for (number, method) in [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (8, "patch")] {
        if let Some(found) = item.get(method) {
            message.message(number, &operation(found));
        }
    }
    for found in items(item.get("parameters")) {
        message.message(9, &parameter(found));
    }
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    for language in meta::strings(operation.get("consumes")) {
        message.text(7, language);
    }
    for found in items(operation.get("parameters")) {
        message.message(8, &parameter(found));
    }
    message.extensions(13, operation);
    message
}

fn parameter(parameter: &Value) -> Message {
    let of_query = meta::text(parameter, "/in") == "query";
    let mut own = Message::default();
    own.flag(1, parameter.get("required"));
    own.text(2, meta::text(parameter, "/in"));
    own.text(4, meta::text(parameter, "/name"));
    own.text(if of_query { 6 } else { 5 }, meta::text(parameter, "/type"));
    let not_a_body = Message::around(if of_query { 3 } else { 4 }, &own);
    Message::around(1, &Message::around(2, &not_a_body))
}

fn schema(schema: &Value) -> Message {
    let mut message = Message::default();
    for (number, key) in [(1, "$ref"), (2, "format"), (4, "description"), (13, "pattern")] {
        if let Some(text) = schema.get(key).and_then(Value::as_str) {
            message.text(number, text);
        }
    }
    if let Some(default) = schema.get("default") {
        message.message(5, &any(default));
    }
    for name in meta::strings(schema.get("required")) {
        message.text(19, name);
    }
    for value in items(schema.get("enum")) {
        message.message(20, &any(value));
    }
    match schema.get("additionalProperties") {
        Some(inner @ Value::Object(_)) => message.message(21, &Message::around(1, &self::schema(inner))),
        Some(Value::Bool(true)) => {
            let mut allowed = Message::default();
            allowed.flag(2, Some(&Value::Bool(true)));
            message.message(21, &allowed);
        }
        _ => {}
    }
    if let Some(kind) = schema.get("type").and_then(Value::as_str) {
        let mut kinds = Message::default();
        kinds.text(1, kind);
        message.message(22, &kinds);
    }
    if let Some(inner) = schema.get("items").filter(|inner| inner.is_object()) {
        message.message(23, &Message::around(1, &self::schema(inner)));
    }
    if let Some(properties) = schema.get("properties") {
        let mut all = Message::default();
        for (name, property) in members(Some(properties)) {
            all.message(1, &named(name, &self::schema(property)));
        }
        message.message(25, &all);
    }
    message.extensions(31, schema);
    message
}

fn named(name: &str, value: &Message) -> Message {
    let mut message = Message::default();
    message.text(1, name);
    message.message(2, value);
    message
}

/// Any value is sent as YAML, which JSON is too.
fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.text(2, &value.to_string());
    message
}

fn members(value: Option<&Value>) -> impl Iterator<Item = (&str, &Value)> {
    let members = value.and_then(Value::as_object).into_iter().flatten();
    members.map(|(name, value)| (name.as_str(), value))
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A message in the making.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// A message with nothing but another one in it.
    fn around(number: u64, inner: &Self) -> Self {
        let mut message = Self::default();
        message.message(number, inner);
        message
    }

    fn text(&mut self, number: u64, text: &str) {
        self.bytes(number, text.as_bytes());
    }

    fn message(&mut self, number: u64, inner: &Self) {
        self.bytes(number, &inner.0);
    }

    fn flag(&mut self, number: u64, flag: Option<&Value>) {
        if flag == Some(&Value::Bool(true)) {
            self.varint(number << 3);
            self.varint(1);
        }
    }

    fn extensions(&mut self, number: u64, of: &Value) {
        for (name, value) in members(Some(of)).filter(|(name, _)| name.starts_with("x-")) {
            self.message(number, &named(name, &any(value)));
        }
    }

    fn bytes(&mut self, number: u64, bytes: &[u8]) {
        self.varint(number << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_written_in_the_published_numbers() {
        let document = json!({
            "swagger": "2.0",
            "definitions": {"a": {"type": "object", "required": ["b"], "x-y": [1]}},
        });
        let mut expected = b"\x0a\x032.0\x12\x04\x0a\x00\x12\x00\x42\x00\x4a\x25\x0a\x23\x0a\x01a\x12\x1e".to_vec();
        expected.extend(b"\x9a\x01\x01b\xb2\x01\x08\x0a\x06object\xfa\x01\x0c\x0a\x03x-y\x12\x05\x12\x03[1]");
        let written = encode(&document);
        assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(&expected));
    }
}
