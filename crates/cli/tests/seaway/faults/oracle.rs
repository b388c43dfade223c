//! When a story is over, and whether its end is the right one.

use super::board::{Births, Book, text};
use super::mask::{Trace, differences, masked};
use super::mishap::{Kind, Mishap, Outlook};
use super::stage::Run;
use super::story::{End, Story};

/// Writes and Events a fault may cost on top of a run without it: a round that is told again after a restart, a warning
/// for what failed. More is a storm.
const EXTRA_NOISE: (u32, u32) = (8, 6);

/// Whether everything is where this end wants it.
pub fn rests_at(book: &Book, end: End) -> bool {
    let promoted = |tag: &str, phase: &str| {
        book.phase() == phase
            && book.tag("podinfo-primary") == tag
            && book.split() == Some((100, 0))
            && book.replicas("podinfo") == 0
            && book.ready("podinfo-primary") > 0
    };
    match end {
        // With another version in the target it is not an end but a beginning.
        End::Initialised(tag) => promoted(tag, "Initialized") && book.tag("podinfo") == tag,
        End::Promoted(tag) => promoted(tag, "Succeeded") && book.tag("podinfo") == tag && same_revision(book),
        End::Failed(tag) => promoted(tag, "Failed") && !same_revision(book),
        End::Gone => {
            let orphans = book.objects.keys().any(|(_, namespace, name)| namespace == "test" && is_ours(name));
            book.canary().is_none() && !orphans && book.ready("podinfo") > 0
        }
        End::Left => book.canary().is_none(),
        End::Adopting => book.phase() == "Initializing",
    }
}

/// The version that was looked at last is the one that was promoted last.
fn same_revision(book: &Book) -> bool {
    let status = |name: &str| book.canary().and_then(|canary| canary.pointer(&format!("/status/{name}"))).cloned();
    status("lastAppliedSpec") == status("lastPromotedSpec")
}

/// Names of objects that go with the Canary. The apex Service and the route stay behind on purpose.
fn is_ours(name: &str) -> bool {
    name.contains("-primary") || name == "podinfo-canary"
}

/// Where things stand, in one line.
pub fn situation(book: &Book) -> String {
    let conditions = book.canary().and_then(|canary| canary.pointer("/status/conditions")?.as_array()).cloned();
    let conditions: Vec<String> = conditions
        .unwrap_or_default()
        .iter()
        .map(|one| format!("{}={} {}", text(one, "/type"), text(one, "/status"), text(one, "/reason")))
        .collect();
    format!(
        "phase {:?}, weight {}, split {:?}, target {}x{} ({} ready), primary {}x{} ({} ready), {conditions:?}",
        book.phase(),
        book.weight(),
        book.split(),
        book.replicas("podinfo"),
        book.tag("podinfo"),
        book.ready("podinfo"),
        book.replicas("podinfo-primary"),
        book.tag("podinfo-primary"),
        book.ready("podinfo-primary"),
    )
}

/// What a run that should be like another is not.
pub fn compare(reference: &Run, run: &Run, mishaps: &[Mishap], story: &Story) -> Vec<String> {
    let mut failures = Vec::new();
    if !run.failures.is_empty() {
        return failures;
    }
    // Who can only end in one way has to leave the same objects behind, its own traces aside. News that comes late may lead
    // there in two rollouts instead of one.
    let ends_so = |mishap: &Mishap| match mishap.kind.outlook(story) {
        Outlook::Same => true,
        Outlook::OneOf(ends) => ends == [story.end] && !matches!(mishap.kind, Kind::Api(_)),
    };
    let traces: Option<Vec<&[Trace]>> = mishaps.iter().map(|mishap| mishap.kind.traces()).collect();
    if let Some(traces) = traces.filter(|_| mishaps.iter().all(ends_so)) {
        let traces = traces.concat();
        let differences = differences(&masked(&reference.world, &traces), &masked(&run.world, &traces));
        if !differences.is_empty() {
            failures.push(format!("another end: {}", differences.join("; ")));
        }
    }
    if !mishaps.iter().all(|mishap| mishap.kind.outlook(story) == Outlook::Same) {
        return failures;
    }
    // What a leader that stood still stores late is stored twice, and goes twice.
    let paused = mishaps.iter().any(|mishap| mishap.kind == Kind::LeaderPaused);
    let births = |run: &Run| -> Births {
        let births = run.births.clone().into_iter();
        births.filter(|((_, resource, _), _)| !paused || resource != "controllerrevisions").collect()
    };
    let (expected, found) = (births(reference), births(run));
    if expected != found {
        let show = |one: &Births, other: &Births| {
            let more = one.iter().filter(|(key, count)| other.get(*key) != Some(count));
            more.map(|((verb, resource, name), count)| format!("{count}x {verb} {resource} {name}")).collect::<Vec<_>>()
        };
        failures.push(format!("created and removed {:?}, not {:?}", show(&found, &expected), show(&expected, &found)));
    }
    let extra = |index: fn((u32, u32)) -> u32| index(run.noise).saturating_sub(index(reference.noise));
    let (writes, events) = (extra(|noise| noise.0), extra(|noise| noise.1));
    let times = u32::try_from(mishaps.len()).unwrap_or(u32::MAX);
    if writes > EXTRA_NOISE.0 * times || events > EXTRA_NOISE.1 * times {
        failures.push(format!("noise: {writes} writes and {events} Events more than without the fault"));
    }
    failures
}
