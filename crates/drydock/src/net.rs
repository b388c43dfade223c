//! The one address table: virtual pod and service addresses, mapped to loopback sockets or to memory.
//!
//! Pods live in 10.244/16 and Services in 10.96/16; neither exists on the machine. With [`Wire::Loopback`] a virtual
//! address is a TCP listener on 127.0.0.1 with a port of its own, with [`Wire::Memory`] it is a channel of in-memory
//! streams. Whoever dials cannot tell the difference, so the same servers run under both clocks. With [`Wire::Direct`] the
//! addresses are real ones, for the gateways of others must find them too.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What carries the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Real sockets on 127.0.0.1.
    Loopback,
    /// Streams in memory: no sockets, deterministic under a paused clock.
    Memory,
    /// Sockets on the addresses themselves. Somebody gave them to this machine, in a network namespace of its own.
    Direct,
}

/// Either end of a connection.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Connection for T {}

/// A connection of either wire.
pub type Stream = Pin<Box<dyn Connection>>;

enum Endpoint {
    Socket(SocketAddr),
    Memory(mpsc::Sender<Stream>),
}

/// The address table; clones share it.
#[derive(Clone)]
pub struct Net {
    wire: Wire,
    table: Arc<Mutex<BTreeMap<SocketAddr, Endpoint>>>,
}

/// Accepts the connections made to one virtual address. Dropping it unbinds the address.
pub struct Listener {
    net: Net,
    address: SocketAddr,
    source: Source,
}

enum Source {
    Socket(TcpListener),
    Memory(mpsc::Receiver<Stream>),
}

impl Net {
    /// An empty table.
    pub fn new(wire: Wire) -> Self {
        Self { wire, table: Arc::default() }
    }

    /// What carries the bytes.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Starts to listen on a virtual address.
    pub async fn bind(&self, address: SocketAddr) -> io::Result<Listener> {
        let (endpoint, source) = match self.wire {
            Wire::Direct => {
                let listener = TcpListener::bind(address).await?;
                (Endpoint::Socket(address), Source::Socket(listener))
            }
            Wire::Loopback => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
                (Endpoint::Socket(listener.local_addr()?), Source::Socket(listener))
            }
            Wire::Memory => {
                let (sender, receiver) = mpsc::channel(1024);
                (Endpoint::Memory(sender), Source::Memory(receiver))
            }
        };
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if table.contains_key(&address) {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, format!("{address} is taken")));
        }
        table.insert(address, endpoint);
        Ok(Listener { net: self.clone(), address, source })
    }

    /// The socket behind a virtual address, for people who want to `curl` it.
    pub fn loopback(&self, address: SocketAddr) -> Option<SocketAddr> {
        match self.table.lock().unwrap_or_else(PoisonError::into_inner).get(&address) {
            Some(Endpoint::Socket(real)) => Some(*real),
            _ => None,
        }
    }

    /// Opens a connection to a virtual address; refused if nobody listens there.
    pub async fn connect(&self, address: SocketAddr) -> io::Result<Stream> {
        let refused = || io::Error::new(io::ErrorKind::ConnectionRefused, format!("nobody listens on {address}"));
        let real = {
            let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
            match table.get(&address) {
                Some(Endpoint::Socket(real)) => *real,
                Some(Endpoint::Memory(sender)) => {
                    let (near, far) = tokio::io::duplex(64 * 1024);
                    sender.try_send(Box::pin(far)).map_err(|_| refused())?;
                    return Ok(Box::pin(near));
                }
                // Somebody else may listen there.
                None if self.wire == Wire::Direct => address,
                None => return Err(refused()),
            }
        };
        let stream = TcpStream::connect(real).await?;
        stream.set_nodelay(true)?;
        Ok(Box::pin(stream))
    }
}

impl Listener {
    /// The virtual address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection.
    pub async fn accept(&mut self) -> io::Result<Stream> {
        match &mut self.source {
            Source::Socket(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Box::pin(stream))
            }
            Source::Memory(receiver) => receiver.recv().await.ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.net.table.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.address);
    }
}
