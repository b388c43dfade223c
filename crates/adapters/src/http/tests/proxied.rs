//! Requests through a proxy: what it is told, what it is not told, and the limits that hold all the same.

use std::sync::Mutex;

use tokio::io::DuplexStream;

use super::*;

fn proxy(variables: &[(&str, &str)]) -> Proxy {
    let read = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Proxy::from_environment(read).unwrap()
}

/// A network that notes which hosts are dialled.
struct Noted<D> {
    network: Arc<D>,
    dialled: Mutex<Vec<String>>,
}

impl<D> Noted<D> {
    fn new(network: Arc<D>) -> Arc<Self> {
        Arc::new(Self { network, dialled: Mutex::default() })
    }

    fn dialled(&self) -> Vec<String> {
        self.dialled.lock().unwrap().clone()
    }
}

impl<D: Dial> Dial for Noted<D> {
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<Stream>> {
        self.dialled.lock().unwrap().push(format!("{host}:{port}"));
        self.network.dial(host, port)
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_request_is_handed_to_the_proxy_whole() {
    let script = Script::answering([(200, "ok"), (200, "ok")]);
    let network = Noted::new(script.clone());
    let http = Http::through(network.clone())
        .with_proxy(proxy(&[("http_proxy", "http://shop:p%40ss@proxy.test:3128"), ("no_proxy", ".near.test")]));
    let answer = http.send(get("http://me:pw@a.test:8080/x?y=1#z")).await.unwrap();
    assert_eq!(&answer.body[..], b"ok");
    http.send(get("http://b.near.test/x")).await.unwrap();
    assert_eq!(network.dialled(), ["proxy.test:3128", "b.near.test:80"]);

    let [far, near] = &script.requests()[..] else { panic!("two requests") };
    let far = far.to_lowercase();
    assert!(far.starts_with("get http://a.test:8080/x?y=1 http/1.1\r\n"), "{far}");
    assert!(
        far.contains("\r\nhost: a.test:8080\r\n") && far.contains("\r\nauthorization: basic bwu6chc=\r\n"),
        "{far}"
    );
    let expected = STANDARD.encode("shop:p@ss").to_lowercase();
    assert!(far.contains(&format!("\r\nproxy-authorization: basic {expected}\r\n")), "{far}");
    assert!(near.starts_with("GET /x HTTP/1.1\r\n") && !near.contains("proxy-authorization"), "{near}");
}

/// What a tunnel's two ends were told: the proxy and the server behind it.
type Told = Arc<Mutex<Vec<String>>>;

/// A proxy that opens tunnels to a TLS server; it may itself be spoken to over TLS.
struct Tunnels {
    server: Arc<Secure>,
    secure: bool,
    told: Told,
}

impl Dial for Tunnels {
    fn dial(&self, _: &str, _: u16) -> BoxFuture<'static, io::Result<Stream>> {
        let (server, secure, told) = (self.server.clone(), self.secure, self.told.clone());
        Box::pin(async move {
            let (near, far) = tokio::io::duplex(1 << 16);
            tokio::spawn(async move {
                if secure {
                    let acceptor = tokio_rustls::TlsAcceptor::from(server.config.clone());
                    tunnel(acceptor.accept(far).await?, &server, &told).await
                } else {
                    tunnel(far, &server, &told).await
                }
            });
            Ok(Box::new(near) as Stream)
        })
    }
}

async fn tunnel(mut stream: impl Connection, server: &Secure, told: &Told) -> io::Result<()> {
    let asked = head(&mut stream).await?;
    told.lock().unwrap().push(asked);
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    let mut inner = tokio_rustls::TlsAcceptor::from(server.config.clone()).accept(stream).await?;
    let asked = head(&mut inner).await?;
    told.lock().unwrap().push(asked);
    inner.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await?;
    inner.shutdown().await
}

/// Reads up to the empty line.
async fn head(stream: &mut impl Connection) -> io::Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push(stream.read_u8().await?.into());
    }
    Ok(head.to_lowercase())
}

#[tokio::test]
async fn tls_is_spoken_with_the_server_inside_a_tunnel() {
    for (url, secure) in [("http://shop@proxy.test:3128", false), ("https://shop@proxy.test", true)] {
        let (server, certificate) = Secure::new(&["a.test", "proxy.test"]);
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate).unwrap();
        let told = Told::default();
        let network = Noted::new(Arc::new(Tunnels { server, secure, told: told.clone() }));
        let http = Http { way: Way::Through(network.clone()), tls: Tls::trusting(roots), proxy: None };
        let http = http.with_proxy(proxy(&[("HTTPS_PROXY", url)]));
        assert_eq!(&http.send(get("https://me:pw@a.test/x?y")).await.unwrap().body[..], b"ok");

        assert_eq!(network.dialled(), [if secure { "proxy.test:443" } else { "proxy.test:3128" }]);
        let told = told.lock().unwrap().clone();
        let [connect, inner] = &told[..] else { panic!("{told:?}") };
        assert!(connect.starts_with("connect a.test:443 http/1.1\r\n") && connect.contains("\r\nhost: a.test:443\r\n"));
        assert!(connect.contains("\r\nproxy-authorization: basic ") && !connect.contains("\r\nauthorization:"));
        assert!(inner.starts_with("get /x?y http/1.1\r\n") && inner.contains("\r\nauthorization: basic "), "{inner}");
        assert!(!inner.contains("proxy-authorization"), "{inner}");

        // Trust in the server is not trust in the proxy: neither is believed under another name.
        let error = http.send(get("https://b.test/")).await.unwrap_err();
        assert_eq!(error, HttpError::Tls("certificate is for another name".into()));
        let other = url.replace("proxy.test", "other.test");
        let error = http.with_proxy(proxy(&[("HTTPS_PROXY", &other)])).send(get("https://a.test/")).await;
        let expected = HttpError::Tls("proxy: certificate is for another name".into());
        assert_eq!(error.err(), secure.then_some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_that_is_refused() {
    for (status, transient, text) in [
        (407, false, "proxy answered 407 Proxy Authentication Required"),
        (403, false, "proxy answered 403 Forbidden"),
        (502, true, "proxy answered 502 Bad Gateway"),
    ] {
        let script = Script::answering([(status, "a page of the proxy")]);
        let http = Http::through(script.clone()).with_proxy(proxy(&[("HTTPS_PROXY", "proxy.test:3128")]));
        let error = http.send(get("https://a.test/")).await.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.is_transient()), (text, transient));
    }
}

#[tokio::test(start_paused = true)]
async fn the_limits_hold_through_a_proxy() {
    let settings = proxy(&[("HTTP_PROXY", "proxy.test"), ("HTTPS_PROXY", "proxy.test")]);
    let ask = async |script: &Arc<Script>, url: &str| {
        Http::through(script.clone()).with_proxy(settings.clone()).send(get(url)).await.unwrap_err()
    };
    let over = "x".repeat(BODY_LIMIT + 1);
    assert_eq!(ask(&Script::answering([(200, &over)]), "http://a.test/").await, HttpError::TooLarge);
    let long = format!("X-Long: {}\r\n", "x".repeat(HEAD_LIMIT));
    let error = ask(&Script::with_headers([(200, &long, "")]), "https://a.test/").await;
    assert_eq!(error.to_string(), "proxy: headers larger than 16 KiB");
    let elsewhere = Script::with_headers([(302, "Location: http://b.test/\r\n", ""), (200, "", "")]);
    assert_eq!(ask(&elsewhere, "http://a.test/").await, HttpError::Redirect);
    assert_eq!(elsewhere.requests().len(), 1);
    for url in ["http://a.test/", "https://a.test/"] {
        let error = ask(&Script::answering([(0, "")]), url).await;
        assert_eq!(error, HttpError::Timeout("5s".into()), "{url}");
        let error = ask(&Script::answering([]), url).await;
        assert_eq!(error, HttpError::Connect("proxy: connection refused".into()), "{url}");
    }
    let error = ask(&Script::with_headers([(200, "", "")]), "https://a.test/").await;
    assert!(matches!(error, HttpError::Tls(_)), "what follows is not TLS: {error}");
}

/// A tunnel begins right after the proxy's answer: bytes that came along with it belong to the server.
#[tokio::test]
async fn nothing_behind_the_answer_is_lost() {
    let (near, mut far): (DuplexStream, DuplexStream) = tokio::io::duplex(1 << 10);
    tokio::spawn(async move {
        head(&mut far).await?;
        far.write_all(b"HTTP/1.1 200 OK\r\n\r\nearly").await
    });
    let settings = proxy(&[("HTTPS_PROXY", "proxy.test")]);
    let server = settings.server(&Url::parse("https://a.test/").unwrap()).unwrap();
    let mut tunnel = server.tunnel(Box::new(near), &Host::Domain("a.test"), 443).await.unwrap();
    let mut early = [0; 5];
    tunnel.read_exact(&mut early).await.unwrap();
    assert_eq!(&early, b"early");
}

#[tokio::test]
async fn denied_addresses_are_not_told_to_the_proxy() {
    let (port, count) = listener().await;
    let address = format!("127.0.0.1:{port}");
    let settings = proxy(&[("HTTP_PROXY", &address), ("HTTPS_PROXY", &address)]);
    let guard = Guard { deny: vec!["10.96.0.1:443".parse().unwrap()], ..Guard::default() };
    let http = Http::system(guard).with_proxy(settings);
    for url in [
        "http://169.254.169.254/latest/meta-data",
        "https://169.254.169.254/",
        "http://2852039166/",
        "http://[fd00:ec2::254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://0.0.0.0/",
        "https://10.96.0.1/api",
        "http://10.96.0.1:443/",
        "http://127.0.0.1:1/",
        "http://localhost:1/",
        "https://[::1]:1/",
    ] {
        let error = http.send(get(url)).await.unwrap_err();
        assert!(matches!(error, HttpError::Denied(_)), "{url}: {error}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 0, "the proxy saw no connection");

    for url in ["http://10.0.0.1/", "http://only-the-proxy-knows.invalid/"] {
        assert_eq!(&http.send(get(url)).await.unwrap().body[..], b"ok", "{url}");
    }
    let trusted = Request { trusted: true, ..get("http://169.254.169.254/") };
    assert_eq!(&http.send(trusted).await.unwrap().body[..], b"ok");
    assert_eq!(count.load(Ordering::SeqCst), 3);
}
