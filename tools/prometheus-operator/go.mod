// The Prometheus operator, for its custom resources: example/prometheus-operator-crd.
module seaway/tools/prometheus-operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
