//! Webhooks: what is sent and what the answer means.
//!
//! A hook consents with a status up to 202 and refuses with anything else. The text of a refusal is the status line alone:
//! what a hook writes into its body is not repeated in Events, where others may read it. When each type of hook is called
//! is not known here.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, StatusCode};
use seaway_api::canary::{Canary, CanaryStatus, Phase};
use seaway_core::plan::Hook;
use seaway_core::question::Answer;
use serde::Serialize;
use url::Url;

use crate::http::{Http, Request, Response};

/// First pause before a repetition; it doubles each time.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest pause, also where the other side asks for more.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Attempts after the first, whatever the hook asks for.
const MOST_RETRIES: u32 = 20;

/// What a hook is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Payload {
    /// Name of the Canary.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its phase.
    pub phase: Phase,
    /// Changes with the revision; lets a hook tell two rollouts apart.
    pub checksum: String,
    /// Metadata of the hook, and of the event if it is about one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// What a check is sent.
pub fn payload(canary: &Canary, phase: Phase, metadata: &BTreeMap<String, String>) -> Payload {
    let (name, namespace) = (canary.name().to_owned(), canary.namespace().to_owned());
    let checksum = canary.status.as_ref().map_or_else(|| checksum(&CanaryStatus::default()), checksum);
    Payload { name, namespace, phase, checksum, metadata: metadata.clone() }
}

/// What an event hook is sent; `kind` is `Normal` or `Warning`. Metadata of the hook does not hide that of the event.
pub fn event_payload(
    canary: &Canary,
    message: &str,
    kind: &str,
    milliseconds: i64,
    metadata: &BTreeMap<String, String>,
) -> Payload {
    let mut all = metadata.clone();
    all.insert("eventMessage".into(), message.into());
    all.insert("eventType".into(), kind.into());
    all.insert("timestamp".into(), milliseconds.to_string());
    payload(canary, canary.phase(), &all)
}

/// Flagger's checksum of a revision: FNV-1a over the text Go's spew gives for the two fields, in letters that are safe in
/// names. Hooks compare it, so it is computed exactly as Flagger does.
pub fn checksum(status: &CanaryStatus) -> String {
    let mut text = String::from(
        "(struct { TrackedConfigs *map[string]string; LastAppliedSpec string }){TrackedConfigs:(*map[string]string)",
    );
    match &status.tracked_configs {
        None => text.push_str("<nil>"),
        Some(configs) => {
            let entries: Vec<String> = configs.iter().map(|(name, sum)| format!("{name}:{sum}")).collect();
            // Writing to a String cannot fail.
            let _ = write!(text, "map[{}]", entries.join(" "));
        }
    }
    let _ = write!(text, " LastAppliedSpec:(string){}}}", status.last_applied_spec);
    safe(fnv1a(text.as_bytes()))
}

fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Decimal digits in Kubernetes' alphabet without vowels.
fn safe(number: u32) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    number.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

/// Calls a hook, as often as it may be repeated, and says what it answered: yes, or no and why.
pub async fn call(http: &Http, hook: &Hook, payload: &Payload) -> Answer {
    match attempt(http, hook, payload).await {
        Ok(()) => Answer::Yes,
        Err(reason) => Answer::No(reason),
    }
}

async fn attempt(http: &Http, hook: &Hook, payload: &Payload) -> Result<(), String> {
    let url = Url::parse(&hook.url).map_err(|_| "invalid url".to_owned())?;
    let body = Bytes::from(serde_json::to_vec(payload).map_err(|_| "payload cannot be written as JSON".to_owned())?);
    let mut pause = PAUSE;
    let mut left = hook.retries.min(MOST_RETRIES);
    loop {
        let mut request = Request::new(Method::POST, url.clone(), hook.timeout);
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.body = body.clone();
        request.insecure = hook.insecure;
        let (reason, wait) = match http.send(request).await {
            Ok(response) if response.status <= StatusCode::ACCEPTED => return Ok(()),
            Ok(response) => (status_text(response.status), repeat_after(&response, pause)),
            Err(error) => (error.to_string(), error.is_transient().then_some(pause)),
        };
        let Some(wait) = wait.filter(|_| left > 0) else { return Err(reason) };
        left -= 1;
        tokio::time::sleep(wait).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// `status 403 Forbidden`.
pub(crate) fn status_text(status: StatusCode) -> String {
    format!("status {} {}", status.as_u16(), status.canonical_reason().unwrap_or_default()).trim_end().to_owned()
}

/// How long to wait before asking again; `None` when asking again does not help.
fn repeat_after(response: &Response, pause: Duration) -> Option<Duration> {
    let status = response.status;
    let busy = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    if !busy && (!status.is_server_error() || status == StatusCode::NOT_IMPLEMENTED) {
        return None;
    }
    let asked = response.headers.get(RETRY_AFTER).filter(|_| busy).and_then(|value| value.to_str().ok()?.parse().ok());
    Some(asked.map_or(pause, |seconds| Duration::from_secs(seconds).min(LONGEST_PAUSE)))
}

#[cfg(test)]
mod tests;
