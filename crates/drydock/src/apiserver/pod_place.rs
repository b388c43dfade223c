//! Where a pod is: the sub-resources that give it a node, and that take it from there.

use serde_json::{Value, json};

use super::delete::DeleteOptions;
use super::error::{ApiError, Cause, Result, unregistered};
use super::meta;
use super::protobuf;
use super::request::Call;
use super::server::{Answer, Reply, Server};

/// Assigns a pod to a node. The only way a pod's node can be set after its creation.
pub(crate) fn bind(server: &Server, call: &Call) -> Result<Reply> {
    let binding = asked(call, "Binding", "core")?;
    refuse_target(&binding)?;
    let mut state = server.store.lock();
    let live = call.live(&state)?;
    let resource = &call.served.resource;
    for (field, what) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let (meant, found) = (meta::field(&binding, field), meta::field(&live, field));
        if !meant.is_empty() && meant != found {
            let key = call.storage_key();
            return Err(ApiError::stored_otherwise(resource, &call.name, &key, what, (meant, found)));
        }
    }
    let name = &call.name;
    let node = meta::text(&live, "/spec/nodeName");
    let gates = live.pointer("/spec/schedulingGates").and_then(Value::as_array);
    let why = match () {
        () if meta::deleting(&live) => format!("pod {name} is being deleted, cannot be assigned to a host"),
        () if !node.is_empty() => format!("pod {name} is already assigned to node {node:?}"),
        () if gates.is_some_and(|gates| !gates.is_empty()) => format!("pod {name} has non-empty .spec.schedulingGates"),
        () => String::new(),
    };
    if !why.is_empty() {
        return Err(ApiError::conflict_at("pods/binding", name, &why));
    }
    let mut bound = Value::clone(&live);
    meta::child(&mut bound, "spec").insert("nodeName".into(), meta::text(&binding, "/target/name").into());
    for field in ["annotations", "labels"] {
        let said = binding.pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
        for (key, value) in said.into_iter().flatten() {
            let held = meta::members(meta::metadata(&mut bound).entry(field).or_insert_with(|| json!({})));
            held.insert(key.clone(), value.clone());
        }
    }
    set_condition(server, &mut bound, json!({"type": "PodScheduled", "status": "True"}));
    if !call.dry_run() {
        server.put(&mut state, call.author(), call.id(), bound);
    }
    Ok(done())
}

/// Deletes a pod politely, and leaves word of who wanted that. There are no disruption budgets that could refuse it.
pub(crate) fn evict(server: &Server, call: &Call) -> Result<Reply> {
    let eviction = asked(call, "Eviction", "policy")?;
    let options = match eviction.get("deleteOptions") {
        Some(options) => serde_json::from_value(options.clone())
            .map_err(|error| ApiError::bad_request(format!("invalid delete options: {error}")))?,
        None => DeleteOptions::default(),
    };
    let mut state = server.store.lock();
    let live = call.live(&state)?;
    if call.dry_run() || !options.dry_run.is_empty() {
        options.preconditions.check(&call.served.resource, &live, options.together)?;
        return Ok(done());
    }
    let mut evicted = Value::clone(&live);
    let why = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting"});
    set_condition(server, &mut evicted, why);
    options.preconditions.check(&call.served.resource, &live, options.together)?;
    let live = if evicted == *live { live } else { server.put(&mut state, call.author(), call.id(), evicted) };
    server.delete_object(&mut state, call.author(), &call.served.resource, call.id(), &live, &options);
    Ok(done())
}

/// The body, which is of a kind of its own and names the pod.
fn asked(call: &Call, kind: &str, group: &str) -> Result<Value> {
    let object = call.object()?;
    let (version, said) = (meta::text(&object, "/apiVersion"), meta::text(&object, "/kind"));
    if !said.is_empty() && said != kind {
        let short = version.rsplit('/').next().unwrap_or(version);
        let why = if protobuf::is_known(version, said) {
            format!("converting ({short}.{said}) to ({group}.{kind}): unknown conversion")
        } else {
            unregistered(version, said)
        };
        return Err(ApiError::cannot_be(short, said, kind, &why));
    }
    if call.namespace.as_deref().is_some_and(|place| !["", place].contains(&meta::namespace(&object))) {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(why));
    }
    if meta::name(&object) != call.name {
        return Err(ApiError::bad_request(format!("name in URL does not match name in {kind} object")));
    }
    Ok(object)
}

/// Pods are bound to nodes that have a name. A real server has no better word for anything else than that it failed.
fn refuse_target(binding: &Value) -> Result<()> {
    let mut causes = Vec::new();
    let kind = meta::text(binding, "/target/kind");
    if !["", "Node"].contains(&kind) {
        causes.push(Cause::unsupported("target.kind", &json!(kind), &["Node", "<empty>"].map(Value::from)));
    }
    if meta::text(binding, "/target/name").is_empty() {
        causes.push(Cause::required("target.name", ""));
    }
    let lines: Vec<_> = causes.iter().map(Cause::line).collect();
    match lines.as_slice() {
        [] => Ok(()),
        [one] => Err(ApiError::unforeseen(one)),
        more => Err(ApiError::unforeseen(&format!("[{}]", more.join(", ")))),
    }
}

/// Writes a condition of a pod, unless it holds already.
fn set_condition(server: &Server, pod: &mut Value, condition: Value) {
    let (kind, status) = (condition["type"].clone(), condition["status"].clone());
    let conditions = meta::child(pod, "status").entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(conditions) = conditions else { return };
    let held = conditions.iter_mut().find(|held| held["type"] == kind);
    let since = match &held {
        Some(held) if held["status"] == status => held["lastTransitionTime"].clone(),
        _ => meta::seconds(server.clock.now()).into(),
    };
    let mut written = condition;
    written["lastProbeTime"] = Value::Null;
    written["lastTransitionTime"] = since;
    match held {
        Some(held) => *held = written,
        None => conditions.push(written),
    }
}

fn done() -> Reply {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Answer::Plain(201, status).into()
}
