//! From objects to what the data plane looks up: a pure function of the world, with the verdicts for the statuses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::filters::Filters;
use super::matching::{Hostname, Matcher, Question};
use super::spec::{self, Listener, ParentRef};
use super::weights::{Balancer, Share};
use super::world::{Key, Object, World};
use super::{CLASSES, GROUP};
use crate::names::ServiceName;

/// The truth of a condition and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub holds: bool,
    pub reason: &'static str,
    pub message: String,
}

impl Verdict {
    pub fn yes(reason: &'static str) -> Self {
        Self { holds: true, reason, message: String::new() }
    }

    pub fn no(reason: &'static str, message: impl Into<String>) -> Self {
        Self { holds: false, reason, message: message.into() }
    }
}

/// Where a share of the requests goes.
#[derive(Clone, Debug)]
pub(super) struct Backend {
    /// The Service and port; `None` if the reference is not valid, which answers 500.
    pub target: Option<(ServiceName, u16)>,
    pub filters: Filters,
}

/// A copy of requests.
#[derive(Clone, Debug)]
pub(super) struct Mirror {
    pub target: (ServiceName, u16),
    pub share: Arc<Share>,
}

/// A rule of a route, ready to serve.
#[derive(Debug)]
pub(super) struct Rule {
    pub filters: Filters,
    pub mirrors: Vec<Mirror>,
    pub backends: Vec<Backend>,
    pub balancer: Arc<Balancer>,
    pub request_limit: Option<Duration>,
    pub backend_limit: Option<Duration>,
}

/// One match of one rule.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    hostname: Hostname,
    pub matcher: Arc<Matcher>,
    pub rule: Arc<Rule>,
}

#[derive(Debug)]
struct ListenerTable {
    hostname: Hostname,
    entries: Vec<Entry>,
}

/// The routes of one Gateway by port.
#[derive(Debug, Default)]
pub(super) struct Table {
    ports: BTreeMap<u16, Vec<ListenerTable>>,
}

impl Table {
    /// The ports to listen on.
    pub fn ports(&self) -> BTreeSet<u16> {
        self.ports.keys().copied().collect()
    }

    /// The rule for a request: within the most specific listener, the first entry that matches.
    pub fn find(&self, port: u16, host: &str, asked: &Question<'_>) -> Option<&Entry> {
        let listener = self.ports.get(&port)?.iter().find(|listener| listener.hostname.matches(host))?;
        listener.entries.iter().find(|entry| entry.hostname.matches(host) && entry.matcher.matches(asked))
    }
}

/// What is to be said about a listener.
#[derive(Clone, Debug)]
pub(super) struct ListenerReport {
    pub name: String,
    pub attached: usize,
    pub accepted: Verdict,
}

/// What is to be said about a route and one of its parents.
#[derive(Clone, Debug)]
pub(super) struct ParentReport {
    pub parent_ref: serde_json::Value,
    pub controller: &'static str,
    pub accepted: Verdict,
    pub resolved: Verdict,
}

/// One Gateway: its table and what is to be said about it.
pub(super) struct CompiledGateway {
    pub table: Table,
    pub listeners: Vec<ListenerReport>,
}

/// All of it.
#[derive(Default)]
pub(super) struct Compiled {
    pub gateways: BTreeMap<Key, CompiledGateway>,
    pub routes: BTreeMap<Key, Vec<ParentReport>>,
    /// Kept for the next time, so that a change elsewhere does not restart a rule's round robin.
    pub balancers: BTreeMap<(Key, usize), Arc<Balancer>>,
    /// The same for mirrors: by route, rule and place in it.
    pub shares: BTreeMap<(Key, usize, usize), Arc<Share>>,
}

/// The class of a Gateway, if it is one of ours.
pub(super) fn class_of(world: &World, gateway: &Object<spec::GatewaySpec>) -> Option<(&'static str, &'static str)> {
    let name = &gateway.spec.gateway_class_name;
    let class = world.classes.get(&Key { namespace: String::new(), name: name.clone() })?;
    CLASSES.iter().copied().find(|(ours, controller)| ours == name && class.spec.controller_name == *controller)
}

/// Reads the whole world. `offers` says whether a Service exists and has a port.
pub(super) fn compile(world: &World, offers: &dyn Fn(&ServiceName, u16) -> bool, before: &Compiled) -> Compiled {
    let mut compiled = Compiled::default();
    let mut attached: BTreeMap<(Key, usize), Vec<Sortable>> = BTreeMap::new();
    for route in world.routes.values() {
        let mut reading = Reading { world, offers, before, compiled: &mut compiled, route };
        let rules = reading.rules();
        let reports = reading.attach(&rules, &mut attached);
        if !reports.is_empty() {
            compiled.routes.insert(route.key.clone(), reports);
        }
    }
    for (key, gateway) in &world.gateways {
        if class_of(world, gateway).is_none() {
            continue;
        }
        let mut table = Table::default();
        let mut listeners = Vec::new();
        for (index, listener) in gateway.spec.listeners.iter().enumerate() {
            let accepted = if listener.protocol == "HTTP" {
                Verdict::yes("Accepted")
            } else {
                Verdict::no("UnsupportedProtocol", format!("{} is not spoken here, only HTTP", listener.protocol))
            };
            let mut entries = attached.remove(&(key.clone(), index)).unwrap_or_default();
            let routes: BTreeSet<Key> = entries.iter().map(|entry| entry.route.clone()).collect();
            listeners.push(ListenerReport { name: listener.name.clone(), attached: routes.len(), accepted });
            if listener.protocol == "HTTP" {
                entries.sort_by(Sortable::order);
                let hostname = Hostname::parse(listener.hostname.as_deref());
                let entries = entries.into_iter().map(|sortable| sortable.entry).collect();
                table.ports.entry(listener.port).or_default().push(ListenerTable { hostname, entries });
            }
        }
        for listeners in table.ports.values_mut() {
            listeners.sort_by_key(|listener| listener.hostname.rank());
        }
        compiled.gateways.insert(key.clone(), CompiledGateway { table, listeners });
    }
    compiled
}

/// An entry with what decides its place.
#[derive(Clone)]
struct Sortable {
    entry: Entry,
    created: Option<jiff::Timestamp>,
    route: Key,
    position: (usize, usize),
}

impl Sortable {
    /// The specification's order, ties broken by age, name and place.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let rank = |one: &Self| one.entry.hostname.rank();
        rank(self)
            .cmp(&rank(other))
            .then_with(|| self.entry.matcher.rank().cmp(&other.entry.matcher.rank()))
            .then_with(|| self.created.cmp(&other.created))
            .then_with(|| self.route.cmp(&other.route))
            .then_with(|| self.position.cmp(&other.position))
    }
}

type RuleMatches = (Arc<Rule>, Vec<Arc<Matcher>>);

/// One route being read.
struct Reading<'a> {
    world: &'a World,
    offers: &'a dyn Fn(&ServiceName, u16) -> bool,
    before: &'a Compiled,
    compiled: &'a mut Compiled,
    route: &'a Arc<Object<spec::HttpRouteSpec>>,
}

impl Reading<'_> {
    /// The rules with their matches and the verdict on references; or what cannot be obeyed.
    fn rules(&mut self) -> Result<(Vec<RuleMatches>, Verdict), String> {
        let mut resolved = Verdict::yes("ResolvedRefs");
        let mut rules = Vec::new();
        // No rules at all means one rule that matches everything; the CRD's default says the same.
        let fallback = [spec::Rule::default()];
        let written = if self.route.spec.rules.is_empty() { fallback.as_slice() } else { &self.route.spec.rules };
        for (index, rule) in written.iter().enumerate() {
            let matches: Vec<Arc<Matcher>> = if rule.matches.is_empty() {
                vec![Arc::new(Matcher::parse(&spec::Match::default())?)]
            } else {
                rule.matches.iter().map(|each| Matcher::parse(each).map(Arc::new)).collect::<Result<_, _>>()?
            };
            let rule = self.rule(index, rule, &mut resolved)?;
            rules.push((Arc::new(rule), matches));
        }
        Ok((rules, resolved))
    }

    fn rule(&mut self, index: usize, rule: &spec::Rule, resolved: &mut Verdict) -> Result<Rule, String> {
        let mut backends = Vec::new();
        let mut mirrors = Vec::new();
        for reference in &rule.backend_refs {
            let target = self.resolve(reference).map_err(|verdict| *resolved = verdict).ok();
            if reference.filters.iter().any(|filter| filter.kind == "RequestMirror") {
                return Err("RequestMirror on a backendRef is not supported".into());
            }
            backends.push(Backend { target, filters: Filters::parse(&reference.filters)? });
        }
        let copies = rule.filters.iter().filter_map(|filter| filter.request_mirror.as_ref());
        for (place, mirror) in copies.enumerate() {
            match self.resolve(&mirror.backend_ref) {
                Ok(target) => mirrors.push(Mirror { target, share: self.share((index, place), mirror) }),
                Err(verdict) => *resolved = verdict,
            }
        }
        let weights: Vec<u32> = rule.backend_refs.iter().map(|reference| reference.weight.unwrap_or(1)).collect();
        let place = (self.route.key.clone(), index);
        let balancer = match self.before.balancers.get(&place) {
            Some(balancer) if balancer.weights() == weights => Arc::clone(balancer),
            _ => Arc::new(Balancer::new(weights)),
        };
        self.compiled.balancers.insert(place, Arc::clone(&balancer));
        let limit = |text: &Option<String>| text.as_deref().map_or(Ok(None), spec::duration);
        Ok(Rule {
            filters: Filters::parse(&rule.filters)?,
            mirrors,
            backends,
            balancer,
            request_limit: limit(&rule.timeouts.request)?,
            backend_limit: limit(&rule.timeouts.backend_request)?,
        })
    }

    fn share(&mut self, (rule, place): (usize, usize), mirror: &spec::Mirror) -> Arc<Share> {
        let place = (self.route.key.clone(), rule, place);
        let new = share(mirror);
        let share = match self.before.shares.get(&place) {
            Some(share) if share.same_as(&new) => Arc::clone(share),
            _ => Arc::new(new),
        };
        self.compiled.shares.insert(place, Arc::clone(&share));
        share
    }

    /// The Service a reference means, or the verdict that says why it means none.
    fn resolve(&self, reference: &spec::BackendRef) -> Result<(ServiceName, u16), Verdict> {
        let group = reference.group.as_deref().unwrap_or_default();
        let kind = reference.kind.as_deref().unwrap_or("Service");
        if !group.is_empty() || kind != "Service" {
            return Err(Verdict::no("InvalidKind", format!("{kind} {:?} is not a Service", reference.name)));
        }
        let own = &self.route.key.namespace;
        let namespace = reference.namespace.as_ref().unwrap_or(own);
        let service = ServiceName::new(namespace.as_str(), reference.name.as_str());
        if namespace != own && !self.world.granted(own, namespace, &reference.name) {
            return Err(Verdict::no("RefNotPermitted", format!("no ReferenceGrant permits Service {service}")));
        }
        let Some(port) = reference.port else {
            return Err(Verdict::no("BackendNotFound", format!("the reference to Service {service} names no port")));
        };
        if !(self.offers)(&service, port) {
            return Err(Verdict::no("BackendNotFound", format!("Service {service} with port {port} not found")));
        }
        Ok((service, port))
    }

    /// Attaches the rules to every listener they are meant for and that lets them; says so per parent.
    fn attach(
        &self,
        rules: &Result<(Vec<RuleMatches>, Verdict), String>,
        attached: &mut BTreeMap<(Key, usize), Vec<Sortable>>,
    ) -> Vec<ParentReport> {
        let mut reports = Vec::new();
        let mut taken: BTreeSet<(Key, usize)> = BTreeSet::new();
        for raw in &self.route.spec.parent_refs {
            let Ok(parent) = serde_json::from_value::<ParentRef>(raw.clone()) else { continue };
            let is_gateway = parent.group.as_deref().unwrap_or(GROUP) == GROUP
                && parent.kind.as_deref().unwrap_or("Gateway") == "Gateway";
            let namespace = parent.namespace.as_ref().unwrap_or(&self.route.key.namespace).clone();
            let key = Key { namespace, name: parent.name.clone() };
            // A Gateway of another controller, or none, is not ours to report on.
            let Some(gateway) = self.world.gateways.get(&key).filter(|_| is_gateway) else { continue };
            let Some((_, controller)) = class_of(self.world, gateway) else { continue };
            let (accepted, resolved) = match rules {
                Err(problem) => (Verdict::no("UnsupportedValue", problem.as_str()), Verdict::yes("ResolvedRefs")),
                Ok((rules, resolved)) => match self.listeners(gateway, &parent) {
                    Err(verdict) => (verdict, resolved.clone()),
                    Ok(listeners) => {
                        for (index, hostnames) in listeners {
                            if taken.insert((key.clone(), index)) {
                                let entries = attached.entry((key.clone(), index)).or_default();
                                self.entries(rules, &hostnames, entries);
                            }
                        }
                        (Verdict::yes("Accepted"), resolved.clone())
                    }
                },
            };
            reports.push(ParentReport { parent_ref: raw.clone(), controller, accepted, resolved });
        }
        reports
    }

    fn entries(&self, rules: &[RuleMatches], hostnames: &[Hostname], entries: &mut Vec<Sortable>) {
        for hostname in hostnames {
            for (rule_index, (rule, matches)) in rules.iter().enumerate() {
                for (match_index, matcher) in matches.iter().enumerate() {
                    entries.push(Sortable {
                        entry: Entry {
                            hostname: hostname.clone(),
                            matcher: Arc::clone(matcher),
                            rule: Arc::clone(rule),
                        },
                        created: self.route.created,
                        route: self.route.key.clone(),
                        position: (rule_index, match_index),
                    });
                }
            }
        }
    }

    /// The listeners a parent reference attaches to, with the hostnames both sides agree on.
    fn listeners(
        &self,
        gateway: &Object<spec::GatewaySpec>,
        parent: &ParentRef,
    ) -> Result<Vec<(usize, Vec<Hostname>)>, Verdict> {
        let meant: Vec<(usize, &Listener)> = gateway
            .spec
            .listeners
            .iter()
            .enumerate()
            .filter(|(_, listener)| parent.section_name.as_ref().is_none_or(|name| *name == listener.name))
            .filter(|(_, listener)| parent.port.is_none_or(|port| port == listener.port))
            .collect();
        if meant.is_empty() {
            return Err(Verdict::no("NoMatchingParent", "no listener has this name and port"));
        }
        let allowed: Vec<_> = meant.into_iter().filter(|(_, listener)| self.allowed(gateway, listener)).collect();
        if allowed.is_empty() {
            return Err(Verdict::no("NotAllowedByListeners", "no listener allows routes of this namespace and kind"));
        }
        let wanted: Vec<Hostname> = match self.route.spec.hostnames.as_slice() {
            [] => vec![Hostname::Any],
            names => names.iter().map(|name| Hostname::parse(Some(name))).collect(),
        };
        let matched: Vec<_> = allowed
            .into_iter()
            .filter_map(|(index, listener)| {
                let own = Hostname::parse(listener.hostname.as_deref());
                let agreed: Vec<Hostname> = wanted.iter().filter_map(|name| own.intersect(name)).collect();
                (!agreed.is_empty()).then_some((index, agreed))
            })
            .collect();
        if matched.is_empty() {
            return Err(Verdict::no("NoMatchingListenerHostname", "no listener has a hostname of this route"));
        }
        Ok(matched)
    }

    fn allowed(&self, gateway: &Object<spec::GatewaySpec>, listener: &Listener) -> bool {
        let spec::AllowedRoutes { namespaces, kinds } = &listener.allowed_routes;
        let kind = kinds.is_empty()
            || kinds.iter().any(|kind| kind.group.as_deref().unwrap_or(GROUP) == GROUP && kind.kind == "HTTPRoute");
        let namespace = match namespaces.from.as_deref().unwrap_or("Same") {
            "All" => true,
            "Same" => self.route.key.namespace == gateway.key.namespace,
            "Selector" => self
                .world
                .namespaces
                .get(&self.route.key.namespace)
                .is_some_and(|labels| namespaces.selector.selects(labels)),
            _ => false,
        };
        kind && namespace
    }
}

fn share(mirror: &spec::Mirror) -> Share {
    match (&mirror.fraction, mirror.percent) {
        (Some(fraction), _) => Share::new(fraction.numerator, fraction.denominator.unwrap_or(100)),
        (None, Some(percent)) => Share::new(percent, 100),
        (None, None) => Share::new(1, 1),
    }
}
