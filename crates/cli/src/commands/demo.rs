//! `seaway demo`: a promotion and an automatic rollback, with no cluster.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use tokio::sync::{mpsc, watch};

use crate::demo::ground::{Ground, kubeconfig_path};
use crate::demo::model::{Model, Sight};
use crate::demo::narrate::{Narrator, Voice, prologue};
use crate::demo::story::{Cast, NAME, NAMESPACE};
use crate::demo::summary::Summary;
use crate::demo::users::Users;
use crate::output::{self, Paint};
use crate::watch::follow::{Detail, Follower, Scope};
use crate::{logging, signals};

/// See a promotion and an automatic rollback, with no cluster.
///
/// Starts a whole cluster in this process, releases a good version of an app and then a bad one, and counts what its
/// users notice. Exits with 0 only if the good version was promoted, the bad one rolled back, and no request failed
/// because of it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  seaway demo                    a live screen
  seaway demo --plain            one line for each change
  seaway demo --json | jq .      one JSON object for each change, and a summary
  seaway demo --speed 60         three times as fast
  seaway demo --keep             stay at the end, for kubectl")]
pub struct Options {
    /// How many times as fast as real time the cluster's clock runs.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    speed: u32,
    /// Leave the cluster running at the end and say how to use kubectl on it.
    #[arg(long)]
    keep: bool,
    /// Lines instead of a screen, also on a terminal.
    #[arg(long)]
    plain: bool,
    /// One JSON object per line.
    #[arg(long, conflicts_with = "plain")]
    json: bool,
}

/// What a shell shows for a program that wrote to a reader who is gone.
const READER_GONE: u8 = 141;

/// How often the screen is drawn and the users are counted.
const FRAME: Duration = Duration::from_millis(100);

/// Plays the demo.
pub async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let stop = signals::shutdown()?;
    let screen = !options.plain && !options.json && output::can_draw();
    // Log lines would tear the screen apart; elsewhere they are there for whoever asks with RUST_LOG.
    if !screen && std::env::var_os("RUST_LOG").is_some() {
        logging::start(logging::Encoding::Console, "info");
    }
    let mut ground = Ground::start(options.speed, &std::env::current_exe()?).await?;
    ground.start_operator();
    let clock = ground.cluster().clock();
    let voice = if screen {
        Voice::screen(stop.clone())?
    } else if options.json {
        Voice::Json
    } else {
        output::line(&prologue(options.speed));
        Voice::Plain(Paint::on(&std::io::stdout()))
    };
    let mut narrator = Narrator::new(clock.now(), options.speed, voice);
    let users = Users::of(ground.cluster());
    let (sights, mut told) = mpsc::channel(16);
    let (phases, phase) = watch::channel(seaway_api::Phase::Unset);
    let (mut follower, mut seen) = Follower::new(ground.cluster().client("demo"));
    follower.canaries(&Scope {
        namespace: Some(NAMESPACE.to_owned()),
        name: Some(NAME.to_owned()),
        ..Scope::default()
    });
    let detail = if screen { Detail::Shown } else { Detail::Told };

    let outcome = {
        let story = Cast { ground: &ground, users: &users, phase, sights }.play();
        tokio::pin!(story);
        let mut frames = tokio::time::interval(FRAME);
        loop {
            if !narrator.is_heard() {
                break None;
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => break None,
                Some(sight) = told.recv() => narrator.see(clock.now(), sight),
                Some(sight) = seen.recv() => {
                    narrator.see(clock.now(), Sight::Cluster(sight));
                    follower.attend(&mut narrator.model.world, &Model::key(), detail);
                    phases.send_replace(narrator.model.phase());
                }
                outcome = &mut story => break Some(outcome?),
                error = ground.operator_ended() => return Err(error),
                _ = frames.tick() => {
                    narrator.see(clock.now(), users.met());
                    narrator.redraw(clock.now())?;
                }
            }
        }
    };
    let Some(outcome) = outcome else {
        let heard = narrator.is_heard();
        drop(narrator);
        ground.stop().await;
        if !heard {
            return Ok(ExitCode::from(READER_GONE));
        }
        eprintln!("interrupted; everything was stopped");
        return Ok(ExitCode::from(130));
    };
    while let Ok(sight) = told.try_recv() {
        narrator.see(clock.now(), sight);
    }
    while let Ok(sight) = seen.try_recv() {
        narrator.see(clock.now(), Sight::Cluster(sight));
    }
    narrator.see(clock.now(), users.met());
    let summary = Summary::new(&narrator.model, outcome.promoted, outcome.rolled_back, start.elapsed());
    narrator.conclude(&summary);
    if options.keep {
        let path = kubeconfig_path();
        ground.open(0, &path).await?;
        crate::commands::drydock::invite(&ground, &path, crate::commands::drydock::EXAMPLE, options.json);
        stop.cancelled().await;
    }
    ground.stop().await;
    Ok(if summary.kept() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
