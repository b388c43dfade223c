//! Commands that a person executes in the load tester's pod: real processes that see what those of hooks see.
//!
//! Input and output go through as they come. The process leads a group of its own, which ends with it, with its time,
//! or when the person leaves.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use bytes::{Bytes, BytesMut};
use rustix::process::Pid;
use seaway_drydock::pods::{Console, Output, not_found};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use super::server::Options;
use super::tasks::Group;

/// Exit code of a command that is there but cannot be run.
const NOT_EXECUTABLE: i32 = 126;
/// What is added to the signal that ended a command to get its exit code.
const SIGNALLED: i32 = 128;
/// The signal of a command that took too long.
const KILLED: i32 = 9;
/// Bytes read at a time.
const PIECE: usize = 32 * 1024;

/// Runs a command with the environment of the pod, and gives its exit code.
pub async fn execute(
    options: Options,
    environment: BTreeMap<String, String>,
    command: Vec<String>,
    console: Console,
) -> i32 {
    let Some((program, args)) = command.split_first() else { return NOT_EXECUTABLE };
    let mut process = Command::new(program);
    process.args(args).process_group(0).kill_on_drop(true).envs(environment);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    options.environment().apply(&mut process);
    let mut child = match process.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return not_found(&command, &console).await,
        Err(error) => {
            console.complain(format!("{program}: {error}\n")).await;
            return NOT_EXECUTABLE;
        }
    };
    let group = Group(child.id().and_then(|id| Pid::from_raw(id as i32)));
    let stdin = child.stdin.take();
    let (input, output) = console.split();
    let run = run(&mut child, group, output.clone());
    tokio::select! {
        ended = tokio::time::timeout(options.time_limit, run) => match ended {
            Ok(Ok(status)) => code(status),
            Ok(Err(error)) => {
                let _ = output.send(Output::Err(format!("{program}: {error}\n").into())).await;
                NOT_EXECUTABLE
            }
            Err(_) => {
                let text = format!("time limit of {:?} reached\n", options.time_limit);
                let _ = output.send(Output::Err(text.into())).await;
                SIGNALLED + KILLED
            }
        },
        // Whether more is typed is no reason to wait once the command is over.
        never = feed(stdin, input) => never,
    }
}

/// Waits for the command, and hands on what it prints meanwhile.
async fn run(child: &mut Child, group: Group, output: mpsc::Sender<Output>) -> io::Result<ExitStatus> {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let ended = async {
        let status = child.wait().await;
        // Whoever it left behind holds the pipes open.
        drop(group);
        status
    };
    let (status, (), ()) = tokio::join!(ended, pass(out, Output::Out, &output), pass(err, Output::Err, &output));
    status
}

async fn pass(pipe: Option<impl AsyncRead + Unpin>, kind: fn(Bytes) -> Output, output: &mpsc::Sender<Output>) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = BytesMut::with_capacity(PIECE);
    // A pipe that cannot be read has nothing more to say.
    while pipe.read_buf(&mut buffer).await.is_ok_and(|count| count > 0) {
        if output.send(kind(buffer.split().freeze())).await.is_err() {
            return;
        }
        buffer.reserve(PIECE);
    }
}

/// Hands on what is typed, closes the input at its end, and never comes back.
async fn feed(stdin: Option<ChildStdin>, mut input: mpsc::Receiver<Bytes>) -> i32 {
    if let Some(mut stdin) = stdin {
        while let Some(typed) = input.recv().await {
            if stdin.write_all(&typed).await.is_err() {
                break;
            }
        }
    }
    std::future::pending().await
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| SIGNALLED + status.signal().unwrap_or(KILLED))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Exit code, standard output and standard error.
    async fn execute_words(words: &[&str], typed: &[&'static str], options: Options) -> (i32, String, String) {
        let (console, mut terminal) = Console::new();
        for text in typed {
            terminal.input.send(Bytes::from_static(text.as_bytes())).await.unwrap();
        }
        drop(terminal.input);
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let environment = BTreeMap::from([("COLOR".to_owned(), "blue".to_owned())]);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let read = async {
            while let Some(piece) = terminal.output.recv().await {
                match piece {
                    Output::Out(text) => out.extend(text),
                    Output::Err(text) => err.extend(text),
                }
            }
        };
        let (code, ()) = tokio::join!(execute(options, environment, words, console), read);
        (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    #[tokio::test]
    async fn streams_and_code_are_the_commands() {
        let script = "echo $COLOR; echo no >&2; exit 3";
        let ended = execute_words(&["sh", "-c", script], &[], Options::default()).await;
        assert_eq!(ended, (3, "blue\n".to_owned(), "no\n".to_owned()));
        let ended = execute_words(&["cat"], &["a", "b\n"], Options::default()).await;
        assert_eq!(ended, (0, "ab\n".to_owned(), String::new()));
        let ended = execute_words(&["sh", "-c", "kill -TERM $$"], &[], Options::default()).await;
        assert_eq!(ended.0, 143);
        let (code, out, _) = execute_words(&["head", "-c", "300000", "/dev/zero"], &[], Options::default()).await;
        assert_eq!((code, out.len()), (0, 300_000));
    }

    #[tokio::test]
    async fn what_is_not_there_is_said_as_a_runtime_says_it() {
        let (code, _, text) = execute_words(&["no-such-command"], &[], Options::default()).await;
        assert_eq!(code, 127);
        assert!(text.contains("exec: \"no-such-command\": executable file not found in $PATH"), "{text}");
        let (code, _, text) = execute_words(&["/"], &[], Options::default()).await;
        assert_eq!(code, 126, "{text}");
    }

    #[tokio::test]
    async fn nobody_waits_for_what_a_command_leaves_behind_or_for_more_input() {
        let (console, terminal) = Console::new();
        let words = ["sh", "-c", "sleep 60 & echo done"].map(str::to_owned).to_vec();
        let ended =
            tokio::time::timeout(Duration::from_secs(20), execute(Options::default(), BTreeMap::new(), words, console));
        assert_eq!(ended.await, Ok(0));
        drop(terminal);
        let limited = Options { time_limit: Duration::from_millis(200), ..Options::default() };
        let (code, _, text) = execute_words(&["sleep", "60"], &[], limited).await;
        assert_eq!((code, text.as_str()), (137, "time limit of 200ms reached\n"));
    }
}
