//! Draws scripts from seeds. The verbs of the operator come up most often.

mod bad;
mod change;
mod cluster;
mod definition_edits;
mod definitions;
mod fine_print;
mod items;
mod odd;
mod pods;
mod read;
mod remove;
mod spelling;
mod write;
mod zeros;

use seaway_drydock::Seed;
use serde_json::Value;

use super::kinds::{KINDS, Kind};
use super::script::{Body, Step};

/// An object that the script believes to exist.
#[derive(Clone)]
struct Thing {
    kind: &'static Kind,
    name: String,
    /// The step whose answer was the last to show it.
    seen: usize,
}

/// Writes one script.
struct Author {
    seed: Seed,
    steps: Vec<Step>,
    things: Vec<Thing>,
    /// Most requests of a script are about the same few kinds.
    kinds: Vec<&'static Kind>,
}

/// Adds one or more requests.
type Move = fn(&mut Author);

/// What may come next, and how often.
const MOVES: &[(u64, Move)] = &[
    (22, write::create),
    (9, write::update),
    (3, write::update_blindly),
    (14, change::json_patch),
    (4, items::json_patch),
    (6, change::merge_patch),
    (4, change::strategic_patch),
    (9, change::apply),
    (8, pods::create),
    (2, pods::place),
    (4, cluster::request),
    (8, zeros::zero),
    (6, change::status),
    (3, change::scale),
    (8, read::get),
    (9, read::list),
    (4, read::pages),
    (4, read::versions),
    (6, read::watch),
    (10, remove::delete),
    (3, remove::delete_collection),
    (4, remove::release),
    (6, bad::request),
    (4, odd::request),
    (4, fine_print::request),
    (5, spelling::request),
];

/// One script in so many is about definitions of custom resources, which a real server takes longer for.
const DEFINED_IN: u64 = 25;

/// The script of a seed.
pub fn script(number: u64) -> Vec<Step> {
    if number % DEFINED_IN == 7 {
        return definitions::script(Seed::new(number).fork("definitions"));
    }
    let seed = Seed::new(number).fork("conformance");
    let mut author = Author { seed, steps: Vec::new(), things: Vec::new(), kinds: Vec::new() };
    for _ in 0..=author.below(3) {
        author.kinds.push(author.weighted(KINDS, |kind| kind.weight));
    }
    let length = 5 + author.below(9) as usize;
    write::create(&mut author);
    while author.steps.len() < length {
        author.weighted(MOVES, |(weight, _)| *weight).1(&mut author);
    }
    author.steps
}

impl Author {
    fn below(&self, bound: u64) -> u64 {
        self.seed.below(bound)
    }

    /// Once in so many times.
    fn once_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// One of these, each as often as its weight says.
    fn weighted<'a, T>(&self, from: &'a [T], weight: impl Fn(&T) -> u64) -> &'a T {
        let mut draw = self.below(from.iter().map(&weight).sum());
        let drawn = from.iter().find(|item| {
            draw < weight(item) || {
                draw -= weight(item);
                false
            }
        });
        drawn.unwrap()
    }

    fn word(&self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len() as u64) as usize]
    }

    fn kind(&self) -> &'static Kind {
        self.kinds[self.below(self.kinds.len() as u64) as usize]
    }

    /// A name that may be taken.
    fn name(&self) -> String {
        (*self.pick(&["a", "b", "c"])).to_owned()
    }

    /// The same for a kind.
    fn name_of(&self, kind: &Kind) -> String {
        let name = self.name();
        if kind.is_cluster_wide() { format!("<<ns>>-{name}") } else { name }
    }

    /// An object that probably exists.
    fn thing(&mut self) -> Thing {
        if self.things.is_empty() {
            write::create(self);
        }
        if self.things.is_empty() {
            return Thing { kind: self.kind(), name: self.name(), seen: 0 };
        }
        self.pick(&self.things).clone()
    }

    /// Remembers which answer shows an object.
    fn saw(&mut self, kind: &'static Kind, name: &str, step: usize) {
        match self.things.iter_mut().find(|thing| thing.kind.plural == kind.plural && thing.name == name) {
            Some(thing) => thing.seen = step,
            None => self.things.push(Thing { kind, name: name.to_owned(), seen: step }),
        }
    }

    fn forget(&mut self, thing: &Thing) {
        self.things.retain(|other| other.kind.plural != thing.kind.plural || other.name != thing.name);
    }

    /// A right change of a kind, sometimes a wrong one, sometimes one of which only the server knows.
    fn change(&self, kind: &Kind, wrong_in: u64) -> Value {
        if kind.makes_pods() && self.once_in(5) {
            return pods::change(self, kind);
        }
        let mut texts = if self.once_in(wrong_in) { kind.faults } else { kind.changes };
        if !kind.edges().is_empty() && self.once_in(4) {
            texts = kind.edges();
        }
        serde_json::from_str(self.word(texts)).unwrap()
    }

    /// Sends a request and returns its number.
    fn send(&mut self, method: &'static str, path: String, headers: Vec<(&'static str, String)>, body: Body) -> usize {
        let id = self.steps.len();
        self.steps.push(Step { id, method, path, headers, body });
        id
    }

    fn read(&mut self, path: String) -> usize {
        let accept = self.accept();
        self.send("GET", path, vec![("accept", accept)], Body::Text(String::new()))
    }

    fn write(&mut self, method: &'static str, path: String, language: &str, body: Body) -> usize {
        let headers = vec![("accept", "application/json".into()), ("content-type", language.into())];
        self.send(method, path, headers, body)
    }

    /// In which form an answer is wanted.
    fn accept(&self) -> String {
        let form = match self.below(12) {
            0 | 1 => "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            2 => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            3 => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            _ => "application/json",
        };
        form.to_owned()
    }

    /// Options that any write may have.
    fn options(&self) -> String {
        let options = match self.below(12) {
            0 => "?fieldManager=first",
            1 => "?fieldManager=second&fieldValidation=Strict",
            2 => "?dryRun=All",
            3 => "?fieldValidation=Strict",
            4 => "?fieldValidation=Ignore",
            5 => "?fieldValidation=Warn&fieldManager=third",
            6 if self.once_in(3) => "?dryRun=Some",
            7 if self.once_in(3) => "?fieldValidation=Maybe",
            _ => "",
        };
        options.to_owned()
    }
}

/// A value for a query.
fn quoted(text: &str) -> String {
    let text = text.replace('%', "%25").replace(' ', "%20").replace('=', "%3D").replace('!', "%21");
    // Placeholders stay as they are.
    text.replace(',', "%2C").replace('>', "%3E").replace("%3E%3E", ">>")
}
