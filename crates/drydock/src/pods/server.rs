//! Serves a router on a virtual address, one HTTP/1 connection at a time per client, and stops without cutting anyone.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use futures::FutureExt;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Net;
use crate::net::{Listener, Stream};

/// A listening port of a pod. Dropping it cuts every connection; [`Server::drain`] does not.
pub(super) struct Server {
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Server {
    /// Binds the address and serves the router on it.
    pub(super) async fn start(net: &Net, address: SocketAddr, router: Router) -> io::Result<Self> {
        let listener = net.bind(address).await?;
        let stop = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(accept(listener, router, stop.clone()));
        Ok(Self { stop, task })
    }

    /// Tells the server to accept no more and to close each connection after the request it is busy with.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Cuts every connection and waits until the address is free again.
    pub(super) async fn kill(mut self) {
        self.task.shutdown().await;
    }

    /// Stops and waits for requests in flight, but not longer than `limit` of real time.
    pub(super) async fn drain(mut self, limit: Duration) {
        self.stop();
        let _ = tokio::time::timeout(limit, self.task.join_next()).await;
    }
}

async fn accept(mut listener: Listener, router: Router, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            stream = listener.accept() => match stream {
                Ok(stream) => {
                    connections.spawn(serve(stream, router.clone(), stop.clone()));
                }
                Err(error) => {
                    tracing::debug!(address = %listener.address(), %error, "stopped accepting");
                    break;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    // Who connected before the stop is still served.
    while let Some(Ok(stream)) = listener.accept().now_or_never() {
        connections.spawn(serve(stream, router.clone(), stop.clone()));
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn serve(stream: Stream, router: Router, stop: CancellationToken) {
    let mut server = http1::Builder::new();
    // The date would be the machine's, not the cluster's.
    server.auto_date_header(false);
    let connection = server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "connection ended early");
    }
}
