//! What this version can do, as data: later work changes this file and no rule.

/// What this version can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Routers that are built.
    pub routers: &'static [Router],
    /// Target kinds that are built; `KnativeService` stands for Knative's own Service.
    pub targets: &'static [&'static str],
    /// Autoscaler kinds that are built.
    pub autoscalers: &'static [&'static str],
    /// Metric systems that are built.
    pub metric_providers: &'static [&'static str],
    /// Chat systems that are built.
    pub alert_providers: &'static [&'static str],
}

/// A router and the strategies it can carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Router {
    /// As written in `spec.provider`.
    pub name: &'static str,
    /// Strategies.
    pub strategies: &'static [StrategyName],
}

impl Router {
    /// Whether the route is an HTTPRoute.
    pub fn is_gateway_api(self) -> bool {
        self.name.starts_with("gatewayapi:")
    }
}

/// A way to let users meet a new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrategyName {
    /// Growing weights.
    Weighted,
    /// Users chosen by request: `match` with `iterations`.
    AbTest,
    /// All at once after checks: `iterations`.
    BlueGreen,
    /// Copies of requests before real ones: `mirror`.
    Mirror,
    /// A user stays on one variant: `sessionAffinity`.
    Affinity,
}

impl StrategyName {
    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Weighted => "weighted canary",
            Self::AbTest => "A/B testing",
            Self::BlueGreen => "blue/green",
            Self::Mirror => "traffic mirroring",
            Self::Affinity => "session affinity",
        }
    }
}

/// This version.
pub(super) static BUILT: Capabilities = Capabilities {
    routers: &[Router { name: "gatewayapi:v1", strategies: &[StrategyName::Weighted] }],
    targets: &["Deployment"],
    autoscalers: &["HorizontalPodAutoscaler"],
    metric_providers: &["prometheus"],
    alert_providers: &[],
};

impl Capabilities {
    /// What this version can do.
    pub fn built() -> &'static Self {
        &BUILT
    }

    /// The router of that name.
    pub fn router(&self, name: &str) -> Option<Router> {
        self.routers.iter().copied().find(|router| router.name == name)
    }

    /// The names of the routers, for a message.
    pub(super) fn router_names(&self) -> String {
        self.routers.iter().map(|router| router.name).collect::<Vec<_>>().join(" or ")
    }
}
