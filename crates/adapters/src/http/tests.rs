//! Limits, redirects and TLS, against servers in memory and on loopback.

mod proxied;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::testing::Script;

fn get(url: &str) -> Request {
    Request::new(Method::GET, Url::parse(url).unwrap(), Duration::from_secs(5))
}

async fn through(script: &Arc<Script>, request: Request) -> Result<Response, HttpError> {
    Http::through(script.clone()).send(request).await
}

#[tokio::test(start_paused = true)]
async fn a_body_of_a_mebibyte_and_not_a_byte_more() {
    let full = "x".repeat(BODY_LIMIT);
    let answer = through(&Script::answering([(200, &full)]), get("http://a.test/")).await.unwrap();
    assert_eq!(answer.body.len(), BODY_LIMIT);
    let over = "x".repeat(BODY_LIMIT + 1);
    assert_eq!(
        through(&Script::answering([(200, &over)]), get("http://a.test/")).await.unwrap_err(),
        HttpError::TooLarge
    );
}

#[tokio::test(start_paused = true)]
async fn headers_have_a_limit_too() {
    let head = format!("X-Long: {}\r\n", "x".repeat(HEAD_LIMIT));
    let error = through(&Script::with_headers([(200, &head, "")]), get("http://a.test/")).await.unwrap_err();
    assert_eq!(error.to_string(), "headers larger than 16 KiB");
}

#[tokio::test(start_paused = true)]
async fn redirects_stay_at_home() {
    let script = Script::with_headers([(302, "Location: /there\r\n", ""), (200, "", "here")]);
    let answer = through(&script, get("http://a.test/")).await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"here"[..]));
    for elsewhere in ["http://b.test/", "http://a.test:81/", "https://a.test/", "http://169.254.169.254/", "//b.test/"]
    {
        let script = Script::with_headers([(307, &format!("Location: {elsewhere}\r\n"), ""), (200, "", "")]);
        assert_eq!(through(&script, get("http://a.test/")).await.unwrap_err(), HttpError::Redirect, "{elsewhere}");
        assert_eq!(script.requests().len(), 1);
    }
    let circle = Script::with_headers([(302, "Location: /\r\n", ""); 9]);
    assert!(through(&circle, get("http://a.test/")).await.is_err());
    assert_eq!(circle.requests().len(), REDIRECTS);
}

#[tokio::test(start_paused = true)]
async fn only_http_and_only_servers() {
    let script = Script::answering([]);
    for (url, text) in [
        ("file:///etc/passwd", "scheme file is not allowed"),
        ("gopher://a.test/", "scheme gopher is not allowed"),
        ("http://169.254.169.254/latest", "address 169.254.169.254 is not allowed"),
        ("http://2852039166/", "address 169.254.169.254 is not allowed"),
        ("http://0xa9.0xfe.0xa9.0xfe/", "address 169.254.169.254 is not allowed"),
        ("http://user@169.254.169.254/", "address 169.254.169.254 is not allowed"),
        ("http://[::ffff:a9fe:a9fe]/", "address ::ffff:169.254.169.254 is not allowed"),
        ("http://0/", "address 0.0.0.0 is not allowed"),
    ] {
        assert_eq!(through(&script, get(url)).await.unwrap_err().to_string(), text, "{url}");
    }
}

#[tokio::test(start_paused = true)]
async fn user_and_password_become_a_header_and_leave_the_url() {
    let script = Script::answering([(200, "")]);
    through(&script, get("http://me:pw@a.test/x")).await.unwrap();
    let request = script.requests().remove(0).to_lowercase();
    assert!(request.starts_with("get /x http/1.1") && request.contains("host: a.test\r\n"), "{request}");
    assert!(request.contains("authorization: basic bwu6chc="), "{request}");
}

#[test]
fn credentials_of_a_url_are_decoded() {
    for (url, pair) in [
        ("http://me:pw@a.test/", "me:pw"),
        ("http://me@a.test/", "me:"),
        ("http://:pw@a.test/", ":pw"),
        ("http://a%40b:p%3a+%zz%4@a.test/", "a@b:p:+%zz%4"),
    ] {
        let header = credentials(&Url::parse(url).unwrap()).unwrap().unwrap();
        assert_eq!(header, format!("Basic {}", STANDARD.encode(pair)), "{url}");
        assert!(header.is_sensitive());
    }
    assert_eq!(credentials(&Url::parse("http://a.test/").unwrap()), Ok(None));
}

#[test]
fn framing_headers_cannot_be_set() {
    for name in ["Host", "content-length", "Transfer-Encoding", "Proxy-Authorization", "bad name", ""] {
        assert!(extra_header(name, "x").is_err(), "{name}");
    }
    assert!(extra_header("X-Scope", "a\r\nb").is_err());
    assert!(extra_header("X-Scope", "a").is_ok());
}

/// A listener on loopback that counts connections and answers each with 200.
async fn listener() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            seen.fetch_add(1, Ordering::SeqCst);
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        }
    });
    (port, count)
}

#[tokio::test]
async fn loopback_is_closed_to_urls_from_the_cluster() {
    let (port, count) = listener().await;
    let strict = Http::system(Guard::default());
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "127.1"] {
        let error = strict.send(get(&format!("http://{host}:{port}/"))).await.unwrap_err();
        assert!(matches!(error, HttpError::Denied(_)), "{host}: {error}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 0, "the listener saw no connection");

    let trusted = Request { trusted: true, ..get(&format!("http://127.0.0.1:{port}/")) };
    assert_eq!(&strict.send(trusted).await.unwrap().body[..], b"ok");
    let open = Http::system(Guard::with_loopback());
    assert_eq!(open.send(get(&format!("http://127.0.0.1:{port}/"))).await.unwrap().status, 200);
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn nobody_there() {
    let open = Http::system(Guard::with_loopback());
    let unused = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap();
    let error = open.send(get(&format!("http://{unused}/"))).await.unwrap_err();
    assert_eq!(error, HttpError::Connect("connection refused".into()));
    let error = open.send(get("http://no-such-host.invalid/")).await.unwrap_err();
    assert_eq!(error, HttpError::NoSuchHost);
}

/// A TLS server for these names in memory, and the certificate it signs with.
struct Secure {
    config: Arc<rustls::ServerConfig>,
}

impl Secure {
    fn new(names: &[&str]) -> (Arc<Self>, CertificateDer<'static>) {
        let made = rcgen::generate_simple_self_signed(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
            .unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        (Arc::new(Self { config: Arc::new(config) }), certificate)
    }
}

impl Dial for Secure {
    fn dial(&self, _: &str, _: u16) -> BoxFuture<'static, io::Result<Stream>> {
        let acceptor = tokio_rustls::TlsAcceptor::from(self.config.clone());
        Box::pin(async move {
            let (near, far) = tokio::io::duplex(1 << 16);
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(far).await else { return };
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
                let _ = stream.shutdown().await;
            });
            Ok(Box::new(near) as Stream)
        })
    }
}

#[tokio::test]
async fn tls_trusts_its_roots_unless_told_otherwise() {
    let (server, certificate) = Secure::new(&["a.test"]);
    let http = Http::through(server.clone());
    let error = http.send(get("https://a.test/")).await.unwrap_err();
    assert_eq!(error, HttpError::Tls("certificate signed by unknown authority".into()));
    let insecure = Request { insecure: true, ..get("https://a.test/") };
    assert_eq!(&http.send(insecure).await.unwrap().body[..], b"ok");

    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let http = Http { way: Way::Through(server), tls: Tls::trusting(roots), proxy: None };
    assert_eq!(&http.send(get("https://a.test/")).await.unwrap().body[..], b"ok");
    let error = http.send(get("https://b.test/")).await.unwrap_err();
    assert_eq!(error, HttpError::Tls("certificate is for another name".into()));
}
