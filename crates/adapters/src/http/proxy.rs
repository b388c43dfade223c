//! Proxies between us and the servers that are asked, set as for Go programs: `HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`.
//!
//! A plain request is handed to the proxy in absolute form; for https the proxy opens a tunnel (`CONNECT`) and TLS is
//! spoken with the server inside it. The proxy itself may be spoken to over TLS. Its address is the administrator's word
//! and is not judged. `localhost` and loopback addresses are never reached through a proxy, whatever is set. SOCKS
//! proxies and `REQUEST_METHOD` (which tells a CGI program) are not known here.

use std::fmt;

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use url::{Host, Url};

use super::no_proxy::{NoProxy, literal};
use super::{AGENT, HttpError, Stream, alongside, credentials, protocol, session};

/// Which proxy is used for which URL. The default uses none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxy {
    http: Option<Server>,
    https: Option<Server>,
    except: NoProxy,
}

/// One proxy.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// Scheme, host and port; user and password are taken out.
    url: Url,
    authorization: Option<HeaderValue>,
}

/// Credentials are not shown.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str())
    }
}

/// A variable that cannot be used. Values are not repeated where they may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// No URL and no `host:port`.
    #[error("{0} is not the address of a proxy; write it as http://host:port")]
    Address(&'static str),
    /// A proxy that speaks something else.
    #[error("{0} asks for a {1} proxy; only http and https proxies are supported")]
    Scheme(&'static str, String),
    /// An entry of the list of exceptions that can match nothing.
    #[error("{0}: {1:?} is neither a host, nor an address, nor a network")]
    Exception(&'static str, String),
}

impl Proxy {
    /// The proxies that these variables name. Of two spellings the upper case one wins; an empty one counts as unset.
    pub fn from_environment(read: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let first = |names: [&'static str; 2]| {
            names.into_iter().find_map(|name| Some((name, read(name).filter(|value| !value.is_empty())?)))
        };
        let server = |names| first(names).map(|(name, value)| Server::parse(name, &value)).transpose();
        let except = match first(["NO_PROXY", "no_proxy"]) {
            Some((name, value)) => NoProxy::parse(&value).map_err(|entry| ProxyError::Exception(name, entry))?,
            None => NoProxy::default(),
        };
        Ok(Self { http: server(["HTTP_PROXY", "http_proxy"])?, https: server(["HTTPS_PROXY", "https_proxy"])?, except })
    }

    /// Whether any request would be sent through a proxy.
    pub fn is_used(&self) -> bool {
        self.http.is_some() || self.https.is_some()
    }

    /// The proxy for a URL, if there is one.
    pub(super) fn server(&self, url: &Url) -> Option<&Server> {
        let server = if url.scheme() == "https" { &self.https } else { &self.http }.as_ref()?;
        let (host, port) = (url.host()?, url.port_or_known_default()?);
        let here = host == Host::Domain("localhost")
            || literal(&host).is_some_and(|address| address.to_canonical().is_loopback());
        (!here && !self.except.contains(&host, port)).then_some(server)
    }
}

impl Server {
    fn parse(variable: &'static str, text: &str) -> Result<Self, ProxyError> {
        let invalid = || ProxyError::Address(variable);
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let mut url = Url::parse(&with_scheme).map_err(|_| invalid())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ProxyError::Scheme(variable, url.scheme().to_owned()));
        }
        let authorization = credentials(&url).map_err(|_| invalid())?;
        url.set_username("").and_then(|()| url.set_password(None)).map_err(|()| invalid())?;
        Ok(Self { url, authorization })
    }

    /// Where the proxy listens.
    pub(super) fn address(&self) -> Option<(Host<&str>, u16)> {
        self.url.host().zip(self.url.port_or_known_default())
    }

    /// Whether TLS is spoken with the proxy.
    pub(super) fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Adds what the proxy wants to know of us.
    pub(super) fn authorize(&self, headers: &mut HeaderMap) {
        if let Some(authorization) = &self.authorization {
            headers.insert(PROXY_AUTHORIZATION, authorization.clone());
        }
    }

    /// Asks the proxy, over a connection to it, for a tunnel to a host.
    pub(super) async fn tunnel(&self, stream: Stream, host: &Host<&str>, port: u16) -> Result<Stream, HttpError> {
        let authority = format!("{host}:{port}");
        let mut request = hyper::Request::new(Empty::<Bytes>::new());
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = authority.parse().map_err(|_| HttpError::Url)?;
        request.headers_mut().insert(HOST, HeaderValue::from_str(&authority).map_err(|_| HttpError::Url)?);
        request.headers_mut().insert(USER_AGENT, AGENT);
        self.authorize(request.headers_mut());

        let (mut sender, connection) =
            session().handshake(TokioIo::new(stream)).await.map_err(|error| of_proxy(protocol(&error)))?;
        let asked = async move {
            let answer = sender.send_request(request).await.map_err(|error| of_proxy(protocol(&error)))?;
            if !answer.status().is_success() {
                return Err(HttpError::Proxy(answer.status()));
            }
            hyper::upgrade::on(answer).await.map_err(|error| of_proxy(protocol(&error)))
        };
        let tunnel = alongside(connection.with_upgrades(), asked).await?;
        Ok(Box::new(TokioIo::new(tunnel)))
    }
}

/// The same trouble, said of the proxy and not of the server behind it.
pub(super) fn of_proxy(error: HttpError) -> HttpError {
    match error {
        HttpError::NoSuchHost => HttpError::Connect("proxy: no such host".into()),
        HttpError::Connect(text) => HttpError::Connect(format!("proxy: {text}")),
        HttpError::Tls(text) => HttpError::Tls(format!("proxy: {text}")),
        HttpError::Protocol(text) => HttpError::Protocol(format!("proxy: {text}")),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Result<Proxy, ProxyError> {
        Proxy::from_environment(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    /// The proxy for a URL as text.
    fn used(proxy: &Proxy, url: &str) -> Option<String> {
        proxy.server(&Url::parse(url).unwrap()).map(|server| server.url.to_string())
    }

    #[test]
    fn each_scheme_has_its_own() {
        let proxy = environment(&[("HTTP_PROXY", "plain.test"), ("HTTPS_PROXY", "secure.test:3128")]).unwrap();
        assert_eq!(used(&proxy, "http://a.test/").as_deref(), Some("http://plain.test/"));
        assert_eq!(used(&proxy, "https://a.test/").as_deref(), Some("http://secure.test:3128/"));
        let proxy = environment(&[("HTTP_PROXY", "plain.test")]).unwrap();
        assert_eq!(used(&proxy, "https://a.test/"), None);
        assert!(proxy.is_used() && !environment(&[]).unwrap().is_used());
    }

    #[test]
    fn upper_case_wins_and_empty_is_unset() {
        let both = environment(&[("http_proxy", "lower.test"), ("HTTP_PROXY", "upper.test")]).unwrap();
        assert_eq!(used(&both, "http://a.test/").as_deref(), Some("http://upper.test/"));
        let lower = environment(&[("HTTP_PROXY", ""), ("http_proxy", "lower.test"), ("no_proxy", "b.test")]).unwrap();
        assert_eq!(used(&lower, "http://a.test/").as_deref(), Some("http://lower.test/"));
        assert_eq!(used(&lower, "http://b.test/"), None);
    }

    #[test]
    fn how_a_proxy_is_written() {
        for (text, expected) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("localhost", "http://localhost/"),
            ("localhost:3128", "http://localhost:3128/"),
            ("me:pw@cache.test:3128", "http://cache.test:3128/"),
            ("https://cache.test", "https://cache.test/"),
            ("http://[::1]:3128/", "http://[::1]:3128/"),
        ] {
            let proxy = environment(&[("HTTP_PROXY", text)]).unwrap();
            assert_eq!(used(&proxy, "http://a.test/").as_deref(), Some(expected), "{text}");
            assert!(!format!("{proxy:?}").contains("pw"), "{proxy:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_the_value() {
        for (name, value, text) in [
            ("HTTP_PROXY", "http://", "HTTP_PROXY is not the address of a proxy; write it as http://host:port"),
            ("https_proxy", "me:secret@a b", "https_proxy is not the address of a proxy; write it as http://host:port"),
            ("HTTPS_PROXY", "a.test:port", "HTTPS_PROXY is not the address of a proxy; write it as http://host:port"),
            (
                "http_proxy",
                "socks5://me:secret@a.test",
                "http_proxy asks for a socks5 proxy; only http and https proxies are supported",
            ),
            (
                "no_proxy",
                "a.test,10.0.0.0/64",
                r#"no_proxy: "10.0.0.0/64" is neither a host, nor an address, nor a network"#,
            ),
        ] {
            assert_eq!(environment(&[(name, value)]).unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn this_machine_is_never_reached_through_a_proxy() {
        let proxy = environment(&[("HTTP_PROXY", "proxy.test")]).unwrap();
        for host in ["localhost", "LOCALHOST:81", "127.0.0.1", "127.9.9.9:81", "2130706433", "[::1]", "[::ffff:7f00:1]"]
        {
            assert_eq!(used(&proxy, &format!("http://{host}/")), None, "{host}");
        }
        for host in ["localhost.test", "local.localhost", "128.0.0.1", "[::2]"] {
            assert!(used(&proxy, &format!("http://{host}/")).is_some(), "{host}");
        }
    }
}
