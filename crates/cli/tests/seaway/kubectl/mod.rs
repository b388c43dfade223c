//! Stock kubectl against drydock: every command of the stories prints what it prints on a real cluster.
//!
//! The stories are data (`stories/*.txt`, see [`story`]): commands with the output that Kubernetes 1.36 gave. By default
//! they run against a `seaway drydock` of their own. Two variables run them against any other API server:
//!
//! ```text
//! SEAWAY_KUBECTL_KUBECONFIG=/path/to/kubeconfig   the server; its CRDs of Seaway and of the Gateway API are installed
//! SEAWAY_KUBECTL_HAS=pods,logs,operator           what it has beyond an API server and controllers
//! SEAWAY_KUBECTL_STORIES=apply                    only the stories whose name contains this
//! ```

mod ground;
mod story;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;

use ground::Ground;
use story::{Outcome, Story};

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
    let kubectl = match ground::kubectl() {
        Ok(kubectl) => kubectl,
        Err(reason) => {
            eprintln!("skipped: kubectl::kubectl_prints_what_it_prints_on_a_real_cluster: {reason}");
            return;
        }
    };
    let ground = Ground::open(&kubectl);
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
                    tell(&file, &ground, &tally);
                }
            });
        }
    });
    let Tally { passed, left_out, failures } = tally.into_inner().unwrap();
    println!("{passed} steps passed, {left_out} left out for what this server does not have");
    assert!(failures.is_empty(), "kubectl printed something else (- expected, + printed):\n\n{failures}");
    assert!(passed > 0, "no story is called {chosen:?}");
}

fn tell(file: &Path, ground: &Ground, tally: &Mutex<Tally>) {
    let story = Story::read(file);
    let scene = ground.scene(&story);
    for step in &story.steps {
        let outcome = step.run(&scene);
        let mut tally = tally.lock().unwrap();
        match outcome {
            Outcome::Passed => tally.passed += 1,
            Outcome::LeftOut => tally.left_out += 1,
            Outcome::Failed(difference) => {
                let _ = writeln!(tally.failures, "{}:{}\n{difference}", file.display(), step.line);
            }
        }
    }
}
