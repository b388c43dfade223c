// Istio's API, for its custom resources: kubernetes/customresourcedefinitions.gen.yaml.
module seaway/tools/istio-api

go 1.26.0

require istio.io/api v1.31.1
