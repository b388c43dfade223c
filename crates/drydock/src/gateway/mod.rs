//! The gateway: a real HTTP proxy that obeys Gateway and HTTPRoute.
//!
//! One loop watches the objects. On each change it computes everything again ([`table`], pure), puts the new table into
//! the data plane ([`forward`]), and only then writes what changed into statuses. So whoever reads a status at a
//! generation knows that requests already follow it.
//!
//! Each Gateway has an address of its own, a Service `{gateway}-{class}` that leads there, and counters like those of
//! an Istio ingress gateway. Listeners speak HTTP only; TLS, TCP and GRPC routes are not served.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::clock::Clock;
use crate::names::follow::{Change, follow};
use crate::names::{Names, Publication, ServiceName, publish};
use crate::telemetry::Telemetry;

mod cors;
mod filters;
mod forward;
mod matching;
mod spec;
mod status;
mod table;
mod tee;
mod weights;
mod world;

use forward::DataPlane;
use table::{Compiled, CompiledGateway, class_of, compile};
use world::{Key, Object, World};

/// The API group of Gateway and HTTPRoute.
const GROUP: &str = "gateway.networking.k8s.io";

/// Classes that are served, each with the name of its controller.
pub(crate) const CLASSES: [(&str, &str); 2] =
    [("istio", "istio.io/gateway-controller"), ("seaway", "drydock.seaway/gateway-controller")];

const MANAGER: &str = "drydock-gateway";
const LOAD_BALANCER_CLASS: &str = "drydock.seaway/gateway";

/// Where counters are served, as by Istio's sidecar.
const TELEMETRY_PORT: u16 = 15020;

/// Gateways get addresses in a corner of the pod network that no pod uses.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 244, 254, 1);

const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(5);

/// A running gateway; dropping it closes its listeners and stops its watches.
pub struct Gateway {
    counters: Counters,
    _task: AbortOnDropHandle<()>,
}

/// The counters of every Gateway that was ever served.
type Counters = Arc<Mutex<Vec<Telemetry>>>;

impl Gateway {
    /// Creates the GatewayClasses if they are missing, then serves every Gateway of theirs.
    pub async fn start(client: Client, names: Names, clock: Clock) -> kube::Result<Self> {
        let classes: Api<DynamicObject> = Api::all_with(client.clone(), &resource("v1", "GatewayClass"));
        for (name, controller) in CLASSES {
            let mut class = DynamicObject::new(name, &resource("v1", "GatewayClass"));
            class.data = json!({"spec": {"controllerName": controller}});
            match classes
                .create(&PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() }, &class)
                .await
            {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                other => drop(other?),
            }
        }
        let control = Control {
            client,
            names,
            clock,
            world: Arc::default(),
            wake: Arc::default(),
            compiled: Compiled::default(),
            running: BTreeMap::new(),
            counters: Arc::default(),
        };
        let counters = Arc::clone(&control.counters);
        Ok(Self { counters, _task: AbortOnDropHandle::new(tokio::spawn(control.run())) })
    }

    /// How many requests were sent to a pod a second time; see [`Telemetry::resent`].
    pub fn resent(&self) -> u64 {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Telemetry::resent).sum()
    }
}

/// A Gateway that is being served.
struct Running {
    address: IpAddr,
    plane: Arc<DataPlane>,
    listeners: BTreeMap<u16, AbortOnDropHandle<()>>,
    /// The ports of the Service and its EndpointSlice as they were last written.
    published: BTreeSet<u16>,
    _telemetry: Option<AbortOnDropHandle<()>>,
}

struct Control {
    client: Client,
    names: Names,
    clock: Clock,
    world: Arc<Mutex<World>>,
    wake: Arc<Notify>,
    compiled: Compiled,
    running: BTreeMap<Key, Running>,
    counters: Counters,
}

/// Kinds of which the first list must be there before anything is served or said.
const WATCHES: u8 = 5;

impl Control {
    async fn run(mut self) {
        let synced = watch::Sender::new(0_u8);
        let mut watches = JoinSet::new();
        watches.spawn(self.follow(&synced, "v1", "GatewayClass", |world| &mut world.classes));
        watches.spawn(self.follow(&synced, "v1", "Gateway", |world| &mut world.gateways));
        watches.spawn(self.follow(&synced, "v1", "HTTPRoute", |world| &mut world.routes));
        watches.spawn(self.follow(&synced, "v1beta1", "ReferenceGrant", |world| &mut world.grants));
        watches.spawn(self.follow_namespaces(&synced));
        let _ = synced.subscribe().wait_for(|done| *done >= WATCHES).await;
        self.names.synced().await;
        let mut services = self.names.service_changes();
        let mut pause = FIRST_RETRY;
        loop {
            services.catch_up();
            let retry = match self.round().await {
                Ok(()) => {
                    pause = FIRST_RETRY;
                    Duration::MAX
                }
                Err(error) => {
                    tracing::debug!(%error, "gateway will write again");
                    let now = pause;
                    pause = (pause * 2).min(LAST_RETRY);
                    now
                }
            };
            tokio::select! {
                biased;
                () = self.wake.notified() => {}
                _ = services.rung() => {}
                () = sleep(retry) => {}
            }
        }
    }

    /// Watches one kind into a table of the world.
    fn follow<S: DeserializeOwned + Send + Sync + 'static>(
        &self,
        synced: &watch::Sender<u8>,
        version: &str,
        kind: &str,
        table: fn(&mut World) -> &mut world::Table<S>,
    ) -> impl Future<Output = ()> + Send + use<S> {
        let api = Api::<DynamicObject>::all_with(self.client.clone(), &resource(version, kind));
        follow(api, self.sink(synced, move |world, change| world::apply(table(world), change)))
    }

    fn follow_namespaces(&self, synced: &watch::Sender<u8>) -> impl Future<Output = ()> + Send + use<> {
        let api = Api::<Namespace>::all(self.client.clone());
        follow(
            api,
            self.sink(synced, |world, change| {
                let read = |namespace: &Namespace| (namespace.name_any(), namespace.labels().clone());
                match change {
                    Change::Replace(all) => world.namespaces = all.iter().map(read).collect(),
                    Change::Apply(namespace) => world.namespaces.extend([read(&namespace)]),
                    Change::Delete(namespace) => {
                        world.namespaces.remove(&namespace.name_any());
                    }
                }
            }),
        )
    }

    /// Applies changes to the world and wakes the loop.
    fn sink<K, F: Fn(&mut World, Change<K>) + Send>(
        &self,
        synced: &watch::Sender<u8>,
        apply: F,
    ) -> impl FnMut(Change<K>) + Send + use<K, F> {
        let (world, wake, synced) = (Arc::clone(&self.world), Arc::clone(&self.wake), synced.clone());
        let mut listed = false;
        move |change| {
            let first = !listed && matches!(change, Change::Replace(_));
            apply(&mut world.lock().unwrap_or_else(PoisonError::into_inner), change);
            if first {
                listed = true;
                synced.send_modify(|done| *done += 1);
            }
            wake.notify_one();
        }
    }

    /// Brings the data plane, the Services and the statuses in line with the world. Every write is tried; the first
    /// error is returned, so that the round is repeated.
    async fn round(&mut self) -> kube::Result<()> {
        let snapshot = {
            let world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
            let offers = |service: &ServiceName, port: u16| {
                self.names.service(service).is_some_and(|entry| entry.ports.iter().any(|offered| offered.port == port))
            };
            let compiled = compile(&world, &offers, &self.compiled);
            Snapshot::of(&world, compiled)
        };
        let Snapshot { mut compiled, classes, gateways, routes } = snapshot;
        let mut result = Ok(());
        self.running.retain(|key, _| compiled.gateways.contains_key(key));
        for gateway in &gateways {
            if let Some(new) = compiled.gateways.get_mut(&gateway.object.key) {
                let table = std::mem::take(&mut new.table);
                self.serve(gateway, table).await;
            }
        }
        for class in &classes {
            if let Some(status) = status::of_class(class.generation, &class.status, self.clock.now()) {
                keep_first(&mut result, self.write("GatewayClass", class, status).await);
            }
        }
        // Routes before Gateways: rollouts wait for routes.
        for route in &routes {
            let reports = compiled.routes.get(&route.key).map(Vec::as_slice).unwrap_or_default();
            if let Some(status) = status::of_route(reports, route.generation, &route.status, self.clock.now()) {
                keep_first(&mut result, self.write("HTTPRoute", route, status).await);
            }
        }
        for gateway in &gateways {
            if let Some(compiled) = compiled.gateways.get(&gateway.object.key) {
                keep_first(&mut result, self.publish(gateway, compiled).await);
            }
        }
        self.compiled = compiled;
        result
    }

    /// Gives a Gateway its address and its listeners, and makes it obey a table.
    async fn serve(&mut self, gateway: &Ours, table: table::Table) {
        let key = &gateway.object.key;
        let ports = table.ports();
        if !self.running.contains_key(key) {
            let address = self.free_address();
            let telemetry = Telemetry::new(&key.namespace, &gateway.workload());
            let counters = self.serve_telemetry(address, &telemetry).await;
            self.counters.lock().unwrap_or_else(PoisonError::into_inner).push(telemetry.clone());
            let plane = Arc::new(DataPlane::new(self.names.clone(), telemetry));
            let running = Running {
                address,
                plane,
                listeners: BTreeMap::new(),
                published: BTreeSet::new(),
                _telemetry: counters,
            };
            self.running.insert(key.clone(), running);
        }
        let Some(running) = self.running.get_mut(key) else { return };
        running.plane.obey(table);
        running.listeners.retain(|port, _| ports.contains(port));
        for port in ports {
            if running.listeners.contains_key(&port) {
                continue;
            }
            match self.names.net().bind(SocketAddr::new(running.address, port)).await {
                Ok(listener) => {
                    let task = tokio::spawn(Arc::clone(&running.plane).serve(listener));
                    running.listeners.insert(port, AbortOnDropHandle::new(task));
                }
                Err(error) => tracing::warn!(gateway = %key, port, %error, "gateway cannot listen"),
            }
        }
    }

    async fn serve_telemetry(&self, address: IpAddr, telemetry: &Telemetry) -> Option<AbortOnDropHandle<()>> {
        let address = SocketAddr::new(address, TELEMETRY_PORT);
        crate::proxy::serve_router(self.names.net(), address, telemetry.router())
            .await
            .inspect_err(|error| tracing::warn!(%address, %error, "no counters of this gateway"))
            .ok()
    }

    fn free_address(&self) -> IpAddr {
        let taken: BTreeSet<IpAddr> = self.running.values().map(|running| running.address).collect();
        let candidates = (0..250_u32).map(|offset| IpAddr::V4(Ipv4Addr::from(u32::from(FIRST_ADDRESS) + offset)));
        let free = candidates.into_iter().find(|address| !taken.contains(address));
        free.unwrap_or(IpAddr::V4(FIRST_ADDRESS))
    }

    /// Publishes a Gateway's Service and says how the Gateway is.
    async fn publish(&mut self, gateway: &Ours, compiled: &CompiledGateway) -> kube::Result<()> {
        let Some(running) = self.running.get_mut(&gateway.object.key) else { return Ok(()) };
        let object = &gateway.object;
        let service = ServiceName::new(object.key.namespace.as_str(), gateway.workload());
        let ports: Vec<(String, u16)> = running.listeners.keys().map(|port| (format!("http-{port}"), *port)).collect();
        let entry = self.names.service(&service);
        let offered: Option<BTreeSet<u16>> =
            entry.as_ref().map(|entry| entry.ports.iter().map(|port| port.port).collect());
        let wanted: BTreeSet<u16> = running.listeners.keys().copied().collect();
        let done = running.published == wanted && offered.as_ref() == Some(&wanted);
        if !ports.is_empty() && !done {
            let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            publish(
                &self.client,
                &Publication {
                    service: service.clone(),
                    load_balancer: Some(LOAD_BALANCER_CLASS),
                    address: running.address,
                    ports,
                    labels: vec![label("gateway.networking.k8s.io/gateway-name", &object.key.name)],
                    annotations: vec![
                        label("prometheus.io/scrape", "true"),
                        label("prometheus.io/port", &TELEMETRY_PORT.to_string()),
                        label("prometheus.io/path", "/stats/prometheus"),
                    ],
                    owner: Some(json!({
                        "apiVersion": format!("{GROUP}/v1"), "kind": "Gateway", "name": object.key.name, "uid": object.uid,
                    })),
                    manager: MANAGER,
                },
            )
            .await?;
            running.published = wanted;
        }
        let address = entry.as_ref().and_then(|entry| entry.cluster_ips.first()).map(ToString::to_string);
        if let (Some(entry), Some(address)) = (&entry, &address) {
            let host = format!("{}.{}.svc.cluster.local", service.name, service.namespace);
            if !entry.ingress.contains(&host) || !entry.ingress.contains(address) {
                let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": address, "hostname": host}]}}});
                let services = Api::<Service>::namespaced(self.client.clone(), &service.namespace);
                let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
                services.patch_status(&service.name, &params, &Patch::Merge(status)).await?;
            }
        }
        let now = self.clock.now();
        let status =
            status::of_gateway(&compiled.listeners, address.as_deref(), object.generation, &object.status, now);
        match status {
            Some(status) => self.write("Gateway", object, status).await,
            None => Ok(()),
        }
    }

    /// Writes a status, if the object is still the one that was read. If not, its newer version is on the way to us.
    async fn write<S>(&self, kind: &str, object: &Object<S>, status: Value) -> kube::Result<()> {
        let resource = resource("v1", kind);
        let api: Api<DynamicObject> = if object.key.namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), &object.key.namespace, &resource)
        };
        let patch = json!({"metadata": {"resourceVersion": object.resource_version}, "status": status});
        let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
        match api.patch_status(&object.key.name, &params, &Patch::Merge(patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// A Gateway of one of our classes.
struct Ours {
    object: Arc<Object<spec::GatewaySpec>>,
    class: &'static str,
}

impl Ours {
    /// The name of the Service and of the workload in the counters.
    fn workload(&self) -> String {
        format!("{}-{}", self.object.key.name, self.class)
    }
}

/// What a round needs after the lock on the world is gone.
struct Snapshot {
    compiled: Compiled,
    classes: Vec<Arc<Object<spec::GatewayClassSpec>>>,
    gateways: Vec<Ours>,
    routes: Vec<Arc<Object<spec::HttpRouteSpec>>>,
}

impl Snapshot {
    fn of(world: &World, compiled: Compiled) -> Self {
        let is_ours = |controller: &str| CLASSES.iter().any(|(_, ours)| *ours == controller);
        let classes = world.classes.values().filter(|class| is_ours(&class.spec.controller_name)).cloned().collect();
        let gateways = world
            .gateways
            .values()
            .filter_map(|object| Some(Ours { object: Arc::clone(object), class: class_of(world, object)?.0 }))
            .collect();
        Self { compiled, classes, gateways, routes: world.routes.values().cloned().collect() }
    }
}

fn resource(version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, version, kind))
}

fn keep_first(result: &mut kube::Result<()>, next: kube::Result<()>) {
    if result.is_ok() {
        *result = next;
    }
}

async fn sleep(duration: Duration) {
    if duration == Duration::MAX {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(duration).await;
}
