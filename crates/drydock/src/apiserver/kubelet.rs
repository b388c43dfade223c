//! What the server asks of a node: the log of a container, a command in it, and where its ports are.
//!
//! The server knows pods as objects only. Whoever runs them registers as the node's [`Kubelet`] and answers for what
//! goes on inside; without one the server answers as if the node could not be reached. Nothing here is HTTP, and
//! nothing here decides what a container says or can do.

use std::net::SocketAddr;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use jiff::Timestamp;
use tokio::sync::mpsc;

/// Pieces of output that wait for a slow reader before the command waits, too.
const PIECES: usize = 16;

/// A node, as far as the server calls it. Registered with [`super::ApiServer::register_kubelet`].
pub trait Kubelet: Send + Sync + 'static {
    /// What a container wrote, as whole lines; with `follow` until the container ends.
    fn logs(&self, of: &ContainerName, options: &LogOptions) -> Result<BoxStream<'static, Bytes>, Refusal>;

    /// A command in a running container. It starts when the future is first polled, ends early when it is dropped, and
    /// gives the exit code.
    fn execute(
        &self,
        inside: &ContainerName,
        command: Vec<String>,
        console: Console,
    ) -> Result<BoxFuture<'static, i32>, Refusal>;

    /// The ports a pod listens on, with the address of this machine behind each; none where the pod cannot be reached
    /// from outside.
    fn ports(&self, namespace: &str, pod: &str) -> Vec<(u16, SocketAddr)>;
}

/// Which container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerName {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Name of the container.
    pub container: String,
}

/// Which part of a log, and how it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Go on until the container ends.
    pub follow: bool,
    /// The run before this one.
    pub previous: bool,
    /// Only lines written at this moment or later.
    pub since: Option<Timestamp>,
    /// Only so many lines from the end, counted before `since`.
    pub tail: Option<usize>,
    /// Put the moment it was written before each line.
    pub timestamps: bool,
    /// Only so many bytes.
    pub limit: Option<usize>,
}

/// Why a node does not do what it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request makes no sense for this container, now.
    BadRequest(String),
    /// There is no such pod here.
    NotFound(String),
    /// It cannot be done.
    Failed(String),
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Of the command itself.
    Out(Bytes),
    /// Of its complaints.
    Err(Bytes),
}

/// Standard input and output of a command.
#[derive(Debug)]
pub struct Console {
    input: mpsc::Receiver<Bytes>,
    output: mpsc::Sender<Output>,
}

/// The other end of a [`Console`]: who types and reads.
#[derive(Debug)]
pub struct Terminal {
    /// What is typed; dropping it ends the command's input.
    pub input: mpsc::Sender<Bytes>,
    /// What is printed.
    pub output: mpsc::Receiver<Output>,
}

impl Console {
    /// A console and whoever sits at it.
    pub fn new() -> (Self, Terminal) {
        let (typing, input) = mpsc::channel(PIECES);
        let (output, printed) = mpsc::channel(PIECES);
        (Self { input, output }, Terminal { input: typing, output: printed })
    }

    /// Prints to standard output, waiting while nobody reads.
    pub async fn print(&self, text: impl Into<Bytes>) {
        self.send(Output::Out(text.into())).await;
    }

    /// Prints to standard error, waiting while nobody reads.
    pub async fn complain(&self, text: impl Into<Bytes>) {
        self.send(Output::Err(text.into())).await;
    }

    async fn send(&self, output: Output) {
        // When the reader is gone the command is about to be ended; it needs not know.
        let _ = self.output.send(output).await;
    }

    /// The next piece of input; `None` at its end.
    pub async fn read(&mut self) -> Option<Bytes> {
        self.input.recv().await
    }

    /// Takes no input from now on; what is typed is dropped, and who types is not held up.
    pub fn ignore_input(&mut self) {
        self.input.close();
        while self.input.try_recv().is_ok() {}
    }

    /// The input apart from the output, for commands that use both at once.
    pub fn split(self) -> (mpsc::Receiver<Bytes>, mpsc::Sender<Output>) {
        (self.input, self.output)
    }
}
