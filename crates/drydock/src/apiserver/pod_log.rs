//! `pods/log`: what a container wrote, as plain text.
//!
//! The options are checked here; the node's kubelet has the lines. The server never keeps any of them.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::Response;
use http::request::Parts;
use http_body_util::{BodyExt, StreamBody};
use jiff::Timestamp;
use serde_json::json;
use tower::BoxError;

use super::error::{ApiError, Cause, Result};
use super::kubelet::LogOptions;
use super::request::{Params, Target};
use super::server::{Server, respond};
use super::streams::Streamed;
use super::{Body, full};

impl Server {
    pub(super) fn pod_log(&self, target: &Target, head: &Parts) -> Result<Response<Body>> {
        let params = Params::parse(head.uri.query().unwrap_or_default());
        let options = options(&params, &target.name, self.clock.now())?;
        let Some(located) = self.locate(Streamed::Log, target, params.get("container"))? else {
            // Nowhere yet, so nothing was written: not an error.
            return Ok(respond(204, "text/plain", full(Bytes::new()), &[]));
        };
        let lines = located.kubelet.logs(&located.name, &options)?;
        let frames = lines.map(|lines| Ok::<_, BoxError>(http_body::Frame::data(lines)));
        Ok(respond(200, "text/plain", StreamBody::new(frames).boxed_unsync(), &[]))
    }
}

/// What the query parameters mean at a moment.
fn options(params: &Params, pod: &str, now: Timestamp) -> Result<LogOptions> {
    let number = |name: &str| match params.get(name) {
        "" => Ok(None),
        text => {
            let wrong = |_| ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"));
            text.parse::<i64>().map(Some).map_err(wrong)
        }
    };
    let mut causes = Vec::new();
    let mut at_least = |name: &str, value: Option<i64>, least: i64, why: &str| {
        if let Some(value) = value.filter(|value| *value < least) {
            causes.push(Cause::invalid(name, &json!(value), why));
        }
        value.and_then(|value| usize::try_from(value).ok())
    };
    let tail = at_least("tailLines", number("tailLines")?, 0, "must be greater than or equal to 0");
    let limit = at_least("limitBytes", number("limitBytes")?, 1, "must be greater than 0");
    let seconds = at_least("sinceSeconds", number("sinceSeconds")?, 1, "must be greater than 0");
    let since = match (params.get("sinceTime"), seconds) {
        ("", None) => None,
        // Further back than the calendar goes is everything.
        ("", Some(seconds)) => Some(now.checked_sub(Duration::from_secs(seconds as u64)).unwrap_or(Timestamp::MIN)),
        (time, None) => {
            let wrong = |_| ApiError::bad_request(format!("sinceTime {time:?} is no time: write 2006-01-02T15:04:05Z"));
            Some(time.parse().map_err(wrong)?)
        }
        (_, Some(_)) => {
            causes.push(Cause::forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
            None
        }
    };
    let stream = params.get("stream");
    if !matches!(stream, "" | "All") {
        causes.push(Cause::forbidden("stream", "drydock keeps what a container writes as one stream; use All"));
    }
    if !causes.is_empty() {
        return Err(ApiError::invalid_options("PodLogOptions", pod, &causes));
    }
    Ok(LogOptions {
        follow: params.flag("follow"),
        previous: params.flag("previous"),
        timestamps: params.flag("timestamps"),
        since,
        tail,
        limit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<LogOptions, String> {
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        options(&Params::parse(query), "web", now)
            .map_err(|error| error.to_status()["message"].as_str().unwrap_or_default().to_owned())
    }

    #[test]
    fn a_span_ends_now() {
        let options = read("follow=true&timestamps=true&tailLines=5&sinceSeconds=60&limitBytes=10").unwrap();
        let since = Some("2026-01-01T00:00:00Z".parse().unwrap());
        let expected =
            LogOptions { follow: true, previous: false, timestamps: true, since, tail: Some(5), limit: Some(10) };
        assert_eq!(options, expected);
        assert_eq!(read("sinceTime=2026-01-01T00:00:00Z").unwrap().since, since);
        assert_eq!(read("sinceSeconds=9000000000000000000").unwrap().since, Some(Timestamp::MIN));
        assert_eq!(read("").unwrap(), LogOptions::default());
    }

    #[test]
    fn what_makes_no_sense_is_refused_as_kubernetes_does() {
        for (query, message) in [
            (
                "tailLines=-5",
                "PodLogOptions \"web\" is invalid: tailLines: Invalid value: -5: must be greater than or equal to 0",
            ),
            (
                "sinceSeconds=0",
                "PodLogOptions \"web\" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0",
            ),
            ("limitBytes=0", "PodLogOptions \"web\" is invalid: limitBytes: Invalid value: 0: must be greater than 0"),
            (
                "sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z",
                "PodLogOptions \"web\" is invalid: : Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
            ),
            ("tailLines=many", "strconv.ParseInt: parsing \"many\": invalid syntax"),
            ("sinceTime=noon", "sinceTime \"noon\" is no time: write 2006-01-02T15:04:05Z"),
        ] {
            assert_eq!(read(query), Err(message.to_owned()));
        }
        assert!(read("stream=Stderr").unwrap_err().contains("one stream"));
    }
}
