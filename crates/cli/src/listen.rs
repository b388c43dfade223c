//! Listening on every address of this machine, as the operator and the load tester do in their pods.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::Context;
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

/// Connections that may wait to be taken.
const BACKLOG: i32 = 1024;

/// Listens for either family. The kubelet asks by the pod's, which may be IPv6 alone; a machine without IPv6 has only IPv4.
pub async fn on_every_address(port: u16) -> anyhow::Result<TcpListener> {
    let listener = match both_families(port) {
        Err(error) if lacks_ipv6(&error) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
        listener => listener,
    };
    listener.with_context(|| format!("cannot listen on port {port}; choose another with -port"))
}

fn both_families(port: u16) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP))?;
    // Some machines say otherwise for sockets that say nothing.
    socket.set_only_v6(false)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// The machine has no IPv6, or does not let it be turned off for one socket. Any other trouble IPv4 would have too, or hide: a
/// port that somebody else has for IPv6 is a port that the kubelet may ask in vain.
fn lacks_ipv6(error: &io::Error) -> bool {
    let missing = [Errno::AFNOSUPPORT, Errno::PROTONOSUPPORT, Errno::ADDRNOTAVAIL, Errno::NOPROTOOPT];
    Errno::from_io_error(error).is_some_and(|errno| missing.contains(&errno))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn either_family_is_answered() {
        let listener = on_every_address(0).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok());
        let has_ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.is_ok();
        assert_eq!(TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.is_ok(), has_ipv6);
        let error = on_every_address(port).await.unwrap_err();
        assert_eq!(error.to_string(), format!("cannot listen on port {port}; choose another with -port"));
    }

    #[tokio::test]
    async fn a_port_that_somebody_has_for_ipv6_alone_is_taken() {
        let socket = match Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP)) {
            Ok(socket) => socket,
            Err(error) => {
                // Past the capture of the test runner, so that it is counted.
                let test = "listen::a_port_that_somebody_has_for_ipv6_alone_is_taken";
                let _ = writeln!(io::stderr(), "skipped: {test}: no IPv6 here: {error}");
                return;
            }
        };
        socket.set_only_v6(true).unwrap();
        socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)).into()).unwrap();
        socket.listen(1).unwrap();
        let port = socket.local_addr().unwrap().as_socket().unwrap().port();
        let error = on_every_address(port).await.unwrap_err();
        let cause = error.downcast_ref::<io::Error>().unwrap();
        assert_eq!(cause.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn only_a_machine_without_ipv6_is_asked_for_ipv4() {
        let from = |errno: Errno| lacks_ipv6(&io::Error::from(errno));
        for missing in [Errno::AFNOSUPPORT, Errno::PROTONOSUPPORT, Errno::ADDRNOTAVAIL, Errno::NOPROTOOPT] {
            assert!(from(missing), "{missing}");
        }
        for other in [Errno::ADDRINUSE, Errno::ACCESS, Errno::PERM, Errno::MFILE, Errno::NOBUFS] {
            assert!(!from(other), "{other}");
        }
        assert!(!lacks_ipv6(&io::ErrorKind::Other.into()));
    }
}
