//! HTTP/1.1 requests of the small tools: to a URL, directly or through the proxy that the environment names.
//!
//! One connection at a time and no pool: a load generator wants to own its connections. Only plain HTTP; the tools
//! say so when they are given an `https` URL. Redirects are not followed.

use std::io;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONNECTION, HOST, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use url::Url;

/// More of a body than this is an error: the tools hold a body in memory.
const LARGEST_BODY: usize = 64 * 1024 * 1024;

/// Where requests go.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    url: Url,
    host: String,
    proxy: Option<Proxy>,
}

/// An HTTP forward proxy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Proxy {
    authority: String,
    authorization: Option<HeaderValue>,
}

/// A request but for its target.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub keep_alive: bool,
    /// Of the whole exchange.
    pub limit: Option<Duration>,
    /// Of the time until there is a connection.
    pub connect_limit: Option<Duration>,
}

/// What came back, and how long its parts took.
#[derive(Debug)]
pub(crate) struct Reply {
    pub version: Version,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub dial: Duration,
    pub wait: Duration,
    pub read: Duration,
}

/// Why no reply came.
#[derive(Debug)]
pub(crate) enum Failure {
    Connect(String),
    Timeout(Duration),
    Broken(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connect(reason) => write!(f, "cannot connect: {reason}"),
            Self::Timeout(limit) => write!(f, "no answer within {:.3} seconds", limit.as_secs_f64()),
            Self::Broken(reason) => write!(f, "the exchange broke off: {reason}"),
        }
    }
}

impl Proxy {
    /// Parses `host:port` or `http://user:password@host:port`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = Url::parse(&with_scheme).map_err(|error| format!("proxy {text:?} is no address: {error}"))?;
        if url.scheme() != "http" {
            return Err(format!("proxy {text:?}: only http:// proxies are offered"));
        }
        let host = url.host_str().ok_or_else(|| format!("proxy {text:?} names no host"))?;
        let authority = format!("{host}:{}", url.port().unwrap_or(80));
        let authorization = (!url.username().is_empty())
            .then(|| STANDARD.encode(format!("{}:{}", url.username(), url.password().unwrap_or_default())))
            .and_then(|token| HeaderValue::from_str(&format!("Basic {token}")).ok());
        Ok(Self { authority, authorization })
    }

    /// The proxy that the environment names for plain HTTP to `host`, if any.
    pub(crate) fn for_host(host: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let exempt = set("no_proxy").or_else(|| set("NO_PROXY")).unwrap_or_default();
        if exempt.split(',').map(str::trim).any(|rule| exempts(rule, host)) {
            return Ok(None);
        }
        ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
            .into_iter()
            .find_map(set)
            .map(|text| Self::parse(&text))
            .transpose()
    }
}

fn exempts(rule: &str, host: &str) -> bool {
    let rule = rule.strip_prefix("*.").unwrap_or(rule).trim_start_matches('.');
    rule == "*" || (!rule.is_empty() && (host == rule || host.ends_with(&format!(".{rule}"))))
}

impl Target {
    /// Parses a URL; without a scheme it is plain HTTP. `proxy` overrides the environment.
    pub(crate) fn parse(text: &str, proxy: Option<Proxy>) -> Result<Self, String> {
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = Url::parse(&with_scheme).map_err(|error| format!("{text:?} is no URL: {error}"))?;
        if url.scheme() != "http" {
            return Err(format!("{}:// is not offered here; use an http:// URL", url.scheme()));
        }
        let host = url.host_str().ok_or_else(|| format!("{text:?} names no host"))?.to_owned();
        let proxy = match proxy {
            Some(proxy) => Some(proxy),
            None => Proxy::for_host(&host, |name| std::env::var(name).ok())?,
        };
        Ok(Self { url, host, proxy })
    }

    /// The URL, as it will be requested.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// `host` or `host:port`, for the Host header.
    fn authority(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let stream = if let Some(proxy) = &self.proxy {
            TcpStream::connect(&proxy.authority).await?
        } else {
            let host = self.host.trim_start_matches('[').trim_end_matches(']');
            TcpStream::connect((host, self.url.port_or_known_default().unwrap_or(80))).await?
        };
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn request(&self, ask: &Ask) -> Result<Request<Full<Bytes>>, Failure> {
        let broken = |error: &dyn std::fmt::Display| Failure::Broken(error.to_string());
        // A proxy is told the whole URL, a server only the path.
        let form = match &self.proxy {
            Some(_) => self.url.as_str().split('#').next().unwrap_or_default().to_owned(),
            None => match self.url.query() {
                Some(query) => format!("{}?{query}", self.url.path()),
                None => self.url.path().to_owned(),
            },
        };
        let uri: Uri = form.parse().map_err(|error: http::uri::InvalidUri| broken(&error))?;
        let mut request = Request::new(Full::new(ask.body.clone()));
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = ask.headers.clone();
        if !request.headers().contains_key(HOST) {
            let host = HeaderValue::from_str(&self.authority()).map_err(|error| broken(&error))?;
            request.headers_mut().insert(HOST, host);
        }
        if !ask.keep_alive {
            request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(authorization) = self.proxy.as_ref().and_then(|proxy| proxy.authorization.clone()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, authorization);
        }
        Ok(request)
    }
}

/// A caller with at most one open connection.
pub(crate) struct Caller {
    target: Target,
    open: Option<SendRequest<Full<Bytes>>>,
}

impl Caller {
    pub(crate) fn new(target: Target) -> Self {
        Self { target, open: None }
    }

    /// Sends one request and reads the whole reply.
    pub(crate) async fn call(&mut self, ask: &Ask) -> Result<Reply, Failure> {
        let Some(limit) = ask.limit else { return self.exchange(ask).await };
        let result = tokio::time::timeout(limit, self.exchange(ask)).await;
        result.unwrap_or_else(|_| {
            self.open = None;
            Err(Failure::Timeout(limit))
        })
    }

    async fn exchange(&mut self, ask: &Ask) -> Result<Reply, Failure> {
        let kept = match self.open.take() {
            // A kept connection may have been closed by the other side in the meantime: that is no failure of the
            // server, and a request that may arrive twice is sent again on a new connection. Once an answer has begun
            // it is the answer, whole or broken.
            Some(sender) => match self.head(sender, ask).await {
                Err(Failure::Broken(_)) if ask.method.is_idempotent() => None,
                begun => Some(begun?),
            },
            None => None,
        };
        let (begun, dial) = if let Some(begun) = kept {
            (begun, Duration::ZERO)
        } else {
            let start = Instant::now();
            let sender = self.connect(ask.connect_limit).await?;
            let dial = start.elapsed();
            (self.head(sender, ask).await?, dial)
        };
        self.read(begun, ask, dial).await
    }

    async fn connect(&self, limit: Option<Duration>) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let connecting = self.target.connect();
        let stream = match limit {
            Some(limit) => tokio::time::timeout(limit, connecting).await.map_err(|_| Failure::Timeout(limit))?,
            None => connecting.await,
        };
        let stream = stream.map_err(|error| Failure::Connect(error.to_string()))?;
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|error| Failure::Connect(error.to_string()))?;
        tokio::spawn(connection);
        Ok(sender)
    }

    /// Sends the request and waits until an answer begins.
    async fn head(&self, mut sender: SendRequest<Full<Bytes>>, ask: &Ask) -> Result<Begun, Failure> {
        let broken = |error: hyper::Error| Failure::Broken(error.to_string());
        sender.ready().await.map_err(broken)?;
        let sent = Instant::now();
        let response = sender.send_request(self.target.request(ask)?).await.map_err(broken)?;
        Ok(Begun { sender, response, wait: sent.elapsed() })
    }

    /// Reads the rest of the answer.
    async fn read(&mut self, begun: Begun, ask: &Ask, dial: Duration) -> Result<Reply, Failure> {
        let Begun { sender, response, wait } = begun;
        let (head, body) = response.into_parts();
        let reading = Instant::now();
        let body = Limited::new(body, LARGEST_BODY)
            .collect()
            .await
            .map_err(|error| Failure::Broken(error.to_string()))?
            .to_bytes();
        if ask.keep_alive {
            self.open = Some(sender);
        }
        let read = reading.elapsed();
        Ok(Reply { version: head.version, status: head.status, headers: head.headers, body, dial, wait, read })
    }
}

/// An answer whose head is here.
struct Begun {
    sender: SendRequest<Full<Bytes>>,
    response: Response<Incoming>,
    wait: Duration,
}

/// Splits `Name: value` as written after `-H`.
pub(crate) fn header(text: &str) -> Result<(http::HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or_else(|| format!("header {text:?} has no colon"))?;
    let name = name.trim().parse().map_err(|_| format!("{name:?} is no header name"))?;
    let value =
        value.trim().parse().map_err(|_| format!("the value of header {name} has characters that are not allowed"))?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

    /// A server that gives each connection these answers, one per request, and then hangs up.
    async fn server(answers: &'static [&'static str]) -> (Target, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = Target::parse(&format!("http://{}/", listener.local_addr().unwrap()), None).unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let count = Arc::clone(&count);
                tokio::spawn(async move {
                    for answer in answers {
                        // A request of these tests fits into one segment.
                        if stream.read(&mut [0; 4096]).await.is_ok_and(|bytes| bytes > 0) {
                            count.fetch_add(1, Ordering::Relaxed);
                            stream.write_all(answer.as_bytes()).await.unwrap();
                        }
                    }
                });
            }
        });
        (target, asked)
    }

    fn ask(method: Method) -> Ask {
        let (headers, body) = (HeaderMap::new(), Bytes::new());
        Ask { method, headers, body, keep_alive: true, limit: None, connect_limit: None }
    }

    #[tokio::test]
    async fn a_request_whose_answer_broke_off_is_not_sent_again() {
        let (target, asked) = server(&[WHOLE, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok"]).await;
        for method in [Method::GET, Method::DELETE] {
            asked.store(0, Ordering::Relaxed);
            let mut caller = Caller::new(target.clone());
            assert_eq!(caller.call(&ask(method.clone())).await.unwrap().body, "ok");
            let second = caller.call(&ask(method.clone())).await;
            assert!(matches!(second, Err(Failure::Broken(_))), "{method} {second:?}");
            assert_eq!(asked.load(Ordering::Relaxed), 2, "{method}");
        }
    }

    #[tokio::test]
    async fn a_kept_connection_that_was_closed_is_replaced_where_that_is_safe() {
        let (target, asked) = server(&[WHOLE, ""]).await;
        let mut caller = Caller::new(target.clone());
        caller.call(&ask(Method::GET)).await.unwrap();
        assert_eq!(caller.call(&ask(Method::GET)).await.unwrap().body, "ok");
        assert_eq!(asked.load(Ordering::Relaxed), 3, "the second one twice");

        let mut caller = Caller::new(target);
        caller.call(&ask(Method::POST)).await.unwrap();
        let second = caller.call(&ask(Method::POST)).await;
        assert!(matches!(second, Err(Failure::Broken(_))), "{second:?}");
        assert_eq!(asked.load(Ordering::Relaxed), 5);
    }

    fn env<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn the_environment_names_the_proxy() {
        let found = Proxy::for_host("podinfo-canary.test", env(&[("http_proxy", "http://127.0.0.1:3128")])).unwrap();
        assert_eq!(found.unwrap().authority, "127.0.0.1:3128");
        assert_eq!(Proxy::for_host("podinfo", env(&[])).unwrap(), None);
    }

    #[test]
    fn a_user_in_the_proxy_url_becomes_a_header() {
        let proxy = Proxy::parse("http://test:x@127.0.0.1:3128").unwrap();
        assert_eq!(proxy.authorization.unwrap(), "Basic dGVzdDp4");
    }

    #[test]
    fn no_proxy_exempts_hosts_and_their_subdomains() {
        for (rule, host, exempt) in [
            ("*", "anything", true),
            ("example.com", "www.example.com", true),
            (".example.com", "www.example.com", true),
            ("*.example.com", "www.example.com", true),
            ("example.com", "badexample.com", false),
            ("", "example.com", false),
        ] {
            assert_eq!(exempts(rule, host), exempt, "{rule} {host}");
        }
    }

    #[test]
    fn https_is_refused_by_name() {
        assert!(Target::parse("https://example.com", None).unwrap_err().starts_with("https:// is not offered"));
    }
}
