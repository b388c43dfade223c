//! The cache with plain objects: no client, no server.

use seaway_adapters::kinds::{DEPLOYMENT, HTTP_ROUTE, SERVICE};
use seaway_adapters::object;
use seaway_adapters::world::World;
use serde_json::json;

use super::*;

fn cache() -> Arc<Cache> {
    let cache = Arc::new(Cache::new());
    cache.listen();
    cache
}

fn object(name: &str, version: u64) -> Value {
    json!({
        "metadata": { "namespace": "test", "name": name, "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(), "managedFields": [{ "manager": "kubectl" }] },
        "spec": { "version": version }
    })
}

fn canary(name: &str, target: &str, version: u64) -> Value {
    let mut canary = object(name, version);
    canary["spec"] = json!({ "targetRef": { "name": target } });
    canary
}

fn key(name: &str) -> CanaryKey {
    CanaryKey::new("test", name)
}

fn woken(cache: &Cache) -> Vec<String> {
    let keys = futures::FutureExt::now_or_never(cache.woken()).unwrap_or_default();
    keys.into_iter().map(|key| key.name).collect()
}

fn version(cache: &Arc<Cache>, kind: Kind, name: &str) -> Option<Value> {
    let view = cache.view(&key("reader-of-tests"));
    let object = view.get(kind, "test", name);
    view.forget();
    object.map(|object| object["spec"]["version"].clone())
}

#[test]
fn a_change_wakes_exactly_those_who_read_the_object() {
    let cache = cache();
    for (name, reads) in [("a", vec!["podinfo", "shared"]), ("b", vec!["shared"]), ("c", vec!["other"])] {
        let view = cache.view(&key(name));
        assert!(reads.iter().all(|read| view.get(DEPLOYMENT, "test", read).is_none()));
        view.finish(false);
    }
    cache.applied(DEPLOYMENT, object("podinfo", 1));
    assert_eq!(woken(&cache), ["a"], "also by an object that did not exist when it was read");
    cache.applied(DEPLOYMENT, object("shared", 2));
    assert_eq!(woken(&cache), ["a", "b"]);
    cache.applied(SERVICE, object("shared", 3));
    assert_eq!(woken(&cache), [""; 0], "another kind of the same name");
    let view = cache.view(&key("a"));
    view.get(DEPLOYMENT, "test", "podinfo");
    view.finish(false);
    cache.applied(DEPLOYMENT, object("shared", 4));
    assert_eq!(woken(&cache), ["b"], "a no longer reads it");
    cache.deleted(DEPLOYMENT, &object("podinfo", 5));
    assert_eq!(woken(&cache), ["a"]);
}

#[test]
fn older_events_are_ignored_after_our_own_write() {
    let cache = cache();
    cache.applied(DEPLOYMENT, object("podinfo", 9));
    let view = cache.view(&key("a"));
    view.get(DEPLOYMENT, "test", "podinfo");
    let reference = reference(DEPLOYMENT, &object("podinfo", 0));
    view.written(&reference, object("podinfo", 12));
    assert_eq!(view.get(DEPLOYMENT, "test", "podinfo").unwrap()["spec"]["version"], 12);
    view.finish(false);
    for old in [10, 11, 12] {
        cache.applied(DEPLOYMENT, object("podinfo", old));
    }
    cache.deleted(DEPLOYMENT, &object("podinfo", 11));
    assert_eq!(version(&cache, DEPLOYMENT, "podinfo"), Some(json!(12)));
    assert_eq!(woken(&cache), [""; 0], "nobody is woken by what is already known");
    cache.applied(DEPLOYMENT, object("podinfo", 100));
    assert_eq!(version(&cache, DEPLOYMENT, "podinfo"), Some(json!(100)), "versions are numbers, not text");
    assert_eq!(woken(&cache), ["a"]);
}

#[test]
fn a_write_wakes_the_others_who_read_the_object() {
    let cache = cache();
    let views = [cache.view(&key("a")), cache.view(&key("b"))];
    assert!(views.iter().all(|view| view.get(DEPLOYMENT, "test", "shared").is_none()));
    let [a, b] = views;
    b.finish(false);
    a.written(&reference(DEPLOYMENT, &object("shared", 0)), object("shared", 1));
    a.finish(false);
    assert_eq!(woken(&cache), ["b"]);
}

#[test]
fn a_round_sees_one_world() {
    let cache = cache();
    cache.applied(DEPLOYMENT, object("podinfo", 1));
    let view = cache.view(&key("a"));
    assert_eq!(view.get(DEPLOYMENT, "test", "podinfo").unwrap()["spec"]["version"], 1);
    cache.applied(DEPLOYMENT, object("podinfo", 2));
    assert_eq!(view.get(DEPLOYMENT, "test", "podinfo").unwrap()["spec"]["version"], 1);
    assert_eq!(view.get(DEPLOYMENT, "test", "podinfo").unwrap()["metadata"].get("managedFields"), None);
}

#[test]
fn a_list_removes_what_it_does_not_name_but_not_what_was_written_meanwhile() {
    let cache = cache();
    cache.list_begins(DEPLOYMENT);
    assert_eq!(cache.presence(DEPLOYMENT), Presence::Unknown);
    cache.applied(DEPLOYMENT, object("old", 1));
    cache.applied(DEPLOYMENT, object("kept", 2));
    cache.list_ends(DEPLOYMENT);
    assert_eq!(cache.presence(DEPLOYMENT), Presence::Synced);
    let view = cache.view(&key("a"));
    let seen = ["old", "kept", "new"].map(|name| view.get(DEPLOYMENT, "test", name).is_some());
    assert_eq!(seen, [true, true, false]);
    cache.list_begins(DEPLOYMENT);
    view.written(&reference(DEPLOYMENT, &object("new", 0)), object("new", 7));
    cache.applied(DEPLOYMENT, object("kept", 2));
    cache.list_ends(DEPLOYMENT);
    view.finish(false);
    assert_eq!(version(&cache, DEPLOYMENT, "old"), None);
    assert_eq!(version(&cache, DEPLOYMENT, "kept"), Some(json!(2)));
    assert_eq!(version(&cache, DEPLOYMENT, "new"), Some(json!(7)));
    assert_eq!(woken(&cache), ["a"]);
}

#[test]
fn what_we_deleted_does_not_come_back_by_a_late_event() {
    let cache = cache();
    cache.applied(DEPLOYMENT, object("podinfo", 5));
    let view = cache.view(&key("a"));
    view.removed(&reference(DEPLOYMENT, &object("podinfo", 0)), "uid-podinfo");
    assert!(view.get(DEPLOYMENT, "test", "podinfo").is_none());
    cache.applied(DEPLOYMENT, object("podinfo", 6));
    assert_eq!(version(&cache, DEPLOYMENT, "podinfo"), None);
    cache.deleted(DEPLOYMENT, &object("podinfo", 7));
    let mut again = object("podinfo", 8);
    again["metadata"]["uid"] = json!("another");
    cache.applied(DEPLOYMENT, again);
    assert_eq!(version(&cache, DEPLOYMENT, "podinfo"), Some(json!(8)));
}

#[test]
fn canaries_of_one_target_know_of_each_other() {
    let cache = cache();
    cache.applied(CANARY, canary("a", "podinfo", 1));
    cache.applied(CANARY, canary("b", "podinfo", 2));
    cache.applied(CANARY, canary("c", "other", 3));
    assert_eq!(cache.rivals(&key("a"), "podinfo").len(), 2);
    assert_eq!(cache.rivals(&key("c"), "other").len(), 0, "one alone has no rival");
    assert_eq!(cache.rivals(&key("a"), "other").len(), 1, "the target is another's");
    woken(&cache);
    cache.applied(CANARY, canary("b", "other", 4));
    assert_eq!(woken(&cache), ["a", "b", "c"], "the one it leaves, itself, and the one it meets");
    cache.deleted(CANARY, &canary("b", "other", 5));
    assert_eq!(cache.rivals(&key("c"), "other").len(), 0);
    assert_eq!(cache.count("test"), 2);
}

#[test]
fn a_list_of_a_namespace_is_an_interest_too() {
    let cache = cache();
    cache.applied(SERVICE, object("one", 1));
    let view = cache.view(&key("a"));
    assert_eq!(view.list(SERVICE, "test").len(), 1);
    assert_eq!(view.list(SERVICE, "elsewhere").len(), 0);
    view.finish(false);
    cache.applied(SERVICE, object("two", 2));
    assert_eq!(woken(&cache), ["a"]);
}

#[test]
fn what_a_canary_controls_is_found_under_whatever_name_until_it_is_gone() {
    let cache = cache();
    let owned = |name: &str, version: u64| {
        let mut owned = object(name, version);
        owned["metadata"]["ownerReferences"] = json!([{ "kind": "Canary", "uid": "uid-a", "controller": true }]);
        owned
    };
    cache.applied(CANARY, canary("a", "podinfo", 1));
    cache.applied(DEPLOYMENT, object("stranger", 2));
    cache.applied(DEPLOYMENT, owned("one-primary", 3));
    cache.applied(DEPLOYMENT, owned("two-primary", 4));
    let found = || {
        let view = cache.view(&key("a"));
        let found = view.controlled(DEPLOYMENT, "test", "uid-a");
        view.finish(false);
        found.iter().map(|object| text(object, "/metadata/name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found(), ["one-primary", "two-primary"]);
    woken(&cache);
    cache.applied(DEPLOYMENT, object("two-primary", 5));
    assert_eq!(woken(&cache), ["a"]);
    assert_eq!(found(), ["one-primary"], "given away");
    cache.deleted(DEPLOYMENT, &owned("one-primary", 6));
    assert_eq!(found(), Vec::<String>::new());
    cache.deleted(CANARY, &canary("a", "podinfo", 7));
    assert_eq!(cache.lock().owned.len(), 0, "nothing is left");
}

#[test]
fn of_a_route_it_is_known_when_it_was_last_written() {
    let mut route = object("podinfo", 1);
    route["metadata"]["managedFields"] = json!([
        { "manager": "seaway", "operation": "Update", "time": "2024-07-11T01:00:00Z", "fieldsV1": { "f:spec": {} } },
        { "manager": "kubectl", "operation": "Update", "time": "2024-07-11T01:00:07Z" },
        { "manager": "istio", "operation": "Update", "subresource": "status", "time": "2024-07-11T02:00:00Z" },
    ]);
    let kept = project(HTTP_ROUTE, route.clone());
    assert_eq!(kept["metadata"]["managedFields"], json!([{ "time": "2024-07-11T01:00:07Z" }]));
    assert_eq!(object::changed(&kept), object::changed(&route), "and stays known");
    assert!(project(SERVICE, route)["metadata"].get("managedFields").is_none());
}

#[test]
fn data_of_secrets_is_not_kept() {
    let cache = cache();
    let mut secret = object("credentials", 1);
    secret["type"] = json!("Opaque");
    secret["data"] = json!({ "password": "aHVudGVyMg==" });
    cache.applied(SECRET, secret);
    let view = cache.view(&key("a"));
    let kept = view.get(SECRET, "test", "credentials").unwrap();
    assert!(!kept.to_string().contains("aHVudGVyMg"));
    assert_eq!(kept["checksum"].as_str().map(str::len), Some(16));
}

#[test]
fn an_answer_that_comes_after_the_deletion_makes_no_ghost() {
    let cache = cache();
    cache.applied(DEPLOYMENT, object("podinfo", 5));
    let view = cache.view(&key("a"));
    view.get(DEPLOYMENT, "test", "podinfo");
    // Our write made version 6; the watch shows it and the deletion by somebody else before the answer is looked at.
    cache.applied(DEPLOYMENT, object("podinfo", 6));
    cache.deleted(DEPLOYMENT, &object("podinfo", 7));
    view.written(&reference(DEPLOYMENT, &object("podinfo", 0)), object("podinfo", 6));
    assert_eq!(version(&cache, DEPLOYMENT, "podinfo"), None);
    view.written(&reference(DEPLOYMENT, &object("podinfo", 0)), object("podinfo", 8));
    assert_eq!(version(&cache, DEPLOYMENT, "podinfo"), Some(json!(8)), "one that is made anew is known at once");
}

#[test]
fn a_read_heals_what_the_watch_has_missed() {
    let cache = cache();
    cache.applied(DEPLOYMENT, object("changed", 5));
    cache.applied(DEPLOYMENT, object("gone", 6));
    let view = cache.view(&key("a"));
    let references = ["changed", "gone"].map(|name| reference(DEPLOYMENT, &object(name, 0)));
    assert!(references.iter().all(|object| view.get(DEPLOYMENT, "test", &object.name).is_some()));
    view.refreshed(&references[0], Some(object("changed", 9)));
    view.refreshed(&references[1], None);
    view.finish(false);
    assert_eq!(version(&cache, DEPLOYMENT, "changed"), Some(json!(9)));
    assert_eq!(version(&cache, DEPLOYMENT, "gone"), None);
    assert_eq!(woken(&cache), ["a"]);
}

#[test]
fn a_standby_remembers_no_wakes() {
    let cache = Arc::new(Cache::new());
    for version in 1..1000 {
        cache.applied(CANARY, canary(&format!("canary-{version}"), "podinfo", version));
    }
    assert!(cache.wakes.lock().is_none());
    assert_eq!(cache.canaries().len(), 999, "whoever begins to listen begins with all of them");
    cache.listen();
    (1000..2000).for_each(|version| cache.applied(CANARY, canary("one", "podinfo-of-one", version)));
    assert_eq!(woken(&cache), ["one"], "and hears of each once");
}

#[tokio::test(start_paused = true)]
async fn a_wake_that_comes_before_anyone_waits_is_not_lost() {
    let cache = cache();
    cache.applied(CANARY, canary("a", "podinfo", 1));
    assert_eq!(cache.woken().await.len(), 1);
    let (waiting, applied) = (cache.clone(), cache.clone());
    let waiter = tokio::spawn(async move { waiting.woken().await });
    tokio::task::yield_now().await;
    applied.applied(CANARY, canary("a", "podinfo", 2));
    assert_eq!(waiter.await.unwrap(), BTreeSet::from([key("a")]));
}

/// Whether an object is kept as it is read.
fn is_open(cache: &Cache, name: &str) -> bool {
    let state = cache.lock();
    state.entry(&reference(DEPLOYMENT, &object(name, 0))).is_some_and(|entry| entry.open.is_some())
}

#[test]
fn what_a_canary_reads_is_open_until_it_rests() {
    let cache = cache();
    cache.applied(DEPLOYMENT, object("podinfo", 1));
    let read = |rests: bool| {
        let view = cache.view(&key("a"));
        let object = view.get(DEPLOYMENT, "test", "podinfo").unwrap();
        view.finish(rests);
        object
    };
    let first = read(false);
    assert!(is_open(&cache, "podinfo") && Arc::ptr_eq(&first, &read(true)), "opened once");
    assert!(!is_open(&cache, "podinfo"));
    assert_eq!(read(false), first, "packed and opened again it is the same");
    assert!(is_open(&cache, "podinfo"));
}

#[test]
fn only_so_many_objects_are_open() {
    let cache = cache();
    cache.applied(DEPLOYMENT, object("nobody's", 1));
    assert!(!is_open(&cache, "nobody's"));
    let view = cache.view(&key("a"));
    for number in 0..OPEN + 10 {
        view.get(DEPLOYMENT, "test", &number.to_string());
        cache.applied(DEPLOYMENT, object(&number.to_string(), 1));
    }
    assert!(!is_open(&cache, "9") && is_open(&cache, "10"), "those that were opened first are closed");
    assert_eq!(version(&cache, DEPLOYMENT, "9"), Some(json!(1)));
    assert!(is_open(&cache, "9") && !is_open(&cache, "10"));
}
