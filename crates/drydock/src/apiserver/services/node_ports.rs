//! Ports of the nodes, by which Services are reached from outside. Nothing listens there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use serde_json::{Value, json};

use super::{needs_health_check, part};
use crate::apiserver::error::{Cause, Hitch};
use crate::apiserver::meta;
use crate::apiserver::store::State;

/// The ports that are given out.
const RANGE: RangeInclusive<i64> = 30000..=32767;
/// The last port before those that a trial is shown.
const TRIED: i64 = 32768;

/// What one request may still have.
struct Pool {
    taken: BTreeSet<i64>,
    /// What this request was given.
    given: Vec<i64>,
    dry_run: bool,
}

impl Pool {
    fn of(state: &State, dry_run: bool) -> Self {
        let taken = state.list("services", None).flat_map(|(_, service)| {
            let health = needs_health_check(service).then(|| number(&service["spec"], "healthCheckNodePort"));
            numbers(service).into_iter().chain(health)
        });
        Self { taken: taken.collect(), given: Vec::new(), dry_run }
    }

    fn take(&mut self, port: i64) -> Result<(), String> {
        if !self.dry_run && !RANGE.contains(&port) {
            let (first, last) = (RANGE.start(), RANGE.end());
            return Err(format!("provided port is not in the valid range. The range of valid ports is {first}-{last}"));
        }
        if self.taken.contains(&port) || self.given.contains(&port) {
            return Err("provided port is already allocated".to_owned());
        }
        self.given.push(port);
        Ok(())
    }

    /// Any that is free. A trial does not look whether it is.
    fn take_any(&mut self) -> Option<i64> {
        let port = if self.dry_run {
            self.given.iter().max().copied().unwrap_or(TRIED) + 1
        } else {
            RANGE.clone().find(|port| !self.taken.contains(port) && !self.given.contains(port))?
        };
        self.given.push(port);
        Some(port)
    }
}

/// Gives a Service the ports it needs.
pub(super) fn give(service: &mut Value, old: Option<&Value>, state: &State, dry_run: bool) -> Result<(), Hitch> {
    let checked = needs_health_check(service) && !old.is_some_and(needs_health_check);
    if !may_have(service) && !checked {
        return Ok(());
    }
    let mut pool = Pool::of(state, dry_run);
    if may_have(service) {
        match old {
            None => give_new(service, &mut pool)?,
            Some(old) => give_changed(service, old, &mut pool)?,
        }
    }
    if checked {
        let failed = |what: String, why: &str| Hitch::Failed(format!("failed to allocate {what}: {why}"));
        match number(&service["spec"], "healthCheckNodePort") {
            0 => {
                let port =
                    pool.take_any().ok_or_else(|| failed("a HealthCheck NodePort 0".to_owned(), "range is full"))?;
                meta::child(service, "spec").insert("healthCheckNodePort".into(), port.into());
            }
            port => pool.take(port).map_err(|why| failed(format!("requested HealthCheck NodePort {port}"), &why))?,
        }
    }
    Ok(())
}

/// Ports with one number, of several protocols, share a port of the node.
fn give_new(service: &mut Value, pool: &mut Pool) -> Result<(), Hitch> {
    let all = needs(service);
    let asked: Vec<_> = ports(service).iter().map(|port| (number(port, "port"), number(port, "nodePort"))).collect();
    let mut given: BTreeMap<i64, i64> = BTreeMap::new();
    for (at, (port, own)) in asked.iter().enumerate() {
        if *own == 0 && !all {
            continue;
        }
        let chosen = match given.get(port).copied() {
            None => {
                let wanted = asked.iter().find(|(other, own)| other == port && *own != 0).map(|(_, own)| *own);
                let chosen = match wanted {
                    Some(wanted) => pool.take(wanted).map(|()| wanted).map_err(|why| refused(at, wanted, &why))?,
                    None => pool.take_any().ok_or_else(full)?,
                };
                given.insert(*port, chosen);
                chosen
            }
            Some(shared) if *own == 0 || *own == shared => shared,
            Some(_) => pool.take(*own).map(|()| *own).map_err(|why| refused(at, *own, &why))?,
        };
        put(service, at, chosen);
    }
    Ok(())
}

fn give_changed(service: &mut Value, old: &Value, pool: &mut Pool) -> Result<(), Hitch> {
    let (all, had) = (needs(service), numbers(old));
    let mut seen: Vec<(String, i64)> = Vec::new();
    for at in 0..ports(service).len() {
        let Some(port) = ports(service).get(at) else { continue };
        let (protocol, mut own) = (meta::text(port, "/protocol").to_owned(), number(port, "nodePort"));
        if own == 0 && !all {
            continue;
        }
        if own == 0 {
            own = pool.take_any().ok_or_else(full)?;
            put(service, at, own);
        } else if !had.contains(&own) && !pool.given.contains(&own) {
            pool.take(own).map_err(|why| refused(at, own, &why))?;
        }
        if seen.contains(&(protocol.clone(), own)) {
            return Err(Hitch::Unforeseen(format!("duplicate nodePort: {{{protocol} {own}}}")));
        }
        seen.push((protocol, own));
    }
    Ok(())
}

/// An update that leaves ports out keeps them, each by its name.
pub(super) fn keep(service: &mut Value, old: &Value) {
    if needs(old) && needs(service) {
        let (had, has) = (numbers(old), numbers(service));
        let named: BTreeMap<_, _> =
            ports(old).iter().map(|port| (meta::text(port, "/name"), number(port, "nodePort"))).collect();
        for at in 0..ports(service).len() {
            let Some(port) = ports(service).get(at).filter(|port| number(port, "nodePort") == 0) else { continue };
            let before = named.get(meta::text(port, "/name")).copied().unwrap_or(0);
            if before != 0 && !(had.contains(&before) && has.contains(&before)) {
                put(service, at, before);
            }
        }
    }
    if needs_health_check(old) && needs_health_check(service) && number(&service["spec"], "healthCheckNodePort") == 0 {
        let kept = part(old, "healthCheckNodePort").cloned();
        meta::set(meta::child(service, "spec"), "healthCheckNodePort", kept);
    }
}

/// A Service that is no longer reached from outside gives its ports back, unless somebody asks for others.
pub(super) fn forget(service: &mut Value, old: &Value) {
    let had = numbers(old);
    if !may_have(old) || may_have(service) || !numbers(service).iter().all(|port| had.contains(port)) {
        return;
    }
    for port in meta::child(service, "spec").get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        meta::members(port).shift_remove("nodePort");
    }
}

/// Whether a Service can have ports of the nodes.
fn may_have(service: &Value) -> bool {
    ["NodePort", "LoadBalancer"].contains(&meta::text(service, "/spec/type"))
}

/// Whether each of its ports must have one.
fn needs(service: &Value) -> bool {
    may_have(service) && part(service, "allocateLoadBalancerNodePorts") != Some(&json!(false))
        || meta::text(service, "/spec/type") == "NodePort"
}

fn ports(service: &Value) -> &[Value] {
    part(service, "ports").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn number(value: &Value, field: &str) -> i64 {
    value.get(field).and_then(Value::as_i64).unwrap_or(0)
}

/// The ports of the nodes that a Service has.
fn numbers(service: &Value) -> Vec<i64> {
    ports(service).iter().map(|port| number(port, "nodePort")).filter(|port| *port != 0).collect()
}

fn put(service: &mut Value, at: usize, number: i64) {
    if let Some(port) = service.pointer_mut(&format!("/spec/ports/{at}")) {
        meta::members(port).insert("nodePort".into(), number.into());
    }
}

fn refused(at: usize, port: i64, why: &str) -> Hitch {
    Hitch::Invalid(vec![Cause::invalid(format!("spec.ports[{at}].nodePort"), &json!(port), why)])
}

fn full() -> Hitch {
    Hitch::Failed("failed to allocate a nodePort: range is full".to_owned())
}
