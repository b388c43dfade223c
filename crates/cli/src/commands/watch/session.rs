//! One run of `seaway watch`: the watches, what they have shown, and when it is over.

use anyhow::{Context, bail};
use jiff::Timestamp;
use serde_json::json;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;

use crate::output::{self, Paint};
use crate::watch::cluster::{Cluster, RemoteClock};
use crate::watch::follow::{Detail, Follower, Scope};
use crate::watch::objects::{Key, Kind};
use crate::watch::tell;
use crate::watch::verdict::{Verdict, verdict};
use crate::watch::world::{Access, Change, Sight, Trouble, World};

/// How often it is asked whether waiting is over when nothing happens.
const GLANCE: Duration = Duration::from_millis(500);

/// How it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Somebody left the screen.
    Left,
    /// A signal came.
    Interrupted,
    /// Nobody reads the lines any more.
    Unheard,
    /// The version was promoted.
    Promoted,
    /// It was not, and will not be.
    Failed(String),
    /// It took too long.
    OutOfTime,
}

/// Something to tell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum News {
    /// Of a canary.
    Canary(Key, Change),
    /// Of the connection: what changed, and a sentence.
    Connection(&'static str, String),
}

/// How it is told.
#[derive(Clone, Copy)]
pub(super) enum Teller {
    /// In lines.
    Plain(Paint),
    /// In JSON.
    Json,
}

impl Teller {
    /// Tells one thing. False when nobody reads any more.
    pub(super) fn tell(self, now: Timestamp, news: &News) -> bool {
        output::line(&match (self, news) {
            (Self::Plain(paint), News::Canary(key, change)) => tell::line(now, key, change, paint),
            (Self::Plain(paint), News::Connection(word, text)) => {
                format!("{}  {}", paint.faint(&tell::second(now)), paint.warn(&format!("{word}: {text}")))
            }
            (Self::Json, News::Canary(key, change)) => tell::about(now, key, change).to_string(),
            (Self::Json, News::Connection(word, text)) => tell::note(now, word, text).to_string(),
        })
    }

    /// Tells how it ended.
    pub(super) fn verdict(self, now: Timestamp, key: &Key, word: &str, message: &str) {
        // Whoever does not read it still gets the exit code.
        output::line(&match self {
            Self::Json => {
                let members = json!({ "time": tell::second(now), "about": key });
                tell::record(members, &json!({ "change": "verdict", "verdict": word, "message": message })).to_string()
            }
            Self::Plain(paint) => {
                let painted = if word == "promoted" { paint.good(word) } else { paint.bad(word) };
                let message = if message.is_empty() { String::new() } else { format!(": {message}") };
                format!("{}  {key}  verdict  {painted}{message}", paint.faint(&tell::second(now)))
            }
        });
    }
}

/// One run.
pub(super) struct Session {
    /// What was seen.
    pub(super) world: World,
    /// Name of the cluster.
    pub(super) cluster: String,
    server: String,
    clock: RemoteClock,
    scope: Scope,
    key: Option<Key>,
    /// The canary that is looked at closely.
    attended: Option<Key>,
    detail: Detail,
    wait: bool,
    follower: Follower,
    seen: Receiver<Sight>,
    /// What was seen before anybody could be told.
    early: VecDeque<News>,
    /// Whether the canaries were ever listed; until then every trouble is the last.
    listed: bool,
}

impl Session {
    /// Begins to look.
    pub(super) fn begin(cluster: Cluster, scope: Scope, key: Option<Key>, detail: Detail, wait: bool) -> Self {
        let (mut follower, seen) = Follower::new(cluster.client);
        follower.canaries(&scope);
        if key.is_none() {
            follower.routes(&scope);
            if detail == Detail::Told {
                follower.events(&scope);
            }
        }
        Self {
            world: World::new(cluster.clock.now()),
            cluster: cluster.name,
            server: cluster.server,
            clock: cluster.clock,
            scope,
            attended: key.clone(),
            key,
            detail,
            wait,
            follower,
            seen,
            early: VecDeque::new(),
            listed: false,
        }
    }

    /// The cluster's time.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The canary it is about, if it is about one.
    pub(super) fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// Whether it waits for the end of a rollout.
    pub(super) fn waits(&self) -> bool {
        self.wait
    }

    /// Where it looks, in words.
    pub(super) fn place(&self) -> String {
        self.scope.namespace.as_ref().map_or("all namespaces".to_owned(), |namespace| format!("namespace {namespace}"))
    }

    /// Waits until it is known which canaries there are; that there is nothing to see is an error.
    pub(super) async fn first_sight(&mut self) -> anyhow::Result<()> {
        while !self.listed {
            if let Some(news) = self.next().await? {
                self.early.extend(news);
            }
        }
        Ok(())
    }

    /// Tells what was seen before. False when nobody reads.
    pub(super) fn tell_first(&mut self, teller: Teller) -> bool {
        let now = self.now();
        self.early.drain(..).all(|news| teller.tell(now, &news))
    }

    /// The next sight; what is new about it comes back. `None` when nothing happened for a moment.
    pub(super) async fn next(&mut self) -> anyhow::Result<Option<Vec<News>>> {
        let Ok(sight) = tokio::time::timeout(GLANCE, self.seen.recv()).await else { return Ok(None) };
        let sight = sight.context("nobody watches any more")?;
        let now = self.now();
        let kind = kind_of(&sight);
        if !self.listed
            && let Sight::Trouble(Kind::Canary, trouble) = &sight
        {
            return Err(self.nothing_to_see(trouble));
        }
        let before = self.state(kind);
        let mut news: Vec<News> = Vec::new();
        let done = sight == Sight::Listed(Kind::Canary);
        for (key, change) in self.world.take(now, sight) {
            news.push(News::Canary(key, change));
        }
        news.extend(connection(before, self.state(kind)));
        if done && !self.listed {
            self.listed = true;
            if let Some(key) = &self.key
                && self.world.canary(key).is_none()
            {
                bail!("there is no canary {} in namespace {} of {}", key.name, key.namespace, self.cluster);
            }
        }
        if let Some(key) = self.attended.clone() {
            self.follower.attend(&mut self.world, &key, self.detail);
        }
        Ok(Some(news))
    }

    /// Looks closely at another canary, or at none.
    pub(super) fn turn_to(&mut self, key: Option<&Key>) {
        if self.attended.as_ref() == key {
            return;
        }
        self.attended = key.cloned();
        match key {
            Some(key) => self.follower.attend(&mut self.world, key, self.detail),
            None => self.follower.neglect(&mut self.world),
        }
    }

    /// How it ended, if it waits for that and it has.
    pub(super) fn ended(&self) -> Option<End> {
        let key = self.key.as_ref().filter(|_| self.wait)?;
        Some(match verdict(&self.world, key, self.now())? {
            Verdict::Promoted => End::Promoted,
            Verdict::Failed(why) => End::Failed(why),
        })
    }

    /// Whether anything is lost, and why this kind cannot be seen.
    fn state(&self, kind: Option<Kind>) -> State {
        let lost = self.world.troubles().find_map(|(_, _, trouble)| match trouble {
            Trouble::Lost(why) => Some(why.clone()),
            Trouble::Forbidden(_) | Trouble::Unknown => None,
        });
        let refused = kind.and_then(|kind| match self.world.access(kind)? {
            Access::Troubled(_, Trouble::Forbidden(why)) => {
                Some(format!("not allowed to watch {}: {why}", kind.plural()))
            }
            Access::Troubled(_, Trouble::Unknown) if kind != Kind::Route => {
                Some(format!("the cluster does not know {}", kind.plural()))
            }
            _ => None,
        });
        State { lost, refused }
    }

    fn nothing_to_see(&self, trouble: &Trouble) -> anyhow::Error {
        match trouble {
            Trouble::Forbidden(why) => anyhow::anyhow!("{why}").context(format!(
                "not allowed to watch canaries in {} of {}",
                self.place(),
                self.cluster
            )),
            Trouble::Unknown => anyhow::anyhow!(
                "{} has no canaries; install them with: seaway generate crds | kubectl apply --server-side -f -",
                self.cluster
            ),
            Trouble::Lost(why) => {
                anyhow::anyhow!("{why}").context(format!("cannot watch canaries at the API server {}", self.server))
            }
        }
    }
}

/// How well things can be seen.
struct State {
    lost: Option<String>,
    refused: Option<String>,
}

fn connection(before: State, after: State) -> Option<News> {
    if before.refused != after.refused
        && let Some(text) = after.refused
    {
        return Some(News::Connection("trouble", text));
    }
    match (before.lost, after.lost) {
        (None, Some(why)) => Some(News::Connection("trouble", format!("no connection, trying again: {why}"))),
        (Some(_), None) => Some(News::Connection("recovered", "the connection is back".to_owned())),
        _ => None,
    }
}

fn kind_of(sight: &Sight) -> Option<Kind> {
    match sight {
        Sight::Trouble(kind, _) | Sight::Listed(kind) => Some(*kind),
        Sight::Listing(_) | Sight::Seen(_) | Sight::Gone(..) => None,
    }
}
