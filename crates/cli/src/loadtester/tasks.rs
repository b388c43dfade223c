//! Commands of hooks, run as real processes and bounded in number, time and output.
//!
//! Every command leads a process group of its own, and the whole group is ended when the command is over or its time is,
//! when whoever waits for it is gone, or when the load tester stops: nobody is left behind, neither of a pipeline nor
//! of what a command started with `&`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::journal::Journal;
use super::server::Metrics;
use super::toolbox::on_path;

/// How much a load tester takes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Commands that run at the same time.
    pub running: usize,
    /// How long one may run.
    pub time: Duration,
    /// Bytes of output that are kept of each; what is beyond is read and dropped.
    pub output: usize,
}

/// What commands see of the world.
#[derive(Clone, Debug, Default)]
pub(super) struct Environment {
    /// Variables that are set (`Some`) or removed (`None`); the rest is inherited.
    pub variables: Vec<(String, Option<OsString>)>,
}

impl Environment {
    /// Makes a process see it.
    pub fn apply(&self, process: &mut Command) {
        for (name, value) in &self.variables {
            match value {
                Some(value) => process.env(name, value),
                None => process.env_remove(name),
            };
        }
    }
}

/// Which shell a command is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shell {
    Sh,
    Bash,
}

/// Why a command did not succeed.
#[derive(Debug)]
pub(super) enum Failure {
    /// It was not started: too many run.
    Busy(usize),
    /// It ran, or could not be started; the text is Flagger's.
    Failed(String),
}

/// All commands of one load tester; dropping it ends them.
#[derive(Debug)]
pub(super) struct Tasks {
    shared: Arc<Shared>,
    _stop: DropGuard,
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    environment: Environment,
    slots: Arc<Semaphore>,
    background: Mutex<HashSet<(String, String)>>,
    stop: CancellationToken,
    metrics: Metrics,
    journal: Journal,
}

impl Tasks {
    pub fn new(limits: Limits, environment: Environment, metrics: Metrics, journal: Journal) -> Self {
        let stop = CancellationToken::new();
        let slots = Arc::new(Semaphore::new(limits.running));
        let shared =
            Shared { limits, environment, slots, background: Mutex::default(), stop: stop.clone(), metrics, journal };
        Self { shared: Arc::new(shared), _stop: stop.drop_guard() }
    }

    /// Starts a command in the background, unless this canary already runs the same one.
    pub fn start(&self, canary: String, command: String, log_output: bool) -> Result<(), Failure> {
        let key = (canary, command);
        if !self.background().insert(key.clone()) {
            tracing::debug!(canary = key.0, command = key.1, "command is still running");
            return Ok(());
        }
        let Ok(permit) = Arc::clone(&self.shared.slots).try_acquire_owned() else {
            self.background().remove(&key);
            return Err(Failure::Busy(self.shared.limits.running));
        };
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let (canary, command) = &key;
            // The outcome of a background command is only logged: nobody waits for it.
            let _ = shared.run(canary, command, Shell::Sh, log_output).await;
            shared.background.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            drop(permit);
        });
        Ok(())
    }

    /// Runs a command to its end; what it printed, or why it failed.
    pub async fn run(&self, canary: &str, command: &str, log_output: bool) -> Result<String, Failure> {
        let permit = self.shared.slots.try_acquire().map_err(|_| Failure::Busy(self.shared.limits.running))?;
        let result = self.shared.run(canary, command, Shell::Bash, log_output).await;
        drop(permit);
        result.map_err(Failure::Failed)
    }

    fn background(&self) -> std::sync::MutexGuard<'_, HashSet<(String, String)>> {
        self.shared.background.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    async fn run(&self, canary: &str, command: &str, shell: Shell, log_output: bool) -> Result<String, String> {
        let start = Instant::now();
        self.metrics.running.inc();
        // Also when the caller goes away in the middle.
        let _running = Defer(|| {
            self.metrics.running.dec();
        });
        tracing::info!(canary, command, "command started");
        self.journal.say("info", "command started", &[("canary", canary), ("command", command)]);
        let ended = tokio::select! {
            ended = tokio::time::timeout(self.limits.time, self.execute(command, shell)) => ended,
            () = self.stop.cancelled() => {
                tracing::info!(canary, command, "command ended with the load tester");
                return Err(format!("command {command} failed: : the load tester stopped"));
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        let (output, error) = match ended {
            Ok(Ok((output, status))) if status.success() => (output, None),
            Ok(Ok((output, status))) => (output, Some(describe(status))),
            Ok(Err(error)) => (String::new(), Some(error.to_string())),
            Err(_) => (String::new(), Some(format!("time limit of {:?} reached", self.limits.time))),
        };
        let shown = if log_output { output.trim_end() } else { "" };
        match error {
            None => {
                self.metrics.finished(true);
                tracing::info!(canary, command, seconds, output = shown, "command finished");
                let fields = [("canary", canary), ("command", command), ("output", shown)];
                self.journal.say("info", "command finished", &fields);
                Ok(output)
            }
            Some(error) => {
                self.metrics.finished(false);
                let failure = format!("command {command} failed: {}: {error}", output.trim_end());
                tracing::error!(canary, command, seconds, output = output.trim_end(), error, "command failed");
                let fields =
                    [("canary", canary), ("command", command), ("output", output.trim_end()), ("error", &error)];
                self.journal.say("error", "command failed", &fields);
                Err(failure)
            }
        }
    }

    /// Runs the command; its output (both streams, in order) and how it ended.
    async fn execute(&self, command: &str, shell: Shell) -> io::Result<(String, ExitStatus)> {
        let (reader, writer) = io::pipe()?;
        let mut child = {
            let mut process = Command::new(self.program(shell));
            process.arg("-c").arg(command).process_group(0).kill_on_drop(true);
            process.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
            self.environment.apply(&mut process);
            process.spawn()?
            // Our ends of the pipe are closed here, so it ends with the last process that writes to it.
        };
        let group = Group(child.id().and_then(|id| Pid::from_raw(id as i32)));
        let ended = async move {
            let status = child.wait().await;
            // Whoever it left behind also holds the pipe open. The group's number is not given to others as long as
            // somebody is in it.
            drop(group);
            status
        };
        let (output, status) = tokio::join!(read(Receiver::from_owned_fd(reader.into())?, self.limits.output), ended);
        Ok((output?, status?))
    }

    fn program(&self, shell: Shell) -> &'static str {
        let path =
            self.environment.variables.iter().find(|(name, _)| name == "PATH").and_then(|(_, path)| path.clone());
        let path = path.or_else(|| std::env::var_os("PATH"));
        match shell {
            Shell::Bash if on_path("bash", path.as_deref()) => "bash",
            Shell::Bash => {
                tracing::warn!("there is no bash on this machine, the command runs with sh");
                "sh"
            }
            Shell::Sh => "sh",
        }
    }
}

async fn read(mut pipe: Receiver, most: usize) -> io::Result<String> {
    let mut kept = Vec::new();
    let mut buffer = vec![0; 8 * 1024];
    let mut dropped = 0_usize;
    loop {
        let count = pipe.read(&mut buffer).await?;
        if count == 0 {
            break;
        }
        let room = count.min(most - kept.len());
        kept.extend(buffer.iter().take(room));
        dropped += count - room;
    }
    let mut text = String::from_utf8_lossy(&kept).into_owned();
    if dropped > 0 {
        let _ = write!(text, "\n… {dropped} more bytes");
    }
    Ok(text)
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// Ends a process group when dropped.
pub(super) struct Group(pub(super) Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It may be gone already, which is as good.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

struct Defer<F: FnMut()>(F);

impl<F: FnMut()> Drop for Defer<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(limits: Limits) -> Tasks {
        Tasks::new(limits, Environment::default(), Metrics::default(), Journal::default())
    }

    const SMALL: Limits = Limits { running: 2, time: Duration::from_secs(5), output: 32 };

    async fn eventually(what: impl Fn() -> bool) {
        let patience = Instant::now() + Duration::from_secs(5);
        while !what() {
            assert!(Instant::now() < patience, "it did not happen");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn a_pipeline_answers_with_its_output() {
        let output = tasks(SMALL).run("app.test", "echo a token | grep token", false).await.unwrap();
        assert_eq!(output, "a token\n");
    }

    #[tokio::test]
    async fn a_failed_command_tells_its_output_and_exit_code() {
        let Err(Failure::Failed(text)) = tasks(SMALL).run("app.test", "echo no >&2; exit 3", false).await else {
            panic!("it must fail");
        };
        assert_eq!(text, "command echo no >&2; exit 3 failed: no: exit status 3");
    }

    #[tokio::test]
    async fn output_is_bounded() {
        let output = tasks(SMALL).run("app.test", "head -c 100000 /dev/zero | tr '\\0' x", false).await.unwrap();
        assert_eq!(output, format!("{}\n… 99968 more bytes", "x".repeat(32)));
    }

    #[tokio::test]
    async fn a_time_limit_ends_the_whole_pipeline() {
        let mark = format!("seaway-limit-{}", std::process::id());
        let limits = Limits { time: Duration::from_millis(300), ..SMALL };
        let command = format!("sh -c 'sleep 60; echo {mark}' | cat");
        let Err(Failure::Failed(text)) = tasks(limits).run("app.test", &command, false).await else {
            panic!("it must fail");
        };
        assert!(text.ends_with("time limit of 300ms reached"), "{text}");
        eventually(|| !running(&mark)).await;
    }

    #[tokio::test]
    async fn what_a_command_leaves_in_the_background_ends_with_it() {
        let mark = format!("seaway-left-{}", std::process::id());
        let limits = Limits { time: Duration::from_secs(60), ..SMALL };
        for output in ["", ">/dev/null 2>&1"] {
            let command = format!("sh -c 'sleep 300; echo {mark}' {output} & echo done");
            assert_eq!(tasks(limits).run("app.test", &command, false).await.unwrap(), "done\n");
            eventually(|| !running(&mark)).await;
        }
    }

    #[tokio::test]
    async fn the_same_background_command_runs_once_at_a_time() {
        let file = std::env::temp_dir().join(format!("seaway-once-{}", std::process::id()));
        let command = format!("echo x >> {}; sleep 0.3", file.display());
        let tasks = tasks(SMALL);
        for _ in 0..3 {
            tasks.start("app.test".to_owned(), command.clone(), false).unwrap();
        }
        eventually(|| tasks.background().is_empty()).await;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
        tasks.start("app.test".to_owned(), command, false).unwrap();
        eventually(|| tasks.background().is_empty()).await;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\nx\n", "it may run again afterwards");
        std::fs::remove_file(&file).unwrap();
    }

    #[tokio::test]
    async fn only_so_many_run_at_the_same_time() {
        let tasks = tasks(SMALL);
        tasks.start("a.test".to_owned(), "sleep 5".to_owned(), false).unwrap();
        tasks.start("b.test".to_owned(), "sleep 5".to_owned(), false).unwrap();
        assert!(matches!(tasks.start("c.test".to_owned(), "sleep 5".to_owned(), false), Err(Failure::Busy(2))));
        assert!(matches!(tasks.run("c.test", "true", false).await, Err(Failure::Busy(2))));
    }

    #[tokio::test]
    async fn background_commands_end_with_the_load_tester() {
        let mark = format!("seaway-drop-{}", std::process::id());
        let tasks = tasks(Limits { time: Duration::from_secs(60), ..SMALL });
        tasks.start("app.test".to_owned(), format!("sleep 60; echo {mark}"), false).unwrap();
        eventually(|| running(&mark)).await;
        drop(tasks);
        eventually(|| !running(&mark)).await;
    }

    /// Whether a process has `mark` in its command line.
    fn running(mark: &str) -> bool {
        let Ok(entries) = std::fs::read_dir("/proc") else { return false };
        entries.flatten().any(|entry| {
            std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark))
        })
    }
}
