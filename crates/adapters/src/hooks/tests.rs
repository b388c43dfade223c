//! Payloads against golden values, calls against servers in memory.

use std::sync::Arc;

use seaway_api::canary::HookType;
use serde_json::{Value, json};

use super::*;
use crate::testing::Script;

fn status(tracked: Option<&[(&str, &str)]>, applied: &str) -> CanaryStatus {
    CanaryStatus {
        tracked_configs: tracked.map(|all| all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()),
        last_applied_spec: applied.into(),
        ..CanaryStatus::default()
    }
}

#[test]
fn the_checksum_is_flaggers() {
    assert_eq!(checksum(&status(Some(&[("test-config-map", "484637c76acaa7c6")]), "4cb74184589")), "569bdb7cb9");
    assert_eq!(checksum(&status(None, "4cb74184589")), "7c9d467496");
    assert_eq!(safe(fnv1a(b"(string)podinfo-00001")), "5498f4fcd6");
}

#[test]
fn payloads() {
    let canary = Canary::test().at(Phase::Progressing).revisions("s1:aa", "");
    let metadata = BTreeMap::from([("cmd".to_owned(), "hey".to_owned()), ("eventType".to_owned(), "mine".to_owned())]);
    let check = serde_json::to_string(&payload(&canary, Phase::Progressing, &BTreeMap::new())).unwrap();
    let checksum = checksum(canary.status.as_ref().unwrap());
    assert_eq!(
        check,
        format!(r#"{{"name":"podinfo","namespace":"test","phase":"Progressing","checksum":"{checksum}"}}"#)
    );
    let event =
        serde_json::to_value(event_payload(&canary, "Advance", "Normal", 1_720_660_440_000, &metadata)).unwrap();
    assert_eq!(
        event["metadata"],
        json!({ "cmd": "hey", "eventMessage": "Advance", "eventType": "Normal", "timestamp": "1720660440000" })
    );
}

fn hook(retries: u32) -> Hook {
    Hook {
        name: "gate".into(),
        kind: HookType::ConfirmRollout,
        url: "http://gate.test/approve?x=1".into(),
        timeout: Duration::from_secs(5),
        retries,
        insecure: false,
        mute_alert: false,
        metadata: BTreeMap::new(),
    }
}

async fn ask(script: &Arc<Script>, retries: u32) -> Answer {
    let http = Http::through(script.clone());
    call(&http, &hook(retries), &payload(&Canary::test(), Phase::Progressing, &BTreeMap::new())).await
}

#[tokio::test(start_paused = true)]
async fn consent_is_a_status_up_to_202() {
    for (status, consents) in
        [(200, true), (201, true), (202, true), (203, false), (204, false), (302, false), (400, false)]
    {
        let script = Script::answering([(status, "secret body")]);
        assert_eq!(ask(&script, 3).await == Answer::Yes, consents, "{status}");
        assert_eq!(script.requests().len(), 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_sent() {
    let script = Script::answering([(200, "")]);
    ask(&script, 0).await;
    let request = script.requests().remove(0);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<String> = head.lines().map(str::to_lowercase).collect();
    assert_eq!(lines.remove(0), "post /approve?x=1 http/1.1");
    assert!(
        lines.contains(&"content-type: application/json".to_owned()) && lines.contains(&"host: gate.test".to_owned()),
        "{head}"
    );
    assert_eq!(serde_json::from_str::<Value>(body).unwrap()["name"], "podinfo");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_repeats_nothing_the_hook_wrote() {
    let script = Script::answering([(403, "password=hunter2")]);
    assert_eq!(ask(&script, 3).await, Answer::No("status 403 Forbidden".into()));
}

#[tokio::test(start_paused = true)]
async fn trouble_is_repeated_with_growing_pauses() {
    let script = Script::answering([(500, ""), (503, ""), (429, ""), (200, "")]);
    let start = tokio::time::Instant::now();
    assert_eq!(ask(&script, 3).await, Answer::Yes);
    assert_eq!(start.elapsed().as_secs(), 1 + 2 + 4);
    let script = Script::answering([(500, ""), (500, ""), (200, "")]);
    assert_eq!(ask(&script, 1).await, Answer::No("status 500 Internal Server Error".into()));
    let script = Script::answering([(501, ""), (200, "")]);
    assert_eq!(ask(&script, 1).await, Answer::No("status 501 Not Implemented".into()));
    let script = Script::answering([]);
    assert_eq!(ask(&script, 2).await, Answer::No("connection refused".into()));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_is_given_up() {
    let script = Script::answering([(0, "")]);
    assert_eq!(ask(&script, 0).await, Answer::No("timeout after 5s".into()));
}
