//! Scripts about definitions of custom resources, and about the resources that come of them.

use seaway_drydock::Seed;
use serde_json::{Value, json};

use super::super::definitions::DEFINITIONS;
use super::super::kinds::{BOAT, Kind, SHIP};
use super::change::{APPLY, JSON_PATCH, MERGE, STRATEGIC};
use super::definition_edits::{FAULTS, RIGHT, STATUS};
use super::{Author, Body, MOVES, Step, write};

const JSON: &str = "application/json";

/// How long watches of these scripts go on: what a request leads to takes its time.
const WATCHED: &str = "timeoutSeconds=5";

/// What is defined, as a text to begin with.
const DEFINITION_OF_SHIPS: &str = r#"{"scope":"Namespaced","names":{"kind":"Ship","plural":"ships"},"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.size","statusReplicasPath":".status.replicas"}},"additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"},{"name":"Color","type":"string","jsonPath":".spec.color","priority":1}],"selectableFields":[{"jsonPath":".spec.color"}],"schema":{"openAPIV3Schema":{"type":"object","required":["spec"],"properties":{"spec":{"type":"object","x-kubernetes-validations":[{"rule":"self.size < 50 || self.color == 'red'","message":"only red ships are big"}],"properties":{"size":{"type":"integer","minimum":1,"maximum":100,"default":2},"color":{"type":"string","enum":["blue","green","red"],"default":"green"},"crew":{"type":"array","maxItems":5,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"rank":{"type":"string","default":"sailor"}}}},"tags":{"type":"array","maxItems":3,"x-kubernetes-list-type":"set","items":{"type":"string"}},"port":{"x-kubernetes-int-or-string":true},"cargo":{"type":"object","additionalProperties":{"type":"integer"}},"notes":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},"status":{"type":"object","properties":{"phase":{"type":"string"},"replicas":{"type":"integer"}}}}}}}]}"#;
const DEFINITION_OF_BOATS: &str = r#"{"scope":"Namespaced","names":{"kind":"Boat","plural":"boats","singular":"boat","listKind":"BoatList","shortNames":["bt"],"categories":["all"]},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"oars":{"type":"integer"}}}}}}}]}"#;

/// Adds one or more requests.
type DefiningMove = fn(&mut Defining);

/// What may come next in a script about definitions alone, and how often.
const ON_DEFINITIONS: &[(u64, DefiningMove)] = &[
    (8, Defining::create),
    (6, Defining::update),
    (6, Defining::merge),
    (5, Defining::patch),
    (6, Defining::apply),
    (2, Defining::strategic),
    (3, Defining::status),
    (4, Defining::read),
    (4, Defining::delete),
    (1, Defining::delete_all),
];

/// What may change in a schema while there are objects. `~` stands for the properties of the spec.
const OUTGROWN: &[(&str, &str)] = &[
    ("~/crew", "null"),
    ("~/cargo", "null"),
    ("~/oars", "null"),
    ("~/speed", r#"{"type":"integer","default":7}"#),
    ("~/crew/items/properties/age", r#"{"type":"integer","default":30}"#),
    ("~/color", r#"{"type":"string","default":"green"}"#),
    ("~/size", r#"{"type":"integer","default":2,"maximum":2}"#),
];

/// Writes a script about one kind.
struct Defining {
    author: Author,
    kind: &'static Kind,
    /// The definition as it would be right.
    right: Value,
    /// The step whose answer was the last to show it.
    seen: usize,
}

pub(super) fn script(seed: Seed) -> Vec<Step> {
    let author = Author { seed, steps: Vec::new(), things: Vec::new(), kinds: Vec::new() };
    let (kind, spec) = if author.once_in(3) { (&BOAT, DEFINITION_OF_BOATS) } else { (&SHIP, DEFINITION_OF_SHIPS) };
    let mut spec: Value = serde_json::from_str(spec).unwrap();
    spec["group"] = "<<ns>>.conformance.seaway.dev".into();
    let metadata = json!({"name": name(kind), "labels": {"run": "<<ns>>"}});
    let right = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec});
    let mut defining = Defining { author, kind, right, seen: 0 };
    match defining.author.below(8) {
        0..3 => defining.definitions(),
        3..6 => defining.instances(),
        6 => defining.going(),
        _ => defining.outgrown(),
    }
    for step in &mut defining.author.steps {
        step.path = step.path.replace("timeoutSeconds=1", WATCHED);
    }
    defining.author.steps
}

fn name(kind: &Kind) -> String {
    format!("{}.<<ns>>.conformance.seaway.dev", kind.plural)
}

impl Defining {
    fn place(&self) -> String {
        format!("{DEFINITIONS}/{}", name(self.kind))
    }

    /// A script in which definitions come, change and go.
    fn definitions(&mut self) {
        let mut length = 4 + self.author.below(7) as usize;
        self.create();
        if self.author.once_in(3) {
            self.watch();
            // It must be over before the watch is.
            length = length.min(7);
        }
        while self.author.steps.len() < length {
            self.author.weighted(ON_DEFINITIONS, |(weight, _)| *weight).1(self);
        }
    }

    /// A script about objects of a kind that it defines first.
    fn instances(&mut self) {
        let body = Body::Text(self.right.to_string());
        self.seen = self.author.write("POST", DEFINITIONS.to_owned(), JSON, body);
        self.author.kinds = vec![self.kind];
        let length = 6 + self.author.below(7) as usize;
        write::create(&mut self.author);
        while self.author.steps.len() < length {
            self.author.weighted(MOVES, |(weight, _)| *weight).1(&mut self.author);
        }
    }

    /// A definition with a few things changed, mostly to the worse.
    fn edited(&self, faulty_in: u64) -> (Value, Vec<(String, Value)>) {
        let (mut object, mut edits) = (self.right.clone(), Vec::new());
        for _ in 0..=self.author.below(2) {
            let from = if self.author.once_in(faulty_in) { FAULTS } else { RIGHT };
            let &(pointer, value) = self.author.pick(from);
            let pointer = pointer.replace('~', "/spec/versions/0/schema/openAPIV3Schema");
            let value: Value =
                serde_json::from_str(value).unwrap_or_else(|error| panic!("{pointer}: {error}: {value}"));
            if put(&mut object, &pointer, &value) {
                edits.push((pointer, value));
            }
        }
        (object, edits)
    }

    fn create(&mut self) {
        let object = if self.author.once_in(2) { self.right.clone() } else { self.edited(1).0 };
        let path = DEFINITIONS.to_owned() + &self.author.options();
        let dry = path.contains("dryRun");
        let step = self.author.write("POST", path, JSON, Body::Text(object.to_string()));
        if !dry && !self.author.once_in(4) {
            self.seen = step;
        }
        // What follows needs something that is there.
        if !self.author.once_in(5) {
            self.seen = self.author.read(self.place());
        }
    }

    fn update(&mut self) {
        let (object, _) = self.edited(2);
        let mut change = json!({"spec": object["spec"]});
        match self.author.below(12) {
            0 => json_patch::merge(&mut change, &json!({"metadata": {"resourceVersion": null}})),
            1 => json_patch::merge(&mut change, &json!({"metadata": {"resourceVersion": "1"}})),
            2 => json_patch::merge(&mut change, &json!({"metadata": {"labels": {"more": "1"}}})),
            3 => json_patch::merge(&mut change, &json!({"status": {"storedVersions": ["v9"]}})),
            4 => json_patch::merge(&mut change, &json!({"metadata": {"name": "other"}})),
            5 => json_patch::merge(&mut change, &json!({"spec": null})),
            6 => change = json!({}),
            _ => {}
        }
        let path = self.place() + &self.author.options();
        let dry = path.contains("dryRun");
        self.seen = self.author.read(self.place());
        let step = self.author.write("PUT", path, JSON, Body::Edited { of: self.seen, change });
        if !dry && self.author.once_in(2) {
            self.seen = step;
        }
    }

    fn merge(&mut self) {
        let (object, edits) = self.edited(2);
        let mut change = json!({});
        for (pointer, _) in &edits {
            // The member of the spec that holds the change; lists are changed as a whole.
            let mut parts = pointer.split('/').skip(1);
            match (parts.next(), parts.next()) {
                (Some("spec"), Some(member)) => change["spec"][member] = object["spec"][member].clone(),
                (Some(part), _) => change[part] = object[part].clone(),
                _ => {}
            }
        }
        if self.author.once_in(6) {
            json_patch::merge(&mut change, &json!({"metadata": {"annotations": {"a": "1"}}}));
        }
        let path = self.place() + &self.author.options();
        self.author.write("PATCH", path, MERGE, Body::Text(change.to_string()));
    }

    fn patch(&mut self) {
        let (_, edits) = self.edited(2);
        let operations: Vec<_> = edits
            .iter()
            .map(|(pointer, value)| match self.author.below(8) {
                // A real server breaks down over fields to select by where there is no schema at all.
                0 if !pointer.ends_with("Schema") => json!({"op": "remove", "path": pointer}),
                1 => json!({"op": "replace", "path": pointer, "value": value}),
                2 => json!({"op": "test", "path": pointer, "value": value}),
                _ => json!({"op": "add", "path": pointer, "value": value}),
            })
            .collect();
        let path = self.place() + &self.author.options();
        self.author.write("PATCH", path, JSON_PATCH, Body::Text(Value::Array(operations).to_string()));
    }

    fn strategic(&mut self) {
        let change = match self.author.below(4) {
            0 => json!({"spec": {"names": {"shortNames": ["st"]}}}),
            1 => json!({"metadata": {"labels": {"$patch": "delete"}}}),
            2 => json!({"spec": {"versions": [{"name": "v1", "served": false}]}}),
            _ => json!({"metadata": {"annotations": {"a": "2"}}}),
        };
        let path = self.place() + &self.author.options();
        self.author.write("PATCH", path, STRATEGIC, Body::Text(change.to_string()));
    }

    fn apply(&mut self) {
        let object = if self.author.once_in(2) { self.right.clone() } else { self.edited(2).0 };
        let query = self.author.word(&[
            "?fieldManager=first",
            "?fieldManager=second",
            "?fieldManager=second&force=true",
            "?fieldManager=first&force=true",
            "?fieldManager=first&fieldValidation=Strict",
            "?fieldManager=third&dryRun=All",
        ]);
        self.author.write("PATCH", self.place() + query, APPLY, Body::Text(object.to_string()));
    }

    fn status(&mut self) {
        let change: Value = serde_json::from_str(self.author.word(STATUS)).unwrap();
        let place = self.place() + "/status";
        match self.author.below(4) {
            0 => {
                self.author.read(place);
            }
            1 => {
                self.seen = self.author.read(self.place());
                self.author.write("PUT", place, JSON, Body::Edited { of: self.seen, change });
            }
            _ => {
                self.author.write("PATCH", place, MERGE, Body::Text(change.to_string()));
            }
        }
    }

    fn read(&mut self) {
        let list = format!("{DEFINITIONS}?labelSelector=run%3D<<ns>>");
        let group = "/apis/<<ns>>.conformance.seaway.dev";
        match self.author.below(8) {
            0 => self.author.read(list),
            1 => self.author.read(format!("{DEFINITIONS}?fieldSelector=metadata.name%3D{}", name(self.kind))),
            2 => self.author.read(format!("{DEFINITIONS}/none.<<ns>>.conformance.seaway.dev")),
            3 => self.author.read(self.kind.path()),
            4 => self.author.send("GET", group.to_owned(), vec![("accept", JSON.into())], Body::Text(String::new())),
            5 => {
                self.author.send("GET", format!("{group}/v1"), vec![("accept", JSON.into())], Body::Text(String::new()))
            }
            _ => self.author.read(self.place()),
        };
    }

    /// A watch of one definition, or of all that belong to the script.
    fn watch(&mut self) {
        let one = format!("fieldSelector=metadata.name%3D{}", name(self.kind));
        let query = if self.author.once_in(2) { one } else { "labelSelector=run%3D<<ns>>".to_owned() };
        let path = format!("{DEFINITIONS}?watch=1&timeoutSeconds=1&resourceVersion=<<{}.rv>>&{query}", self.seen);
        let accept = self.author.accept().replace("MetadataList", "Metadata");
        self.author.send("GET", path, vec![("accept", accept)], Body::Text(String::new()));
    }

    /// Takes definitions away without asking for their objects, which are there again when the resource is.
    fn delete_all(&mut self) {
        let object = self.kind.object("left");
        self.author.write("POST", self.kind.path(), JSON, Body::Text(object.to_string()));
        let all = format!("{DEFINITIONS}?labelSelector=run%3D<<ns>>");
        let options = self.author.word(&["", "&dryRun=All"]);
        self.author.write("DELETE", all + options, "", Body::Text(String::new()));
        self.author.read(self.kind.path());
        if self.author.once_in(2) {
            let body = Body::Text(self.right.to_string());
            self.seen = self.author.write("POST", DEFINITIONS.to_owned(), JSON, body);
            self.author.read(self.kind.path());
        }
    }

    /// A definition that waits for an object which somebody holds: nothing new comes while it does.
    fn going(&mut self) {
        let body = Body::Text(self.right.to_string());
        self.author.write("POST", DEFINITIONS.to_owned(), JSON, body);
        let mut held = self.kind.object("held");
        held["metadata"]["finalizers"] = json!(["seaway.dev/hold"]);
        self.author.write("POST", self.kind.path(), JSON, Body::Text(held.to_string()));
        self.author.write("DELETE", self.place(), "", Body::Text(String::new()));
        for _ in 0..=self.author.below(2) {
            let mut object = self.kind.object("new");
            if self.author.once_in(3) {
                json_patch::merge(&mut object, &self.author.change(self.kind, 1));
            }
            let path = self.kind.path();
            match self.author.below(3) {
                0 => {
                    let path = format!("{path}/new?fieldManager=first");
                    self.author.write("PATCH", path, APPLY, Body::Text(object.to_string()))
                }
                1 => self.author.write(
                    "PATCH",
                    format!("{path}/held"),
                    MERGE,
                    Body::Text(json!({"metadata": {"labels": {"a": "b"}}}).to_string()),
                ),
                _ => self.author.write("POST", path, JSON, Body::Text(object.to_string())),
            };
        }
    }

    /// Objects that were written under another schema than the one they are read by.
    fn outgrown(&mut self) {
        let body = Body::Text(self.right.to_string());
        self.author.write("POST", DEFINITIONS.to_owned(), JSON, body);
        let mut object = self.kind.object("old");
        json_patch::merge(&mut object, &self.author.change(self.kind, 100));
        let seen = self.author.write("POST", self.kind.path(), JSON, Body::Text(object.to_string()));
        for _ in 0..=self.author.below(2) {
            let (pointer, value) = *self.author.pick(OUTGROWN);
            let value: Value = serde_json::from_str(value).unwrap();
            let operation = if value.is_null() { "remove" } else { "add" };
            let path = pointer.replace('~', "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties");
            let patch = json!([{"op": operation, "path": path, "value": value}]);
            self.author.write("PATCH", self.place(), JSON_PATCH, Body::Text(patch.to_string()));
            let place = format!("{}/old", self.kind.path());
            match self.author.below(5) {
                0 => self.author.read(self.kind.path()),
                1 => self.author.write("PUT", place, JSON, Body::Edited { of: seen, change: json!({}) }),
                2 => self.author.write("PATCH", place, MERGE, Body::Text("{}".into())),
                _ => self.author.read(place),
            };
        }
        self.author.read(format!("{}/old", self.kind.path()));
    }

    fn delete(&mut self) {
        if self.author.once_in(3) {
            let object = self.kind.object("a");
            self.author.write("POST", self.kind.path(), JSON, Body::Text(object.to_string()));
        }
        let (place, none) = (self.place(), Body::Text(String::new()));
        let seen = self.seen;
        let options = |more: Value| {
            let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
            json_patch::merge(&mut options, &more);
            Body::Text(options.to_string())
        };
        match self.author.below(10) {
            0 => self.author.write("DELETE", place + "?dryRun=All", "", none),
            1 => self.author.write("DELETE", place + "?propagationPolicy=Foreground", "", none),
            2 => self.author.write("DELETE", place, JSON, options(json!({"preconditions": {"uid": "wrong"}}))),
            3 => self.author.write("DELETE", place, JSON, options(json!({"preconditions": {"resourceVersion": "1"}}))),
            4 => {
                let uid = format!("<<{seen}.uid>>");
                self.author.write("DELETE", place, JSON, options(json!({"preconditions": {"uid": uid}})))
            }
            5 => self.author.write("DELETE", format!("{DEFINITIONS}/none"), "", none),
            6 => self.author.write("DELETE", place, JSON, options(json!({"propagationPolicy": "Orphan"}))),
            _ => self.author.write("DELETE", place, "", none),
        };
        if self.author.once_in(2) {
            self.author.read(self.kind.path());
        }
    }
}

/// Sets the value at a pointer; `false` where there is no such place.
fn put(object: &mut Value, pointer: &str, value: &Value) -> bool {
    let (parent, last) = pointer.rsplit_once('/').unwrap_or_default();
    match (object.pointer_mut(parent), last.parse::<usize>()) {
        (Some(Value::Array(items)), Ok(at)) if at == items.len() => items.push(value.clone()),
        (Some(Value::Array(items)), Ok(at)) if at < items.len() => items[at] = value.clone(),
        (Some(Value::Object(members)), _) => {
            members.insert(last.to_owned(), value.clone());
        }
        _ => return false,
    }
    true
}
