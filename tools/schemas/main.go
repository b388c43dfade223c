// Command schemas writes the tables that drydock's API server is driven by.
//
// Built-in kinds come from the OpenAPI v3 and discovery files inside the module k8s.io/kubernetes, their protobuf numbers
// from the tags of the Go types in k8s.io/api and k8s.io/apimachinery, the Gateway API from the CRD manifests inside
// sigs.k8s.io/gateway-api. All modules are pinned by version and by checksum, and only read: none of their Go code is
// compiled. What comes out holds types, required fields, list types, merge keys and defaults,
// without the descriptions, and only for the kinds drydock offers.
//
//	go run . -out ../../crates/drydock/src/schema
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
)

// A module is read-only data: its files are used, its code is not.
type module struct{ path, version, sum string }

var (
	kubernetes   = module{"k8s.io/kubernetes", "v1.36.3", "h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o="}
	api          = module{"k8s.io/api", "v0.36.3", "h1:NxB+05W2UGqXWFXcLO0RB5cnqnUPP5v5sVlaOH0Iz4w="}
	apimachinery = module{"k8s.io/apimachinery", "v0.36.3", "h1:PkzMRBRG8joFD8EhCuQAtNPvJlxb82FwplP26HIzvAM="}
	gatewayAPI   = module{"sigs.k8s.io/gateway-api", "v1.5.1", "h1:RqVRIlkhLhUO8wOHKTLnTJA6o/1un4po4/6M1nRzdd0="}
)

// dir downloads the module if needed and returns where its files are.
func (m module) dir() (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", m.path+"@"+m.version).Output()
	if err != nil {
		return "", fmt.Errorf("download %s@%s: %w: %s", m.path, m.version, err, out)
	}
	var found struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &found); err != nil {
		return "", fmt.Errorf("download %s: %w", m.path, err)
	}
	if found.Sum != m.sum {
		return "", fmt.Errorf("%s@%s has checksum %s, pinned is %s", m.path, m.version, found.Sum, m.sum)
	}
	return found.Dir, nil
}

func main() {
	log.SetFlags(0)
	out := flag.String("out", "", "folder to write resources.json, types.json, protobuf.json and gateway.json to")
	flag.Parse()
	if *out == "" {
		log.Fatal("schemas: say where to write with -out")
	}
	if err := run(*out); err != nil {
		log.Fatal("schemas: ", err)
	}
}

func run(out string) error {
	kube, err := kubernetes.dir()
	if err != nil {
		return err
	}
	gateway, err := gatewayAPI.dir()
	if err != nil {
		return err
	}
	resources, err := discover(filepath.Join(kube, "api", "discovery"))
	if err != nil {
		return err
	}
	types, err := collect(filepath.Join(kube, "api", "openapi-spec", "v3"), resources)
	if err != nil {
		return err
	}
	sent, err := messages(resources)
	if err != nil {
		return err
	}
	crds, err := manifests(filepath.Join(gateway, "config", "crd", "standard"))
	if err != nil {
		return err
	}
	for name, table := range map[string][]line{
		"resources.json": resourceLines(resources), "types.json": types, "protobuf.json": sent,
		"gateway.json": crds,
	} {
		if err := write(filepath.Join(out, name), table); err != nil {
			return err
		}
	}
	return nil
}

// A line is one entry of a table. Tables have one entry per line, so that a version bump is a readable diff.
type line struct {
	key   string // empty in a list
	value any
}

func write(path string, table []line) error {
	open, end := "[", "]"
	if len(table) > 0 && table[0].key != "" {
		open, end = "{", "}"
	}
	text := []byte(open + "\n")
	for i, entry := range table {
		value, err := json.Marshal(entry.value)
		if err != nil {
			return err
		}
		if entry.key != "" {
			key, err := json.Marshal(entry.key)
			if err != nil {
				return err
			}
			text = append(append(text, key...), ": "...)
		}
		text = append(text, value...)
		if i < len(table)-1 {
			text = append(text, ',')
		}
		text = append(text, '\n')
	}
	return os.WriteFile(path, append(text, end+"\n"...), 0o644)
}
