//! The CORS filter: answers preflight requests and marks the others.

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response};

use super::spec;
use crate::proxy::{Body, empty};

/// A cross-origin policy.
#[derive(Clone, Debug)]
pub(super) struct Cors {
    origins: Vec<String>,
    credentials: bool,
    methods: Vec<String>,
    headers: Vec<String>,
    expose: Option<HeaderValue>,
    max_age: HeaderValue,
}

/// Seconds a preflight answer may be kept when the filter does not say.
const MAX_AGE: u32 = 5;

impl Cors {
    pub fn parse(spec: &spec::CorsSpec) -> Result<Self, String> {
        let list = |list: &[String]| match HeaderValue::try_from(list.join(", ")) {
            Ok(value) => Ok((!list.is_empty()).then_some(value)),
            Err(_) => Err(format!("bad header list {list:?}")),
        };
        list(&spec.allow_methods)?;
        list(&spec.allow_headers)?;
        Ok(Self {
            origins: spec.allow_origins.iter().map(|origin| origin.to_ascii_lowercase()).collect(),
            credentials: spec.allow_credentials.unwrap_or(false),
            methods: spec.allow_methods.clone(),
            headers: spec.allow_headers.clone(),
            expose: list(&spec.expose_headers)?,
            max_age: spec.max_age.unwrap_or(MAX_AGE).into(),
        })
    }

    fn allows(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        self.origins.iter().any(|allowed| match allowed.split_once('*') {
            None => *allowed == origin,
            Some((head, tail)) => {
                origin.len() > head.len() + tail.len() && origin.starts_with(head) && origin.ends_with(tail)
            }
        })
    }

    /// The answer to a preflight request; `None` if this is none. A foreign origin gets an answer without permission.
    pub fn preflight<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let origin = request.headers().get(header::ORIGIN)?;
        let method = request.headers().get(header::ACCESS_CONTROL_REQUEST_METHOD)?;
        if request.method() != Method::OPTIONS {
            return None;
        }
        let mut response = Response::new(empty());
        let headers = response.headers_mut();
        if self.permit(origin, headers) {
            let wanted = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS);
            if let Some(methods) = self.answer(&self.methods, Some(method)) {
                headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
            }
            if let Some(names) = self.answer(&self.headers, wanted) {
                headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
            }
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, self.max_age.clone());
        }
        Some(response)
    }

    /// A browser that sends credentials does not take `*` for an answer, so it gets back what it asked for.
    fn answer(&self, allowed: &[String], asked: Option<&HeaderValue>) -> Option<HeaderValue> {
        if self.credentials && allowed.iter().any(|name| name == "*") {
            return asked.cloned();
        }
        if allowed.is_empty() { None } else { HeaderValue::try_from(allowed.join(", ")).ok() }
    }

    /// Marks an answer for a page of `origin`.
    pub fn mark(&self, origin: &HeaderValue, headers: &mut HeaderMap) {
        if self.permit(origin, headers)
            && let Some(expose) = &self.expose
        {
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, expose.clone());
        }
    }

    fn permit(&self, origin: &HeaderValue, headers: &mut HeaderMap) -> bool {
        let allowed = origin.to_str().is_ok_and(|origin| self.allows(origin));
        if allowed {
            let any = !self.credentials && self.origins.iter().any(|origin| origin == "*");
            let value = if any { HeaderValue::from_static("*") } else { origin.clone() };
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, value);
            if !any {
                headers.append(header::VARY, HeaderValue::from_static("Origin"));
            }
            if self.credentials {
                headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
            }
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cors(spec: serde_json::Value) -> Cors {
        Cors::parse(&serde_json::from_value(spec).unwrap()).unwrap()
    }

    fn preflight(cors: &Cors, origin: &str) -> Response<Body> {
        let request = Request::options("/")
            .header("origin", origin)
            .header("access-control-request-method", "PUT")
            .header("access-control-request-headers", "x-a")
            .body(())
            .unwrap();
        cors.preflight(&request).unwrap()
    }

    #[test]
    fn a_known_origin_may() {
        let cors = cors(json!({
            "allowOrigins": ["https://foo.example", "https://*.bar.example"], "allowMethods": ["GET", "PUT"],
            "allowHeaders": ["X-A"], "allowCredentials": true, "maxAge": 86400,
        }));
        for origin in ["https://foo.example", "https://a.bar.example"] {
            let answer = preflight(&cors, origin);
            assert_eq!(answer.headers()["access-control-allow-origin"], origin);
            assert_eq!(answer.headers()["access-control-allow-methods"], "GET, PUT");
            assert_eq!(answer.headers()["access-control-allow-headers"], "X-A");
            assert_eq!(answer.headers()["access-control-max-age"], "86400");
            assert_eq!(answer.headers()["access-control-allow-credentials"], "true");
        }
    }

    #[test]
    fn a_foreign_origin_may_not() {
        let cors = cors(json!({"allowOrigins": ["https://*.bar.example"]}));
        assert!(!preflight(&cors, "https://bar.example").headers().contains_key("access-control-allow-origin"));
        let mut headers = HeaderMap::new();
        cors.mark(&HeaderValue::from_static("https://evil.example"), &mut headers);
        assert!(headers.is_empty());
    }

    #[test]
    fn a_star_is_spelt_out_for_credentials() {
        let star = json!({"allowOrigins": ["*"], "allowMethods": ["*"], "allowHeaders": ["*"]});
        assert_eq!(preflight(&cors(star.clone()), "https://x.y").headers()["access-control-allow-origin"], "*");
        let mut with = star;
        with["allowCredentials"] = json!(true);
        let answer = preflight(&cors(with), "https://x.y");
        assert_eq!(answer.headers()["access-control-allow-origin"], "https://x.y");
        assert_eq!(answer.headers()["access-control-allow-methods"], "PUT");
        assert_eq!(answer.headers()["access-control-allow-headers"], "x-a");
    }
}
