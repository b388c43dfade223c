//! Routers: who moves traffic, and in which objects.
//!
//! A router is pure: cached objects in, changes out. It is told the backends and the split and knows nothing of phases.
//! What it cannot do it says in [`Capabilities`], so that a plan that asks for it is refused before any traffic moves.
//! Adding a router is one file here, one line in [`ROUTERS`] and one module in `seaway_api::foreign`.

pub mod gateway_api;

use jiff::Timestamp;
use seaway_api::{Canary, FieldError};
use seaway_core::effect::Destination;
use seaway_core::observed::Route;
use seaway_core::split::{Split, Variant};

use crate::change::{Change, Kind};
use crate::refusal::Refusal;
use crate::world::World;

/// Moves traffic between the backends of one route.
pub trait Router: Send + Sync {
    /// Whether `spec.provider` means this router.
    fn serves(&self, provider: &str) -> bool;

    /// What this router can do.
    fn capabilities(&self) -> Capabilities;

    /// The kinds of objects it reads and writes; they must be watched.
    fn kinds(&self) -> &'static [Kind];

    /// What this router cannot express of a spec, by field. Empty: everything.
    fn check(&self, canary: &Canary) -> Vec<FieldError>;

    /// The route as it stands.
    fn read(&self, subject: &Subject<'_>, world: &dyn World) -> RouteReading;

    /// The changes after which the route exists, has our shape and names this split. None when all of it is true. Of a Canary
    /// that is being deleted only the split counts, where a route of its own has one.
    fn write(&self, subject: &Subject<'_>, world: &dyn World, split: &Split) -> Result<Vec<Change>, Refusal>;

    /// The changes after which the route, which leads elsewhere, also names where it leads next, without a share.
    fn announce(&self, subject: &Subject<'_>, world: &dyn World, next: Destination) -> Result<Vec<Change>, Refusal>;

    /// The changes after which our route sends everything to the apex Service.
    fn lead_to_apex(&self, subject: &Subject<'_>, world: &dyn World) -> Result<Vec<Change>, Refusal>;

    /// The changes after which the route is not ours to collect, and a later Canary can tell that it was.
    fn release(&self, subject: &Subject<'_>, world: &dyn World) -> Result<Vec<Change>, Refusal>;
}

/// What a router can do beyond splitting by weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Split by weight.
    pub weights: bool,
    /// Copy requests to the canary.
    pub mirror: bool,
    /// Send requests with certain headers to the canary.
    pub ab_testing: bool,
    /// Keep a user on one variant by cookie.
    pub affinity: bool,
    /// Tell when the data plane has taken up a change. No plan is denied for its sake: where nobody tells, only the drain
    /// time is left.
    pub settles: bool,
}

impl Capabilities {
    /// What a spec asks for and a router of these capabilities does not do, by field.
    pub fn denied(self, canary: &Canary) -> Vec<FieldError> {
        let Some(analysis) = canary.spec.analysis() else { return Vec::new() };
        let weighted = analysis.step_weight.is_some() || analysis.step_weights.is_some();
        let asked = [
            (weighted && !self.weights, if analysis.step_weight.is_some() { "stepWeight" } else { "stepWeights" }),
            (analysis.mirror && !self.mirror, "mirror"),
            (!analysis.match_.is_empty() && !self.ab_testing, "match"),
            (analysis.session_affinity.is_some() && !self.affinity, "sessionAffinity"),
        ];
        let denied = asked.into_iter().filter(|(denied, _)| *denied).map(|(_, field)| {
            let problem = format!("the router of provider {} cannot do this", canary.spec.provider);
            FieldError::new(format!("spec.analysis.{field}"), problem, "remove it, or use another provider")
        });
        denied.collect()
    }
}

/// One destination of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Which variant it serves.
    pub variant: Variant,
    /// Name of the Service.
    pub host: String,
    /// Subset of the Service, where several variants share one. Canaries have a Service per variant and leave it empty;
    /// pipelines name subsets, and meshes know them.
    pub subset: Option<String>,
    /// Port of the Service.
    pub port: i64,
}

/// Whose route it is and where it leads.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// The Canary that owns the route.
    pub canary: &'a Canary,
    /// The destinations, primary first.
    pub backends: Vec<Backend>,
}

impl<'a> Subject<'a> {
    /// The route of a Canary: between its primary and its canary Service.
    pub fn of(canary: &'a Canary) -> Self {
        let port = port(canary);
        let backend = |variant, host| Backend { variant, host, subset: None, port };
        let backends = vec![
            backend(Variant::Primary, canary.primary_service()),
            backend(Variant::Canary, canary.canary_service()),
        ];
        Self { canary, backends }
    }

    /// The port of the Services that a rollout makes.
    pub fn port(&self) -> i64 {
        port(self.canary)
    }
}

fn port(canary: &Canary) -> i64 {
    canary.spec.service.as_ref().map_or(0, |service| service.port)
}

/// The route as a router reads it. The operator adds since when it has been settled, or has not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteReading {
    /// The route, without times. `None` when there is no route, or it is not ours and never was.
    pub route: Option<Route>,
    /// The data plane has taken up this generation.
    pub settled: bool,
    /// The generation that was read; a new one starts the settling again.
    pub generation: i64,
    /// When the route was last written, by the server's clock, if it tells.
    pub changed: Option<Timestamp>,
    /// An object of that name exists and is not ours: why, for people.
    pub problem: Option<String>,
}

/// Every router that is built.
const ROUTERS: [&dyn Router; 1] = [&gateway_api::GatewayApi];

/// The router of a provider (`gatewayapi:v1`), if it is built.
pub fn find(provider: &str) -> Option<&'static dyn Router> {
    ROUTERS.into_iter().find(|router| router.serves(provider))
}

/// The kinds of all routers: what must be watched.
pub fn kinds() -> impl Iterator<Item = Kind> {
    ROUTERS.into_iter().flat_map(|router| router.kinds().iter().copied())
}
