//! Stock kubectl against an API server: every command of the stories prints what it prints on a real cluster.
//!
//! The stories are data (`stories/*.txt`, see [`story`]): commands with the output that Kubernetes 1.36 gives. They are told
//! on a `seaway drydock` of their own and on a real server, which keeps them true.
//! `SEAWAY_KUBECTL_STORIES=apply` tells only those whose name contains this.

mod ground;
mod story;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;

pub use ground::{Ground, kubectl};
use story::{Outcome, Story};

use crate::harness::{leave_out, skip};

/// How many stories are told at once: most of their time is waiting.
const TELLERS: usize = 4;

/// What came of the stories so far.
#[derive(Default)]
struct Tally {
    passed: usize,
    left_out: usize,
    failures: String,
}

/// Where the stories and their manifests are.
fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seaway/kubectl"))
}

#[test]
fn kubectl_prints_what_it_prints_on_a_real_cluster() {
    let test = "kubectl::kubectl_prints_what_it_prints_on_a_real_cluster";
    match kubectl() {
        Ok(kubectl) => tell_all(test, &Ground::drydock(&kubectl)),
        Err(reason) => skip(test, &reason),
    }
}

/// Tells every story, for a test.
pub fn tell_all(test: &str, ground: &Ground) {
    let chosen = std::env::var("SEAWAY_KUBECTL_STORIES").unwrap_or_default();
    let files = std::fs::read_dir(folder().join("stories")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|file| file.to_string_lossy().contains(&chosen)).collect();
    files.sort();
    let (untold, tally) = (Mutex::new(files), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..TELLERS {
            scope.spawn(|| {
                let next = || untold.lock().unwrap().pop();
                while let Some(file) = next() {
                    tell(test, &file, ground, &tally);
                }
            });
        }
    });
    let Tally { passed, left_out, failures } = tally.into_inner().unwrap();
    println!("{passed} steps passed, {left_out} left out for what this server does not have");
    assert!(failures.is_empty(), "kubectl printed something else (- expected, + printed):\n\n{failures}");
    assert!(passed > 0, "no story is called {chosen:?}");
}

fn tell(test: &str, file: &Path, ground: &Ground, tally: &Mutex<Tally>) {
    let story = Story::read(file);
    let scene = ground.scene(&story);
    for step in &story.steps {
        let outcome = step.run(&scene);
        let mut tally = tally.lock().unwrap();
        match outcome {
            Outcome::Passed => tally.passed += 1,
            Outcome::LeftOut(word) => {
                tally.left_out += 1;
                leave_out(test, &format!("{}:{}", story.name, step.line), &format!("this server has no {word}"));
            }
            Outcome::Failed(difference) => {
                let _ = writeln!(tally.failures, "{}:{}\n{difference}", file.display(), step.line);
            }
        }
    }
}
