//! The server on a TCP port, for clients in other processes, and on any other stream of bytes.
//!
//! Nobody is asked who they are, so every program of this machine may use the port. What must not is a web page in
//! somebody's browser: a page can send to any port of the machine it is shown on, and through `exec` or a hook it could
//! run commands there. A browser names the page in `Origin`, so a request from a page that is not from this machine
//! itself is refused.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use http::header::{self, HeaderMap};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::error::ApiError;
use super::request::header_text;
use super::server::{Server, failure};
use crate::net::Connection;

/// Binds the address and accepts connections until the server is dropped. The tasks hold it weakly: an open connection
/// does not keep a cluster alive that nobody owns any more.
pub(crate) async fn serve(server: &Arc<Server>, address: SocketAddr) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    let stop = server.stop.token().clone();
    let server = Arc::downgrade(server);
    tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // Watches send small frames that somebody waits for.
            let _ = stream.set_nodelay(true);
            tokio::spawn(stop.clone().run_until_cancelled_owned(connection(server.clone(), stream)));
        }
    }));
    Ok(bound)
}

/// Serves one connection until it ends or the server is dropped.
pub(crate) fn attend(server: &Arc<Server>, stream: impl Connection) {
    let stop = server.stop.token().clone();
    tokio::spawn(stop.run_until_cancelled_owned(connection(Arc::downgrade(server), stream)));
}

async fn connection(server: Weak<Server>, stream: impl Connection) {
    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
        let server = server.upgrade();
        async move {
            if comes_from_elsewhere(request.headers()) {
                return Ok(failure(&ApiError::web_page()));
            }
            match server {
                Some(server) => Ok(server.answer(request).await),
                None => Err(io::Error::other("the cluster was stopped")),
            }
        }
    });
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.with_upgrades().await {
        tracing::debug!(%error, "connection ended");
    }
}

/// Whether a web page sends this that was not served by this machine.
fn comes_from_elsewhere(headers: &HeaderMap) -> bool {
    if !headers.contains_key(header::ORIGIN) {
        return false;
    }
    let origin = url::Url::parse(header_text(headers, header::ORIGIN));
    !origin.is_ok_and(|origin| match origin.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_this_machine_may_ask_and_others_may_not() {
        let from = |origin: &str| HeaderMap::from_iter([(header::ORIGIN, origin.parse().unwrap())]);
        assert!(!comes_from_elsewhere(&HeaderMap::new()));
        for mine in ["http://localhost:8080", "http://127.0.0.1", "https://[::1]:3000"] {
            assert!(!comes_from_elsewhere(&from(mine)), "{mine}");
        }
        for theirs in ["https://example.com", "http://localhost.example.com", "null", "", "file://", "http://10.0.0.1"]
        {
            assert!(comes_from_elsewhere(&from(theirs)), "{theirs}");
        }
    }
}
