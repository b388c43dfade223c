//! The server on a TCP port, for clients in other processes.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::server::Server;

/// Binds the address and accepts connections until the server is dropped. The tasks hold it weakly: an open connection
/// does not keep a cluster alive that nobody owns any more.
pub(crate) async fn serve(server: &Arc<Server>, address: SocketAddr) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    let stop = server.stop.token().clone();
    let server = Arc::downgrade(server);
    tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(stop.clone().run_until_cancelled_owned(connection(server.clone(), stream)));
        }
    }));
    Ok(bound)
}

async fn connection(server: Weak<Server>, stream: TcpStream) {
    // Watches send small frames that somebody waits for.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let server = server.upgrade();
        async move {
            match server {
                Some(server) => Ok(server.answer(request).await),
                None => Err(io::Error::other("the cluster was stopped")),
            }
        }
    });
    if let Err(error) = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
    {
        tracing::debug!(%error, "connection ended");
    }
}
