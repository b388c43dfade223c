//! What belongs to a canary, as a tree: the Canary, its workloads down to their pods, its route, its Services. Pure.
//!
//! What says least comes last, so that a small screen cuts the right things.

use std::time::Duration;

use jiff::Timestamp;

use super::objects::{Key, Kind, Pod, PodState, ReplicaSet, Route, Workload};
use super::view::{Look, Tone, look, short_image, since};
use super::world::{Access, Known, World};

/// One object in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The lines that lead to it.
    pub branch: String,
    /// Its name.
    pub name: String,
    /// What its name adds to that of the node above, for where there is little room.
    pub short: String,
    /// Its kind.
    pub kind: &'static str,
    /// How it is.
    pub look: Look,
    /// A few more words.
    pub info: String,
    /// Since when it exists.
    pub age: Option<Duration>,
}

/// A node with what is below it, before the lines are drawn.
struct Twig {
    node: Node,
    below: Vec<Twig>,
}

/// Everything that belongs to a canary, the Canary first.
pub fn tree(world: &World, known: &Known, now: Timestamp) -> Vec<Node> {
    let facts = &known.facts;
    if facts.key.name.is_empty() {
        return Vec::new();
    }
    let at = |name: &str| Key::new(facts.key.namespace.as_str(), name);
    let mut below = Vec::new();
    for (name, role) in [(&facts.primary, "primary"), (&facts.target, "canary")] {
        match world.workloads.get(&at(name)) {
            Some(workload) => below.push(workload_twig(world, workload, role, now)),
            // It is only missing if it would have been seen.
            None if has_seen(world, &facts.target_kind) && !name.is_empty() => {
                let look = Look { glyph: "✖", word: "missing".to_owned(), tone: Tone::Bad };
                below.push(leaf(name, kind_name(&facts.target_kind), look, role.to_owned(), None));
            }
            None => {}
        }
    }
    if let Some(route) = world.routes.get(&at(&facts.apex)) {
        below.push(route_twig(route, now));
    }
    for name in [&facts.apex, &facts.primary_service, &facts.canary_service] {
        if let Some(service) = world.services.get(&at(name)) {
            let look = Look { glyph: "·", word: String::new(), tone: Tone::Faint };
            let age = service.created.map(|time| since(time, now));
            below.push(leaf(name, "Service", look, service.selector.clone(), age));
        }
    }
    let age = facts.created.map(|time| since(time, now));
    let root = Twig { below, ..leaf(&facts.key.name, "Canary", look(known), String::new(), age) };
    let mut nodes = Vec::new();
    draw(root, "", ("", ""), &mut nodes);
    nodes
}

fn has_seen(world: &World, target_kind: &str) -> bool {
    let kind = if target_kind == "DaemonSet" { Kind::DaemonSet } else { Kind::Deployment };
    world.access(kind) == Some(&Access::Synced)
}

fn kind_name(target_kind: &str) -> &'static str {
    match target_kind {
        "DaemonSet" => "DaemonSet",
        "Service" => "Service",
        _ => "Deployment",
    }
}

fn leaf(name: &str, kind: &'static str, look: Look, info: String, age: Option<Duration>) -> Twig {
    let (branch, name, short) = (String::new(), name.to_owned(), name.to_owned());
    Twig { node: Node { branch, name, short, kind, look, info, age }, below: Vec::new() }
}

/// Gives every node the lines that lead to it, `first` for itself and `rest` for what is below it, and its short name.
fn draw(twig: Twig, above: &str, (first, rest): (&str, &str), out: &mut Vec<Node>) {
    let name = twig.node.name.clone();
    let owned = matches!(twig.node.kind, "ReplicaSet" | "Pod");
    let added = name.strip_prefix(above).filter(|added| owned && added.starts_with('-'));
    let short = added.map_or(name.clone(), |added| format!("…{added}"));
    out.push(Node { branch: first.to_owned(), short, ..twig.node });
    let count = twig.below.len();
    for (index, child) in twig.below.into_iter().enumerate() {
        let (here, after) = if index + 1 == count { ("└─", "  ") } else { ("├─", "│ ") };
        draw(child, &name, (&format!("{rest}{here}"), &format!("{rest}{after}")), out);
    }
}

fn workload_twig(world: &World, workload: &Workload, role: &str, now: Timestamp) -> Twig {
    let kind = if workload.kind == Kind::DaemonSet { "DaemonSet" } else { "Deployment" };
    let (mut look, mut info) = (readiness(workload.ready, workload.desired), String::new());
    if let Some(problem) = &workload.problem {
        look = Look { glyph: "✖", tone: Tone::Bad, ..look };
        info.clone_from(problem);
    } else if let Some((_, image)) = workload.images.first() {
        info = short_image(image);
    }
    let info = if info.is_empty() { role.to_owned() } else { format!("{role}, {info}") };
    let age = workload.created.map(|time| since(time, now));
    Twig { below: parts(world, workload, now), ..leaf(&workload.key.name, kind, look, info, age) }
}

/// ReplicaSets with their pods, newest first; those that are empty only if there is no other.
fn parts(world: &World, workload: &Workload, now: Timestamp) -> Vec<Twig> {
    if workload.kind == Kind::DaemonSet {
        return pods(world, &workload.uid, now);
    }
    let mut sets: Vec<&ReplicaSet> = world.replica_sets.values().filter(|set| set.owner == workload.uid).collect();
    sets.sort_by_key(|set| std::cmp::Reverse((set.revision, set.created)));
    let newest = sets.first().map(|set| set.uid.clone());
    let twigs = sets.into_iter().map(|set| {
        let below = pods(world, &set.uid, now);
        let info = set.revision.map(|number| format!("revision {number}")).unwrap_or_default();
        let age = set.created.map(|time| since(time, now));
        let wanted = set.desired > 0 || !below.is_empty() || newest.as_ref() == Some(&set.uid);
        (wanted, Twig { below, ..leaf(&set.key.name, "ReplicaSet", readiness(set.ready, set.desired), info, age) })
    });
    twigs.filter(|(wanted, _)| *wanted).map(|(_, twig)| twig).collect()
}

fn pods(world: &World, owner: &str, now: Timestamp) -> Vec<Twig> {
    let mut pods: Vec<&Pod> = world.pods.values().filter(|pod| pod.owner == owner && !owner.is_empty()).collect();
    pods.sort_by_key(|pod| (pod.created, &pod.key));
    pods.into_iter().map(|pod| pod_twig(pod, now)).collect()
}

fn pod_twig(pod: &Pod, now: Timestamp) -> Twig {
    let (glyph, tone) = match pod.state {
        PodState::Ready => ("✔", Tone::Good),
        PodState::Starting => ("◌", Tone::Busy),
        PodState::Leaving => ("○", Tone::Faint),
        PodState::Broken => ("✖", Tone::Bad),
    };
    let look = Look { glyph, word: pod.word.clone(), tone };
    let restarts = match pod.restarts {
        0 => String::new(),
        1 => ", 1 restart".to_owned(),
        n => format!(", {n} restarts"),
    };
    let info = format!("{}/{} ready{restarts}", pod.ready, pod.containers);
    leaf(&pod.key.name, "Pod", look, info, pod.created.map(|time| since(time, now)))
}

fn route_twig(route: &Route, now: Timestamp) -> Twig {
    let variant =
        |name: &str| name.strip_prefix(&route.key.name).and_then(|rest| rest.strip_prefix('-')).map(str::to_owned);
    let weight = |(name, weight): &(String, i64)| format!("{} {weight}", variant(name).unwrap_or_else(|| name.clone()));
    let weights: Vec<String> = route.weights.iter().map(weight).collect();
    let (look, info) = match &route.problem {
        Some(problem) => (Look { glyph: "✖", word: "refused".to_owned(), tone: Tone::Bad }, problem.clone()),
        None if route.taken_up => (Look { glyph: "✔", word: String::new(), tone: Tone::Good }, weights.join(", ")),
        None => (Look { glyph: "◌", word: "not taken up".to_owned(), tone: Tone::Busy }, weights.join(", ")),
    };
    leaf(&route.key.name, "HTTPRoute", look, info, route.created.map(|time| since(time, now)))
}

fn readiness(ready: i64, desired: i64) -> Look {
    let (glyph, tone) = match (ready, desired) {
        (0, 0) => ("○", Tone::Faint),
        _ if ready >= desired => ("✔", Tone::Good),
        _ => ("◌", Tone::Busy),
    };
    Look { glyph, word: format!("{ready}/{desired}"), tone }
}
