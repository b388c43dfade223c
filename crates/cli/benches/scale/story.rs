//! One size: its canaries are initialised, rest, and then all roll out at once.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;

use crate::front::{self, Door, Reading, Tally};
use crate::process::{Operator, Usage};
use crate::scripted::{Scripted, Server, Shape, canary, serve_prometheus};
use crate::timeline::{Spread, Timeline, name};

/// Some canaries get their image one by one, this far apart: what one team sees. The rest get theirs all at once.
const PACE: Duration = Duration::from_millis(50);
/// How long the settled canaries are watched.
const SETTLED: Duration = Duration::from_secs(20);
/// Everything is quiet when nothing was asked for this long.
const QUIET: Duration = Duration::from_secs(3);

/// How many canaries, and what their rollouts look like.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub canaries: usize,
    pub shape: Shape,
}

impl Size {
    /// The canaries whose images change one by one.
    pub fn one_by_one(self) -> Range<usize> {
        0..(self.canaries / 10).clamp(20.min(self.canaries), 100)
    }

    /// The canaries whose images change at once.
    pub fn at_once(self) -> Range<usize> {
        self.one_by_one().end..self.canaries
    }
}

/// What one size cost.
pub struct Measured {
    pub size: Size,
    /// Canaries that were not initialised or not promoted in time: figures without them mean nothing.
    pub missing: usize,
    /// From the start of the operator until the last of the new canaries was initialised.
    pub initialised: Duration,
    /// A new operator on all the canaries: until it leads with full caches, and the most memory it took for that.
    pub ready: Duration,
    pub start_peak: u64,
    pub settled: Stage,
    pub rolling: Stage,
    /// Over what time the images of [`Size::at_once`] changed.
    pub changes: Duration,
    pub one_by_one: Times,
    pub at_once: Times,
}

/// From the change of an image to the points of its rollout.
pub struct Times {
    pub detected: Spread,
    pub scaled: Spread,
    pub weighed: Spread,
    pub finished: Spread,
}

impl Times {
    fn of(timeline: &Timeline, these: &Range<usize>) -> Self {
        Self {
            detected: timeline.spread(these.clone(), |marks| marks.detected),
            scaled: timeline.spread(these.clone(), |marks| marks.scaled),
            weighed: timeline.spread(these.clone(), |marks| marks.weighed),
            finished: timeline.spread(these.clone(), |marks| marks.finished),
        }
    }
}

/// What a stretch of time cost.
pub struct Stage {
    pub took: Duration,
    pub reading: Reading,
    pub cpu: f64,
    pub rss: u64,
    pub peak: u64,
}

/// The ground of one story.
pub struct Ground<S> {
    pub cluster: Scripted<S>,
    pub tally: Arc<Tally>,
    pub door: SocketAddr,
    pub proxy: SocketAddr,
}

impl<S: Server + Door> Ground<S> {
    pub async fn open(api: S) -> Self {
        let cluster = Scripted::on(api).await;
        let tally = Arc::new(Tally::default());
        let door = front::open(&cluster.api, &tally).await.unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let proxy = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_prometheus(stream));
            }
        });
        Self { cluster, tally, door, proxy }
    }

    pub fn operator(&self) -> Operator {
        Operator::start(self.cluster.api.invitation(self.door), self.proxy)
    }

    /// Waits until the operator asks nothing any more.
    pub async fn quiet(&self) {
        let busy = |reading: &Reading| reading.count(|asked| !asked.is_housekeeping());
        let (mut before, mut since) = (busy(&self.tally.read()), Instant::now());
        while since.elapsed() < QUIET {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let now = busy(&self.tally.read());
            if now != before {
                (before, since) = (now, Instant::now());
            }
        }
    }
}

/// Waits until `done` counts to `all`, telling how far it is. Returns how many are missing when the time is over.
pub async fn until(
    what: &str,
    operator: &mut Operator,
    all: usize,
    limit: Duration,
    done: impl Fn() -> usize,
) -> usize {
    let start = Instant::now();
    let mut told = start;
    loop {
        operator.check();
        let count = done();
        if count >= all {
            eprintln!("{what}: {count} of {all} after {:.1} s", start.elapsed().as_secs_f64());
            return 0;
        }
        if start.elapsed() > limit {
            eprintln!("{what}: only {count} of {all} after {:.0} s, going on", limit.as_secs_f64());
            return all - count;
        }
        if told.elapsed() > Duration::from_secs(5) {
            told = Instant::now();
            eprintln!("{what}: {count} of {all} after {:.0} s", start.elapsed().as_secs_f64());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Runs the story of one size.
pub async fn run(size: Size, api: impl Server + Door) -> Measured {
    let Size { canaries, shape } = size;
    eprintln!("{canaries} canaries: preparing");
    let ground = Ground::open(api).await;
    let timeline = Timeline::of(&ground.cluster.api, canaries);
    for index in 0..canaries {
        ground.cluster.create_app(&name(index)).await;
        ground.cluster.create_canary(&canary(&name(index), shape)).await;
    }
    let start = Instant::now();
    let mut first = ground.operator();
    let resting = || timeline.count(|marks| marks.rests);
    let limit = Duration::from_secs(1_200);
    let mut missing = until(&format!("{canaries} canaries: initialised"), &mut first, canaries, limit, resting).await;
    let initialised = start.elapsed();
    ground.quiet().await;
    report(&format!("{canaries} canaries: after initialisation"), &first.usage());
    first.stop().await;

    let mut operator = ground.operator();
    let ready = operator.ready().await;
    ground.quiet().await;
    let start_peak = operator.usage().peak;
    report(&format!("{canaries} canaries: after a restart"), &operator.usage());
    let settled = stage(&ground, &mut operator, async |_| tokio::time::sleep(SETTLED).await).await;
    report(&format!("{canaries} canaries: settled"), &operator.usage());

    let limit = Duration::from_secs(300 + shape.interval_seconds * 15);
    let rolling = stage(&ground, &mut operator, async |operator| {
        for index in size.one_by_one() {
            ground.cluster.set_image(&name(index), "6.0.1").await;
            tokio::time::sleep(PACE).await;
        }
        for index in size.at_once() {
            ground.cluster.set_image(&name(index), "6.0.1").await;
        }
        let changes = timeline.changes(size.at_once()).as_secs_f64();
        eprintln!("{canaries} canaries: {} images changed within {changes:.2} s", size.at_once().len());
        let finished = || timeline.count(|marks| marks.finished.is_some());
        missing += until(&format!("{canaries} canaries: promoted"), operator, canaries, limit, finished).await;
        ground.quiet().await;
    })
    .await;
    report(&format!("{canaries} canaries: after the rollouts"), &operator.usage());
    operator.stop().await;
    Measured {
        size,
        missing,
        initialised,
        ready,
        start_peak,
        settled,
        rolling,
        changes: timeline.changes(size.at_once()),
        one_by_one: Times::of(&timeline, &size.one_by_one()),
        at_once: Times::of(&timeline, &size.at_once()),
    }
}

async fn stage<S>(ground: &Ground<S>, operator: &mut Operator, story: impl AsyncFnOnce(&mut Operator)) -> Stage {
    operator.forget_peak();
    let (start, usage, reading) = (Instant::now(), operator.usage(), ground.tally.read());
    story(operator).await;
    let Usage { cpu, rss, peak } = operator.usage();
    Stage { took: start.elapsed(), reading: ground.tally.read().since(&reading), cpu: cpu - usage.cpu, rss, peak }
}

fn report(what: &str, usage: &Usage) {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    eprintln!(
        "{what}: {:.2} s of CPU, {:.0} MB resident, {:.0} MB at most",
        usage.cpu,
        megabytes(usage.rss),
        megabytes(usage.peak)
    );
}
