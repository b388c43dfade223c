//! The server behind the handle: dispatch, commit, request log.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request as HttpRequest, Response, header};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::upgrade::OnUpgrade;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::BoxError;

use super::columns::Column;
use super::discovery::Page;
use super::error::{ApiError, Result};
use super::inside::AsOf;
use super::log::{Commit, Hook, Request, RequestLog};
use super::options::check_write;
use super::patch::check_language;
use super::registry::{Registry, Served};
use super::request::{Call, Params, Target, header_text};
use super::store::{Change, Id, State, Store};
use super::streams::{Kubelets, Streamed};
use super::view::{Form, View};
use super::write::Ownership;
use super::{Body, User, crd, discovery, full};
use crate::{Clock, Seed};

/// The largest body a request may have, as in Kubernetes.
pub(crate) const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// How many changes watches can look back. Each is a whole object, about 20 kB: this is most of the memory of a cluster
/// that lives long.
pub(crate) const HISTORY: usize = 5_000;

/// Namespaces that are there from the start.
const NAMESPACES: &[&str] = &["default", "istio-system", "kube-node-lease", "kube-public", "kube-system"];

/// All parts of one server.
pub(crate) struct Server {
    pub(crate) clock: Clock,
    pub(crate) seed: Seed,
    pub(crate) store: Store,
    pub(crate) registry: RwLock<Registry>,
    pub(crate) log: RequestLog,
    /// Held by every open watch.
    pub(crate) watching: Arc<()>,
    pub(crate) kubelets: Kubelets,
    hooks: Mutex<Vec<Hook>>,
    /// Feeds the garbage collector, which ends when this is dropped.
    changes: mpsc::UnboundedSender<Arc<Change>>,
    /// Ends the tasks that serve TCP clients when this is dropped.
    pub(crate) stop: DropGuard,
}

/// Who writes, for the commit hooks.
#[derive(Clone, Copy)]
pub(crate) struct Author<'a> {
    pub(crate) user: &'a str,
    pub(crate) verb: &'a str,
    pub(crate) subresource: &'a str,
}

/// What a verb answers with.
pub(crate) enum Answer {
    /// An object of the resource.
    Object(u16, Arc<Value>),
    /// An object of the resource that was deleted and waits to go.
    Waiting(Arc<Value>),
    /// Something that is shown as it is: a Status, a review.
    Plain(u16, Value),
    /// Something of another kind that has columns of its own: a Scale.
    Other(u16, Value, &'static [Column]),
    /// Part of a collection, with its list metadata.
    List(Vec<Arc<Value>>, Value),
    /// Events until the watch ends.
    Watch(futures::stream::BoxStream<'static, Value>),
}

/// An answer and the warnings that go with it.
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    pub(crate) warnings: Vec<String>,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self { answer, warnings: Vec::new() }
    }
}

impl Server {
    /// A server that remembers so many changes, and the changes its garbage collector must follow.
    pub(crate) fn new(clock: Clock, seed: &Seed, history: usize) -> (Arc<Self>, mpsc::UnboundedReceiver<Arc<Change>>) {
        let registry = Registry::builtin().unwrap_or_default();
        let (changes, committed) = mpsc::unbounded_channel();
        let server = Arc::new(Self {
            clock,
            seed: seed.fork("apiserver"),
            store: Store::new(history),
            registry: RwLock::new(registry),
            log: RequestLog::default(),
            watching: Arc::default(),
            kubelets: Kubelets::default(),
            hooks: Mutex::default(),
            changes,
            stop: CancellationToken::new().drop_guard(),
        });
        for namespace in NAMESPACES {
            server.install("namespaces", json!({"metadata": {"name": namespace}}));
        }
        for definition in crd::gateway_api() {
            server.install(crd::DEFINITIONS, definition);
        }
        (server, committed)
    }

    /// Creates an object the cluster starts with.
    fn install(&self, resource: &str, object: Value) {
        let Some(served) = self.stored(resource) else { return };
        let call = Call {
            user: "system:apiserver".into(),
            verb: "create",
            served,
            namespace: None,
            name: String::new(),
            subresource: String::new(),
            params: Params::default(),
            content_type: String::new(),
            body: Bytes::new(),
            as_of: None,
        };
        if let Err(error) = self.insert(&mut self.store.lock(), &call, object, Ownership::Written) {
            tracing::error!(resource, message = %error.to_status(), "a built-in object was refused");
        }
    }

    pub(crate) fn add_hook(&self, hook: Hook) {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner).push(hook);
    }

    /// The resource of an id, in its storage version.
    pub(crate) fn stored(&self, id: &str) -> Option<Served> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).stored(id)
    }

    /// Answers one request, whatever it is.
    pub(crate) async fn answer<B>(self: Arc<Self>, request: HttpRequest<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (mut parts, body) = request.into_parts();
        let upgrade = parts.extensions.remove::<OnUpgrade>();
        let agent = header_text(&parts.headers, header::USER_AGENT);
        let user = match parts.extensions.get::<User>() {
            Some(User(user)) => user.clone(),
            None if agent.is_empty() => "unknown".to_owned(),
            None => agent.to_owned(),
        };
        let path = parts.uri.path();
        let params = Params::parse(parts.uri.query().unwrap_or_default());
        let mut entry = Request {
            user: user.clone(),
            verb: parts.method.as_str().to_ascii_lowercase(),
            group: String::new(),
            resource: path.to_owned(),
            namespace: String::new(),
            name: String::new(),
            subresource: String::new(),
            code: 0,
            time: self.clock.now(),
        };
        let accept = header_text(&parts.headers, header::ACCEPT);
        // Only a namespace may be left out of a path.
        let is_whole = !path.trim_end_matches('/').replacen("/namespaces//", "/namespaces/-/", 1).contains("//");
        let target = Target::parse(path).filter(|_| is_whole);
        let response = match target {
            None => {
                let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
                match discovery::answer(&registry, path, &params, accept) {
                    Ok(page) => show(page),
                    Err(error) if error.code() == 404 && leads_nowhere(&registry, path) => page_not_found(),
                    Err(error) => failure(&error),
                }
            }
            Some(target) => {
                entry.verb = target.verb(&parts.method, &params).unwrap_or("unknown").to_owned();
                entry.group.clone_from(&target.group);
                entry.resource.clone_from(&target.plural);
                entry.namespace = target.namespace.clone().unwrap_or_default();
                entry.name.clone_from(&target.name);
                entry.subresource.clone_from(&target.subresource);
                let content_type = header_text(&parts.headers, header::CONTENT_TYPE).to_owned();
                let as_of = parts.extensions.get::<AsOf>().map(|AsOf(revision)| *revision);
                match Streamed::of(&target) {
                    Some(streamed) => self.stream(streamed, &target, &parts, upgrade),
                    None => match read_body(body).await {
                        Ok(body) => {
                            self.resource(user, &parts.method, target, params, accept, content_type, body, as_of)
                        }
                        Err(error) => failure(&error),
                    },
                }
            }
        };
        entry.code = response.status().as_u16();
        entry.time = self.clock.now();
        self.log.push(entry);
        response
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one HTTP request, taken apart once")]
    fn resource(
        self: &Arc<Self>,
        user: String,
        method: &Method,
        target: Target,
        params: Params,
        accept: &str,
        content_type: String,
        body: Bytes,
        as_of: Option<u64>,
    ) -> Response<Body> {
        let served = self.registry.read().unwrap_or_else(PoisonError::into_inner).find(
            &target.group,
            &target.version,
            &target.plural,
        );
        // Part of a name, or of the way to it: no path leads there.
        if target.name.contains('/') {
            return failure(&ApiError::no_route());
        }
        if [".", ".."].contains(&target.name.as_str()) && target.subresource.is_empty() {
            let why = format!("Name parameter invalid: {0:?}: may not be '{0}'", target.name);
            return failure(&ApiError::bad_request(why));
        }
        let Some(served) = served else {
            let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
            // Groups of custom resources, and those that nobody has, end where no handler is left.
            if !is_kubernetes(&registry, &target.group) {
                return page_not_found();
            }
            return failure(&ApiError::not_offered(&target.group, &target.version, &target.plural));
        };
        // Custom resources are created wherever one of them could be.
        let loose = served.resource.custom && *method == Method::POST && target.subresource.is_empty();
        let mut target = target;
        if target.namespace.as_deref() == Some("") {
            let custom = served.resource.custom;
            if custom && (!target.name.is_empty() || *method != Method::GET) {
                return page_not_found();
            }
            if !target.name.is_empty() {
                return failure(&ApiError::bad_request("Namespace parameter required."));
            }
            // Who asks for a collection asks everywhere; what is created there lacks a namespace.
            target.namespace = target.namespace.filter(|_| *method == Method::POST);
        }
        if loose {
            target.name.clear();
        }
        if served.resource.custom && *method == Method::PUT && target.name.is_empty() {
            return failure(&ApiError::bad_request("name must be provided"));
        }
        let Some(verb) = target.verb(method, &params) else { return failure(&ApiError::method_not_allowed()) };
        // Nobody has thought of it there.
        let tabular = !(served.resource.behaviour.unprinted && target.subresource == "status");
        let form = match Form::negotiate(accept, tabular) {
            Ok(form) => form,
            Err(error) => return failure(&error),
        };
        let view = match View::new(served.clone(), form).including(params.get("includeObject")) {
            // Nobody hides anything from who asks for a status.
            Ok(view) if target.subresource == "status" => view.bare(),
            Ok(view) => view,
            Err(error) => return failure(&error),
        };
        let call = Call {
            user,
            verb,
            served,
            namespace: target.namespace,
            name: target.name,
            subresource: target.subresource,
            params,
            content_type,
            body,
            as_of,
        };
        if call.served.resource.custom
            && call.namespace.is_none()
            && (!call.name.is_empty() || call.verb == "create")
            && call.served.resource.namespaced
        {
            return page_not_found();
        }
        if call.served.resource.custom && call.namespace.is_some() && !call.served.resource.namespaced {
            return page_not_found();
        }
        // Whether the answer can have the form that was asked for shows when it is there.
        match self.dispatch(&call, &view).and_then(|reply| view.suits(call.verb, &call.subresource).map(|()| reply)) {
            Ok(mut reply) => {
                reply.warnings.splice(0..0, call.served.version().deprecation.clone());
                self.render(reply, &view)
            }
            Err(error) => failure(&error.after(call.served.version().deprecation.as_slice())),
        }
    }

    /// Finds the function for a verb. This, and the table of sub-resources, is all the routing there is.
    fn dispatch(self: &Arc<Self>, call: &Call, view: &View) -> Result<Reply> {
        let resource = &call.served.resource;
        if resource.namespaced && call.namespace.is_none() && !call.name.is_empty() {
            return Err(ApiError::no_route());
        }
        if resource.namespaced && call.namespace.is_none() && call.verb == "create" {
            return Err(ApiError::method_not_allowed());
        }
        if !resource.namespaced && call.namespace.is_some() {
            return Err(ApiError::no_route());
        }
        if call.verb == "patch" {
            check_language(call)?;
        }
        if matches!(call.verb, "create" | "update" | "patch" | "delete" | "deletecollection") {
            check_write(call)?;
        }
        if !call.subresource.is_empty() {
            return self.subresource(call);
        }
        if !resource.verbs.iter().any(|verb| verb == call.verb) {
            return Err(ApiError::method_not_allowed());
        }
        match call.verb {
            "get" => self.get(call).map(Reply::from),
            "list" => self.list(call).map(Reply::from),
            "watch" => self.watch(call, view).map(Reply::from),
            "create" => self.create(call),
            "update" => self.update(call),
            "patch" => self.patch(call),
            "delete" => self.delete(call).map(Reply::from),
            "deletecollection" => self.delete_collection(call).map(Reply::from),
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn render(&self, reply: Reply, view: &View) -> Response<Body> {
        let (code, value) = match reply.answer {
            Answer::Plain(code, value) => (code, value),
            Answer::Other(code, value, columns) => (code, view.other(value, columns, self.clock.now())),
            Answer::Object(code, object) => (code, view.object(&object, self.clock.now())),
            // Nobody takes away from it what is usually not shown.
            Answer::Waiting(object) => (200, view.bare().object(&object, self.clock.now())),
            Answer::List(items, metadata) => (200, view.list(&items, &metadata, self.clock.now())),
            Answer::Watch(events) => {
                let frames = events.map(|event| {
                    let mut line = event.to_string();
                    line.push('\n');
                    Ok::<_, BoxError>(http_body::Frame::data(Bytes::from(line)))
                });
                return respond(200, "application/json", StreamBody::new(frames).boxed_unsync(), &reply.warnings);
            }
        };
        respond(code, "application/json", full(value.to_string().into()), &reply.warnings)
    }

    /// Writes an object and tells everybody.
    pub(crate) fn put(&self, state: &mut State, author: Author<'_>, id: Id, object: Value) -> Arc<Value> {
        let change = state.put(id, object);
        self.announce(state, author, &change);
        change.after.clone()
    }

    /// Removes an object and tells everybody. Returns its last state.
    pub(crate) fn remove(&self, state: &mut State, author: Author<'_>, id: Id) -> Option<Arc<Value>> {
        let change = state.remove(id)?;
        self.announce(state, author, &change);
        Some(change.after.clone())
    }

    fn announce(&self, state: &mut State, author: Author<'_>, change: &Arc<Change>) {
        // Without a collector, or when the runtime ends, nobody listens.
        let _ = self.changes.send(change.clone());
        if let Some(served) = self.stored(&change.id.0) {
            (served.resource.behaviour.committed)(self, state, change);
            let hooks = self.hooks.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if !hooks.is_empty() {
                let commit = Commit {
                    user: author.user.to_owned(),
                    verb: author.verb.to_owned(),
                    group: served.resource.group.clone(),
                    resource: served.resource.plural.clone(),
                    subresource: author.subresource.to_owned(),
                    before: change.before.clone(),
                    after: (!change.deleted).then(|| change.after.clone()),
                    revision: change.revision,
                    time: self.clock.now(),
                };
                for hook in &hooks {
                    hook(&commit);
                }
            }
            (served.resource.behaviour.followed)(self, state, change);
        }
    }
}

impl Call {
    /// Who writes.
    pub(crate) fn author(&self) -> Author<'_> {
        Author { user: &self.user, verb: self.verb, subresource: &self.subresource }
    }
}

async fn read_body<B>(body: B) -> Result<Bytes>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(ApiError::too_large(&format!("limit is {BODY_LIMIT}")))
        }
        Err(error) => Err(ApiError::bad_request(format!("unable to read the request body: {error}"))),
    }
}

pub(super) fn respond(code: u16, content_type: &str, body: Body, warnings: &[String]) -> Response<Body> {
    let mut response = Response::builder().status(code).header(header::CONTENT_TYPE, content_type);
    // Nobody is told the same twice.
    let told = |at: usize| warnings.get(..at).unwrap_or_default();
    for (_, warning) in warnings.iter().enumerate().filter(|(at, warning)| !told(*at).contains(warning)) {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write!(text, "299 - {warning:?}");
        response = response.header(header::WARNING, text);
    }
    response.body(body).unwrap_or_else(|_| Response::new(full(Bytes::new())))
}

fn show(page: Page) -> Response<Body> {
    let mut response = respond(200, page.media_type, full(page.body.into()), &[]);
    if page.forever {
        let value = header::HeaderValue::from_static("public, max-age=31536000, immutable");
        response.headers_mut().insert(header::CACHE_CONTROL, value);
    }
    response
}

/// Groups of Kubernetes that are not offered.
const NOT_OFFERED: [&str; 8] = [
    "admissionregistration.k8s.io",
    "apiregistration.k8s.io",
    "certificates.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "node.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Whether a group is Kubernetes' own, so that a handler of the server itself is for it.
fn is_kubernetes(registry: &Registry, group: &str) -> bool {
    NOT_OFFERED.contains(&group) || registry.all().any(|known| known.group == group && !known.custom)
}

/// Whether no handler of the server itself is for a path.
fn leads_nowhere(registry: &Registry, path: &str) -> bool {
    let mut names = path.split('/').skip(1);
    match (names.next(), names.next()) {
        (Some("apis"), Some(group)) => !group.is_empty() && !is_kubernetes(registry, group),
        (Some("api" | "apis" | "version"), _) => false,
        _ => true,
    }
}

/// Where no handler is left.
fn page_not_found() -> Response<Body> {
    respond(404, "text/plain; charset=utf-8", full(Bytes::from_static(b"404 page not found\n")), &[])
}

pub(super) fn failure(error: &ApiError) -> Response<Body> {
    respond(error.code(), "application/json", full(error.to_status().to_string().into()), error.warnings())
}
