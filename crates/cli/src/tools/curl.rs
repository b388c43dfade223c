//! A small `curl` for load test commands on machines that have none.
//!
//! It covers what hooks write (`curl -sd 'anon' http://app:9898/token | grep token`): GET and POST over plain
//! HTTP/1.1, headers, status as exit code, `-w`, a time limit, `http_proxy`. An option it does not know is an error
//! that names it, never a silent other behaviour.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};

use super::web::{Ask, Caller, Failure, Proxy, Reply, Target, header};
use crate::output;

const USAGE: &str = "\
A small curl: plain HTTP/1.1, honours http_proxy.

Usage: curl [options] URL

  -d, --data DATA       body of a POST; @file reads a file, @- stdin, without line breaks; may be repeated
      --data-binary DATA  the same with line breaks as they are
      --data-raw DATA   the same, @ has no meaning
  -H, --header LINE     header as 'Name: value', may be repeated; 'Name:' leaves one out, 'Name;' sends it empty
  -X, --request METHOD  method
  -I, --head            ask for the head only
  -A, --user-agent TEXT User-Agent header
  -u, --user USER:PASS  basic authentication
  -x, --proxy HOST:PORT proxy, instead of http_proxy
  -o, --output FILE     write the body to a file
  -w, --write-out TEXT  print TEXT at the end; knows %{http_code}, %{time_total}, %{size_download}
  -m, --max-time SECS   time limit of the whole call
      --connect-timeout SECS  time limit of connecting
  -i, --include         print the head of the reply too
  -f, --fail            exit code 22 and no body for a status of 400 or more
      --fail-with-body  exit code 22 and the body for a status of 400 or more
  -s, --silent          no error text
  -S, --show-error      error text even with -s
  -v, --verbose         print both heads to stderr
  -k, --insecure        accepted; there is no TLS here
";

/// Exit codes, as curl gives them.
const UNSUPPORTED: u8 = 1;
const USAGE_ERROR: u8 = 2;
const NOT_CONNECTED: u8 = 7;
const REFUSED_STATUS: u8 = 22;
const NOT_WRITTEN: u8 = 23;
const TIMED_OUT: u8 = 28;
const BROKEN_OFF: u8 = 56;

#[derive(Debug, Default, PartialEq)]
struct Options {
    url: Option<String>,
    data: Vec<Data>,
    headers: Vec<String>,
    method: Option<String>,
    head: bool,
    user_agent: Option<String>,
    user: Option<String>,
    proxy: Option<String>,
    output: Option<String>,
    write_out: Option<String>,
    max_time: Option<Duration>,
    connect_timeout: Option<Duration>,
    include: bool,
    fail: Option<Fail>,
    silent: bool,
    show_error: bool,
    verbose: bool,
    help: bool,
}

/// A part of the body, and how it is written.
#[derive(Debug, PartialEq)]
enum Data {
    /// `@` reads a file, whose line breaks are dropped.
    Text(String),
    /// `@` reads a file, as it is.
    Binary(String),
    /// Just this.
    Raw(String),
}

/// What happens with a status of 400 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fail {
    WithoutBody,
    WithBody,
}

/// What went wrong, with curl's exit code.
struct Problem(u8, String);

/// Runs with curl's arguments (without the program's name).
pub async fn main(args: Vec<OsString>) -> ExitCode {
    let args = args.into_iter().map(|arg| arg.to_string_lossy().into_owned());
    let options = match Options::parse(args) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("curl: {problem}\ncurl: try 'curl --help'");
            return ExitCode::from(USAGE_ERROR);
        }
    };
    if options.help {
        return if output::text(USAGE).is_ok() { ExitCode::SUCCESS } else { ExitCode::from(NOT_WRITTEN) };
    }
    match call(&options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(Problem(code, text)) => {
            if !options.silent || options.show_error {
                eprintln!("curl: ({code}) {text}");
            }
            ExitCode::from(code)
        }
    }
}

impl Options {
    fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args;
        while let Some(arg) = args.next() {
            if let Some(long) = arg.strip_prefix("--") {
                let (name, inline) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (long, None),
                };
                options.set(name, &arg, || inline.or_else(|| args.next()))?;
            } else if let Some(letters) = arg.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                // Letters can be joined (`-sd`), and the rest of the word is the value of the first that wants one.
                let mut rest = letters;
                while let Some(letter) = rest.chars().next() {
                    rest = rest.strip_prefix(letter).unwrap_or_default();
                    let attached = (!rest.is_empty()).then(|| rest.to_owned());
                    let name = long_of(letter).ok_or_else(|| format!("option -{letter} is not offered"))?;
                    if options.set(name, &arg, || attached.or_else(|| args.next()))? {
                        break;
                    }
                }
            } else if options.url.replace(arg).is_some() {
                return Err("only one URL is offered".to_owned());
            }
        }
        if options.url.is_none() && !options.help {
            return Err("no URL was given".to_owned());
        }
        Ok(options)
    }

    /// Sets one option by its long name; true when it took a value.
    fn set(&mut self, name: &str, arg: &str, value: impl FnOnce() -> Option<String>) -> Result<bool, String> {
        let value = || value().ok_or_else(|| format!("option {arg} needs a value"));
        match name {
            "include" => self.include = true,
            "fail" => self.fail = Some(Fail::WithoutBody),
            "fail-with-body" => self.fail = Some(Fail::WithBody),
            "silent" => self.silent = true,
            "show-error" => self.show_error = true,
            "verbose" => self.verbose = true,
            "head" => self.head = true,
            "help" => self.help = true,
            "insecure" => {}
            _ => {
                match name {
                    "data" | "data-ascii" => self.data.push(Data::Text(value()?)),
                    "data-binary" => self.data.push(Data::Binary(value()?)),
                    "data-raw" => self.data.push(Data::Raw(value()?)),
                    "header" => self.headers.push(value()?),
                    "request" => self.method = Some(value()?),
                    "user-agent" => self.user_agent = Some(value()?),
                    "user" => self.user = Some(value()?),
                    "proxy" => self.proxy = Some(value()?),
                    "output" => self.output = Some(value()?),
                    "write-out" => self.write_out = Some(value()?),
                    "max-time" => self.max_time = Some(seconds(&value()?)?),
                    "connect-timeout" => self.connect_timeout = Some(seconds(&value()?)?),
                    other => return Err(format!("option --{other} is not offered")),
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn ask(&self) -> Result<Ask, String> {
        let mut headers = HeaderMap::new();
        let value = |text: &str| {
            HeaderValue::from_str(text).map_err(|_| format!("{text:?} has characters that a header cannot have"))
        };
        headers.insert(USER_AGENT, value(self.user_agent.as_deref().unwrap_or("curl/seaway"))?);
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        if !self.data.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        }
        if let Some(user) = &self.user {
            headers.insert(AUTHORIZATION, value(&format!("Basic {}", STANDARD.encode(user)))?);
        }
        self.change(&mut headers)?;
        let method = match (&self.method, self.head, self.data.is_empty()) {
            (Some(method), ..) => method.parse().map_err(|_| format!("{method:?} is no HTTP method"))?,
            (None, true, _) => Method::HEAD,
            (None, false, true) => Method::GET,
            (None, false, false) => Method::POST,
        };
        Ok(Ask {
            method,
            headers,
            body: self.body()?,
            keep_alive: false,
            limit: self.max_time,
            connect_limit: self.connect_timeout,
        })
    }

    /// Adds the headers of the command line. They replace ours of the same name, and each other they join.
    fn change(&self, headers: &mut HeaderMap) -> Result<(), String> {
        let mut given = HeaderMap::new();
        for line in &self.headers {
            let (name, value) = match line.strip_suffix(';').filter(|name| !name.contains(':')) {
                Some(name) => header(&format!("{name}:"))?,
                None => header(line)?,
            };
            headers.remove(&name);
            if !value.is_empty() || !line.contains(':') {
                given.append(name, value);
            }
        }
        headers.extend(given);
        Ok(())
    }

    fn body(&self) -> Result<Bytes, String> {
        let mut body = Vec::new();
        for (index, data) in self.data.iter().enumerate() {
            if index > 0 {
                body.push(b'&');
            }
            match data {
                Data::Raw(text) => body.extend_from_slice(text.as_bytes()),
                Data::Binary(text) | Data::Text(text) => match text.strip_prefix('@') {
                    None => body.extend_from_slice(text.as_bytes()),
                    Some(file) => {
                        let mut content = read(file).map_err(|error| format!("cannot read {file}: {error}"))?;
                        if matches!(data, Data::Text(_)) {
                            content.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
                        }
                        body.append(&mut content);
                    }
                },
            }
        }
        Ok(Bytes::from(body))
    }
}

fn read(file: &str) -> io::Result<Vec<u8>> {
    if file != "-" {
        return std::fs::read(file);
    }
    let mut content = Vec::new();
    io::stdin().read_to_end(&mut content)?;
    Ok(content)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| format!("{text:?} is no number of seconds"))
}

fn long_of(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "data",
        'H' => "header",
        'X' => "request",
        'I' => "head",
        'A' => "user-agent",
        'u' => "user",
        'x' => "proxy",
        'o' => "output",
        'w' => "write-out",
        'm' => "max-time",
        'i' => "include",
        'f' => "fail",
        's' => "silent",
        'S' => "show-error",
        'v' => "verbose",
        'k' => "insecure",
        'h' => "help",
        _ => return None,
    })
}

async fn call(options: &Options) -> Result<(), Problem> {
    let usage = |text: String| Problem(USAGE_ERROR, text);
    let proxy = options.proxy.as_deref().map(Proxy::parse).transpose().map_err(usage)?;
    let target =
        Target::parse(options.url.as_deref().unwrap_or_default(), proxy).map_err(|text| Problem(UNSUPPORTED, text))?;
    let ask = options.ask().map_err(usage)?;
    if options.verbose {
        eprintln!("> {} {}", ask.method, target.url());
        for (name, value) in &ask.headers {
            eprintln!("> {name}: {}", value.to_str().unwrap_or("…"));
        }
    }
    let start = Instant::now();
    let reply = Caller::new(target).call(&ask).await.map_err(|failure| {
        let code = match failure {
            Failure::Connect(_) => NOT_CONNECTED,
            Failure::Timeout(_) => TIMED_OUT,
            Failure::Broken(_) => BROKEN_OFF,
        };
        Problem(code, failure.to_string())
    })?;
    let took = start.elapsed();
    if options.verbose {
        eprint!("{}", head(&reply, "< "));
    }
    print(options, &reply, took).map_err(|error| Problem(NOT_WRITTEN, format!("cannot write the body: {error}")))?;
    if options.fail.is_some() && reply.status.as_u16() >= 400 {
        return Err(Problem(REFUSED_STATUS, format!("the server answered {}", reply.status.as_u16())));
    }
    Ok(())
}

fn head(reply: &Reply, prefix: &str) -> String {
    let mut lines = format!("{prefix}{:?} {}\n", reply.version, reply.status);
    for (name, value) in &reply.headers {
        let _ = writeln!(lines, "{prefix}{name}: {}", value.to_str().unwrap_or("…"));
    }
    lines.push_str(prefix.trim_end());
    lines.push('\n');
    lines
}

fn print(options: &Options, reply: &Reply, took: Duration) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let refused = options.fail == Some(Fail::WithoutBody) && reply.status.as_u16() >= 400;
    if !refused {
        let head = if options.include || options.head { head(reply, "") } else { String::new() };
        if let Some(file) = options.output.as_deref().filter(|file| *file != "-") {
            let mut file = std::fs::File::create(file)?;
            file.write_all(head.as_bytes())?;
            file.write_all(&reply.body)?;
        } else {
            out.write_all(head.as_bytes())?;
            out.write_all(&reply.body)?;
        }
    }
    if let Some(format) = &options.write_out {
        out.write_all(write_out(format, reply, took).as_bytes())?;
    }
    out.flush()
}

fn write_out(format: &str, reply: &Reply, took: Duration) -> String {
    let code = format!("{:03}", reply.status.as_u16());
    format
        .replace("%{http_code}", &code)
        .replace("%{response_code}", &code)
        .replace("%{time_total}", &format!("{:.6}", took.as_secs_f64()))
        .replace("%{size_download}", &reply.body.len().to_string())
        .replace("\\n", "\n")
        .replace("\\t", "\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<Options, String> {
        Options::parse(line.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn the_tutorials_line_is_a_post() {
        let options = parse(&["-sd", "anon", "http://podinfo-canary.test:9898/token"]).unwrap();
        assert!(options.silent);
        let ask = options.ask().unwrap();
        assert_eq!(ask.method, Method::POST);
        assert_eq!(ask.body, "anon");
    }

    #[test]
    fn letters_values_and_long_names_mean_the_same() {
        let short =
            parse(&["-sSf", "-m5", "-XPUT", "-H", "A: b", "-o/dev/null", "-w%{http_code}", "http://x"]).unwrap();
        let long = parse(&[
            "--silent",
            "--show-error",
            "--fail",
            "--max-time",
            "5",
            "--request=PUT",
            "--header=A: b",
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code}",
            "http://x",
        ])
        .unwrap();
        assert_eq!(short, long);
        assert_eq!(short.max_time, Some(Duration::from_secs(5)));
    }

    #[test]
    fn data_is_joined_and_may_come_from_a_file() {
        let file = std::env::temp_dir().join(format!("seaway-curl-{}", std::process::id()));
        std::fs::write(&file, "b=2\n").unwrap();
        let at = format!("@{}", file.display());
        let options = parse(&["-d", "a=1", "-d", &at, "http://x"]).unwrap();
        let body = options.body();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(body.unwrap(), "a=1&b=2");
    }

    #[test]
    fn each_kind_of_data_is_taken_as_curl_takes_it() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("body");
        std::fs::write(&file, "a\r\nb\n").unwrap();
        let at = format!("@{}", file.display());
        for (option, expected) in [("--data", "ab"), ("--data-binary", "a\r\nb\n"), ("--data-raw", at.as_str())] {
            assert_eq!(parse(&[option, &at, "http://x"]).unwrap().body().unwrap(), expected, "{option}");
        }
    }

    #[test]
    fn headers_join_each_other_and_replace_ours() {
        let line = ["-d", "x", "-H", "A: 1", "-H", "a: 2", "-H", "Accept: text/html", "-H", "User-Agent:", "-H", "B;"];
        let headers = parse(&[&line[..], &["http://x"]].concat()).unwrap().ask().unwrap().headers;
        let all = |name: &str| headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(all("a"), ["1", "2"]);
        assert_eq!(all("accept"), ["text/html"]);
        assert_eq!(all("user-agent"), Vec::<&str>::new());
        assert_eq!(all("b"), [""]);
        assert_eq!(all("content-type"), ["application/x-www-form-urlencoded"]);
    }

    #[test]
    fn connecting_and_the_whole_call_have_limits_of_their_own() {
        let ask = parse(&["--connect-timeout", "2", "-m", "30", "http://x"]).unwrap().ask().unwrap();
        assert_eq!((ask.connect_limit, ask.limit), (Some(Duration::from_secs(2)), Some(Duration::from_secs(30))));
        let ask = parse(&["--connect-timeout=0.5", "http://x"]).unwrap().ask().unwrap();
        assert_eq!((ask.connect_limit, ask.limit), (Some(Duration::from_millis(500)), None));
    }

    #[test]
    fn what_is_not_offered_is_named() {
        assert_eq!(parse(&["-L", "http://x"]).unwrap_err(), "option -L is not offered");
        assert_eq!(parse(&["--http2", "http://x"]).unwrap_err(), "option --http2 is not offered");
        assert_eq!(parse(&["-d"]).unwrap_err(), "option -d needs a value");
        assert_eq!(parse(&["-s"]).unwrap_err(), "no URL was given");
    }

    #[tokio::test]
    async fn a_refused_status_is_exit_code_22_with_fail() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let router = axum::Router::new().fallback(|| async { (http::StatusCode::FORBIDDEN, "no") });
        tokio::spawn(async move { axum::serve(listener, router).await });
        let options = parse(&["-sf", &url]).unwrap();
        assert_eq!(call(&options).await.map_err(|problem| problem.0), Err(REFUSED_STATUS));
        let options = parse(&["-s", "-o", "/dev/null", &url]).unwrap();
        assert_eq!(call(&options).await.map_err(|problem| problem.0), Ok(()));

        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("body");
        for (option, body) in [("--fail", None), ("--fail-with-body", Some("no"))] {
            let options = parse(&["-s", option, "-o", file.to_str().unwrap(), &url]).unwrap();
            assert_eq!(call(&options).await.map_err(|problem| problem.0), Err(REFUSED_STATUS));
            assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), body, "{option}");
        }
    }

    #[tokio::test]
    async fn a_closed_port_is_exit_code_7() {
        let options = parse(&["-s", "http://127.0.0.1:1/"]).unwrap();
        assert_eq!(call(&options).await.map_err(|problem| problem.0), Err(NOT_CONNECTED));
    }
}
