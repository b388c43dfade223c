//! The names of everything that is generated from a Canary. Written once, here, because other tools rely on them.

use kube_core::ResourceExt;

use super::{AutoscalerRef, Canary, CanarySpec, CanaryStatus, Phase};

impl CanarySpec {
    /// The Service users call, and the route: `service.name`, else the target's name.
    pub fn apex_name(&self) -> &str {
        match &self.service {
            Some(service) if !service.name.is_empty() => &service.name,
            _ => &self.target_ref.name,
        }
    }

    /// The Service of the primary.
    pub fn primary_service(&self) -> String {
        primary_name(self.apex_name())
    }

    /// The Service of the canary.
    pub fn canary_service(&self) -> String {
        format!("{}-canary", self.apex_name())
    }

    /// The workload of the primary. It follows the target's name, not the Service's.
    pub fn primary_workload(&self) -> String {
        primary_name(&self.target_ref.name)
    }
}

impl AutoscalerRef {
    /// The autoscaler of the primary.
    pub fn primary_name(&self) -> String {
        primary_name(&self.name)
    }
}

/// The name of the primary's copy of anything: a workload, a ConfigMap, a Secret, a label value.
pub fn primary_name(name: &str) -> String {
    format!("{name}-primary")
}

impl Canary {
    /// Name of the object; empty if it has none.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Namespace of the object; empty if it has none.
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// `name.namespace`, the way Flagger names a Canary in Events, logs and metrics.
    pub fn key(&self) -> String {
        format!("{}.{}", self.name(), self.namespace())
    }

    /// `target.namespace`, the way Flagger names the target in Events.
    pub fn target_key(&self) -> String {
        format!("{}.{}", self.spec.target_ref.name, self.namespace())
    }

    /// See [`CanarySpec::apex_name`].
    pub fn apex_name(&self) -> &str {
        self.spec.apex_name()
    }

    /// See [`CanarySpec::primary_service`].
    pub fn primary_service(&self) -> String {
        self.spec.primary_service()
    }

    /// See [`CanarySpec::canary_service`].
    pub fn canary_service(&self) -> String {
        self.spec.canary_service()
    }

    /// See [`CanarySpec::primary_workload`].
    pub fn primary_workload(&self) -> String {
        self.spec.primary_workload()
    }

    /// The primary's autoscaler, if the target has one.
    pub fn primary_autoscaler(&self) -> Option<String> {
        self.spec.autoscaler_ref.as_ref().map(AutoscalerRef::primary_name)
    }

    /// The phase; unset if there is no status yet.
    pub fn phase(&self) -> Phase {
        self.status.as_ref().map_or(Phase::Unset, |status| status.phase)
    }

    /// The status, or an empty one.
    pub fn status_or_default(&self) -> CanaryStatus {
        self.status.clone().unwrap_or_default()
    }

    /// Whether the object is being deleted.
    pub fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether our finalizer is on the object.
    pub fn has_finalizer(&self) -> bool {
        self.finalizers().iter().any(|finalizer| finalizer == crate::FINALIZER)
    }
}

#[cfg(test)]
mod tests {
    use crate::canary::Canary;

    #[test]
    fn names_follow_the_target_until_the_service_has_its_own() {
        let canary = Canary::test();
        assert_eq!(canary.apex_name(), "podinfo");
        assert_eq!(
            (canary.primary_service().as_str(), canary.canary_service().as_str()),
            ("podinfo-primary", "podinfo-canary")
        );
        let mut canary = canary;
        canary.spec.service.as_mut().unwrap().name = "front".into();
        assert_eq!((canary.apex_name(), canary.canary_service().as_str()), ("front", "front-canary"));
        assert_eq!(canary.primary_workload(), "podinfo-primary");
        assert_eq!(canary.key(), "podinfo.test");
    }
}
