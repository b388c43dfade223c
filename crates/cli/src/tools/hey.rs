//! A load generator with the flags and the report of `hey`.
//!
//! It honours `http_proxy`, which is how its requests reach the names of a cluster in a process. When the environment
//! variable `SEAWAY_CLOCK_SPEED` is set, `-z` counts simulated time: `-z 2m` at speed 20 sends for six seconds. The
//! rate `-q` stays in real requests per second.
//!
//! Not offered: HTTP/2, TLS, following redirects (a 3xx is counted as such).

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clap::{ArgAction, Args, Command, FromArgMatches};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::web::{Ask, Caller, Proxy, Target, header};
use crate::{goflags, output};

mod report;

use report::{Report, Sample};

/// Simulated seconds per second, for `-z`.
pub const CLOCK_SPEED: &str = "SEAWAY_CLOCK_SPEED";

const MOST_WORKERS: usize = 1_000;
/// Nobody tests for longer, and the end of the run must be a point in time.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
const MOST_SAMPLES: usize = 1_000_000;

/// What can be written on the command line, by hey's names.
#[derive(Args, Debug)]
struct Flags {
    /// Number of requests to send.
    #[arg(long = "n", default_value_t = 200)]
    requests: u64,
    /// Number of workers that send at the same time.
    #[arg(long = "c", default_value_t = 50)]
    workers: usize,
    /// Requests per second of each worker; 0 is as fast as it goes.
    #[arg(long = "q", default_value_t = 0.0)]
    rate: f64,
    /// How long to send, for example 10s or 3m; -n is then ignored.
    #[arg(long = "z")]
    duration: Option<String>,
    /// Output: `csv` prints one line for each reply instead of the summary.
    #[arg(long = "o")]
    output: Option<String>,
    /// HTTP method.
    #[arg(long = "m", default_value = "GET")]
    method: String,
    /// Header as `Name: value`, may be repeated.
    #[arg(long = "H")]
    headers: Vec<String>,
    /// Time limit of each request in seconds; 0 is none.
    #[arg(long = "t", default_value_t = 20)]
    timeout: u64,
    /// Accept header.
    #[arg(long = "A")]
    accept: Option<String>,
    /// Request body.
    #[arg(long = "d")]
    body: Option<String>,
    /// File with the request body.
    #[arg(long = "D")]
    body_file: Option<std::path::PathBuf>,
    /// Content-Type header.
    #[arg(long = "T", default_value = "text/html")]
    content_type: String,
    /// User-Agent header.
    #[arg(long = "U", default_value = "hey/seaway")]
    user_agent: String,
    /// Basic authentication as user:password.
    #[arg(long = "a")]
    basic_auth: Option<String>,
    /// HTTP proxy as host:port; without it `http_proxy` is honoured.
    #[arg(long = "x")]
    proxy: Option<String>,
    /// Host header.
    #[arg(long = "host")]
    host: Option<String>,
    /// HTTP/2: not offered.
    #[arg(long = "h2", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    http2: bool,
    /// Accepted; compressed replies are never asked for.
    #[arg(long = "disable-compression", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    disable_compression: bool,
    /// A new connection for each request.
    #[arg(long = "disable-keepalive", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    disable_keepalive: bool,
    /// Accepted; redirects are never followed.
    #[arg(long = "disable-redirects", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    disable_redirects: bool,
    /// Accepted; one thread is used.
    #[arg(long = "cpus")]
    cpus: Option<u32>,
    /// The URL to send to.
    url: String,
}

/// The load to be sent: flags, checked.
#[derive(Clone, Debug)]
struct Load {
    target: Target,
    ask: Ask,
    workers: usize,
    /// Requests of all workers together; `None` when a duration ends the run.
    requests: Option<u64>,
    duration: Option<Duration>,
    /// Pause between two requests of one worker.
    pace: Option<Duration>,
    csv: bool,
}

/// Runs with hey's arguments (without the program's name).
pub async fn main(args: Vec<OsString>) -> ExitCode {
    let command = Flags::augment_args(Command::new("hey").no_binary_name(true).about("Sends load to a web server"));
    let args = goflags::normalise(&command, args);
    let flags = match command.try_get_matches_from(args).and_then(|matches| Flags::from_arg_matches(&matches)) {
        Ok(flags) => flags,
        Err(error) => {
            // Nothing is left to be done when the terminal is gone.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let speed = std::env::var(CLOCK_SPEED).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let load = match Load::new(&flags, speed) {
        Ok(load) => load,
        Err(problem) => {
            eprintln!("hey: {problem}");
            return ExitCode::FAILURE;
        }
    };
    let stop = CancellationToken::new();
    let interrupted = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupted.cancel();
        }
    });
    let report = send(&load, stop).await;
    match output::text(&if load.csv { report.csv() } else { report.summary() }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hey: cannot write the report: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Load {
    fn new(flags: &Flags, speed: u32) -> Result<Self, String> {
        if flags.http2 {
            return Err("-h2 is not offered: this load generator speaks HTTP/1.1".to_owned());
        }
        if flags.workers == 0 || flags.workers > MOST_WORKERS {
            return Err(format!("-c must be between 1 and {MOST_WORKERS}"));
        }
        let duration = match &flags.duration {
            None => None,
            Some(text) => {
                let duration = seaway_api::duration::parse(text).map_err(|error| format!("-z {text}: {error}"))?;
                if duration > LONGEST {
                    return Err(format!("-z {text}: a run lasts at most {} hours", LONGEST.as_secs() / 3600));
                }
                Some(duration / speed.max(1))
            }
        };
        if duration.is_none() && flags.requests < flags.workers as u64 {
            return Err("-n cannot be less than -c".to_owned());
        }
        if !flags.rate.is_finite() || flags.rate < 0.0 {
            return Err("-q must be a rate of 0 or more".to_owned());
        }
        let pace = (flags.rate > 0.0)
            .then(|| Duration::try_from_secs_f64(1.0 / flags.rate).map_err(|_| "-q is too small".to_owned()))
            .transpose()?
            // A rate beyond all measure is as fast as it goes.
            .filter(|pace| !pace.is_zero());
        let csv = match flags.output.as_deref() {
            None | Some("") => false,
            Some("csv") => true,
            Some(other) => return Err(format!("-o {other}: only csv is known")),
        };
        let proxy = flags.proxy.as_deref().map(Proxy::parse).transpose()?;
        Ok(Self {
            target: Target::parse(&flags.url, proxy)?,
            ask: ask(flags)?,
            workers: flags.workers,
            requests: duration.is_none().then_some(flags.requests),
            duration,
            pace,
            csv,
        })
    }
}

fn ask(flags: &Flags) -> Result<Ask, String> {
    let method: Method =
        flags.method.to_uppercase().parse().map_err(|_| format!("-m {}: no HTTP method", flags.method))?;
    let body = match (&flags.body, &flags.body_file) {
        (Some(text), _) => Bytes::from(text.clone()),
        (None, Some(path)) => {
            Bytes::from(std::fs::read(path).map_err(|error| format!("-D {}: {error}", path.display()))?)
        }
        (None, None) => Bytes::new(),
    };
    let value = |flag: &str, text: &str| {
        HeaderValue::from_str(text).map_err(|_| format!("{flag}: a header cannot have these characters"))
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, value("-T", &flags.content_type)?);
    headers.insert(USER_AGENT, value("-U", &flags.user_agent)?);
    if let Some(accept) = &flags.accept {
        headers.insert(ACCEPT, value("-A", accept)?);
    }
    if let Some(pair) = &flags.basic_auth {
        headers.insert(AUTHORIZATION, value("-a", &format!("Basic {}", STANDARD.encode(pair)))?);
    }
    for text in &flags.headers {
        let (name, content) = header(text)?;
        headers.insert(name, content);
    }
    if let Some(host) = &flags.host {
        headers.insert(HOST, value("-host", host)?);
    }
    let limit = (flags.timeout > 0).then(|| Duration::from_secs(flags.timeout));
    Ok(Ask { method, headers, body, keep_alive: !flags.disable_keepalive, limit, connect_limit: None })
}

/// Sends the load until it is done or stopped.
async fn send(load: &Load, stop: CancellationToken) -> Report {
    let start = Instant::now();
    let deadline = load.duration.map(|duration| start + duration);
    // Workers draw from one budget, so a slow one does not leave its share unsent.
    let left = Arc::new(AtomicU64::new(load.requests.unwrap_or(u64::MAX)));
    let mut workers = JoinSet::new();
    for _ in 0..load.workers {
        let (load, left, stop) = (load.clone(), Arc::clone(&left), stop.clone());
        workers.spawn(async move { work(&load, &left, start, deadline, &stop).await });
    }
    let mut report = Report::default();
    while let Some(part) = workers.join_next().await {
        report.merge(part.unwrap_or_default());
    }
    report.took = start.elapsed();
    report
}

/// One worker: request after request, at its pace.
async fn work(
    load: &Load,
    left: &AtomicU64,
    start: Instant,
    deadline: Option<Instant>,
    stop: &CancellationToken,
) -> Report {
    let over = async {
        let at = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! { () = at => {}, () = stop.cancelled() => {} }
    };
    tokio::pin!(over);
    let mut pace = load.pace.map(|pace| {
        let mut ticks = tokio::time::interval(pace);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        ticks
    });
    let mut caller = Caller::new(load.target.clone());
    let mut report = Report::keeping(MOST_SAMPLES / load.workers);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        if let Some(ticks) = &mut pace {
            tokio::select! { biased; () = &mut over => break, _ = ticks.tick() => {} }
        }
        let sent = Instant::now();
        // A request that is under way when the time is over is given up and counts as not sent.
        let reply = tokio::select! { biased; () = &mut over => break, reply = caller.call(&load.ask) => reply };
        match reply {
            Ok(reply) => report.reply(Sample::new(sent.elapsed(), sent.duration_since(start), &reply)),
            Err(failure) => report.error(failure.to_string()),
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;

    use super::*;

    fn flags(line: &[&str]) -> Flags {
        let command = Flags::augment_args(Command::new("hey").no_binary_name(true));
        let args = goflags::normalise(&command, line.iter().map(OsString::from));
        Flags::from_arg_matches(&command.try_get_matches_from(args).unwrap()).unwrap()
    }

    async fn server() -> std::net::SocketAddr {
        let router = Router::new()
            .route("/", get(|headers: HeaderMap| async move { format!("{:?}", headers.get(HOST)) }))
            .route("/bad", get(|| async { http::StatusCode::INTERNAL_SERVER_ERROR }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    #[test]
    fn the_tutorials_line_is_understood() {
        let line =
            ["-z", "2m", "-q", "10", "-c", "2", "-host", "www.example.com", "http://gateway-istio.istio-ingress/"];
        let load = Load::new(&flags(&line), 20).unwrap();
        assert_eq!(load.duration, Some(Duration::from_secs(6)), "two minutes at speed 20");
        assert_eq!(load.pace, Some(Duration::from_millis(100)));
        assert_eq!(load.ask.headers[HOST], "www.example.com");
    }

    #[test]
    fn impossible_loads_are_refused() {
        for (line, part) in [
            (vec!["-n", "1", "http://x/"], "-n cannot be less than -c"),
            (vec!["-c", "0", "http://x/"], "-c must be"),
            (vec!["-z", "soon", "http://x/"], "-z soon"),
            (vec!["-h2", "http://x/"], "-h2 is not offered"),
            (vec!["-o", "xml", "http://x/"], "only csv"),
            (vec!["-z", "1000h", "http://x/"], "at most 720 hours"),
            (vec!["-q", "-1", "http://x/"], "-q must be"),
            (vec!["-q", "1e-300", "http://x/"], "-q is too small"),
        ] {
            let problem = Load::new(&flags(&line), 1).unwrap_err();
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn a_rate_without_measure_is_no_pace() {
        assert_eq!(Load::new(&flags(&["-q", "1e300", "http://x/"]), 1).unwrap().pace, None);
    }

    #[tokio::test]
    async fn sends_exactly_as_many_as_asked() {
        let address = server().await;
        let url = format!("http://{address}/");
        let load = Load::new(&flags(&["-n", "25", "-c", "3", "-x", &address.to_string(), &url]), 1).unwrap();
        let report = send(&load, CancellationToken::new()).await;
        assert!(report.summary().contains("[200]\t25 responses"), "{}", report.summary());
    }

    #[tokio::test]
    async fn answers_are_counted_by_their_code() {
        let url = format!("http://{}/bad", server().await);
        let load = Load::new(&flags(&["-n", "3", "-c", "1", &url]), 1).unwrap();
        let report = send(&load, CancellationToken::new()).await;
        assert!(report.summary().contains("[500]\t3 responses"), "{}", report.summary());
    }

    #[tokio::test(start_paused = true)]
    async fn a_duration_follows_the_scaled_clock() {
        let url = format!("http://{}/", server().await);
        let load = Load::new(&flags(&["-z", "10s", "-q", "20", "-c", "1", &url]), 20).unwrap();
        let report = send(&load, CancellationToken::new()).await;
        // Timers are exact to the millisecond.
        assert!((500..=501).contains(&report.took.as_millis()), "{:?}", report.took);
    }

    #[tokio::test]
    async fn refused_connections_are_errors_in_the_report() {
        let load = Load::new(&flags(&["-n", "2", "-c", "1", "http://127.0.0.1:1/"]), 1).unwrap();
        let report = send(&load, CancellationToken::new()).await;
        assert!(report.summary().contains("Error distribution:\n  [2]\tcannot connect"), "{}", report.summary());
    }
}
