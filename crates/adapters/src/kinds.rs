//! The kinds of objects this crate reads and writes, as the API server names them.
//!
//! A constant per kind, nothing else: which of them are watched is the operator's business.

use crate::change::Kind;

const fn kind(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { group, version, kind, plural }
}

/// A workload that may be a target.
pub const DEPLOYMENT: Kind = kind("apps", "v1", "Deployment", "deployments");
/// Where an outgoing primary is stored.
pub const CONTROLLER_REVISION: Kind = kind("apps", "v1", "ControllerRevision", "controllerrevisions");
/// The three names of an app: apex, primary, canary.
pub const SERVICE: Kind = kind("", "v1", "Service", "services");
/// Plain configuration of pods.
pub const CONFIG_MAP: Kind = kind("", "v1", "ConfigMap", "configmaps");
/// Secret configuration of pods, and credentials of metric providers.
pub const SECRET: Kind = kind("", "v1", "Secret", "secrets");
/// The autoscaler of a target or a primary.
pub const HPA: Kind = kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers");
/// A route of the Gateway API.
pub const HTTP_ROUTE: Kind = kind("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes");
/// What users write.
pub const CANARY: Kind = kind("flagger.app", "v1beta1", "Canary", "canaries");
/// A query and where to send it.
pub const METRIC_TEMPLATE: Kind = kind("flagger.app", "v1beta1", "MetricTemplate", "metrictemplates");
/// Where alerts go.
pub const ALERT_PROVIDER: Kind = kind("flagger.app", "v1beta1", "AlertProvider", "alertproviders");
/// Leader election.
pub const LEASE: Kind = kind("coordination.k8s.io", "v1", "Lease", "leases");
/// What people are told; core/v1, as Flagger writes them.
pub const EVENT: Kind = kind("", "v1", "Event", "events");
