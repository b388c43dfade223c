package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// gatewayKinds are the Gateway API resources drydock's gateway obeys.
var gatewayKinds = []string{"gatewayclasses", "gateways", "httproutes", "referencegrants"}

// manifests reads the CRDs as they would be applied, without their descriptions.
func manifests(dir string) ([]line, error) {
	var lines []line
	for _, kind := range gatewayKinds {
		path := filepath.Join(dir, "gateway.networking.k8s.io_"+kind+".yaml")
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var crd map[string]any
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		delete(crd, "status")
		lines = append(lines, line{value: undescribed(crd)})
	}
	return lines, nil
}

// undescribed drops every description of a schema; a property that is called description stays.
func undescribed(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range value {
			if _, isText := inner.(string); key == "description" && isText {
				continue
			}
			out[key] = undescribed(inner)
		}
		return out
	case []any:
		for i := range value {
			value[i] = undescribed(value[i])
		}
	}
	return value
}
