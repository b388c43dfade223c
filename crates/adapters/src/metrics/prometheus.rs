//! Prometheus' HTTP API, as far as one number needs it.
//!
//! Exactly one series may come back. Flagger takes the last of several, which is chance; here several are no data.

use std::time::Duration;

use ::http::header::AUTHORIZATION;
use ::http::{HeaderMap, Method, StatusCode};
use seaway_api::metric_template::MetricProvider;
use serde_json::Value;
use url::Url;

use super::{Credentials, NO_VALUES, QueryError, SEVERAL_VALUES};
use crate::hooks::status_text;
use crate::http::{self, Http, Request};

/// Time limit of a query.
const LIMIT: Duration = Duration::from_secs(5);

/// One Prometheus.
pub(crate) struct Prometheus {
    endpoint: Url,
    headers: HeaderMap,
    insecure: bool,
    trusted: bool,
}

impl Prometheus {
    /// A Prometheus at the provider's address, with its headers and credentials.
    pub(super) fn new(
        provider: &MetricProvider,
        credentials: Option<&Credentials>,
        trusted: bool,
    ) -> Result<Self, String> {
        let mut endpoint = Url::parse(&provider.address).map_err(|error| error.to_string())?;
        if !matches!(endpoint.scheme(), "http" | "https") {
            return Err(format!("scheme {} is not allowed", endpoint.scheme()));
        }
        endpoint.set_query(None);
        endpoint.set_fragment(None);
        let path = format!("{}/api/v1/query", endpoint.path().trim_end_matches('/'));
        endpoint.set_path(&path);
        let mut headers = HeaderMap::new();
        for (name, values) in &provider.headers {
            for value in values {
                let (name, value) = http::extra_header(name, value).map_err(|error| error.to_string())?;
                headers.append(name, value);
            }
        }
        if let Some(credentials) = credentials {
            let value = match (credentials.get("token"), credentials.get("username"), credentials.get("password")) {
                (Some(token), _, _) => http::bearer(token),
                (None, Some(user), Some(password)) => http::basic(user, password),
                _ => return Err("the secret has neither token nor username and password".into()),
            };
            headers.insert(AUTHORIZATION, value.map_err(|error| error.to_string())?);
        }
        Ok(Self { endpoint, headers, insecure: provider.insecure_skip_verify, trusted })
    }

    /// The one value of a query.
    pub(super) async fn query(&self, http: &Http, query: &str) -> Result<f64, QueryError> {
        let mut url = self.endpoint.clone();
        url.query_pairs_mut().append_pair("query", query);
        let mut request = Request::new(Method::GET, url, LIMIT);
        request.headers = self.headers.clone();
        request.insecure = self.insecure;
        request.trusted = self.trusted;
        let response = http.send(request).await.map_err(|error| QueryError::Failed(error.to_string()))?;
        if response.status != StatusCode::OK {
            return Err(QueryError::Failed(status_text(response.status)));
        }
        value(&response.body)
    }

    /// Whether the server answers the simplest query there is.
    pub(super) async fn is_online(&self, http: &Http) -> Result<(), QueryError> {
        match self.query(http, "vector(1)").await {
            Ok(1.0) => Ok(()),
            Ok(value) => Err(QueryError::Failed(format!("vector(1) is {value}"))),
            Err(error) => Err(error),
        }
    }
}

/// White space of a query written over several lines, collapsed as Flagger sends it.
pub(super) fn collapse(query: &str) -> String {
    let mut collapsed = String::with_capacity(query.len());
    for c in query.chars() {
        if !c.is_whitespace() {
            collapsed.push(c);
        } else if !collapsed.ends_with(' ') {
            collapsed.push(' ');
        }
    }
    collapsed
}

/// The one value in an answer.
fn value(body: &[u8]) -> Result<f64, QueryError> {
    let broken = || QueryError::Failed("the answer is not Prometheus'".into());
    let answer: Value = serde_json::from_slice(body).map_err(|_| broken())?;
    if answer.get("status").and_then(Value::as_str) != Some("success") {
        return Err(broken());
    }
    let result = answer.pointer("/data/result").and_then(Value::as_array).ok_or_else(broken)?;
    let sample = match answer.pointer("/data/resultType").and_then(Value::as_str) {
        Some("scalar") => result.get(1),
        Some("matrix") => return Err(if result.is_empty() { NO_VALUES } else { SEVERAL_VALUES }),
        _ => match result.as_slice() {
            [] => return Err(NO_VALUES),
            [one] if one.get("values").is_some() => return Err(SEVERAL_VALUES),
            [one] => one.pointer("/value/1"),
            _ => return Err(SEVERAL_VALUES),
        },
    };
    let number: f64 = sample.and_then(Value::as_str).and_then(|text| text.parse().ok()).ok_or_else(broken)?;
    if number.is_nan() { Err(NO_VALUES) } else { Ok(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(samples: &str) -> Result<f64, QueryError> {
        value(format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{samples}]}}}}"#).as_bytes())
    }

    #[test]
    fn exactly_one_series_is_a_value() {
        let one = r#"{"metric":{},"value":[1720000000.1,"99.5"]}"#;
        assert_eq!(vector(one), Ok(99.5));
        assert_eq!(vector(""), Err(NO_VALUES));
        assert_eq!(vector(&format!("{one},{one}")), Err(SEVERAL_VALUES));
        assert_eq!(vector(r#"{"metric":{},"value":[1,"NaN"]}"#), Err(NO_VALUES));
        assert_eq!(vector(r#"{"metric":{},"value":[1,"+Inf"]}"#), Ok(f64::INFINITY));
        assert_eq!(vector(r#"{"metric":{},"values":[[1,"1"],[2,"2"]]}"#), Err(SEVERAL_VALUES));
    }

    #[test]
    fn scalars_count_and_ranges_do_not() {
        let typed = |kind: &str, result: &str| {
            value(format!(r#"{{"status":"success","data":{{"resultType":"{kind}","result":{result}}}}}"#).as_bytes())
        };
        assert_eq!(typed("scalar", r#"[1,"2"]"#), Ok(2.0));
        assert_eq!(typed("matrix", r#"[{"metric":{},"values":[]}]"#), Err(SEVERAL_VALUES));
        assert_eq!(typed("matrix", "[]"), Err(NO_VALUES));
    }

    #[test]
    fn anything_else_is_broken_not_empty() {
        for body in ["", "{}", "[]", r#"{"status":"error","data":{"result":[]}}"#, r#"{"status":"success"}"#] {
            assert!(matches!(value(body.as_bytes()), Err(QueryError::Failed(_))), "{body}");
        }
        assert!(matches!(vector(r#"{"value":[1,2]}"#), Err(QueryError::Failed(_))));
    }

    #[test]
    fn white_space_is_collapsed_and_a_leading_space_stays() {
        assert_eq!(collapse("\n  sum(\n\t rate(x[1m])\n)\n"), " sum( rate(x[1m]) ) ");
    }
}
