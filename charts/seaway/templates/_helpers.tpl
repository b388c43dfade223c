{{- define "seaway.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* By this name Flagger's own values select the pods of a release in their affinity. */}}
{{- define "flagger.name" -}}
{{- include "seaway.name" . -}}
{{- end -}}

{{- define "seaway.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What pods are selected by; never changes in the life of a release. */}}
{{- define "seaway.selectorLabels" -}}
app.kubernetes.io/name: {{ include "seaway.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "seaway.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
{{ include "seaway.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}

{{/* Labels of ours and of the user's: a list of both. Ours win, or the release could not find its own pods. */}}
{{- define "seaway.withLabels" -}}
{{- toYaml (merge (fromYaml (index . 0)) (index . 1 | default dict)) -}}
{{- end -}}

{{- define "seaway.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "seaway.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Without election there is one, whatever replicaCount says. */}}
{{- define "seaway.replicas" -}}
{{- if .Values.leaderElection.enabled -}}{{ int .Values.leaderElection.replicaCount }}{{- else -}}1{{- end -}}
{{- end -}}

{{/* Where the Lease is: -namespace wins over -leader-election-namespace. */}}
{{- define "seaway.leaseNamespace" -}}
{{- .Values.namespace | default .Values.leaderElection.namespace | default .Release.Namespace -}}
{{- end -}}

{{/* Values that cannot work together, or that ask for what is not there. Types and ranges are in values.schema.json. */}}
{{- define "seaway.checks" -}}
{{- if regexMatch "(^|/)flagger([:@][^/]*)?$" (.Values.image.repository | toString) -}}
{{- fail (printf "image.repository: %s is Flagger's image and cannot run Seaway; remove image.repository and image.tag from your values" .Values.image.repository) -}}
{{- end -}}
{{- if regexMatch "^[^@]*:[^/@]*$" .Values.image.repository -}}
{{- fail (printf "image.repository: %s has a tag; write the tag in image.tag" .Values.image.repository) -}}
{{- end -}}
{{- if and (.Values.serviceMonitor).enabled (not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" (include "seaway.fullname" .))) -}}
{{- fail (printf "fullnameOverride: the Service of serviceMonitor cannot be called %s; set a name that begins with a letter and has no dots" (include "seaway.fullname" .)) -}}
{{- end -}}
{{- if (.Values.linkerdAuthPolicy).create -}}
{{- fail "linkerdAuthPolicy.create: this chart brings no AuthorizationPolicy; leave it false, and let the operator's ServiceAccount reach your Prometheus" -}}
{{- end -}}
{{- if (.Values.prometheus).install -}}
{{- fail "prometheus.install: this chart brings no Prometheus; set prometheus.install=false and metricsServer to the URL of yours" -}}
{{- end -}}
{{- if ((.Values.controlplane).kubeconfig).secretName -}}
{{- fail "controlplane.kubeconfig.secretName: routes in another cluster are not built, they are written where the canaries are; leave it empty" -}}
{{- end -}}
{{- if ((.Values.istio).kubeconfig).secretName -}}
{{- fail "istio.kubeconfig.secretName: routes in another cluster are not built, they are written where the canaries are; leave it empty" -}}
{{- end -}}
{{- if and (not .Values.leaderElection.enabled) (gt (int .Values.leaderElection.replicaCount) 1) -}}
{{- fail (printf "leaderElection.replicaCount: %d operators without election would all act at once; set leaderElection.enabled=true, or replicaCount=1" (int .Values.leaderElection.replicaCount)) -}}
{{- end -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.name: must be set when serviceAccount.create is false; name the account that is to be used" -}}
{{- end -}}
{{- with include "seaway.missingCrds" . -}}
{{- fail (printf "crd.create: the cluster has no %s; set crd.create=true, or install Flagger's CRDs first" .) -}}
{{- end -}}
{{- end -}}

{{/*
The name of a CRD that exists and is not of this release, otherwise nothing. Helm would refuse to install over it, and it
belongs to a Flagger or to somebody who applied it: it is left alone.
*/}}
{{- define "seaway.foreignCrd" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $seen := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name -}}
{{- if $seen -}}
{{- $notes := $seen.metadata.annotations | default dict -}}
{{- $owner := printf "%s/%s" (get $notes "meta.helm.sh/release-namespace") (get $notes "meta.helm.sh/release-name") -}}
{{- if ne $owner (printf "%s/%s" $root.Release.Namespace $root.Release.Name) -}}{{ $name }}{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The CRDs that the operator cannot start without, that the chart is not to install, and that the cluster does not have. Whoever
installs in one namespace may list what the API server serves but not read CRDs, nor anything else outside. So that is asked,
and only when one is missing a list that every cluster gives, be it empty: of Secrets in the namespace of the release, which Helm
keeps its releases in. Without a cluster (helm template) there is no list, and nobody knows what is missing.
*/}}
{{- define "seaway.missingCrds" -}}
{{- if not .Values.crd.create -}}
{{- $missing := list -}}
{{- range $kind, $name := dict "Canary" "canaries" "MetricTemplate" "metrictemplates" "AlertProvider" "alertproviders" -}}
{{- if not ($.Capabilities.APIVersions.Has (printf "flagger.app/v1beta1/%s" $kind)) -}}
{{- $missing = append $missing (printf "%s.flagger.app" $name) -}}
{{- end -}}
{{- end -}}
{{- if and $missing (lookup "v1" "Secret" .Release.Namespace "") -}}{{ join ", " $missing }}{{- end -}}
{{- end -}}
{{- end -}}
