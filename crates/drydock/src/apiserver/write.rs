//! Writing: create and replace, and the steps every write goes through.
//!
//! A write is shaped (pruned, defaulted), completed with what the server owns (uid, generation, timestamps), checked,
//! and committed if it changes anything. PUT, every kind of patch and the sub-resources end here.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::apply::repeated_keys;
use super::decode::decode;
use super::error::{ApiError, Result};
use super::fields::Fields;
use super::go_json;
use super::judge::{Change, judge, of_another_kind};
use super::managed::{Managed, Operation};
use super::meta;
use super::patch::{APPLY, STRATEGIC, unknown_members};
use super::protobuf;
use super::registry::{Resource, api_version};
use super::repeated::repeated;
use super::request::{Call, media_type};
use super::server::{Answer, Reply, Server};
use super::store::{Id, Key, State};
use super::zero::zero;

/// How often a generated name is tried again when it is taken.
const NAME_ATTEMPTS: usize = 8;

/// To whom the fields of a write belong.
pub(crate) enum Ownership {
    /// Whoever wrote owns what changed.
    Written,
    /// Server-side apply has worked it out.
    Applied {
        managed: Managed,
        /// Whether a real server would store more than it shows.
        untidy: bool,
    },
}

impl Ownership {
    fn is_untidy(&self) -> bool {
        matches!(self, Self::Applied { untidy: true, .. })
    }
}

/// A write that was carried out, or would have been.
pub(crate) struct Written {
    pub(crate) object: Arc<Value>,
    pub(crate) warnings: Vec<String>,
}

impl Server {
    /// `create`.
    pub(crate) fn create(&self, call: &Call) -> Result<Reply> {
        let mut object = call.object()?;
        if let Some(answer) = call.served.resource.behaviour.review {
            let warnings = shape(call, &mut object)?;
            meta::metadata(&mut object);
            answer(call, &mut object)?;
            return Ok(Reply { answer: Answer::Plain(201, object), warnings });
        }
        let mut state = self.store.lock();
        let written = self.insert(&mut state, call, object, Ownership::Written)?;
        Ok(Reply { answer: Answer::Object(201, written.object), warnings: written.warnings })
    }

    /// `update`: replaces an object.
    pub(crate) fn update(&self, call: &Call) -> Result<Reply> {
        let mut object = call.object()?;
        let mut warnings = shape(call, &mut object)?;
        let live = call.live(&self.store.lock()).ok();
        let held = live.as_deref().map(meta::finalizers).unwrap_or_default();
        match self.update_shaped(call, object) {
            Ok(answer) => {
                if let Answer::Object(_, object) = &answer {
                    warnings.extend((call.served.resource.behaviour.warn_changed)(live.as_deref(), object));
                    warnings.extend(unclaimed_finalizers(call, &held, object));
                }
                Ok(Reply { answer, warnings })
            }
            Err(error) => Err(error.after(&warnings)),
        }
    }

    fn update_shaped(&self, call: &Call, object: Value) -> Result<Answer> {
        check_place(call, &object)?;
        let mut state = self.store.lock();
        match call.live(&state) {
            Ok(live) => {
                Ok(Answer::Object(200, self.replace_shaped(&mut state, call, &live, object, Ownership::Written)?))
            }
            Err(_) if call.served.resource.behaviour.create_on_update && !meta::uid(&object).is_empty() => {
                let uids = (meta::uid(&object), "");
                Err(ApiError::other_uid(&call.served.resource, &call.name, &call.storage_key(), uids))
            }
            Err(_) if call.served.resource.behaviour.create_on_update => {
                Ok(Answer::Object(201, self.insert_shaped(&mut state, call, object, Ownership::Written)?))
            }
            Err(error) => Err(error),
        }
    }

    /// Stores a new object.
    pub(crate) fn insert(
        &self,
        state: &mut State,
        call: &Call,
        mut object: Value,
        ownership: Ownership,
    ) -> Result<Written> {
        let mut warnings = shape(call, &mut object)?;
        match self.insert_shaped(state, call, object, ownership) {
            Ok(object) => {
                warnings.extend((call.served.resource.behaviour.warn)(&object));
                warnings.extend((call.served.resource.behaviour.warn_changed)(None, &object));
                warnings.extend(unclaimed_finalizers(call, &[], &object));
                Ok(Written { object, warnings })
            }
            Err(error) => Err(error.after(&warnings)),
        }
    }

    fn insert_shaped(
        &self,
        state: &mut State,
        call: &Call,
        mut object: Value,
        ownership: Ownership,
    ) -> Result<Arc<Value>> {
        let resource = &call.served.resource;
        let behaviour = resource.behaviour;
        let untidy = ownership.is_untidy();
        take_empty(call, &mut object);
        self.check_namespace(state, call, &object)?;
        let key = Key {
            namespace: call.namespace.clone().unwrap_or_default(),
            name: self.choose_name(state, call, &object)?,
        };
        let now = meta::seconds(self.clock.now());
        let metadata = meta::metadata(&mut object);
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"] {
            metadata.shift_remove(field);
        }
        metadata.insert("name".into(), key.name.clone().into());
        meta::set(metadata, "namespace", call.namespace.as_deref().map(Value::from));
        metadata.insert("uid".into(), self.seed.uid().into());
        metadata.insert("creationTimestamp".into(), now.into());
        if behaviour.generation {
            metadata.insert("generation".into(), 1.into());
        }
        if call.served.has("status") && !behaviour.status_on_create {
            meta::members(&mut object).shift_remove("status");
        }
        call.served.stored_schema().fill(&mut object);
        (behaviour.complete)(&mut object);
        // What the server itself adds from here on belongs to nobody.
        let managed = self.own(call, &zero(call.served.stored_schema()), &object, Managed::default(), ownership);
        (behaviour.prepare)(&mut object, state, self.clock.now());
        let mut first = Vec::new();
        (behaviour.check_before)(&object, &mut first);
        if !call.dry_run() && first.is_empty() {
            (behaviour.check_first)(&object, &mut first);
        }
        if !first.is_empty() {
            return Err(ApiError::invalid(resource, &key.name, &first));
        }
        judge(call, &object, None)?;
        let mut causes = Vec::new();
        (behaviour.check_new)(&object, state, call.dry_run(), &mut causes);
        if !causes.is_empty() {
            return Err(ApiError::invalid(resource, &key.name, &causes));
        }
        // It is only when something is to be stored that anybody looks.
        if !call.dry_run() && !meta::field(&object, "resourceVersion").is_empty() {
            return Err(ApiError::unforeseen("resourceVersion should not be set on objects to be created"));
        }
        if let Some(found) = state.get(&resource.id, &key) {
            // By then the object has been found to be good, and advice has been given.
            let mut warnings = Vec::from_iter((behaviour.warn)(&object));
            warnings.extend((behaviour.warn_changed)(None, &object));
            warnings.extend(unclaimed_finalizers(call, &[], &object));
            return Err(ApiError::already_exists(resource, &key.name, meta::deleting(found)).after(&warnings));
        }
        managed.write_to(&mut object);
        stamp_version(call, &mut object);
        if call.dry_run() {
            return Ok(Arc::new(object));
        }
        let id = (resource.id.clone(), key);
        let written = self.put(state, call.author(), id.clone(), object);
        if untidy {
            state.mark_untidy(id);
        }
        Ok(written)
    }

    /// Replaces the live state of an object by a new one, as far as the client may.
    pub(crate) fn replace(
        &self,
        state: &mut State,
        call: &Call,
        live: &Arc<Value>,
        mut new: Value,
        ownership: Ownership,
    ) -> Result<Written> {
        let mut warnings = shape(call, &mut new)?;
        match self.replace_shaped(state, call, live, new, ownership) {
            Ok(object) => {
                // Who scales an object changes what it should be.
                if ["", "scale"].contains(&call.subresource.as_str()) {
                    warnings.extend((call.served.resource.behaviour.warn_changed)(Some(live), &object));
                }
                warnings.extend(unclaimed_finalizers(call, &meta::finalizers(live), &object));
                Ok(Written { object, warnings })
            }
            Err(error) => Err(error.after(&warnings)),
        }
    }

    fn replace_shaped(
        &self,
        state: &mut State,
        call: &Call,
        live: &Arc<Value>,
        mut new: Value,
        ownership: Ownership,
    ) -> Result<Arc<Value>> {
        let resource = &call.served.resource;
        let untidy = ownership.is_untidy();
        let empty = take_empty(call, &mut new);
        check_identity(call, live, &new)?;
        let fixed = changed_fixed(live, &new);
        let managed = managed_before(call, live, &new);
        restore(call, live, &mut new);
        call.served.stored_schema().fill(&mut new);
        (resource.behaviour.complete)(&mut new);
        let managed = match ownership {
            // Fields that belong to nobody stay so until somebody applies.
            Ownership::Written if managed.is_empty() => managed,
            ownership => self.own(call, live, &new, managed, ownership),
        };
        (resource.behaviour.prepare_update)(&mut new, live, state, self.clock.now());
        if resource.behaviour.generation {
            let bump = desired_state_changed(call, live, &new)
                || resource.behaviour.annotations_count && call.subresource.is_empty() && notes(live) != notes(&new);
            let bump = i64::from(bump);
            meta::metadata(&mut new).insert("generation".into(), (meta::generation(live) + bump).into());
        }
        let mut first = Vec::new();
        if call.subresource.is_empty() {
            (resource.behaviour.check_before)(&new, &mut first);
        }
        if !first.is_empty() {
            return Err(ApiError::invalid(resource, meta::name(&new), &first));
        }
        put_empty(&empty, &mut new);
        judge(call, &new, Some(&Change { live, fixed: &fixed }))?;
        take_empty(call, &mut new);
        let before = Managed::of(live);
        let id = id_of(call, live);
        stamp_version(call, &mut new);
        // That somebody wrote what was there already is not worth a version.
        if managed.is_but_for_times(&before) {
            before.write_to(&mut new);
            if new == **live && !untidy && !state.is_untidy(&id) {
                return Ok(live.clone());
            }
        }
        managed.write_to(&mut new);
        if call.dry_run() {
            return Ok(Arc::new(new));
        }
        // The last finalizer of an object that is being deleted was taken away: watches see it go, not change.
        if is_finished(&new) {
            self.remove(state, call.author(), id);
            return Ok(Arc::new(new));
        }
        let written = self.put(state, call.author(), id.clone(), new);
        if untidy {
            state.mark_untidy(id);
        }
        Ok(written)
    }

    /// Records who owns what after a write.
    fn own(&self, call: &Call, old: &Value, new: &Value, mut managed: Managed, ownership: Ownership) -> Managed {
        match ownership {
            Ownership::Applied { managed: applied, .. } => applied,
            Ownership::Written => {
                if let Some(replicas) = call.replicas_path() {
                    let numbers = (replicas_at(replicas, old), replicas_at(replicas, new));
                    managed.rescale(&Fields::at(replicas), numbers, &call.field_manager(Operation::Update));
                    return managed;
                }
                let (changed, removed) = Fields::compare(call.served.stored_schema(), old, new);
                let time = meta::seconds(self.clock.now());
                let (changed, removed) = (call.own_part(changed), call.own_part(removed));
                managed.record(&changed, &removed, &call.field_manager(Operation::Update), &time);
                managed
            }
        }
    }

    /// The namespace must exist, and not be on its way out.
    fn check_namespace(&self, state: &State, call: &Call, object: &Value) -> Result<()> {
        let resource = &call.served.resource;
        let Some(namespace) = &call.namespace else {
            return if resource.namespaced {
                Err(ApiError::bad_request("an empty namespace may not be set during creation"))
            } else {
                Ok(())
            };
        };
        let sent = meta::namespace(object);
        if !sent.is_empty() && sent != namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let key = Key { namespace: String::new(), name: namespace.clone() };
        let Some(owner) = self.stored("namespaces") else { return Ok(()) };
        match state.get("namespaces", &key) {
            None => Err(ApiError::not_found(&owner.resource, namespace)),
            Some(found) if meta::deleting(found) => {
                let why =
                    format!("unable to create new content in namespace {namespace} because it is being terminated");
                Err(ApiError::forbidden(resource, meta::name(object), &why))
            }
            Some(_) => Ok(()),
        }
    }

    /// The name in the path, in the object, or a generated one.
    fn choose_name(&self, state: &State, call: &Call, object: &Value) -> Result<String> {
        let sent = meta::name(object);
        if !call.name.is_empty() && !sent.is_empty() && call.name != sent {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({sent}) does not match the name on the URL ({})",
                call.name
            )));
        }
        let given = if sent.is_empty() { &call.name } else { sent };
        let prefix = meta::field(object, "generateName");
        if !given.is_empty() || prefix.is_empty() {
            return Ok(given.to_owned());
        }
        let namespace = call.namespace.clone().unwrap_or_default();
        let head: String = prefix.chars().take(58).collect();
        let mut key = Key { namespace, name: String::new() };
        for _ in 0..NAME_ATTEMPTS {
            key.name = format!("{head}{}", self.seed.suffix(5));
            if state.get(&call.served.resource.id, &key).is_none() {
                break;
            }
        }
        Ok(key.name)
    }
}

/// Takes out the empty maps that only rules may see, and says which there were.
fn take_empty(call: &Call, object: &mut Value) -> Vec<&'static str> {
    let empty = |field: &&str| object.get(*field).and_then(Value::as_object).is_some_and(serde_json::Map::is_empty);
    let fields: Vec<_> = call.served.resource.behaviour.told_apart.iter().copied().filter(empty).collect();
    for field in &fields {
        meta::members(object).shift_remove(*field);
    }
    fields
}

/// Puts them back where nothing else is by now.
fn put_empty(fields: &[&str], object: &mut Value) {
    for field in fields {
        meta::members(object).entry(*field).or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
}

/// The place of an object in the store.
fn id_of(call: &Call, object: &Value) -> Id {
    let key = Key { namespace: meta::namespace(object).into(), name: meta::name(object).into() };
    (call.served.resource.id.clone(), key)
}

/// Whether more is stored of an applied object than anybody will see of it. A real server stores custom resources as they
/// were applied, with all that is empty in their metadata, and drops that when it reads them: what it reads never equals what
/// it has, so the next write is one even if it changes nothing.
pub(crate) fn is_untidy(call: &Call, applied: &Value) -> bool {
    const STORED_AS_SENT: [&str; 5] = ["annotations", "finalizers", "generateName", "labels", "ownerReferences"];
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    let metadata = applied.get("metadata").filter(|_| call.served.resource.custom && call.subresource.is_empty());
    let at = |field: &&str| metadata.and_then(|metadata| metadata.get(*field));
    STORED_AS_SENT.iter().filter_map(at).any(is_nothing)
}

/// Custom resources may have finalizers that do not say whose they are, but it is not recommended.
fn unclaimed_finalizers(call: &Call, held: &[&str], object: &Value) -> Vec<String> {
    let known = ["foregroundDeletion", "kubernetes", "orphan"];
    let new = meta::finalizers(object).into_iter().filter(|name| !held.contains(name) && !known.contains(name));
    new.filter(|name| call.served.resource.custom && !name.contains('/'))
        .map(|name| {
            let path = if name.contains('.') { " including a path (/)" } else { "" };
            format!(
                "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to avoid accidental \
                 conflicts with other finalizer writers"
            )
        })
        .collect()
}

impl Call {
    /// Where a Scale that is written keeps its replicas.
    fn replicas_path(&self) -> Option<&str> {
        let paths = self.served.version().scale.as_ref().filter(|_| self.subresource == "scale")?;
        Some(&paths.spec_replicas)
    }
}

fn replicas_at(pointer: &str, object: &Value) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// Who owned what before a write. A client may say so itself, which is how tools move fields from one manager to
/// another; what is no list of owners, or comes through a sub-resource, is not listened to.
fn managed_before(call: &Call, live: &Value, new: &Value) -> Managed {
    let said = new.pointer("/metadata/managedFields").and_then(Value::as_array).filter(|_| call.subresource.is_empty());
    match said.map(Vec::as_slice) {
        None => Managed::of(live),
        // Only Go's types can tell a list that is empty from none.
        Some([]) if !call.served.resource.custom => Managed::default(),
        Some([one]) if one.as_object().is_some_and(serde_json::Map::is_empty) => Managed::default(),
        Some(_) => Managed::read(new).filter(|managed| !managed.is_empty()).unwrap_or_else(|| Managed::of(live)),
    }
}

/// An object of another kind than its place is for. Go knows those of Kubernetes, and cannot make one of the other.
fn other_kind(resource: &Resource, api_version: &str, kind: &str) -> ApiError {
    let wanted = &resource.kind;
    if !protobuf::is_known(api_version, kind) {
        return ApiError::unregistered(api_version, kind, wanted);
    }
    let version = api_version.rsplit('/').next().unwrap_or(api_version);
    let group = resource.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    let why = format!("converting ({version}.{kind}) to ({group}.{wanted}): unknown conversion");
    ApiError::cannot_be(version, kind, wanted, &why)
}

/// Brings what a client sent into the form objects are stored in. Returns warnings about what was dropped.
pub(crate) fn shape(call: &Call, object: &mut Value) -> Result<Vec<String>> {
    let resource = &call.served.resource;
    let expected = call.served.api_version();
    let sent = meta::text(object, "/apiVersion");
    if !resource.custom && !sent.is_empty() && sent != expected && !is_known_version(&resource.group, sent) {
        let kind = &resource.kind;
        let sent_kind = if meta::text(object, "/kind").is_empty() { kind } else { meta::text(object, "/kind") };
        return Err(other_kind(resource, sent, sent_kind));
    }
    if !sent.is_empty() && sent != expected {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({sent}) does not match the expected API version ({expected})"
        )));
    }
    let kind = meta::text(object, "/kind");
    if !kind.is_empty() && kind != resource.kind && !resource.custom {
        return Err(other_kind(resource, &expected, kind));
    }
    if !kind.is_empty() && kind != resource.kind && resource.custom && call.verb == "create" {
        return Err(of_another_kind(call, object));
    }
    if !kind.is_empty() && kind != resource.kind {
        // Whoever replaces an object is asked for its place first.
        if call.verb == "update" {
            check_place(call, object)?;
        }
        return Err(ApiError::bad_request(format!(
            "the kind in the data ({kind}) does not match the expected kind ({})",
            resource.kind
        )));
    }
    let members = meta::members(object);
    members.insert("apiVersion".into(), expected.into());
    members.insert("kind".into(), resource.kind.clone().into());
    let schema = call.served.version().schema();
    if resource.custom && call.verb == "patch" && media_type(&call.content_type) == APPLY {
        // Whoever applies nothing means it, and is told when that cannot be.
        if let (Some(schema), Some(metadata)) = (schema.member("metadata"), object.get_mut("metadata")) {
            schema.drop_nulls(metadata);
            // Nobody reads a time that only the server can know.
            if let Value::Object(members) = metadata {
                members.shift_remove("creationTimestamp");
                let is_time =
                    |value: &Value| value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok());
                members.retain(|field, value| field != "deletionTimestamp" || is_time(value));
            }
        }
    } else {
        schema.drop_nulls(object);
    }
    let mut dropped = Vec::new();
    schema.prune(object, "", &mut dropped);
    if !resource.custom {
        decode(schema, object).map_err(|why| unreadable(call, &why))?;
        let empty = take_empty(call, object);
        schema.drop_empty(object);
        put_empty(&empty, object);
    } else if let (Some(schema), Some(metadata)) = (schema.member("metadata"), object.get_mut("metadata")) {
        decode(schema, metadata).map_err(|why| unreadable(call, &why))?;
        schema.drop_empty(metadata);
    }
    if resource.custom {
        dropped.sort_unstable();
    }
    if let Some(lens) = resource.lens {
        lens.store(object);
    }
    let mut unknown = said_twice(call);
    unknown.extend(dropped.iter().map(|path| format!("unknown field {path:?}")));
    match call.params.get("fieldValidation") {
        "Strict" if !unknown.is_empty() && call.verb == "patch" && media_type(&call.content_type) != APPLY => {
            let why = format!("strict decoding error: {}", unknown.join(", "));
            Err(match go_json::parse(&call.body) {
                Ok(patch) if media_type(&call.content_type) == STRATEGIC => ApiError::unfitting_patch(&patch, &why),
                _ => ApiError::unreadable_patch(object, &why),
            })
        }
        "Strict" if !unknown.is_empty() => {
            Err(unreadable(call, &format!("strict decoding error: {}", unknown.join(", "))))
        }
        "Ignore" => Ok(Vec::new()),
        _ => Ok(unknown),
    }
    .map(|mut warnings| {
        warnings.extend(meta::distinct_owners(object));
        warnings.extend((!resource.behaviour.notice.is_empty()).then(|| resource.behaviour.notice.to_owned()));
        warnings
    })
}

/// What a client that looked twice at its body would not have sent.
fn said_twice(call: &Call) -> Vec<String> {
    let again = |name: &str| repeated(&call.body).iter().map(|path| format!("{name} {path:?}")).collect::<Vec<_>>();
    match media_type(&call.content_type) {
        "application/json-patch+json" => {
            let mut wrong = unknown_members(&call.body);
            wrong.extend(again("json patch duplicate field"));
            wrong
        }
        APPLY => repeated_keys(&call.body),
        "application/yaml" | protobuf::MEDIA_TYPE => Vec::new(),
        _ => again("duplicate field"),
    }
}

/// Whether a version is one of the group's: the real server would try to convert it.
fn is_known_version(group: &str, version: &str) -> bool {
    version.rsplit_once('/').map_or("", |(group, _)| group) == group && version.contains("v1")
}

/// What was sent is not of the kind it should be.
fn unreadable(call: &Call, why: &str) -> ApiError {
    let kind = &call.served.resource.kind;
    ApiError::cannot_be(&call.served.version().name, kind, kind, why)
}

/// An update must mean the object at its address.
pub(crate) fn check_place(call: &Call, object: &Value) -> Result<()> {
    let sent = meta::namespace(object);
    if !sent.is_empty() && call.namespace.as_deref().is_some_and(|namespace| namespace != sent) {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    match meta::name(object) {
        "" => Err(ApiError::nameless(&call.name)),
        name if name != call.name => Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name
        ))),
        _ => Ok(()),
    }
}

/// An update must mean the object that is there.
fn check_identity(call: &Call, live: &Value, new: &Value) -> Result<()> {
    let resource = &call.served.resource;
    let name = meta::name(live);
    let sent = meta::name(new);
    if sent.is_empty() {
        return Err(ApiError::nameless(name));
    }
    if sent != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({sent}) does not match the name on the URL ({name})"
        )));
    }
    if !meta::namespace(new).is_empty() && meta::namespace(new) != meta::namespace(live) {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let (uid, live_uid) = (meta::uid(new), meta::uid(live));
    // Of a patch only the result counts, and a uid that has changed is a bad one.
    if !uid.is_empty() && uid != live_uid && call.verb != "patch" {
        return Err(ApiError::other_uid(resource, name, &call.storage_key(), (uid, live_uid)));
    }
    let version = match meta::field(new, "resourceVersion") {
        "0" => "",
        version => version,
    };
    if version.parse::<u64>().is_err() && !version.is_empty() {
        return Err(ApiError::unforeseen(&format!("strconv.ParseUint: parsing {version:?}: invalid syntax")));
    }
    if version.is_empty() && !resource.behaviour.blind_update {
        return Err(ApiError::unseen(resource, name));
    }
    if !version.is_empty() && version != meta::field(live, "resourceVersion") {
        return Err(ApiError::modified(resource, name));
    }
    Ok(())
}

/// What a client says about metadata that nobody can change, and that is not so. What it leaves out stays as it is, and the
/// time of a deletion does so in any case.
fn changed_fixed(live: &Value, new: &Value) -> Vec<(&'static str, Value)> {
    let changed = |field: &'static str| {
        let (held, said) = (live.get("metadata")?.get(field), new.get("metadata")?.get(field)?);
        let settled = field == "deletionTimestamp" && held.is_some();
        (!settled && *said != "" && Some(said) != held).then(|| (field, said.clone()))
    };
    ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"].into_iter().filter_map(changed).collect()
}

/// Puts back what the client may not change: the server's metadata, and the part the other endpoint writes.
fn restore(call: &Call, live: &Value, new: &mut Value) {
    if call.subresource == "status" && call.served.resource.custom {
        let status = new.get("status").cloned();
        *new = live.clone();
        meta::set(meta::members(new), "status", status);
        return;
    }
    if call.subresource == "status" {
        // Built-in kinds let most of the metadata of a status pass.
        let (status, metadata) = (new.get("status").cloned(), new.get("metadata").cloned());
        *new = live.clone();
        meta::set(meta::members(new), "status", status);
        meta::set(meta::members(new), "metadata", metadata);
        for field in call.served.resource.behaviour.fixed_by_status {
            meta::set(meta::metadata(new), field, live.pointer(&format!("/metadata/{field}")).cloned());
        }
    }
    let metadata = meta::metadata(new);
    for field in [
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ] {
        meta::set(metadata, field, live.get("metadata").and_then(|metadata| metadata.get(field)).cloned());
    }
    metadata.shift_remove("selfLink");
    if call.served.has("status") && call.subresource != "status" {
        meta::set(meta::members(new), "status", live.get("status").cloned());
    }
}

/// Objects are stored in one version, whichever they came in.
fn stamp_version(call: &Call, object: &mut Value) {
    let resource = &call.served.resource;
    // Behind a lens everything was renamed when it came in.
    if let Some(storage) = resource.storage().filter(|_| resource.lens.is_none()) {
        let version = api_version(&resource.group, &storage.name);
        meta::members(object).insert("apiVersion".into(), version.into());
    }
}

/// The annotations, without the one that the Deployment controller of a real cluster writes along with the status, which is
/// why it is not counted there.
fn notes(object: &Value) -> BTreeMap<&String, &Value> {
    let all = object.pointer("/metadata/annotations").and_then(Value::as_object);
    all.into_iter().flatten().filter(|(key, _)| *key != "deployment.kubernetes.io/revision").collect()
}

/// Whether anything outside metadata and status differs.
fn desired_state_changed(call: &Call, live: &Value, new: &Value) -> bool {
    let ignored = |key: &str| match key {
        "metadata" | "apiVersion" | "kind" => true,
        "status" => call.served.has("status"),
        _ => false,
    };
    part(live, ignored) != part(new, ignored)
}

/// The members of an object that are not left out, in the order of their names.
fn part(object: &Value, ignored: impl Fn(&str) -> bool) -> BTreeMap<&String, &Value> {
    object.as_object().into_iter().flatten().filter(|(key, _)| !ignored(key)).collect()
}

/// Whether an object that is being deleted has nothing left to wait for.
pub(crate) fn is_finished(object: &Value) -> bool {
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    meta::deleting(object)
        && meta::finalizers(object).is_empty()
        && grace == 0
        && object.pointer("/spec/finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty)
}
