//! What a rule does to a request and to its answer: headers, path and host, redirects.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{PathAndQuery, Uri};
use http::{Request, Response, StatusCode};

use super::cors::Cors;
use super::matching::after_prefix;
use super::spec;
use crate::proxy::{Body, empty};

/// Changes to a set of headers.
#[derive(Clone, Debug, Default)]
pub(super) struct HeaderChange {
    set: Vec<(HeaderName, HeaderValue)>,
    add: Vec<(HeaderName, HeaderValue)>,
    remove: Vec<HeaderName>,
}

impl HeaderChange {
    fn parse(spec: &spec::HeaderModifier) -> Result<Self, String> {
        let name = |text: &str| text.parse::<HeaderName>().map_err(|_| format!("{text:?} is not a header name"));
        let pairs = |list: &[spec::NamedValue]| {
            let pair = |entry: &spec::NamedValue| {
                let value = HeaderValue::try_from(&entry.value).map_err(|_| format!("bad value of {}", entry.name))?;
                Ok::<_, String>((name(&entry.name)?, value))
            };
            list.iter().map(pair).collect::<Result<Vec<_>, _>>()
        };
        let remove = spec.remove.iter().map(|text| name(text)).collect::<Result<_, _>>()?;
        Ok(Self { set: pairs(&spec.set)?, add: pairs(&spec.add)?, remove })
    }

    pub fn apply(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.set {
            headers.insert(name.clone(), value.clone());
        }
        for (name, value) in &self.add {
            headers.append(name.clone(), value.clone());
        }
        for name in &self.remove {
            headers.remove(name);
        }
    }
}

#[derive(Clone, Debug)]
enum NewPath {
    Full(String),
    Prefix(String),
}

impl NewPath {
    fn parse(spec: &spec::PathChange) -> Result<Self, String> {
        match (spec.kind.as_str(), &spec.replace_full_path, &spec.replace_prefix_match) {
            ("ReplaceFullPath", Some(path), _) => Ok(Self::Full(path.clone())),
            ("ReplacePrefixMatch", _, Some(prefix)) => Ok(Self::Prefix(prefix.clone())),
            (kind, ..) => Err(format!("path change {kind:?} is not supported or has no value")),
        }
    }

    /// The new path; `matched` is the prefix the rule matched by.
    fn apply(&self, path: &str, matched: Option<&str>) -> String {
        let changed = match self {
            Self::Full(path) => path.clone(),
            Self::Prefix(prefix) => {
                let rest = after_prefix(matched.unwrap_or_default(), path).unwrap_or(path);
                format!("{}{rest}", prefix.trim_end_matches('/'))
            }
        };
        if changed.starts_with('/') { changed } else { format!("/{changed}") }
    }
}

/// A new host or path for the backend.
#[derive(Clone, Debug)]
pub(super) struct Rewrite {
    host: Option<HeaderValue>,
    path: Option<NewPath>,
}

impl Rewrite {
    fn parse(spec: &spec::UrlRewrite) -> Result<Self, String> {
        let host = match &spec.hostname {
            Some(host) => Some(HeaderValue::try_from(host).map_err(|_| format!("{host:?} is not a host"))?),
            None => None,
        };
        Ok(Self { host, path: spec.path.as_ref().map(NewPath::parse).transpose()? })
    }

    pub fn apply(&self, request: &mut Request<Body>, matched: Option<&str>) {
        if let Some(host) = &self.host {
            request.headers_mut().insert(header::HOST, host.clone());
        }
        if let Some(path) = &self.path {
            let mut target = path.apply(request.uri().path(), matched);
            if let Some(query) = request.uri().query() {
                target.push('?');
                target.push_str(query);
            }
            if let Ok(target) = PathAndQuery::try_from(target) {
                *request.uri_mut() = Uri::from(target);
            }
        }
    }
}

/// An answer that sends the client elsewhere.
#[derive(Clone, Debug)]
pub(super) struct Redirect {
    scheme: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    path: Option<NewPath>,
    status: StatusCode,
}

impl Redirect {
    fn parse(spec: &spec::Redirect) -> Result<Self, String> {
        let code = spec.status_code.unwrap_or(302);
        let status = StatusCode::from_u16(code).ok().filter(StatusCode::is_redirection);
        Ok(Self {
            scheme: spec.scheme.as_ref().map(|scheme| scheme.to_ascii_lowercase()),
            host: spec.hostname.clone(),
            port: spec.port,
            path: spec.path.as_ref().map(NewPath::parse).transpose()?,
            status: status.ok_or_else(|| format!("{code} is not a redirect"))?,
        })
    }

    /// The answer to a request that named `host` and `port`.
    pub fn answer(&self, uri: &Uri, host: &str, port: Option<u16>, matched: Option<&str>) -> Response<Body> {
        let scheme = self.scheme.as_deref().unwrap_or("http");
        let well_known = if scheme == "https" { 443 } else { 80 };
        // A new scheme brings its own port; otherwise clients stay where they came to, as with Traefik and Envoy. The
        // specification would send them to the listener's port, which they may not even see.
        let port = self.port.or(port.filter(|_| self.scheme.is_none())).unwrap_or(well_known);
        let host = self.host.as_deref().unwrap_or(host);
        let path = match &self.path {
            Some(path) => path.apply(uri.path(), matched),
            None => uri.path().to_owned(),
        };
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let port = if port == well_known { String::new() } else { format!(":{port}") };
        let mut response = Response::new(empty());
        *response.status_mut() = self.status;
        if let Ok(location) = HeaderValue::try_from(format!("{scheme}://{host}{port}{path}{query}")) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        response
    }
}

/// The filters of a rule or of one backend, ready to be applied.
#[derive(Clone, Debug, Default)]
pub(super) struct Filters {
    pub request: Vec<HeaderChange>,
    pub response: Vec<HeaderChange>,
    pub rewrite: Option<Rewrite>,
    pub redirect: Option<Redirect>,
    pub cors: Option<Cors>,
}

impl Filters {
    /// Reads filters, except mirrors, whose backends must be resolved first. A filter that is not known is an error:
    /// the specification forbids to skip it.
    pub fn parse(list: &[spec::Filter]) -> Result<Self, String> {
        let mut filters = Self::default();
        for filter in list {
            let missing = || format!("filter {} has no settings", filter.kind);
            match filter.kind.as_str() {
                "RequestHeaderModifier" => {
                    let spec = filter.request_header_modifier.as_ref().ok_or_else(missing)?;
                    filters.request.push(HeaderChange::parse(spec)?);
                }
                "ResponseHeaderModifier" => {
                    let spec = filter.response_header_modifier.as_ref().ok_or_else(missing)?;
                    filters.response.push(HeaderChange::parse(spec)?);
                }
                "URLRewrite" => {
                    filters.rewrite = Some(Rewrite::parse(filter.url_rewrite.as_ref().ok_or_else(missing)?)?);
                }
                "RequestRedirect" => {
                    filters.redirect = Some(Redirect::parse(filter.request_redirect.as_ref().ok_or_else(missing)?)?);
                }
                "CORS" => filters.cors = Some(Cors::parse(filter.cors.as_ref().ok_or_else(missing)?)?),
                "RequestMirror" => {
                    filter.request_mirror.as_ref().ok_or_else(missing)?;
                }
                other => return Err(format!("filter {other:?} is not supported")),
            }
        }
        Ok(filters)
    }

    /// Changes a request before it leaves for a backend.
    pub fn on_request(&self, request: &mut Request<Body>, matched: Option<&str>) {
        for change in &self.request {
            change.apply(request.headers_mut());
        }
        if let Some(rewrite) = &self.rewrite {
            rewrite.apply(request, matched);
        }
    }

    /// Changes the answer of a backend.
    pub fn on_response(&self, headers: &mut HeaderMap) {
        for change in &self.response {
            change.apply(headers);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn filters(list: Value) -> Filters {
        Filters::parse(&serde_json::from_value::<Vec<spec::Filter>>(list).unwrap()).unwrap()
    }

    fn rewritten(path: &Value, target: &str, matched: &str) -> String {
        let filters = filters(json!([{"type": "URLRewrite", "urlRewrite": {"path": path}}]));
        let mut request = Request::builder().uri(target).body(empty()).unwrap();
        filters.on_request(&mut request, Some(matched));
        request.uri().to_string()
    }

    #[test]
    fn prefixes_are_replaced_as_the_specification_says() {
        for (target, matched, new, expected) in [
            ("/foo/bar", "/foo", "/xyz", "/xyz/bar"),
            ("/foo/bar", "/foo", "/xyz/", "/xyz/bar"),
            ("/foo", "/foo", "/xyz", "/xyz"),
            ("/foo/", "/foo", "/xyz", "/xyz/"),
            ("/foo/bar", "/foo", "", "/bar"),
            ("/foo/", "/foo", "/", "/"),
            ("/foo", "/foo", "/", "/"),
            ("/foo?a=b", "/foo", "/x", "/x?a=b"),
            ("/foo", "", "/x", "/x/foo"),
        ] {
            let path = json!({"type": "ReplacePrefixMatch", "replacePrefixMatch": new});
            assert_eq!(rewritten(&path, target, matched), expected, "{target} {matched} {new}");
        }
        let full = json!({"type": "ReplaceFullPath", "replaceFullPath": "/v2/api"});
        assert_eq!(rewritten(&full, "/old/path?q=1", "/old"), "/v2/api?q=1");
    }

    #[test]
    fn headers_are_set_added_and_removed() {
        let filters = filters(json!([{"type": "RequestHeaderModifier", "requestHeaderModifier": {
            "set": [{"name": "x-api", "value": "v1"}], "add": [{"name": "x-list", "value": "2"}], "remove": ["x-debug"],
        }}, {"type": "URLRewrite", "urlRewrite": {"hostname": "api.example.com"}}]));
        let mut request = Request::builder()
            .uri("/")
            .header("host", "www.example.com")
            .header("x-api", "v0")
            .header("x-list", "1")
            .header("x-debug", "1")
            .body(empty())
            .unwrap();
        filters.on_request(&mut request, None);
        let all = |name: &str| request.headers().get_all(name).iter().cloned().collect::<Vec<_>>();
        assert_eq!(all("x-api"), ["v1"]);
        assert_eq!(all("x-list"), ["1", "2"]);
        assert!(all("x-debug").is_empty());
        assert_eq!(all("host"), ["api.example.com"]);
    }

    #[test]
    fn a_redirect_keeps_what_it_does_not_change() {
        for (redirect, expected) in [
            (json!({"scheme": "https"}), "https://www.example.com/foo/bar?q=1"),
            (json!({"hostname": "other.org", "statusCode": 301}), "http://other.org:8080/foo/bar?q=1"),
            (json!({"port": 80}), "http://www.example.com/foo/bar?q=1"),
            (
                json!({"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/x"}}),
                "http://www.example.com:8080/x/bar?q=1",
            ),
        ] {
            let filters = filters(json!([{"type": "RequestRedirect", "requestRedirect": redirect}]));
            let uri: Uri = "/foo/bar?q=1".parse().unwrap();
            let answer = filters.redirect.unwrap().answer(&uri, "www.example.com", Some(8080), Some("/foo"));
            assert_eq!(answer.headers()[header::LOCATION], expected);
        }
    }

    #[test]
    fn an_unknown_filter_is_not_skipped() {
        let list: Vec<spec::Filter> = serde_json::from_value(json!([{"type": "ExtensionRef"}])).unwrap();
        assert!(Filters::parse(&list).is_err());
    }
}
