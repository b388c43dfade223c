{{/*
What the operator may do. One rule per thing, and each verb is one that the operator sends:

- list, watch: one watch per kind fills the cache that rounds read from.
- get: an object whose write was refused twice in a row is read again, in case the watch missed something. Of ConfigMaps
  and Secrets also the data, which the cache does not keep.
- create, patch, delete: only of the kinds that a rollout makes, changes or removes. Nothing is replaced but the Lease.
*/}}
{{- define "seaway.rules" -}}
# What users write. Patch: the finalizer of revertOnDeletion.
- apiGroups: [flagger.app]
  resources: [canaries]
  verbs: [get, list, watch, patch]
# Phase, weight and conditions.
- apiGroups: [flagger.app]
  resources: [canaries/status]
  verbs: [patch]
# Queries and receivers that canaries refer to.
- apiGroups: [flagger.app]
  resources: [metrictemplates, alertproviders]
  verbs: [list, watch]
# Targets are scaled; primaries are created, promoted and restored. They go with their Canary, by garbage collection.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch]
# The primary that a promotion replaces is stored here, and older ones are removed. Their data is immutable: no patch.
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [get, list, watch, create, delete]
# The Services of an app: apex, primary, canary.
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch]
# The autoscaler of a target, copied for its primary.
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch, create, patch]
{{- if .Values.configTracking.enabled }}
# Configs of targets, copied for their primaries; credentials of MetricTemplates. Delete: an immutable copy is replaced.
- apiGroups: [""]
  resources: [configmaps, secrets]
  verbs: [get, list, watch, create, patch, delete]
{{- else }}
# Credentials of MetricTemplates. Configs are not tracked.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
{{- end }}
# What people are told. Patch: equal texts are counted on one Event.
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{ include "seaway.rules.router" . }}
{{- if include "seaway.ownersEnforced" . }}
{{ include "seaway.rules.owners" . }}
{{- end }}
{{- end -}}

{{/* The objects of the router. Routes are released or go with their Canary; they are never deleted. */}}
{{- define "seaway.rules.router" -}}
{{- if eq .Values.meshProvider "gatewayapi:v1" -}}
# Routes of the Gateway API, for meshProvider gatewayapi:v1.
- apiGroups: [gateway.networking.k8s.io]
  resources: [httproutes]
  verbs: [get, list, watch, create, patch]
{{- else -}}
{{- fail (printf "meshProvider: %q is not built; use gatewayapi:v1" .Values.meshProvider) -}}
{{- end -}}
{{- end -}}

{{/* Not empty when the API server guards owner references. */}}
{{- define "seaway.ownersEnforced" -}}
{{- if or .Values.rbac.ownerReferencesPermissionEnforcement (.Capabilities.APIVersions.Has "security.openshift.io/v1") -}}true{{- end -}}
{{- end -}}

{{/* What OwnerReferencesPermissionEnforcement asks for; no request of this kind is ever sent. */}}
{{- define "seaway.rules.owners" -}}
# To name a Canary as an owner that is waited for.
- apiGroups: [flagger.app]
  resources: [canaries/finalizers]
  verbs: [update]
# To take the owner off the apex Service when a Canary with revertOnDeletion goes.
- apiGroups: [""]
  resources: [services]
  verbs: [delete]
{{- if eq .Values.meshProvider "gatewayapi:v1" }}
# To take the owner off its route.
- apiGroups: [gateway.networking.k8s.io]
  resources: [httproutes]
  verbs: [delete]
{{- end }}
{{- end -}}

{{/* The Lease, in its own namespace. A create cannot be limited to a name. */}}
{{- define "seaway.rules.lease" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [flagger-leader-election]
  verbs: [get, update]
{{- end -}}
