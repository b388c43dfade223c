//! Cluster DNS over UDP, for processes that ask the system's resolver: names of Services become addresses.
//!
//! It answers questions for addresses of the fourth version; for any other type of a name that exists there is an answer
//! without records, so that a resolver does not take the name for unknown. It asks nobody else.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::net::UdpSocket;
use tokio_util::task::AbortOnDropHandle;

use super::Names;

/// Where a question begins: behind the header.
const HEADER: usize = 12;
/// A record of an address of the fourth version.
const TYPE_A: u16 = 1;
/// The internet.
const CLASS_IN: u16 = 1;
/// Seconds that an answer may be kept: a Service may come and go.
const TTL: u32 = 1;
const NO_ERROR: u16 = 0;
const NO_SUCH_NAME: u16 = 3;

/// Answers on `address` until the handle is dropped.
pub(crate) async fn serve(names: Names, address: SocketAddr) -> io::Result<AbortOnDropHandle<()>> {
    let socket = UdpSocket::bind(address).await?;
    let task = tokio::spawn(async move {
        let mut buffer = [0; 512];
        loop {
            let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
            let asked = buffer.get(..length).unwrap_or_default();
            if let Some(reply) = answer(asked, |name| names.addresses(name)) {
                // Whoever asked asks again.
                let _ = socket.send_to(&reply, from).await;
            }
        }
    });
    Ok(AbortOnDropHandle::new(task))
}

/// The answer to a message with one question; none to anything else.
fn answer(asked: &[u8], addresses: impl Fn(&str) -> Option<Vec<IpAddr>>) -> Option<Vec<u8>> {
    let (id, questions) = (asked.get(..2)?, number(asked, 4)?);
    let is_question = number(asked, 2)? & 0x8000 == 0;
    if questions != 1 || !is_question {
        return None;
    }
    let (name, end) = name(asked)?;
    let (kind, question) = (number(asked, end)?, asked.get(HEADER..end + 4)?);
    let found = addresses(&name);
    let code = if found.is_some() { NO_ERROR } else { NO_SUCH_NAME };
    let records: Vec<Ipv4Addr> = found.into_iter().flatten().filter(|_| kind == TYPE_A).filter_map(fourth).collect();
    let mut reply = id.to_vec();
    // A response, as far as recursion is wanted and there is any.
    for word in [0x8180 | code, 1, u16::try_from(records.len()).ok()?, 0, 0] {
        reply.extend(word.to_be_bytes());
    }
    reply.extend(question);
    for record in records {
        // The name is the one of the question.
        reply.extend(0xc00c_u16.to_be_bytes());
        reply.extend([TYPE_A, CLASS_IN].map(u16::to_be_bytes).concat());
        reply.extend(TTL.to_be_bytes());
        reply.extend(4_u16.to_be_bytes());
        reply.extend(record.octets());
    }
    Some(reply)
}

fn fourth(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// The name in question, and where its type begins.
fn name(message: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut at) = (Vec::new(), HEADER);
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        // Longer ones point elsewhere, which a question has no reason to.
        let label = message.get(at..at + length).filter(|_| length < 64)?;
        labels.push(std::str::from_utf8(label).ok()?.to_owned());
        at += length;
    }
}

fn number(message: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(name: &str, kind: u16) -> Vec<u8> {
        let mut message = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            message.push(u8::try_from(label.len()).unwrap());
            message.extend(label.bytes());
        }
        message.push(0);
        message.extend([kind, CLASS_IN].map(u16::to_be_bytes).concat());
        message
    }

    fn known(name: &str) -> Option<Vec<IpAddr>> {
        (name == "podinfo.test").then(|| vec![IpAddr::from([10, 96, 0, 7])])
    }

    #[test]
    fn a_service_has_an_address() {
        let asked = question("podinfo.test", TYPE_A);
        let reply = answer(&asked, known).unwrap();
        assert_eq!(&reply[..12], [0xab, 0xcd, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        assert_eq!(&reply[12..asked.len()], &asked[12..]);
        assert_eq!(&reply[asked.len()..], [0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 10, 96, 0, 7]);
    }

    #[test]
    fn a_name_that_exists_is_not_unknown_because_of_its_type() {
        let reply = answer(&question("podinfo.test", 28), known).unwrap();
        assert_eq!((reply[3] & 0xf, reply[7]), (0, 0));
        let reply = answer(&question("nobody.test", TYPE_A), known).unwrap();
        assert_eq!((reply[3] & 0xf, reply[7]), (3, 0));
    }

    #[test]
    fn what_is_no_question_is_not_answered() {
        let whole = question("podinfo.test", TYPE_A);
        for length in 0..whole.len() {
            assert!(answer(&whole[..length], known).is_none(), "{length} bytes");
        }
        let mut response = whole.clone();
        response[2] |= 0x80;
        assert!(answer(&response, known).is_none(), "two servers would talk to each other for ever");
    }
}
