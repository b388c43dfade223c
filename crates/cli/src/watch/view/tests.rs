use super::*;
use crate::watch::fixture::{self, Stage, at, key, podinfo};

fn view(world: &World) -> View {
    View::of(world, &key(), at(615))
}

fn places(phase: Phase, weight: i64) -> String {
    let world = Stage::of(&podinfo(phase).weight(weight)).0;
    let signs = view(&world).steps.into_iter().map(|step| match step.place {
        Place::Done => '●',
        Place::Here => '◉',
        Place::Broken => '✖',
        Place::Ahead => '○',
    });
    signs.collect()
}

#[test]
fn steps_are_behind_here_or_ahead() {
    assert_eq!(places(Phase::Initialized, 0), "○○○○○○");
    assert_eq!(places(Phase::Progressing, 0), "○○○○○○");
    assert_eq!(places(Phase::Progressing, 30), "●●◉○○○");
    assert_eq!(places(Phase::WaitingPromotion, 50), "●●●●●◉");
    assert_eq!(places(Phase::Promoting, 50), "●●●●●◉");
    assert_eq!(places(Phase::Succeeded, 0), "●●●●●●");
    assert_eq!(places(Phase::Failed, 0), "○○○○○○");
}

#[test]
fn the_next_check_counts_down_from_interval_to_interval() {
    let left = |phase, second| {
        let world = Stage::of(&podinfo(phase).since(at(10))).0;
        next_check(&world.canary(&key()).unwrap().facts, at(second)).map(clock)
    };
    assert_eq!(left(Phase::Progressing, 15).as_deref(), Some("0:55"));
    assert_eq!(left(Phase::Progressing, 71).as_deref(), Some("0:00"), "it is being asked");
    assert_eq!(left(Phase::Progressing, 136).as_deref(), Some("0:54"), "a check that changed nothing starts another");
    assert_eq!(left(Phase::Succeeded, 15), None);
    let rolling_back = fixture::rolling_back();
    assert_eq!(next_check(&rolling_back.canary(&key()).unwrap().facts, at(615)), None);
}

#[test]
fn images_are_those_of_the_container_that_differs() {
    assert_eq!(view(&fixture::progressing()).images, (Some("podinfo:6.0.0".into()), Some("podinfo:6.0.1".into())));
    assert_eq!(short_image("registry:5000/a/b@sha256:0123456789abcdef"), "b@01234567");
    assert_eq!(short_image("nginx"), "nginx");
}

#[test]
fn without_a_route_the_status_has_to_do() {
    let world = Stage::of(&podinfo(Phase::Progressing).weight(20)).0;
    assert_eq!((view(&world).split, view(&world).routed), ((80, 20), false));
    assert_eq!((view(&fixture::rolling_back()).split, view(&fixture::rolling_back()).routed), ((100, 0), true));
}

#[test]
fn what_belongs_to_a_canary_is_a_tree() {
    let nodes = view(&fixture::rolling_back()).tree;
    let lines: Vec<String> = nodes
        .iter()
        .map(|node| {
            format!("{}{} {} {} {} {}", node.branch, node.kind, node.name, node.look.glyph, node.look.word, node.info)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn what_should_be_there_and_is_not_is_missing() {
    let world =
        Stage::of(&podinfo(Phase::Progressing)).sees(600, super::super::world::Sight::Listing(Kind::Deployment)).0;
    assert_eq!(view(&world).tree.len(), 1, "nothing is missing before it was looked for");
    let world = Stage(world).sees(600, super::super::world::Sight::Listed(Kind::Deployment)).0;
    let missing: Vec<_> = view(&world).tree.into_iter().skip(1).map(|node| (node.name, node.look.word)).collect();
    let word = || "missing".to_owned();
    assert_eq!(missing, [("podinfo-primary".to_owned(), word()), ("podinfo".to_owned(), word())]);
}

#[test]
fn ages_are_short() {
    let ages = [0, 59, 119, 120, 185, 600, 7_200, 10_800, 172_800].map(|second| age(Duration::from_secs(second)));
    assert_eq!(ages, ["0s", "59s", "119s", "2m", "3m5s", "10m", "120m", "3h", "2d"]);
}

#[test]
fn a_canary_that_was_never_seen_can_be_shown() {
    let view = View::of(&World::new(at(0)), &key(), at(0));
    assert_eq!((view.look.word.as_str(), view.tree.len(), view.steps.len()), ("Waiting for it", 0, 0));
}
