package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// offered lists the built-in kinds of drydock, per group and version.
var offered = []struct {
	group, version string
	kinds          []string
}{
	{"", "v1", []string{
		"ConfigMap", "Endpoints", "Event", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod",
		"ReplicationController", "Secret", "Service", "ServiceAccount",
	}},
	{"apiextensions.k8s.io", "v1", []string{"CustomResourceDefinition"}},
	{"apps", "v1", []string{"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"}},
	{"authentication.k8s.io", "v1", []string{"SelfSubjectReview"}},
	{"authorization.k8s.io", "v1", []string{
		"LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview",
	}},
	{"autoscaling", "v2", []string{"HorizontalPodAutoscaler"}},
	{"batch", "v1", []string{"CronJob", "Job"}},
	{"coordination.k8s.io", "v1", []string{"Lease"}},
	{"discovery.k8s.io", "v1", []string{"EndpointSlice"}},
	{"events.k8s.io", "v1", []string{"Event"}},
	{"networking.k8s.io", "v1", []string{"Ingress", "NetworkPolicy"}},
	{"policy", "v1", []string{"PodDisruptionBudget"}},
	{"rbac.authorization.k8s.io", "v1", []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}},
}

// alsoTypes are types that requests name without being stored.
var alsoTypes = []string{"io.k8s.api.autoscaling.v1.Scale"}

// subresources drydock serves; the others (proxy, resize, ...) need a real node, or nobody calls them.
var subresources = []string{
	"attach", "binding", "eviction", "exec", "log", "portforward", "scale", "status",
}

type resource struct {
	Group        string              `json:"group"`
	Version      string              `json:"version"`
	Kind         string              `json:"kind"`
	Plural       string              `json:"plural"`
	Singular     string              `json:"singular"`
	Namespaced   bool                `json:"namespaced"`
	ShortNames   []string            `json:"shortNames,omitempty"`
	Categories   []string            `json:"categories,omitempty"`
	Verbs        []string            `json:"verbs"`
	Subresources map[string][]string `json:"subresources,omitempty"`
	Type         string              `json:"type"`
}

// discover reads the facts of the offered kinds from the recorded discovery answers.
func discover(dir string) ([]*resource, error) {
	var all []*resource
	for _, wanted := range offered {
		file := "api__v1.json"
		if wanted.group != "" {
			file = "apis__" + wanted.group + "__" + wanted.version + ".json"
		}
		var answer struct {
			Resources []struct {
				Name, Kind, SingularName      string
				Namespaced                    bool
				ShortNames, Categories, Verbs []string
			}
		}
		if err := readJSON(filepath.Join(dir, file), &answer); err != nil {
			return nil, err
		}
		byPlural := map[string]*resource{}
		for _, found := range answer.Resources {
			plural, sub, isSub := strings.Cut(found.Name, "/")
			if parent := byPlural[plural]; isSub {
				if parent != nil && slices.Contains(subresources, sub) {
					parent.Subresources[sub] = found.Verbs
				}
				continue
			}
			if slices.Contains(wanted.kinds, found.Kind) {
				byPlural[plural] = &resource{
					Group: wanted.group, Version: wanted.version, Kind: found.Kind, Plural: plural,
					Singular: found.SingularName, Namespaced: found.Namespaced, ShortNames: found.ShortNames,
					Categories: found.Categories, Verbs: found.Verbs, Subresources: map[string][]string{},
				}
			}
		}
		if len(byPlural) != len(wanted.kinds) {
			return nil, fmt.Errorf("%s has %d of the %d wanted kinds", file, len(byPlural), len(wanted.kinds))
		}
		for _, plural := range slices.Sorted(maps.Keys(byPlural)) {
			all = append(all, byPlural[plural])
		}
	}
	return all, nil
}

func resourceLines(resources []*resource) []line {
	var lines []line
	for _, r := range resources {
		lines = append(lines, line{value: r})
	}
	return lines
}

// collect gathers the schemas of the resources and everything they refer to, and fills in each resource's type.
func collect(dir string, resources []*resource) ([]line, error) {
	all, kinds := map[string]map[string]any{}, map[string]string{}
	for _, wanted := range offered {
		file := "api__v1_openapi.json"
		if wanted.group != "" {
			file = "apis__" + wanted.group + "__" + wanted.version + "_openapi.json"
		}
		var document struct {
			Components struct{ Schemas map[string]map[string]any }
		}
		if err := readJSON(filepath.Join(dir, file), &document); err != nil {
			return nil, err
		}
		for name, schema := range document.Components.Schemas {
			all[name] = schema
			for _, gvk := range asList(schema["x-kubernetes-group-version-kind"]) {
				id, _ := gvk.(map[string]any)
				kinds[fmt.Sprintf("%v/%v/%v", id["group"], id["version"], id["kind"])] = name
			}
		}
	}
	var queue []string
	for _, r := range resources {
		name, ok := kinds[r.Group+"/"+r.Version+"/"+r.Kind]
		if !ok {
			return nil, fmt.Errorf("no schema for %s %s", r.Group, r.Kind)
		}
		r.Type = shortName(name)
		queue = append(queue, name)
	}
	queue = append(queue, alsoTypes...)
	table := map[string]any{}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if _, done := table[shortName(name)]; done {
			continue
		}
		schema, ok := all[name]
		if !ok {
			return nil, fmt.Errorf("no schema named %s", name)
		}
		table[shortName(name)] = reduce(schema, func(ref string) { queue = append(queue, ref) })
	}
	var lines []line
	for _, name := range slices.Sorted(maps.Keys(table)) {
		lines = append(lines, line{name, table[name]})
	}
	return lines, nil
}

// shortName drops the parts of a type's name that all of them share.
func shortName(name string) string {
	for _, prefix := range []string{
		"io.k8s.api.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.apiextensions-apiserver.pkg.apis.",
		"io.k8s.apimachinery.pkg.util.intstr.", "io.k8s.apimachinery.pkg.api.resource.", "io.k8s.apimachinery.pkg.",
	} {
		if short, ok := strings.CutPrefix(name, prefix); ok {
			return short
		}
	}
	return name
}

// reduce keeps what the typed-merge engine reads and reports every type the schema refers to.
func reduce(schema map[string]any, refer func(string)) map[string]any {
	out := map[string]any{}
	for key, value := range schema {
		switch key {
		case "description", "x-kubernetes-group-version-kind", "x-kubernetes-unions":
		case "default":
			// openapi-gen writes Go's zero values too; those are no defaults.
			if value != nil && value != "" && value != false && value != 0.0 && !isEmptyMap(value) {
				out[key] = value
			}
		case "$ref":
			ref := strings.TrimPrefix(value.(string), "#/components/schemas/")
			refer(ref)
			out[key] = shortName(ref)
		case "allOf":
			// A reference with siblings is written as allOf of one.
			for _, part := range asList(value) {
				maps.Copy(out, reduce(part.(map[string]any), refer))
			}
		case "properties":
			properties := map[string]any{}
			for name, property := range value.(map[string]any) {
				properties[name] = reduce(property.(map[string]any), refer)
			}
			out[key] = properties
		case "items", "additionalProperties":
			if inner, ok := value.(map[string]any); ok {
				out[key] = reduce(inner, refer)
			} else {
				out[key] = value
			}
		default:
			out[key] = value
		}
	}
	return out
}

func isEmptyMap(value any) bool {
	m, ok := value.(map[string]any)
	return ok && len(m) == 0
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
