//! `pods/exec`: a command in a container, over WebSocket.
//!
//! Each message begins with the number of its channel: standard input, output, error, and at the end one with the exit
//! code as a `Status`. The sub-protocols are `v5.channel.k8s.io`, in which the client can end its input, and
//! `v4.channel.k8s.io`, in which it cannot. There is no terminal behind a command: with `tty` both outputs are one and
//! lines end as a terminal ends them, and that is all. SPDY, which older clients speak, is not offered.

use std::time::Duration;

use bytes::{Buf, Bytes};
use futures::future::BoxFuture;
use http::request::Parts;
use http::{Response, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{self, AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::error::{ApiError, Result};
use super::kubelet::{Console, Output, Refusal, Terminal};
use super::request::{Params, Target};
use super::server::{Server, respond};
use super::streams::{Streamed, unassigned};
use super::websocket::{Broken, Event, Handshake, NORMAL, Reader, Writer};
use super::{Body, full};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
/// The client closes a channel; version 5 only.
const END: u8 = 255;

/// How long the client may take to say goodbye after it was told the exit code.
const GOODBYE: Duration = Duration::from_secs(1);

/// How long a client that has not said anything may take to do so after its command has ended. kubectl starts with the
/// size of its terminal, or with its input, and complains when the connection is closed on it before.
const FIRST_WORD: Duration = Duration::from_millis(100);

/// The versions of the protocol.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

/// What the client wants to see and send.
#[derive(Clone, Copy)]
struct Wanted {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
}

impl Server {
    pub(super) fn pod_exec(&self, target: &Target, head: &Parts, upgrade: Option<OnUpgrade>) -> Result<Response<Body>> {
        let query = head.uri.query().unwrap_or_default();
        let params = Params::parse(query);
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        let command: Vec<_> = pairs.filter(|(name, _)| name == "command").map(|(_, word)| word.into_owned()).collect();
        let tty = params.flag("tty");
        let wanted = Wanted {
            stdin: params.flag("stdin"),
            stdout: params.flag("stdout"),
            // A terminal has one output.
            stderr: params.flag("stderr") && !tty,
            tty,
        };
        let located = self.locate(Streamed::Exec, target, params.get("container"))?;
        let located = located.ok_or_else(|| unassigned(&target.name))?;
        if command.is_empty() {
            return Err(ApiError::bad_request("you must specify at least one command for the container"));
        }
        if !(wanted.stdin || wanted.stdout || wanted.stderr) {
            return Err(ApiError::bad_request("you must specify at least 1 of stdin, stdout, stderr"));
        }
        let (console, terminal) = Console::new();
        let execution = match located.kubelet.execute(&located.name, command, console) {
            Ok(execution) => execution,
            // Said by the kubelet, whose plain words a real server passes on.
            Err(Refusal::Failed(message)) => return Ok(respond(500, "text/plain", full(message.into()), &[])),
            Err(refusal) => return Err(refusal.into()),
        };
        let Some(handshake) = Handshake::read(&head.method, &head.headers) else {
            return Err(ApiError::bad_request(
                "drydock executes commands over WebSocket only, and this client asks for something else: \
                 use kubectl 1.31 or later, or set KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true in kubectl 1.29 and 1.30",
            ));
        };
        let offered = |known: &&str| handshake.protocols.iter().any(|protocol| protocol == known);
        let Some(protocol) = PROTOCOLS.into_iter().find(offered) else {
            let known = PROTOCOLS.join(" and ");
            return Err(ApiError::bad_request(format!("the WebSocket sub-protocols of exec are {known}")));
        };
        let upgrade =
            upgrade.ok_or_else(|| ApiError::bad_request("this connection cannot become a WebSocket connection"))?;
        let session = async move {
            match upgrade.await {
                Ok(upgraded) => converse(TokioIo::new(upgraded), execution, terminal, wanted).await,
                Err(error) => tracing::debug!(%error, "the client left before the command started"),
            }
        };
        tokio::spawn(self.stop.token().clone().run_until_cancelled_owned(session));
        let mut response = Response::new(full(Bytes::new()));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        for (name, value) in [
            (header::CONNECTION, "Upgrade"),
            (header::UPGRADE, "websocket"),
            (header::SEC_WEBSOCKET_ACCEPT, handshake.accept.as_str()),
            (header::SEC_WEBSOCKET_PROTOCOL, protocol),
        ] {
            if let Ok(value) = value.parse() {
                response.headers_mut().insert(name, value);
            }
        }
        Ok(response)
    }
}

/// Runs the command, and carries its input and output until it ends or the client leaves, which ends it, too.
async fn converse(
    stream: impl AsyncRead + AsyncWrite,
    execution: BoxFuture<'static, i32>,
    terminal: Terminal,
    wanted: Wanted,
) {
    let (read, write) = io::split(stream);
    let (mut reader, mut writer) = (Reader::new(read), Writer::new(write));
    let Terminal { input, mut output } = terminal;
    let mut input = wanted.stdin.then_some(input);
    // Typed, but the command does not take it yet.
    let mut typed: Option<Bytes> = None;
    let mut silent = wanted.stdin || wanted.tty;
    let mut execution = execution;
    let code = loop {
        tokio::select! {
            biased;
            code = &mut execution => break code,
            () = feed(input.as_ref(), &mut typed), if typed.is_some() => {}
            event = reader.next(), if typed.is_none() => match event {
                Ok(Event::Message(message)) => {
                    silent = false;
                    match channel(message) {
                        Some((STDIN, content)) if !content.is_empty() => typed = input.is_some().then_some(content),
                        Some((END, channels)) if channels.contains(&STDIN) => input = None,
                        // Window sizes, and channels nobody knows.
                        _ => {}
                    }
                }
                Ok(Event::Ping(payload)) => if writer.pong(&payload).await.is_err() { return },
                Ok(Event::Close) => {
                    let _ = writer.close(NORMAL).await;
                    return;
                }
                Err(Broken::Rule(code)) => {
                    let _ = writer.close(code).await;
                    return;
                }
                Err(Broken::Gone) => return,
            },
            Some(piece) = output.recv() => if show(&mut writer, piece, wanted).await.is_err() { return },
        }
    };
    while let Ok(piece) = output.try_recv() {
        if show(&mut writer, piece, wanted).await.is_err() {
            return;
        }
    }
    if silent {
        let _ = tokio::time::timeout(FIRST_WORD, reader.next()).await;
    }
    let goodbye = async {
        writer.message(STATUS, ended(code).to_string().as_bytes()).await?;
        writer.close(NORMAL).await?;
        // Closing with something unread would reset the connection and could cost the client what it has not read.
        while !matches!(reader.next().await, Ok(Event::Close) | Err(_)) {}
        io::Result::Ok(())
    };
    // The client has all it wanted; how it leaves does not matter.
    let _ = tokio::time::timeout(GOODBYE, goodbye).await;
}

/// Hands over what was typed once the command has room for it. Nothing is lost when the future is dropped before.
async fn feed(input: Option<&mpsc::Sender<Bytes>>, typed: &mut Option<Bytes>) {
    let room = match input {
        Some(input) => input.reserve().await.ok(),
        None => None,
    };
    // Without room the command has closed its input, and nobody wants it any more.
    if let (Some(room), Some(typed)) = (room, typed.take()) {
        room.send(typed);
    }
}

/// A message taken apart.
fn channel(mut message: Bytes) -> Option<(u8, Bytes)> {
    message.has_remaining().then(|| (message.get_u8(), message))
}

async fn show<W: AsyncWrite + Unpin>(writer: &mut Writer<W>, piece: Output, wanted: Wanted) -> io::Result<()> {
    let (channel, content) = match piece {
        Output::Out(content) => (STDOUT, content),
        Output::Err(content) if wanted.tty => (STDOUT, content),
        Output::Err(content) => (STDERR, content),
    };
    if (channel == STDOUT && !wanted.stdout) || (channel == STDERR && !wanted.stderr) {
        return Ok(());
    }
    if wanted.tty {
        return writer.message(channel, &lines_of_a_terminal(&content)).await;
    }
    writer.message(channel, &content).await
}

/// A terminal goes down a line and also back to its beginning.
fn lines_of_a_terminal(content: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(content.len());
    for byte in content {
        if *byte == b'\n' {
            lines.push(b'\r');
        }
        lines.push(*byte);
    }
    lines
}

/// How it ended, as clients read it.
fn ended(code: i32) -> Value {
    if code == 0 {
        return json!({"metadata": {}, "status": "Success"});
    }
    json!({
        "metadata": {},
        "status": "Failure",
        "message": format!("command terminated with non-zero exit code: exit status {code}"),
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
    })
}
