//! The only place that opens outgoing connections: hooks and metric queries leave through here.
//!
//! Every request has a time limit, a body of at most 1 MiB and headers of at most 16 KiB. A name is resolved once and the
//! connection goes to the address that was judged by the [`Guard`]; redirects are followed only to the same origin, so
//! credentials never leave the host they were meant for. Error texts are short and hold nothing a server said beyond its
//! status, since they become Events that others may read. There is no connection pool: a check every few seconds does
//! not need one, and a fresh connection always asks the name again.
//!
//! Where a [`Proxy`] is set, it opens the connections to the servers, with the same limits. The guard then judges the
//! addresses that stand in URLs before the proxy hears of them; a *name* is resolved by the proxy, whose own rules must
//! say where it may lead.

mod guard;
mod no_proxy;
mod proxy;
mod tls;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use url::{Host, Url};

pub use guard::{Guard, Network, ParseNetworkError};
use no_proxy::literal;
pub use proxy::{Proxy, ProxyError};
use proxy::{Server, of_proxy};
use tls::Tls;

/// Largest body that is read.
pub const BODY_LIMIT: usize = 1 << 20;
/// Largest head (status line and headers) that is read.
pub const HEAD_LIMIT: usize = 16 << 10;
/// Redirects that are followed, all to the same origin.
const REDIRECTS: usize = 5;
/// What we call ourselves.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("seaway/", env!("CARGO_PKG_VERSION")));

/// Either end of a connection.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// A connection of any kind.
pub type Stream = Box<dyn Connection>;

/// Opens connections by host name. Somebody else's network (a cluster in a process) can stand behind it.
pub trait Dial: Send + Sync {
    /// Connects to a host, which may be a name or an address.
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<Stream>>;
}

/// Sends requests; clones share everything.
#[derive(Clone)]
pub struct Http {
    way: Way,
    tls: Tls,
    proxy: Option<Arc<Proxy>>,
}

#[derive(Clone)]
enum Way {
    System(Arc<Guard>),
    Through(Arc<dyn Dial>),
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

/// One request.
#[derive(Clone)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// URL; user and password in it become basic authentication.
    pub url: Url,
    /// Extra headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
    /// Time limit for everything: name, connection, answer.
    pub limit: Duration,
    /// Accept any TLS certificate.
    pub insecure: bool,
    /// The URL was given by whoever runs the operator, not by an object in the cluster: the guard does not apply.
    pub trusted: bool,
}

impl Request {
    /// A request with nothing but a method, a URL and a time limit.
    pub fn new(method: Method, url: Url, limit: Duration) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: Bytes::new(), limit, insecure: false, trusted: false }
    }
}

/// Headers may hold credentials, so they are not shown.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("host", &self.url.host_str())
            .finish_non_exhaustive()
    }
}

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// Why there is no answer. The texts hold nothing the other side said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// No URL, or one without a host.
    #[error("invalid url")]
    Url,
    /// Not http or https.
    #[error("scheme {0} is not allowed")]
    Scheme(String),
    /// The guard refuses the address.
    #[error("address {0} is not allowed")]
    Denied(IpAddr),
    /// The name has no address.
    #[error("no such host")]
    NoSuchHost,
    /// No connection.
    #[error("{0}")]
    Connect(String),
    /// No trusted TLS session.
    #[error("tls: {0}")]
    Tls(String),
    /// Nothing in time.
    #[error("timeout after {0}")]
    Timeout(String),
    /// The answer is larger than it may be.
    #[error("answer larger than 1 MiB")]
    TooLarge,
    /// The answer sends us somewhere else.
    #[error("redirect to another host is not followed")]
    Redirect,
    /// The answer is no HTTP, or broke off.
    #[error("{0}")]
    Protocol(String),
    /// The proxy opens no tunnel.
    #[error("proxy answered {0}")]
    Proxy(StatusCode),
}

impl HttpError {
    /// Whether the same request may well succeed a moment later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NoSuchHost | Self::Connect(_) | Self::Timeout(_) | Self::Protocol(_) => true,
            Self::Proxy(status) => status.is_server_error(),
            _ => false,
        }
    }
}

impl Http {
    /// Over the machine's own network. `guard` judges the addresses of URLs that come from objects in the cluster.
    pub fn system(guard: Guard) -> Self {
        Self { way: Way::System(Arc::new(guard)), tls: Tls::default(), proxy: None }
    }

    /// Through somebody else's network, which knows by itself what may be reached. Link-local, metadata, unspecified and
    /// multicast addresses in URLs are refused here too.
    pub fn through(dial: Arc<dyn Dial>) -> Self {
        Self { way: Way::Through(dial), tls: Tls::default(), proxy: None }
    }

    /// Sends requests through these proxies, which are reached over the same network.
    pub fn with_proxy(self, proxy: Proxy) -> Self {
        Self { proxy: Some(Arc::new(proxy)), ..self }
    }

    /// Sends a request and reads the whole answer, within its time limit.
    pub async fn send(&self, request: Request) -> Result<Response, HttpError> {
        let limit = request.limit;
        let answer = tokio::time::timeout(limit, self.follow(request)).await;
        answer.unwrap_or_else(|_| Err(HttpError::Timeout(seaway_api::duration::format(limit))))
    }

    async fn follow(&self, mut request: Request) -> Result<Response, HttpError> {
        for _ in 0..REDIRECTS {
            let response = self.once(&request).await?;
            let Some(next) = redirect(&request, &response)? else { return Ok(response) };
            if !matches!(response.status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
                request.method = Method::GET;
                request.body = Bytes::new();
            }
            request.url = next;
        }
        Err(HttpError::Protocol(format!("stopped after {REDIRECTS} redirects")))
    }

    async fn once(&self, request: &Request) -> Result<Response, HttpError> {
        let https = match request.url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(HttpError::Scheme(other.to_owned())),
        };
        let host = request.url.host().ok_or(HttpError::Url)?;
        let port = request.url.port_or_known_default().ok_or(HttpError::Url)?;
        let judge = |address| self.judge(address, request.trusted);
        let proxy = self.proxy.as_deref().and_then(|proxy| proxy.server(&request.url));
        if let Some(address) = literal(&host) {
            judge(SocketAddr::new(address, port))?;
        }
        let stream = match proxy {
            None => self.connect(&host, port, judge).await?,
            Some(server) if https => server.tunnel(self.reach(server).await?, &host, port).await?,
            Some(server) => self.reach(server).await?,
        };
        let stream = if https { self.tls.secure(stream, &host, request.insecure).await? } else { stream };

        let outgoing = outgoing(request, &host, proxy.filter(|_| !https))?;
        let (mut sender, connection) = session().handshake(TokioIo::new(stream)).await.map_err(|e| protocol(&e))?;
        let exchange = async move {
            let answer = sender.send_request(outgoing).await.map_err(|e| protocol(&e))?;
            read(answer).await
        };
        alongside(connection, exchange).await
    }

    /// A connection to a proxy, which may be anywhere.
    async fn reach(&self, server: &Server) -> Result<Stream, HttpError> {
        let (host, port) = server.address().ok_or(HttpError::Url)?;
        let stream = self.connect(&host, port, |_| Ok(())).await.map_err(of_proxy)?;
        if !server.is_secure() {
            return Ok(stream);
        }
        self.tls.secure(stream, &host, false).await.map_err(of_proxy)
    }

    /// Whether an address may be reached.
    fn judge(&self, address: SocketAddr, trusted: bool) -> Result<(), HttpError> {
        let allowed = match &self.way {
            Way::System(guard) => trusted || guard.allows(address),
            Way::Through(_) => !guard::is_never_a_server(address.ip()),
        };
        if allowed { Ok(()) } else { Err(HttpError::Denied(address.ip())) }
    }

    /// Opens a connection to the first address of a host that answers, of those that `judge` lets pass.
    async fn connect(
        &self,
        host: &Host<&str>,
        port: u16,
        judge: impl Fn(SocketAddr) -> Result<(), HttpError> + Send,
    ) -> Result<Stream, HttpError> {
        let name = literal(host).map_or_else(|| host.to_string(), |address| address.to_string());
        match &self.way {
            Way::Through(dial) => dial.dial(&name, port).await.map_err(|error| connect(&error)),
            Way::System(_) => {
                // An address in place of a name is not asked for, only read.
                let found = tokio::net::lookup_host((name.as_str(), port)).await;
                let mut last = HttpError::NoSuchHost;
                for candidate in found.map_err(|_| HttpError::NoSuchHost)? {
                    if let Err(denied) = judge(candidate) {
                        last = denied;
                        continue;
                    }
                    match TcpStream::connect(candidate).await {
                        Ok(stream) => return Ok(Box::new(stream)),
                        Err(error) => last = connect(&error),
                    }
                }
                Err(last)
            }
        }
    }
}

/// One exchange over one connection, with a limit for what the head may hold.
fn session() -> hyper::client::conn::http1::Builder {
    let mut builder = hyper::client::conn::http1::Builder::new();
    builder.max_header_size(HEAD_LIMIT);
    builder
}

/// Runs an exchange and the connection that moves its bytes. The connection may well end before the exchange has looked
/// at the last of them.
async fn alongside<T>(
    connection: impl Future<Output = hyper::Result<()>>,
    exchange: impl Future<Output = Result<T, HttpError>>,
) -> Result<T, HttpError> {
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        biased;
        done = &mut exchange => done,
        _ = connection => exchange.await,
    }
}

/// The request as the server expects it, or as a proxy that passes it on does.
fn outgoing(
    request: &Request,
    host: &Host<&str>,
    proxy: Option<&Server>,
) -> Result<hyper::Request<Full<Bytes>>, HttpError> {
    let authority = match request.url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_string(),
    };
    let mut target = if proxy.is_some() { format!("http://{authority}") } else { String::new() };
    target.push_str(request.url.path());
    if let Some(query) = request.url.query() {
        target.push('?');
        target.push_str(query);
    }
    let text = |value: &str| HeaderValue::from_str(value).map_err(|_| HttpError::Url);
    let mut headers = request.headers.clone();
    headers.insert(HOST, text(&authority)?);
    headers.insert(USER_AGENT, AGENT);
    if !headers.contains_key(ACCEPT) {
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    }
    if !headers.contains_key(AUTHORIZATION)
        && let Some(authorization) = credentials(&request.url)?
    {
        headers.insert(AUTHORIZATION, authorization);
    }
    if let Some(proxy) = proxy {
        proxy.authorize(&mut headers);
    }
    if !request.body.is_empty() || request.method == Method::POST {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(request.body.len()));
    }
    let mut outgoing = hyper::Request::new(Full::new(request.body.clone()));
    *outgoing.method_mut() = request.method.clone();
    *outgoing.uri_mut() = target.parse().map_err(|_| HttpError::Url)?;
    *outgoing.headers_mut() = headers;
    Ok(outgoing)
}

/// The value of an `Authorization` header for a user and a password.
pub fn basic(user: &str, password: &str) -> Result<HeaderValue, HttpError> {
    secret(&format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
}

/// The user and the password of a URL as a header.
fn credentials(url: &Url) -> Result<Option<HeaderValue>, HttpError> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let mut pair = decoded(url.username());
    pair.push(b':');
    pair.extend(decoded(url.password().unwrap_or_default()));
    secret(&format!("Basic {}", STANDARD.encode(pair))).map(Some)
}

/// The bytes that a percent-encoded text stands for.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.first_chunk::<2>().filter(|digits| byte == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(code.unwrap_or(byte));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    bytes
}

/// The value of an `Authorization` header for a token.
pub fn bearer(token: &str) -> Result<HeaderValue, HttpError> {
    secret(&format!("Bearer {token}"))
}

fn secret(text: &str) -> Result<HeaderValue, HttpError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| HttpError::Protocol("invalid credentials".into()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A header that an object in the cluster asks for; those that frame the message, and those between us and a proxy, are
/// not for others to set.
pub fn extra_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), HttpError> {
    let invalid = |_| HttpError::Protocol(format!("invalid header {name:?}"));
    let header =
        HeaderName::from_bytes(name.as_bytes()).map_err(|_| HttpError::Protocol(format!("invalid header {name:?}")))?;
    let framing = ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"];
    if framing.contains(&header.as_str()) || header.as_str().starts_with("proxy-") {
        return Err(HttpError::Protocol(format!("header {name} cannot be set")));
    }
    Ok((header, HeaderValue::from_str(value).map_err(invalid)?))
}

async fn read(answer: hyper::Response<hyper::body::Incoming>) -> Result<Response, HttpError> {
    let (head, mut body) = answer.into_parts();
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|e| protocol(&e))?.into_data() else { continue };
        if bytes.len() + data.len() > BODY_LIMIT {
            return Err(HttpError::TooLarge);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Response { status: head.status, headers: head.headers, body: bytes.freeze() })
}

/// Where the answer sends us, if it does and that is the same origin.
fn redirect(request: &Request, response: &Response) -> Result<Option<Url>, HttpError> {
    let redirects = [301, 302, 303, 307, 308];
    let Some(location) = response.headers.get(LOCATION).filter(|_| redirects.contains(&response.status.as_u16()))
    else {
        return Ok(None);
    };
    let next =
        location.to_str().ok().and_then(|location| request.url.join(location).ok()).ok_or(HttpError::Redirect)?;
    if next.origin() == request.url.origin() { Ok(Some(next)) } else { Err(HttpError::Redirect) }
}

fn connect(error: &io::Error) -> HttpError {
    HttpError::Connect(match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".into(),
        io::ErrorKind::ConnectionReset => "connection reset".into(),
        io::ErrorKind::TimedOut => "connection timed out".into(),
        io::ErrorKind::NotFound => "no such host".into(),
        kind => kind.to_string(),
    })
}

fn protocol(error: &hyper::Error) -> HttpError {
    HttpError::Protocol(if error.is_parse_too_large() {
        "headers larger than 16 KiB".into()
    } else if error.is_parse() {
        "answer is not HTTP".into()
    } else {
        "connection closed before the answer was complete".into()
    })
}

#[cfg(test)]
mod tests;
