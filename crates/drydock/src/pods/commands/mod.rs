//! The few commands a small image has, inside this process: for people who look around with `kubectl exec`.
//!
//! They see what a process in the pod would see: its name, its environment, its own ports as `localhost`, the names of
//! the cluster. There is no file system, so nothing that reads or writes files is here.

mod curl;
mod shell;

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use http::Request;

use super::{Console, HttpCheck, PodContext, not_found};
use crate::proxy::empty;

/// Exit code for a command that is not there.
pub(super) const NOT_FOUND: i32 = 127;
/// Exit code for a command that was used wrongly.
const MISUSED: i32 = 2;

/// An image that has a shell, `curl`, and perhaps a check of its own.
#[derive(Clone)]
pub(super) struct SmallImage {
    pub(super) pod: PodContext,
    /// Understands the image's own check command.
    pub(super) check: fn(&[String]) -> Option<HttpCheck>,
}

impl SmallImage {
    /// Executes a command as a container runtime does.
    pub(super) async fn execute(self, command: Vec<String>, mut console: Console) -> i32 {
        // None of these commands reads.
        console.ignore_input();
        match self.command(&command, &mut console).await {
            Some(code) => code,
            None => not_found(&command, &console).await,
        }
    }

    /// Runs one command; `None` when the image does not have it.
    fn command<'a>(&'a self, words: &'a [String], console: &'a mut Console) -> BoxFuture<'a, Option<i32>> {
        // Boxed, since a shell's commands may be shells.
        async move {
            let (name, args) = words.split_first()?;
            let name = name.rsplit('/').next().unwrap_or_default();
            Some(match name {
                "true" => 0,
                "false" => 1,
                "echo" => {
                    console.print(format!("{}\n", args.join(" "))).await;
                    0
                }
                "hostname" => {
                    console.print(format!("{}\n", self.pod.name)).await;
                    0
                }
                "env" | "printenv" if args.is_empty() => {
                    for (name, value) in self.environment() {
                        console.print(format!("{name}={value}\n")).await;
                    }
                    0
                }
                "sleep" => self.sleep(args, console).await,
                "curl" => curl::run(&self.pod, args, console).await,
                "sh" => self.shell(args, console).await,
                _ => self.own(words, console).await?,
            })
        }
        .boxed()
    }

    /// What a process of the container finds in its environment.
    fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        let base =
            [("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), ("HOSTNAME", &self.pod.name)];
        let own = self.pod.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        base.into_iter().chain(own)
    }

    /// Sleeps as long as the cluster's clock takes.
    async fn sleep(&self, args: &[String], console: &Console) -> i32 {
        let seconds = match args {
            [seconds] => seconds.trim_end_matches('s').parse().ok(),
            _ => None,
        };
        let Some(duration) = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) else {
            console.complain("sleep: write the number of seconds\n").await;
            return MISUSED;
        };
        self.pod.clock.sleep(duration).await;
        0
    }

    async fn shell(&self, args: &[String], console: &mut Console) -> i32 {
        let script = match args {
            [flag, script, ..] if flag == "-c" => script,
            _ => {
                console.complain("sh: drydock has no interactive shell; write sh -c '…'\n").await;
                return MISUSED;
            }
        };
        let variable = |name: &str| {
            self.environment().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        let steps = match shell::parse(script, variable) {
            Ok(steps) => steps,
            Err(problem) => {
                console.complain(format!("sh: {problem}\n")).await;
                return MISUSED;
            }
        };
        let mut code = 0;
        for step in steps {
            if !step.joint.goes_on_after(code) {
                continue;
            }
            if step.words.first().is_some_and(|word| word == "exit") {
                return step.words.get(1).map_or(code, |word| word.parse().unwrap_or(MISUSED) & 0xFF);
            }
            code = if let Some(code) = self.command(&step.words, console).await {
                code
            } else {
                let name = step.words.first().map_or("", String::as_str);
                console.complain(format!("sh: {name}: not found\n")).await;
                NOT_FOUND
            };
        }
        code
    }

    /// The image's own check.
    async fn own(&self, words: &[String], console: &Console) -> Option<i32> {
        let check = (self.check)(words)?;
        let url = format!("http://localhost:{}{}", check.port, check.path);
        let request = Request::get(&url).body(empty()).ok()?;
        Some(match curl::send(&self.pod, request).await {
            Ok(answer) if answer.status().as_u16() < 400 => 0,
            Ok(answer) => {
                console.complain(format!("{url} answered {}\n", answer.status())).await;
                1
            }
            Err(failure) => {
                console.complain(format!("{url}: {}\n", failure.text())).await;
                1
            }
        })
    }
}
