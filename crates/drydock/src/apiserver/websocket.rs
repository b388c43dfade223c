//! WebSocket (RFC 6455), the server's side: the handshake and frames over any byte stream.
//!
//! No extensions, so no compression. Messages are bytes; nobody here needs to know text from binary. A message has a
//! size limit, and whatever breaks the protocol ends the connection with the close code that says so.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, Method, header};
use sha1::{Digest, Sha1};
use tokio::io::{self, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What a server appends to the client's key to show that it understood the question.
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The largest message that is taken.
const LARGEST: usize = 1024 * 1024;
/// The largest payload of a ping or close.
const LARGEST_CONTROL: usize = 125;

/// Close code: done.
pub(super) const NORMAL: u16 = 1000;
/// Close code: the client broke the protocol.
const PROTOCOL_ERROR: u16 = 1002;
/// Close code: a message over the limit.
const TOO_BIG: u16 = 1009;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;

/// A client that wants to speak WebSocket.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Handshake {
    /// What the answer carries in `Sec-WebSocket-Accept`.
    pub(super) accept: String,
    /// The sub-protocols the client offers, the best first.
    pub(super) protocols: Vec<String>,
}

impl Handshake {
    /// Reads the request's head; `None` when it asks for something else.
    pub(super) fn read(method: &Method, headers: &HeaderMap) -> Option<Self> {
        let tokens = |name: &HeaderName| {
            let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
            let words = values.flat_map(|value| value.split(',')).map(|word| word.trim().to_owned());
            words.filter(|word| !word.is_empty()).collect::<Vec<_>>()
        };
        let says = |name, word: &str| tokens(&name).iter().any(|token| token.eq_ignore_ascii_case(word));
        let asks = *method == Method::GET
            && says(header::UPGRADE, "websocket")
            && says(header::CONNECTION, "upgrade")
            && says(header::SEC_WEBSOCKET_VERSION, "13");
        let key = headers.get(header::SEC_WEBSOCKET_KEY)?.to_str().ok()?;
        asks.then(|| Self { accept: accept(key), protocols: tokens(&header::SEC_WEBSOCKET_PROTOCOL) })
    }
}

fn accept(key: &str) -> String {
    STANDARD.encode(Sha1::new().chain_update(key.trim()).chain_update(MAGIC).finalize())
}

/// What the client sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A whole message.
    Message(Bytes),
    /// Wants to hear the same back.
    Ping(Bytes),
    /// Says goodbye.
    Close,
}

/// Why there is no next event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The connection is gone, without a goodbye.
    Gone,
    /// The client broke a rule; it is told this close code.
    Rule(u16),
}

/// The reading half.
pub(super) struct Reader<R> {
    source: R,
    buffer: BytesMut,
    /// The parts so far of a message that came in several frames.
    partial: Option<BytesMut>,
}

struct Frame {
    last: bool,
    opcode: u8,
    payload: BytesMut,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, buffer: BytesMut::new(), partial: None }
    }

    /// The next event. Nothing is lost when the future is dropped before it is ready.
    pub(super) async fn next(&mut self) -> Result<Event, Broken> {
        loop {
            while let Some(frame) = parse(&mut self.buffer)? {
                if let Some(event) = self.take(frame)? {
                    return Ok(event);
                }
            }
            match self.source.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return Err(Broken::Gone),
                Ok(_) => {}
            }
        }
    }

    fn take(&mut self, frame: Frame) -> Result<Option<Event>, Broken> {
        match frame.opcode {
            PING => Ok(Some(Event::Ping(frame.payload.freeze()))),
            PONG => Ok(None),
            CLOSE => Ok(Some(Event::Close)),
            TEXT | BINARY if self.partial.is_none() => self.extend(BytesMut::new(), frame),
            CONTINUATION => {
                let partial = self.partial.take().ok_or(Broken::Rule(PROTOCOL_ERROR))?;
                self.extend(partial, frame)
            }
            _ => Err(Broken::Rule(PROTOCOL_ERROR)),
        }
    }

    fn extend(&mut self, mut message: BytesMut, frame: Frame) -> Result<Option<Event>, Broken> {
        message.unsplit(frame.payload);
        if message.len() > LARGEST {
            return Err(Broken::Rule(TOO_BIG));
        }
        if frame.last {
            return Ok(Some(Event::Message(message.freeze())));
        }
        self.partial = Some(message);
        Ok(None)
    }
}

/// Takes one frame off the buffer; `None` when it is not complete yet.
fn parse(buffer: &mut BytesMut) -> Result<Option<Frame>, Broken> {
    let mut head = &buffer[..];
    if head.len() < 2 {
        return Ok(None);
    }
    let (first, second) = (head.get_u8(), head.get_u8());
    let (last, reserved, opcode) = (first & 0x80 != 0, first & 0x70, first & 0x0F);
    let (masked, short) = (second & 0x80 != 0, second & 0x7F);
    let control = opcode & 0x8 != 0;
    // Only what a client must do is accepted from it: frames are masked, so that nothing in between mistakes them.
    if reserved != 0 || !masked || (control && (!last || usize::from(short) > LARGEST_CONTROL)) {
        return Err(Broken::Rule(PROTOCOL_ERROR));
    }
    let extra = match short {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    if head.len() < extra + 4 {
        return Ok(None);
    }
    let length = match short {
        126 => u64::from(head.get_u16()),
        127 => head.get_u64(),
        short => u64::from(short),
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= LARGEST).ok_or(Broken::Rule(TOO_BIG))?;
    let mask = head.get_u32().to_be_bytes();
    if head.len() < length {
        return Ok(None);
    }
    buffer.advance(2 + extra + 4);
    let mut payload = buffer.split_to(length);
    for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    Ok(Some(Frame { last, opcode, payload }))
}

/// The writing half.
pub(super) struct Writer<W>(W);

impl<W: AsyncWrite + Unpin> Writer<W> {
    pub(super) fn new(sink: W) -> Self {
        Self(sink)
    }

    /// Sends a message that begins with `channel`.
    pub(super) async fn message(&mut self, channel: u8, content: &[u8]) -> io::Result<()> {
        self.frame(BINARY, &[channel], content).await
    }

    /// Answers a ping.
    pub(super) async fn pong(&mut self, payload: &[u8]) -> io::Result<()> {
        self.frame(PONG, &[], payload).await
    }

    /// Says goodbye.
    pub(super) async fn close(&mut self, code: u16) -> io::Result<()> {
        self.frame(CLOSE, &code.to_be_bytes(), &[]).await
    }

    async fn frame(&mut self, opcode: u8, begin: &[u8], rest: &[u8]) -> io::Result<()> {
        let length = begin.len() + rest.len();
        let mut frame = Vec::with_capacity(length + 10);
        frame.push(0x80 | opcode);
        match (u8::try_from(length), u16::try_from(length)) {
            (Ok(short), _) if short < 126 => frame.push(short),
            (_, Ok(length)) => {
                frame.push(126);
                frame.extend(length.to_be_bytes());
            }
            _ => {
                frame.push(127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend_from_slice(begin);
        frame.extend_from_slice(rest);
        self.0.write_all(&frame).await?;
        self.0.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![first];
        match payload.len() {
            short @ 0..126 => frame.push(0x80 | short as u8),
            length @ 126..0x1_0000 => {
                frame.push(0xFE);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(0xFF);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        let mask = [0x37, 0xfa, 0x21, 0x3d];
        frame.extend(mask);
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        frame
    }

    async fn events(bytes: &[u8]) -> (Vec<Event>, Broken) {
        let mut reader = Reader::new(bytes);
        let mut events = Vec::new();
        loop {
            match reader.next().await {
                Ok(event) => events.push(event),
                Err(broken) => return (events, broken),
            }
        }
    }

    #[test]
    fn the_handshake_of_the_standard() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (header::CONNECTION, "keep-alive, Upgrade"),
            (header::UPGRADE, "websocket"),
            (header::SEC_WEBSOCKET_VERSION, "13"),
            (header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ=="),
            (header::SEC_WEBSOCKET_PROTOCOL, "chat, superchat"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let handshake = Handshake::read(&Method::GET, &headers).unwrap();
        assert_eq!(handshake.accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(handshake.protocols, ["chat", "superchat"]);
        assert_eq!(Handshake::read(&Method::POST, &headers), None);
        headers.insert(header::UPGRADE, "SPDY/3.1".parse().unwrap());
        assert_eq!(Handshake::read(&Method::GET, &headers), None);
    }

    #[tokio::test]
    async fn frames_of_every_length_in_any_pieces() {
        for length in [0, 1, 125, 126, 65_535, 65_536, LARGEST] {
            let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let frame = masked(0x82, &payload);
            let (near, mut far) = io::duplex(1000);
            let send = async {
                for piece in frame.chunks(997) {
                    far.write_all(piece).await.unwrap();
                }
            };
            let mut reader = Reader::new(near);
            let (event, ()) = tokio::join!(reader.next(), send);
            assert_eq!(event, Ok(Event::Message(payload.into())), "{length}");
        }
    }

    #[tokio::test]
    async fn a_message_may_come_in_parts_with_pings_between() {
        let mut bytes = masked(0x02, b"he");
        bytes.extend(masked(0x89, b"there?"));
        bytes.extend(masked(0x00, b"l"));
        bytes.extend(masked(0x8A, b"ignored"));
        bytes.extend(masked(0x80, b"lo"));
        bytes.extend(masked(0x88, b""));
        let expected =
            [Event::Ping(Bytes::from_static(b"there?")), Event::Message(Bytes::from_static(b"hello")), Event::Close];
        let (events, end) = events(&bytes).await;
        assert_eq!((events.as_slice(), end), (expected.as_slice(), Broken::Gone));
    }

    #[tokio::test]
    async fn who_breaks_a_rule_is_told_which() {
        let mut unmasked = masked(0x82, b"");
        unmasked.truncate(1);
        unmasked.push(0);
        let huge: Vec<u8> = [0x82, 0xFF].into_iter().chain(u64::MAX.to_be_bytes()).chain([0; 4]).collect();
        let two_halves: Vec<u8> =
            masked(0x02, &vec![0; LARGEST]).into_iter().chain(masked(0x80, b"one more")).collect();
        let interleaved: Vec<u8> = masked(0x02, b"a").into_iter().chain(masked(0x82, b"b")).collect();
        for (bytes, code) in [
            (unmasked, PROTOCOL_ERROR),
            (masked(0xC2, b"compressed"), PROTOCOL_ERROR),
            (masked(0x83, b"unknown opcode"), PROTOCOL_ERROR),
            (masked(0x80, b"continues nothing"), PROTOCOL_ERROR),
            (masked(0x09, b"ping in parts"), PROTOCOL_ERROR),
            (masked(0x89, &[0; 126]), PROTOCOL_ERROR),
            (interleaved, PROTOCOL_ERROR),
            (huge, TOO_BIG),
            (two_halves, TOO_BIG),
        ] {
            assert_eq!(events(&bytes).await, (Vec::new(), Broken::Rule(code)));
        }
    }

    #[tokio::test]
    async fn what_is_written_has_the_shortest_length_field() {
        for (length, head) in [
            (1_usize, vec![0x82, 1]),
            (125, vec![0x82, 125]),
            (126, vec![0x82, 126, 0, 126]),
            (65_536, vec![0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let mut sink = Vec::new();
            Writer::new(&mut sink).message(7, &vec![0; length - 1]).await.unwrap();
            assert_eq!(&sink[..head.len()], head);
            assert_eq!((sink[head.len()], sink.len()), (7, head.len() + length));
        }
        let mut sink = Vec::new();
        Writer::new(&mut sink).close(NORMAL).await.unwrap();
        assert_eq!(sink, [0x88, 2, 0x03, 0xE8]);
    }
}
