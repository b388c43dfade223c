//! `seaway watch`: canaries of any cluster, on a live screen, as lines or as JSON; or waiting for the end of a rollout.

mod session;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::session::{End, Session, Teller};
use crate::output::{self, Paint};
use crate::screens::canary::Surroundings;
use crate::screens::keys::{Outcome, Place};
use crate::screens::list::{Listing, entries};
use crate::screens::terminal::Screen;
use crate::screens::{canary, list};
use crate::watch::cluster;
use crate::watch::follow::{Detail, Scope};
use crate::watch::objects::Key;
use crate::watch::view::{View, troubles};
use crate::{logging, signals};

/// Watch canaries of a cluster, or wait for the end of a rollout.
///
/// Without NAME all canaries of the namespace, as a list. The cluster is found as kubectl finds it. Nothing is written to
/// it, and what may not be read is left out and named.
///
/// Exits with 2 if there is nothing to watch (no cluster, no such canary), and with --wait with 0 if the target's present
/// version was promoted, with 1 if it was not and will not be, and with 124 if the time ran out.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  seaway watch                              a list; choose one with the arrow keys and Enter
  seaway watch -A -l team=web               in all namespaces, with a label
  seaway watch podinfo -n test              one canary
  seaway watch podinfo --wait --timeout 1h  in a pipeline: until it is promoted (0) or not (1)
  seaway watch -A -o json | jq .            one JSON object for each change")]
pub struct Options {
    /// The canary; all of them if none is named.
    name: Option<String>,
    /// Namespace; that of the kubeconfig's context if none is named.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Canaries of all namespaces.
    #[arg(short = 'A', long, conflicts_with_all = ["name", "namespace"])]
    all_namespaces: bool,
    /// Canaries with these labels.
    #[arg(short = 'l', long, conflicts_with = "name")]
    selector: Option<String>,
    /// Kubeconfig file, instead of KUBECONFIG or ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig, instead of its current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Lines or JSON, one for each change. A screen on a terminal, lines elsewhere.
    #[arg(short, long)]
    output: Option<Output>,
    /// Leave when the rollout of what the target wants now has ended; at once if it has already.
    #[arg(long, requires = "name")]
    wait: bool,
    /// Longest time to wait, for example 30m.
    #[arg(long, requires = "wait", value_parser = duration)]
    timeout: Option<Duration>,
}

/// How changes are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A line for each change.
    Plain,
    /// A JSON object for each change.
    Json,
}

fn duration(text: &str) -> Result<Duration, String> {
    seaway_api::duration::parse(text).map_err(|error| error.to_string())
}

/// There is nothing to watch. Apart from 1, which is a verdict.
const NOTHING_TO_WATCH: u8 = 2;
/// What a shell shows for a program that was interrupted.
const INTERRUPTED: u8 = 130;
/// What a shell shows for a program that wrote to a reader who is gone.
const READER_GONE: u8 = 141;
/// How often the screen is drawn while something happens, and while nothing does.
const FRAMES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));

/// Watches until it is told to stop, or until there is nothing more to wait for.
pub async fn run(options: Options) -> anyhow::Result<ExitCode> {
    match watch(options).await {
        Ok(code) => Ok(code),
        Err(error) => {
            output::error(&error);
            Ok(ExitCode::from(NOTHING_TO_WATCH))
        }
    }
}

async fn watch(options: Options) -> anyhow::Result<ExitCode> {
    let stop = signals::shutdown()?;
    let screen = options.output.is_none() && output::can_draw();
    // Log lines would tear the screen apart; elsewhere they are there for whoever asks with RUST_LOG.
    if !screen && std::env::var_os("RUST_LOG").is_some() {
        logging::start(logging::Encoding::Console, "info");
    }
    let cluster = cluster::find(options.kubeconfig.as_deref(), options.context.as_deref()).await?;
    let namespace = options.namespace.unwrap_or_else(|| cluster.namespace.clone());
    let key = options.name.as_ref().map(|name| Key::new(namespace.as_str(), name.as_str()));
    let scope = Scope {
        namespace: (!options.all_namespaces).then_some(namespace),
        name: options.name,
        selector: options.selector,
    };
    let detail = if screen { Detail::Shown } else { Detail::Told };
    let deadline = options.timeout.map(|timeout| Instant::now() + timeout);
    let teller = match options.output {
        Some(Output::Json) => Teller::Json,
        _ => Teller::Plain(Paint::on(&std::io::stdout())),
    };
    let mut session = Session::begin(cluster, scope, key, detail, options.wait);
    let end = tokio::select! {
        () = stop.cancelled() => End::Interrupted,
        () = until(deadline) => End::OutOfTime,
        end = async {
            session.first_sight().await?;
            if !screen && session.world.canaries().next().is_none() {
                eprintln!("there are no canaries in {} of {} yet", session.place(), session.cluster);
            }
            if screen { on_screen(&mut session, &stop).await } else { in_lines(&mut session, teller).await }
        } => end?,
    };
    Ok(conclude(&session, &end, teller))
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Says how it ended, if that was asked, and turns it into an exit code.
fn conclude(session: &Session, end: &End, teller: Teller) -> ExitCode {
    let verdict = match end {
        End::Left => return ExitCode::from(if session.waits() { INTERRUPTED } else { 0 }),
        End::Interrupted => return ExitCode::from(INTERRUPTED),
        End::Unheard => return ExitCode::from(READER_GONE),
        End::Promoted => ("promoted", String::new(), 0),
        End::Failed(why) => ("failed", why.clone(), 1),
        End::OutOfTime => ("timeout", "the rollout has not ended in time".to_owned(), 124),
    };
    let (word, message, code) = verdict;
    if let Some(key) = session.key() {
        teller.verdict(session.now(), key, word, &message);
    }
    ExitCode::from(code)
}

/// Tells every change.
async fn in_lines(session: &mut Session, teller: Teller) -> anyhow::Result<End> {
    if !session.tell_first(teller) {
        return Ok(End::Unheard);
    }
    loop {
        if let Some(end) = session.ended() {
            return Ok(end);
        }
        let Some(changes) = session.next().await? else { continue };
        if !changes.into_iter().all(|change| teller.tell(session.now(), &change)) {
            return Ok(End::Unheard);
        }
    }
}

/// Draws every change.
async fn on_screen(session: &mut Session, stop: &CancellationToken) -> anyhow::Result<End> {
    let (pressed, mut keys) = mpsc::unbounded_channel();
    let mut screen =
        Screen::open(move |key| _ = pressed.send(key)).context("cannot show a screen; use --output plain")?;
    let mut place = session.key().cloned().map_or_else(Place::list, Place::one);
    let (mut drawn, mut stale) = (None::<Instant>, true);
    let mut frames = tokio::time::interval(FRAMES.0);
    while !stop.is_cancelled() {
        tokio::select! {
            changes = session.next() => {
                changes?;
                stale = true;
            }
            Some(key) = keys.recv() => {
                let rows: Vec<Key> = match place.open {
                    Some(_) => Vec::new(),
                    None => entries(&session.world, &place.filter, session.now()).into_iter().map(|entry| entry.key).collect(),
                };
                let lines = place.open.as_ref().map_or(0, |open| View::of(&session.world, open, session.now()).tree.len());
                if place.press(key, &rows, lines) == Outcome::Leave {
                    return Ok(End::Left);
                }
                session.turn_to(place.open.as_ref());
                draw(&mut screen, session, &place)?;
            }
            _ = frames.tick() => {
                let quiet = drawn.is_some_and(|drawn| drawn.elapsed() < FRAMES.1);
                if stale || !quiet || screen.was_resized() {
                    draw(&mut screen, session, &place)?;
                    (drawn, stale) = (Some(Instant::now()), false);
                }
            }
        }
        if let Some(end) = session.ended() {
            return Ok(end);
        }
    }
    Ok(End::Interrupted)
}

fn draw(screen: &mut Screen, session: &Session, place: &Place) -> anyhow::Result<()> {
    let now = session.now();
    let time = now.strftime("%H:%M:%SZ");
    if let Some(key) = &place.open {
        let view = View::of(&session.world, key, now);
        let around = Surroundings {
            title: format!("{} · {} · {} · {time}", key.name, key.namespace, session.cluster),
            footer: if place.listed { "↑↓ scroll · Esc back" } else { "↑↓ scroll · q quit" },
            scroll: place.scroll,
            ..Surroundings::default()
        };
        return screen.draw(|frame| canary::draw(frame, &view, around));
    }
    let entries = entries(&session.world, &place.filter, now);
    let listing = Listing {
        title: format!("canaries · {} · {} · {time}", session.place(), session.cluster),
        selected: place.selected.as_ref(),
        filter: &place.filter,
        typing: place.typing,
        troubles: troubles(&session.world, now),
        total: session.world.canaries().count(),
    };
    screen.draw(|frame| list::draw(frame, &entries, &listing))
}
