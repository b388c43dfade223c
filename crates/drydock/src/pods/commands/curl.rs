//! A small `curl`: plain HTTP to the pod itself or to names of the cluster, with curl's texts and exit codes.
//!
//! `localhost` is the pod. Everything else goes through the sidecar, as in a mesh, and is counted there; nothing leaves
//! the cluster. An option it does not know is an error that names it.

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use tokio::time::Instant;
use url::Url;

use super::super::{Console, PodContext, at};
use super::MISUSED;
use crate::names::LookupError;
use crate::proxy::{Body, empty, full};

const UNRESOLVED: i32 = 6;
const NOT_CONNECTED: i32 = 7;
const REFUSED_STATUS: i32 = 22;
const NOT_WRITTEN: i32 = 23;
const TIMED_OUT: i32 = 28;
const NO_ANSWER: i32 = 52;
const BROKEN_OFF: i32 = 56;

/// Why no answer came: curl's exit code and its words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure(i32, String);

impl Failure {
    /// What went wrong.
    pub(super) fn text(&self) -> &str {
        &self.1
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    url: String,
    method: Option<Method>,
    headers: Vec<(HeaderName, Option<HeaderValue>)>,
    data: Option<String>,
    head: bool,
    include: bool,
    fail: bool,
    silent: bool,
    show_error: bool,
    discard: bool,
    write_out: String,
    limit: Option<Duration>,
}

/// Runs with curl's arguments, without the program's name.
pub(super) async fn run(pod: &PodContext, args: &[String], console: &Console) -> i32 {
    let options = match Options::parse(args) {
        Ok(options) => options,
        Err(problem) => {
            console.complain(format!("curl: {problem}\n")).await;
            return MISUSED;
        }
    };
    let transfer = options.transfer(pod, console);
    let ended = match options.limit {
        None => transfer.await,
        Some(limit) => match tokio::time::timeout(limit, transfer).await {
            Ok(ended) => ended,
            Err(_) => Err(Failure(TIMED_OUT, format!("Operation timed out after {} milliseconds", limit.as_millis()))),
        },
    };
    match ended {
        Ok(()) => 0,
        Err(Failure(code, text)) => {
            if !options.silent || options.show_error {
                console.complain(format!("curl: ({code}) {text}\n")).await;
            }
            code
        }
    }
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            if let Some(long) = arg.strip_prefix("--") {
                options.set(long, arg, || args.next())?;
            } else if let Some(mut letters) = arg.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                // Letters can be joined, and the rest of the word is the value of the first that wants one.
                while let Some(letter) = letters.chars().next() {
                    letters = letters.strip_prefix(letter).unwrap_or_default();
                    let name = long_of(letter).ok_or_else(|| unknown(&format!("-{letter}")))?;
                    let attached = (!letters.is_empty()).then_some(letters);
                    if options.set(name, arg, || attached.or_else(|| args.next()))? {
                        break;
                    }
                }
            } else if !std::mem::replace(&mut options.url, arg.to_owned()).is_empty() {
                return Err("drydock's curl takes one URL".to_owned());
            }
        }
        if options.url.is_empty() {
            return Err("(2) no URL specified".to_owned());
        }
        Ok(options)
    }

    /// Sets one option by its long name; true when it took a value.
    fn set<'a>(&mut self, name: &str, arg: &str, value: impl FnOnce() -> Option<&'a str>) -> Result<bool, String> {
        let value = || value().ok_or_else(|| format!("option {arg}: requires parameter"));
        match name {
            "silent" => self.silent = true,
            "show-error" => self.show_error = true,
            "fail" => self.fail = true,
            "include" => self.include = true,
            "head" => self.head = true,
            _ => {
                let value = match name {
                    "request" | "header" | "user-agent" | "data" | "data-raw" | "output" | "write-out" | "max-time" => {
                        value()?
                    }
                    _ => return Err(unknown(&format!("--{name}"))),
                };
                match name {
                    "request" => self.method = Some(value.parse().map_err(|_| format!("{value:?} is no HTTP method"))?),
                    "header" => self.headers.push(header(value)?),
                    "user-agent" => self.headers.push(header(&format!("User-Agent: {value}"))?),
                    "data" if value.starts_with('@') => return Err("a pod of drydock has no files to send".to_owned()),
                    "data" | "data-raw" => {
                        let data = self.data.get_or_insert_default();
                        if !data.is_empty() {
                            data.push('&');
                        }
                        data.push_str(value);
                    }
                    "output" => match value {
                        "/dev/null" => self.discard = true,
                        "-" => self.discard = false,
                        _ => return Err("a pod of drydock has no files to write to".to_owned()),
                    },
                    "write-out" => value.clone_into(&mut self.write_out),
                    _ => {
                        let seconds = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                        self.limit = Some(seconds.ok_or_else(|| format!("{value:?} is no number of seconds"))?);
                    }
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn request(&self) -> Result<Request<Body>, Failure> {
        let malformed = |why: String| Failure(3, format!("URL rejected: {why}"));
        let text = if self.url.contains("://") { self.url.clone() } else { format!("http://{}", self.url) };
        let url = Url::parse(&text).map_err(|error| malformed(error.to_string()))?;
        if url.scheme() != "http" {
            return Err(Failure(1, format!("Protocol \"{}\" not supported: drydock speaks plain HTTP", url.scheme())));
        }
        let method = match (&self.method, self.head, &self.data) {
            (Some(method), ..) => method.clone(),
            (None, true, _) => Method::HEAD,
            (None, false, None) => Method::GET,
            (None, false, Some(_)) => Method::POST,
        };
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static("curl/drydock"));
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        if self.data.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        }
        for (name, _) in &self.headers {
            headers.remove(name);
        }
        for (name, value) in &self.headers {
            if let Some(value) = value {
                headers.append(name, value.clone());
            }
        }
        let body = self.data.clone().map_or_else(empty, full);
        let mut request = Request::builder()
            .method(method)
            .uri(url.as_str())
            .body(body)
            .map_err(|error| malformed(error.to_string()))?;
        *request.headers_mut() = headers;
        Ok(request)
    }

    async fn transfer(&self, pod: &PodContext, console: &Console) -> Result<(), Failure> {
        let begun = Instant::now();
        let answer = send(pod, self.request()?).await?;
        let (head, mut body) = answer.into_parts();
        let refused = self.fail && head.status.as_u16() >= 400;
        let mut size = 0;
        if (self.include || self.head) && !refused && !self.discard {
            let mut text = format!("{:?} {}\r\n", head.version, head.status);
            for (name, value) in &head.headers {
                for part in [name.as_str(), ": ", &String::from_utf8_lossy(value.as_bytes()), "\r\n"] {
                    text.push_str(part);
                }
            }
            console.print(text + "\r\n").await;
        }
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Failure(BROKEN_OFF, format!("Recv failure: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            size += data.len();
            if !refused && !self.discard {
                console.print(data).await;
            }
        }
        if !self.write_out.is_empty() {
            let code = format!("{:03}", head.status.as_u16());
            let text = self.write_out.replace("%{http_code}", &code).replace("%{response_code}", &code);
            let text = text.replace("%{size_download}", &size.to_string());
            let text = text.replace("%{time_total}", &format!("{:.6}", begun.elapsed().as_secs_f64()));
            if text.contains("%{") {
                let known = "%{http_code}, %{response_code}, %{size_download} and %{time_total}";
                return Err(Failure(NOT_WRITTEN, format!("drydock's curl knows {known}")));
            }
            console.print(text.replace("\\n", "\n").replace("\\t", "\t")).await;
        }
        if refused {
            let text = format!("The requested URL returned error: {}", head.status.as_u16());
            return Err(Failure(REFUSED_STATUS, text));
        }
        Ok(())
    }
}

/// Sends a request with an absolute URI out of a pod.
pub(super) async fn send(pod: &PodContext, request: Request<Body>) -> Result<Response<Body>, Failure> {
    let host = request.uri().host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = request.uri().port_u16().unwrap_or(80);
    if !matches!(host.as_str(), "localhost" | "127.0.0.1" | "::1") {
        let unresolved = || Failure(UNRESOLVED, format!("Could not resolve host: {host}"));
        let mesh = pod.mesh().ok_or_else(unresolved)?;
        return match mesh.names().lookup(&host, port) {
            Err(LookupError::NoSuchHost(_)) => Err(unresolved()),
            // What is known but does not answer, the sidecar answers for.
            _ => Ok(mesh.send(request).await),
        };
    }
    let refused = |_| Failure(NOT_CONNECTED, format!("Failed to connect to {host} port {port}: Connection refused"));
    let stream = pod.net.connect(at(pod.ip, port)).await.map_err(refused)?;
    let no_answer = |_| Failure(NO_ANSWER, "Empty reply from server".to_owned());
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(no_answer)?;
    tokio::spawn(connection);
    let answer = sender.send_request(origin_form(request)).await.map_err(no_answer)?;
    Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()))
}

/// The request as a server expects it.
fn origin_form(mut request: Request<Body>) -> Request<Body> {
    let authority = request.uri().authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    if let Some(authority) = authority.filter(|_| !request.headers().contains_key(HOST)) {
        request.headers_mut().insert(HOST, authority);
    }
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map(Into::into).unwrap_or_default();
    request
}

/// `Name: value`; `Name:` takes the header away.
fn header(line: &str) -> Result<(HeaderName, Option<HeaderValue>), String> {
    let (name, value) = line.split_once(':').ok_or_else(|| format!("{line:?} is no header"))?;
    let name = name.trim().parse().map_err(|_| format!("{line:?} is no header"))?;
    let value = value.trim();
    let parsed = HeaderValue::from_str(value).map_err(|_| format!("{line:?} is no header"))?;
    Ok((name, (!value.is_empty()).then_some(parsed)))
}

fn unknown(option: &str) -> String {
    format!("option {option} is not offered by drydock's curl")
}

fn long_of(letter: char) -> Option<&'static str> {
    Some(match letter {
        's' => "silent",
        'S' => "show-error",
        'f' => "fail",
        'i' => "include",
        'I' => "head",
        'X' => "request",
        'H' => "header",
        'A' => "user-agent",
        'd' => "data",
        'o' => "output",
        'w' => "write-out",
        'm' => "max-time",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Options::parse(&args)
    }

    #[test]
    fn the_usual_lines_are_understood() {
        let options = parse("-sSf -m5 -XPUT -o /dev/null -w %{http_code} localhost:9898/echo").unwrap();
        assert!(options.silent && options.show_error && options.fail && options.discard);
        assert_eq!(options.limit, Some(Duration::from_secs(5)));
        let request = options.request().unwrap();
        assert_eq!(
            (request.method(), request.uri().to_string()),
            (&Method::PUT, "http://localhost:9898/echo".to_owned())
        );

        let options =
            parse("-sd anon -d b=c -H Content-Type:text/plain -H Accept: http://podinfo.test:9898/token").unwrap();
        let request = options.request().unwrap();
        assert_eq!(request.method(), Method::POST);
        assert_eq!(request.headers()[CONTENT_TYPE], "text/plain");
        assert!(!request.headers().contains_key(ACCEPT));
        assert_eq!(options.data.as_deref(), Some("anon&b=c"));
    }

    #[test]
    fn what_it_does_not_know_is_named() {
        for (line, part) in [
            ("-L http://x", "option -L is not offered"),
            ("--compressed http://x", "option --compressed is not offered"),
            ("-s", "no URL specified"),
            ("http://x http://y", "takes one URL"),
            ("http://x -X", "requires parameter"),
            ("-o file http://x", "no files"),
            ("-d @file http://x", "no files"),
        ] {
            let problem = parse(line).unwrap_err();
            assert!(problem.contains(part), "{line}: {problem}");
        }
        assert_eq!(parse("https://x").unwrap().request().unwrap_err().0, 1);
        assert_eq!(parse("http://").unwrap().request().unwrap_err().0, 3);
    }
}
