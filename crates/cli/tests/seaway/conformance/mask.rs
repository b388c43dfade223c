//! The mask: what two right servers may say differently, each with its reason. Everything else must be equal.
//!
//! | what | how it is compared | why |
//! |---|---|---|
//! | uids | by order of appearance | random |
//! | versions of objects | by order of appearance | one counter for everything; only equal and unequal mean something |
//! | versions of lists and bookmarks | whether one was given | other namespaces and the server's own Leases move them |
//! | the object in a message about a patch | left out | it holds versions and times |
//! | times that a message names | whether one was given | the clock |
//! | versions that a message names | whether one was given | as above |
//! | `creationTimestamp`, `deletionTimestamp`, times of managers | whether one was given | the clock |
//! | the server's own name among managers | without a version | the file name of its program |
//! | times in the conditions of definitions | whether one was given | the clock |
//! | when the server wrote a condition of a pod | whether one was given | the clock |
//! | order of `managedFields` | sorted by manager | sorted by time first, in whole seconds |
//! | suffixes of generated names | by order of appearance | random |
//! | addresses of Services | by order of appearance | any free one |
//! | ports of the nodes | whether one was given | any free one |
//! | finalizers of a namespace that is deleted | sorted | the order of a Go map |
//! | causes of a conflict | sorted | the order of a Go map |
//! | rules that cannot be evaluated | sorted, in the message too | the order of a Go map |
//! | causes of an invalid custom resource or definition | sorted, in the message too | the order of a Go map |
//! | what an apply has that its type has not | sorted, and nothing else beside an unknown field | as above |
//! | an address in a message | whether one was given | any free one |
//! | attempts to delete the objects of a definition before there is storage for them | left out | caches of a new resource |
//! | `continue` | whether one was given | opaque by contract |
//! | bookmarks other than the one after the initial events | left out | a server may send one at any time |
//! | what a bookmark has beside its metadata | left out | whatever Go writes for an object that is empty |
//! | ages in Tables | whether one was given | the clock |
//! | the name of the scheme in a message | left out | a line of kube-apiserver's source |
//! | columns of the first Table of a watch in a later one | left out | a server may repeat them when it serves two watches |
//! | descriptions of columns | left out | texts of OpenAPI for people, which nothing shows |

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::runner::Answer;

/// Names for what has appeared so far.
#[derive(Default)]
struct Mask {
    names: BTreeMap<String, String>,
    versions: BTreeMap<String, usize>,
    counts: BTreeMap<&'static str, usize>,
}

/// The answers to a script as they are compared.
pub fn masked(answers: &[Answer]) -> Vec<Value> {
    let mut mask = Mask::default();
    for answer in answers {
        mask.collect(&answer.body);
    }
    answers.iter().map(|answer| mask.answer(answer)).collect()
}

impl Mask {
    fn collect(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(members) => {
                if let Some(metadata) = members.get("metadata") {
                    let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
                    self.name("uid", text("uid"));
                    let (prefix, name) = (text("generateName"), text("name"));
                    if let Some(suffix) =
                        name.strip_prefix(prefix).filter(|suffix| !prefix.is_empty() && suffix.len() == 5)
                    {
                        self.name("suffix", suffix);
                    }
                }
                if let Some(Value::String(address)) = members.get("clusterIP") {
                    self.name("address", if address.starts_with("10.96.") { address } else { "" });
                }
                // As Tables show it.
                if let Some(port) = members.get("nodePort").and_then(Value::as_u64) {
                    self.name("port", &format!(":{port}/"));
                }
                if let Some(Value::String(uid)) = members.get("uid").filter(|_| members.contains_key("kind")) {
                    self.name("uid", if uid.len() == 36 { uid } else { "" });
                }
                members.values().for_each(|member| self.collect(member));
            }
            _ => {}
        }
    }

    fn name(&mut self, what: &'static str, text: &str) {
        if !text.is_empty() && !self.names.contains_key(text) {
            let count = self.counts.entry(what).or_default();
            *count += 1;
            let named = match what {
                "port" => ":<port>/".to_owned(),
                _ => format!("<{what} {count}>"),
            };
            self.names.insert(text.to_owned(), named);
        }
    }

    fn version(&mut self, version: &str) -> Value {
        let next = self.versions.len() + 1;
        let number = *self.versions.entry(version.to_owned()).or_insert(next);
        format!("<version {number}>").into()
    }

    fn answer(&mut self, answer: &Answer) -> Value {
        let mut body = answer.body.clone();
        if let Value::Array(events) = &mut body {
            events.retain(|event| event["type"] != "BOOKMARK" || event.to_string().contains("initial-events-end"));
        }
        if let Value::Array(events) = &mut body {
            forget_attempts(events);
        }
        for event in body.as_array_mut().into_iter().flatten().filter(|event| event["type"] == "BOOKMARK") {
            event["object"]
                .as_object_mut()
                .unwrap()
                .retain(|key, _| ["kind", "apiVersion", "metadata"].contains(&key.as_str()));
        }
        self.value(&mut body);
        let mut warnings = json!(answer.warnings);
        self.value(&mut warnings);
        ages(&mut body);
        json!({"code": answer.code, "media_type": answer.media_type, "warnings": warnings, "body": body})
    }

    fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => {
                let keys: Vec<_> = members.keys().filter(|key| key.starts_with("k:{\"uid\"")).cloned().collect();
                for key in keys {
                    let value = members.shift_remove(&key).unwrap_or_default();
                    let mut named = key;
                    self.text(&mut named);
                    members.insert(named, value);
                }
                let collective = members
                    .get("kind")
                    .and_then(Value::as_str)
                    .is_some_and(|kind| kind.ends_with("List") || kind == "Table" || kind == "Status")
                    || members.get("metadata").is_some_and(|metadata| metadata.get("name").is_none());
                // In a list it does not say of which kind it is.
                let defines = members.get("status").is_some_and(|status| status.get("acceptedNames").is_some());
                // So does a pod; nobody else is told how well it is served.
                let runs = members.get("status").is_some_and(|status| status.get("qosClass").is_some());
                let cause = members.contains_key("field") && members.contains_key("reason");
                sort_causes(members);
                if members.get("status").is_some_and(|status| status["phase"] == "Terminating")
                    && let Some(held) =
                        members.get_mut("metadata").and_then(|at| at.get_mut("finalizers")?.as_array_mut())
                {
                    held.sort_by_key(ToString::to_string);
                }
                for (key, member) in members.iter_mut() {
                    match key.as_str() {
                        "metadata" => self.metadata(member, collective),
                        "nodePort" | "healthCheckNodePort" if member.as_u64() >= Some(30000) => {
                            *member = "<port>".into();
                        }
                        "status" if defines || runs => {
                            self.value(member);
                            transitions(member);
                        }
                        "message" if collective || cause => {
                            self.value(member);
                            blur_versions(member);
                        }
                        _ => self.value(member),
                    }
                }
            }
            _ => {}
        }
    }

    fn metadata(&mut self, metadata: &mut Value, collective: bool) {
        let Some(members) = metadata.as_object_mut() else { return self.value(metadata) };
        for (key, member) in members.iter_mut() {
            match key.as_str() {
                "resourceVersion" if collective && *member != "" => *member = "<version>".into(),
                "resourceVersion" => *member = self.version(member.as_str().unwrap_or_default()),
                "creationTimestamp" | "deletionTimestamp" if member.is_string() => *member = "<time>".into(),
                "continue" if *member != "" => *member = "<continue>".into(),
                "managedFields" => {
                    self.value(member);
                    managers(member);
                }
                _ => self.value(member),
            }
        }
    }

    fn text(&self, text: &mut String) {
        // The longest first: one address may begin as another.
        for (secret, name) in self.names.iter().rev() {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), name);
            }
        }
    }
}

/// Sorts what a server says in the order of a Go map; the message says it once more.
fn sort_causes(status: &mut serde_json::Map<String, Value>) {
    let status_group = status.get("details").and_then(|details| Some(details.get("group")?.as_str()?.to_owned()));
    let Some(causes) = status.get_mut("details").and_then(|details| details.get_mut("causes")?.as_array_mut()) else {
        return;
    };
    let about_rules = |cause: &Value| cause["message"].as_str().is_some_and(|text| text.contains(" evaluating rule: "));
    let custom = causes.len() > 1
        && status_group.as_deref().is_some_and(|group| {
            ["apiextensions.k8s.io", "flagger.app", "gateway.networking.k8s.io"].contains(&group)
                || group.ends_with(".conformance.seaway.dev")
        });
    let rules = custom || causes.iter().any(about_rules);
    if rules || causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict") {
        causes.sort_by_key(ToString::to_string);
    }
    let text = |cause: &Value, field: &str| cause[field].as_str().unwrap_or_default().to_owned();
    let lines: Vec<_> =
        causes.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message"))).collect();
    let message = status.get("message").and_then(Value::as_str).unwrap_or_default();
    if let (true, Some(sorted)) = (rules, sort_lines(message, lines)) {
        status["message"] = sorted.into();
    }
}

/// A message whose list of lines is in order; `None` where it has none, or one of other lines.
fn sort_lines(message: &str, mut lines: Vec<String>) -> Option<String> {
    let (head, list) = message.split_once(": [")?;
    lines.sort_unstable();
    // What is said twice is listed once.
    lines.dedup();
    let mut rest = format!("{}, ", list.strip_suffix(']')?);
    let mut left: Vec<_> = lines.iter().map(|line| format!("{line}, ")).collect();
    // One line may begin as another: the longer one comes first.
    left.sort_by_key(|line| std::cmp::Reverse(line.len()));
    while !left.is_empty() {
        let found = left.iter().position(|line| rest.starts_with(line))?;
        rest.drain(..left.remove(found).len());
    }
    rest.is_empty().then(|| format!("{head}: [{}]", lines.join(", ")))
}

#[test]
fn lists_of_what_is_wrong_are_sorted_and_nothing_is_cut() {
    let lines = || vec!["spec.b: Required value".to_owned(), "spec.a: Invalid value: 1: x, y".to_owned()];
    let sorted = "is invalid: [spec.a: Invalid value: 1: x, y, spec.b: Required value]";
    for message in [sorted, "is invalid: [spec.b: Required value, spec.a: Invalid value: 1: x, y]"] {
        assert_eq!(sort_lines(message, lines()).as_deref(), Some(sorted));
    }
    for message in ["is invalid: spec.b: Required value", "is invalid: [spec.b: Required value]", "is invalid: [more]"]
    {
        assert_eq!(sort_lines(message, lines()), None);
    }
}

/// Leaves out the attempts of a real server to delete the objects of a resource for which it has no storage yet.
fn forget_attempts(events: &mut Vec<Value>) {
    let mut failed = false;
    events.retain(|event| {
        let conditions = event.pointer("/object/status/conditions").and_then(Value::as_array).into_iter().flatten();
        let reasons: Vec<_> = conditions.filter_map(|condition| condition["reason"].as_str()).collect();
        let again = failed && event["type"] == "MODIFIED" && reasons.contains(&"InstanceDeletionInProgress");
        let failure = reasons.contains(&"InstanceDeletionFailed");
        failed |= failure;
        !failure && !again
    });
}

/// When conditions changed.
fn transitions(status: &mut Value) {
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        if condition.get("lastTransitionTime").is_some_and(Value::is_string) {
            condition["lastTransitionTime"] = "<time>".into();
        }
    }
}

fn managers(entries: &mut Value) {
    let Some(entries) = entries.as_array_mut() else { return };
    for entry in entries.iter_mut() {
        if entry.get("time").is_some_and(Value::is_string) {
            entry["time"] = "<time>".into();
        }
        if entry["manager"].as_str().is_some_and(|name| name.starts_with("kube-apiserver")) {
            entry["manager"] = "kube-apiserver".into();
        }
    }
    entries.sort_by_key(|entry| {
        ["manager", "operation", "subresource", "apiVersion"].map(|key| entry[key].to_string()).concat()
    });
}

/// Versions in messages follow these words.
fn blur_versions(message: &mut Value) {
    let Some(text) = message.as_str() else { return };
    let mut blurred = text.to_owned();
    for word in [
        "ResourceVersion in precondition: ",
        "ResourceVersion in object meta: ",
        "Too large resource version: ",
        "current: ",
        "the ResourceVersion in the precondition (",
        "the ResourceVersion in record (",
    ] {
        if let Some((before, after)) = blurred.clone().split_once(word) {
            blurred = format!("{before}{word}<version>{}", after.trim_start_matches(|c: char| c.is_ascii_digit()));
        }
    }
    if let Some((before, after)) = blurred.clone().split_once("IPAddress.networking.k8s.io \"") {
        let rest = after.split_once('"').map_or("", |(_, rest)| rest);
        blurred = format!("{before}IPAddress.networking.k8s.io <address>{rest}");
    }
    if blurred.starts_with("failed to create typed patch object") {
        blurred = sort_typed(&blurred);
    }
    // The whole object as the patch left it, times and versions and all.
    if let Some(why) = blurred.split_once("Invalid value: \"{").and_then(|(_, text)| text.rsplit_once("}\": ")) {
        blurred = format!("the patch leaves something unreadable: {}", why.1);
    }
    // When a manager that an apply is in conflict with wrote last.
    let parts: Vec<_> = blurred.split(" at 20").map(str::to_owned).collect();
    let (head, rest) = parts.split_first().unwrap();
    blurred =
        rest.iter().fold(head.clone(), |text, part| format!("{text} at <time>{}", part.get(18..).unwrap_or_default()));
    // Where in kube-apiserver's source its table of kinds is made.
    if let Some((before, after)) = blurred.clone().split_once("in scheme \"") {
        let rest = after.split_once('"').map_or("", |(_, rest)| rest);
        blurred = format!("{before}in its scheme{rest}");
    }
    *message = blurred.into();
}

/// The complaints about an applied object in the order of their texts. An unknown field ends the list wherever it comes.
fn sort_typed(message: &str) -> String {
    let (head, list) = message.split_once("): ").unwrap_or((message, ""));
    let list = list.strip_prefix("errors:\n  ").unwrap_or(list);
    let mut lines: Vec<_> = list.split("\n  ").collect();
    lines.sort_unstable();
    let depth = |line: &&str| line.split_once(": ").map_or("", |(path, _)| path).matches('.').count();
    let unknown = lines.iter().copied().filter(|line| line.ends_with(": field not declared in schema"));
    if let Some(first) = unknown.min_by_key(depth) {
        lines = vec![first];
    }
    format!("{head}): {}", lines.join("\n  "))
}

/// Ages in the rows of a Table, which may also be the object of a watch event.
fn ages(body: &mut Value) {
    if let Value::Array(events) = body {
        // Only the first event of a watch defines the columns.
        let columns = events.first().map(|event| event["object"]["columnDefinitions"].clone()).unwrap_or_default();
        for event in events.iter_mut().skip(1) {
            // An event is written once for all watches that wait for their first: the others forget that they had it.
            if event["object"].get("columnDefinitions") == Some(&columns) {
                event["object"]["columnDefinitions"] = Value::Null;
            }
        }
        for event in events {
            blur_ages(&mut event["object"], &columns);
        }
        return;
    }
    let columns = body.get("columnDefinitions").cloned().unwrap_or_default();
    blur_ages(body, &columns);
}

fn blur_ages(table: &mut Value, columns: &Value) {
    for column in table.get_mut("columnDefinitions").and_then(Value::as_array_mut).into_iter().flatten() {
        column.as_object_mut().unwrap().shift_remove("description");
    }
    let aged: Vec<_> = columns
        .as_array()
        .into_iter()
        .flatten()
        .map(|column| {
            ["Age", "Created At", "Last Seen", "First Seen", "LastTransitionTime"]
                .iter()
                .any(|name| column["name"] == *name)
        })
        .collect();
    for row in table.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        for (cell, aged) in row["cells"].as_array_mut().into_iter().flatten().zip(&aged) {
            if *aged && cell.as_str().is_some_and(|text| text.ends_with(['s', 'd', 'h', 'Z'])) {
                *cell = "<age>".into();
            }
        }
    }
}
