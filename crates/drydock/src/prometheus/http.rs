//! Prometheus' HTTP API: queries, and enough beside them for clients that first ask who is there.

use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};

use super::eval::Query;
use super::labels::Labels;
use super::storage::{Sample, Storage};
use super::value::{QueryError, Value, number};
use crate::clock::Clock;

/// Steps of a range query beyond which Prometheus refuses, too.
const MAX_POINTS: i64 = 11_000;

/// The years 0 to 9999 in milliseconds: any sum of two such moments fits.
const MOMENTS: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

#[derive(Clone)]
pub(super) struct Server {
    pub storage: Arc<RwLock<Storage>>,
    pub clock: Clock,
}

impl Server {
    pub fn router(self) -> Router {
        let text = |text: &'static str| get(move || std::future::ready(text));
        Router::new()
            .route("/api/v1/query", get(instant).post(instant))
            .route("/api/v1/query_range", get(range).post(range))
            .route("/api/v1/status/buildinfo", get(|| std::future::ready(success(&build_info()))))
            .route("/-/healthy", text("Prometheus Server is Healthy.\n"))
            .route("/-/ready", text("Prometheus Server is Ready.\n"))
            .with_state(self)
    }
}

fn build_info() -> Json {
    json!({"version": "3.5.0", "revision": "drydock", "branch": "", "buildUser": "", "buildDate": "", "goVersion": ""})
}

/// Parameters of the URL and of a form in the body.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn read(query: Option<&str>, body: &[u8]) -> Self {
        let body = url::form_urlencoded::parse(body);
        let pairs = body.chain(url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()));
        Self(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn query(&self) -> Result<Query, QueryError> {
        Query::parse(self.get("query").unwrap_or_default())
    }

    /// A moment in milliseconds: seconds since 1970 or RFC 3339, within [`MOMENTS`].
    fn time(&self, name: &str) -> Result<Option<i64>, QueryError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let seconds = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite());
        let moment = match seconds {
            Some(seconds) => Some((seconds * 1_000.0).round() as i64),
            None => text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond),
        };
        let wrong =
            || QueryError::BadData(format!("invalid parameter {name:?}: cannot parse {text:?} to a valid timestamp"));
        moment.filter(|moment| MOMENTS.contains(moment)).map(Some).ok_or_else(wrong)
    }

    fn step(&self) -> Result<i64, QueryError> {
        let text = self.get("step").unwrap_or_default();
        let seconds = text.parse::<f64>().ok();
        let millis = seconds.map(|seconds| (seconds * 1_000.0) as i64).or_else(|| {
            let parsed = promql_parser::util::parse_duration(text).ok()?;
            i64::try_from(parsed.as_millis()).ok()
        });
        millis.filter(|step| *step > 0).ok_or_else(|| {
            QueryError::BadData("invalid parameter \"step\": zero or negative or unreadable step".to_owned())
        })
    }
}

async fn instant(State(server): State<Server>, RawQuery(query): RawQuery, body: Bytes) -> Response {
    let answer = || {
        let parameters = Parameters::read(query.as_deref(), &body);
        let now = server.clock.now().as_millisecond();
        let time = parameters.time("time")?.unwrap_or(now);
        let query = parameters.query()?;
        let storage = server.storage.read().unwrap_or_else(PoisonError::into_inner);
        Ok(instant_result(query.evaluate(&storage, time, time, time)?, time))
    };
    respond(answer())
}

async fn range(State(server): State<Server>, RawQuery(query): RawQuery, body: Bytes) -> Response {
    let answer = || {
        let parameters = Parameters::read(query.as_deref(), &body);
        let missing = |name: &str| QueryError::BadData(format!("invalid parameter {name:?}: it is missing"));
        let start = parameters.time("start")?.ok_or_else(|| missing("start"))?;
        let end = parameters.time("end")?.ok_or_else(|| missing("end"))?;
        let step = parameters.step()?;
        if end < start {
            return Err(QueryError::BadData("end timestamp must not be before start time".to_owned()));
        }
        if (end - start) / step > MAX_POINTS {
            return Err(QueryError::BadData("exceeded maximum resolution of 11,000 points per timeseries".to_owned()));
        }
        let query = parameters.query()?;
        let storage = server.storage.read().unwrap_or_else(PoisonError::into_inner);
        let mut series: std::collections::BTreeMap<Labels, Vec<Sample>> = std::collections::BTreeMap::new();
        let mut next = Some(start);
        while let Some(time) = next.filter(|time| *time <= end) {
            match query.evaluate(&storage, time, start, end)? {
                Value::Scalar(value) => series.entry(Labels::default()).or_default().push(Sample { time, value }),
                Value::Vector(vector) => {
                    for (labels, value) in vector {
                        series.entry(labels).or_default().push(Sample { time, value });
                    }
                }
                _ => {
                    let text = "invalid expression type for range query, must be Scalar or instant Vector";
                    return Err(QueryError::BadData(text.to_owned()));
                }
            }
            next = time.checked_add(step);
        }
        Ok(json!({"resultType": "matrix", "result": matrix(series)}))
    };
    respond(answer())
}

fn instant_result(value: Value, time: i64) -> Json {
    match value {
        Value::Scalar(value) => json!({"resultType": "scalar", "result": point(time, value)}),
        Value::Text(text) => json!({"resultType": "string", "result": [seconds(time), text]}),
        Value::Vector(vector) => {
            let series = vector
                .into_iter()
                .map(|(labels, value)| json!({"metric": metric(&labels), "value": point(time, value)}));
            json!({"resultType": "vector", "result": series.collect::<Vec<_>>()})
        }
        Value::Matrix(series) => json!({"resultType": "matrix", "result": matrix(series)}),
    }
}

fn matrix(series: impl IntoIterator<Item = (Labels, Vec<Sample>)>) -> Vec<Json> {
    let one = |(labels, samples): (Labels, Vec<Sample>)| {
        let values: Vec<Json> = samples.iter().map(|sample| point(sample.time, sample.value)).collect();
        json!({"metric": metric(&labels), "values": values})
    };
    series.into_iter().map(one).collect()
}

fn metric(labels: &Labels) -> Map<String, Json> {
    labels.iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

fn point(time: i64, value: f64) -> Json {
    json!([seconds(time), number(value)])
}

/// Whole seconds are written without a fraction.
fn seconds(time: i64) -> Json {
    if time % 1_000 == 0 { json!(time / 1_000) } else { json!(time as f64 / 1_000.0) }
}

fn success(data: &Json) -> Response {
    (
        StatusCode::OK,
        [(header::CONTENT_TYPE, "application/json")],
        json!({"status": "success", "data": data}).to_string(),
    )
        .into_response()
}

fn respond(answer: Result<Json, QueryError>) -> Response {
    let (status, kind, error) = match answer {
        Ok(data) => return success(&data),
        Err(QueryError::BadData(error)) => (StatusCode::BAD_REQUEST, "bad_data", error),
        Err(QueryError::Execution(error)) => (StatusCode::UNPROCESSABLE_ENTITY, "execution", error),
    };
    let body = json!({"status": "error", "errorType": kind, "error": error});
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
