package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// packages are the Go packages whose types clients send as protobuf, with the names they have in the tables.
var packages = []struct {
	module module
	path   string
	name   string
}{
	{apimachinery, "pkg/apis/meta/v1", "meta.v1"},
	{api, "apps/v1", "apps.v1"},
	{api, "authentication/v1", "authentication.v1"},
	{api, "authorization/v1", "authorization.v1"},
	{api, "autoscaling/v1", "autoscaling.v1"},
	{api, "autoscaling/v2", "autoscaling.v2"},
	{api, "batch/v1", "batch.v1"},
	{api, "coordination/v1", "coordination.v1"},
	{api, "core/v1", "core.v1"},
	{api, "discovery/v1", "discovery.v1"},
	{api, "events/v1", "events.v1"},
	{api, "networking/v1", "networking.v1"},
	{api, "policy/v1", "policy.v1"},
	{api, "rbac/v1", "rbac.v1"},
}

// alsoSent are bodies of requests that are no objects.
var alsoSent = []string{"core.v1.Binding", "meta.v1.DeleteOptions", "policy.v1.Eviction"}

// notObjects are types that JSON writes in ways of their own; whoever reads the table knows them.
var notObjects = []string{"meta.v1.FieldsV1", "meta.v1.MicroTime", "meta.v1.Time"}

// A field is one member of a message: its number, its name in JSON, what it holds, and how Go writes it as JSON.
// Kinds are string, bytes, bool, int, float, the name of a type, and "[]kind" and "{}kind" of these. Members of an
// "inline" one are those of the message around it, and it has no name ("-"); "omit" is not written when it is zero.
type field struct {
	number          int
	name, kind, how string
}

// text is the field in the table.
func (f field) text() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s %s %s", f.number, f.name, f.kind, f.how))
}

// messages reads the protobuf numbers of all types that the resources and requests need from the tags of the Go types:
// they know, unlike the .proto files, which members are inline and which are left out of JSON when zero.
func messages(resources []*resource) ([]line, error) {
	all := map[string]ast.Expr{}
	for _, p := range packages {
		dir, err := p.module.dir()
		if err != nil {
			return nil, err
		}
		if err := declarations(filepath.Join(dir, filepath.FromSlash(p.path)), p.name, all); err != nil {
			return nil, err
		}
	}
	var queue []string
	for _, r := range resources {
		queue = append(queue, r.Type)
	}
	queue = append(append(queue, alsoTypesShort()...), alsoSent...)
	table := map[string][]field{}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		structure, ok := all[name].(*ast.StructType)
		if _, done := table[name]; done || !ok || slices.Contains(notObjects, name) {
			continue
		}
		fields, err := fieldsOf(name, structure, all)
		if err != nil {
			return nil, err
		}
		table[name] = fields
		for _, f := range fields {
			queue = append(queue, strings.TrimLeft(f.kind, "[]{}"))
		}
	}
	var lines []line
	for _, name := range slices.Sorted(maps.Keys(table)) {
		texts := []string{}
		for _, f := range table[name] {
			texts = append(texts, f.text())
		}
		lines = append(lines, line{name, texts})
	}
	return lines, nil
}

func alsoTypesShort() []string {
	var names []string
	for _, name := range alsoTypes {
		names = append(names, shortName(name))
	}
	return names
}

// declarations collects the types a package declares.
func declarations(dir, name string, all map[string]ast.Expr) error {
	noTests := func(file fs.FileInfo) bool { return !strings.HasSuffix(file.Name(), "_test.go") }
	parsed, err := parser.ParseDir(token.NewFileSet(), dir, noTests, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, pkg := range parsed {
		for _, file := range pkg.Files {
			for _, declaration := range file.Decls {
				group, ok := declaration.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range group.Specs {
					if declared, ok := spec.(*ast.TypeSpec); ok {
						all[name+"."+declared.Name.Name] = declared.Type
					}
				}
			}
		}
	}
	return nil
}

func fieldsOf(name string, structure *ast.StructType, all map[string]ast.Expr) ([]field, error) {
	pkg := name[:strings.LastIndex(name, ".")]
	var fields []field
	for _, member := range structure.Fields.List {
		if member.Tag == nil {
			continue
		}
		text, err := strconv.Unquote(member.Tag.Value)
		if err != nil {
			return nil, err
		}
		tag := reflect.StructTag(text)
		wire := strings.Split(tag.Get("protobuf"), ",")
		if len(wire) < 2 {
			continue // not sent, as the type of an object is not
		}
		number, err := strconv.Atoi(wire[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		json := strings.Split(tag.Get("json"), ",")
		kind, pointer := kindOf(member.Type, pkg, all)
		f := field{number: number, name: json[0], kind: kind}
		switch {
		case f.name == "":
			f.name, f.how = "-", "inline"
		case !pointer && (slices.Contains(json, "omitzero") || slices.Contains(json, "omitempty") && isScalar(kind)):
			f.how = "omit"
		}
		fields = append(fields, f)
	}
	slices.SortFunc(fields, func(a, b field) int { return a.number - b.number })
	return fields, nil
}

func isScalar(kind string) bool {
	return slices.Contains([]string{"string", "bool", "int", "float"}, kind)
}

// kindOf says what a Go type is on the wire, and whether it is a pointer.
func kindOf(expr ast.Expr, pkg string, all map[string]ast.Expr) (string, bool) {
	switch t := expr.(type) {
	case *ast.StarExpr:
		kind, _ := kindOf(t.X, pkg, all)
		return kind, true
	case *ast.ArrayType:
		if item, ok := t.Elt.(*ast.Ident); ok && item.Name == "byte" {
			return "bytes", false
		}
		kind, _ := kindOf(t.Elt, pkg, all)
		return "[]" + kind, false
	case *ast.MapType:
		kind, _ := kindOf(t.Value, pkg, all)
		return "{}" + kind, false
	case *ast.SelectorExpr:
		return foreign(t.X.(*ast.Ident).Name, t.Sel.Name, all)
	case *ast.Ident:
		switch t.Name {
		case "string", "bool":
			return t.Name, false
		case "int32", "int64", "uint32", "uint64":
			return "int", false
		case "float64":
			return "float", false
		}
		return named(pkg+"."+t.Name, pkg, all)
	}
	return "", false
}

// foreign resolves a type of another package by the names these packages import each other with.
func foreign(pkg, name string, all map[string]ast.Expr) (string, bool) {
	switch pkg + "." + name {
	case "types.UID", "types.NodeName":
		return "string", false
	case "intstr.IntOrString", "resource.Quantity":
		return name, false
	case "runtime.RawExtension":
		return "runtime.RawExtension", false
	}
	known := map[string]string{"metav1": "meta.v1", "v1": "core.v1", "corev1": "core.v1", "api": "core.v1"}
	return named(known[pkg]+"."+name, known[pkg], all)
}

// named resolves a declared type: structures are messages, and so are lists that have a name of their own.
func named(name, pkg string, all map[string]ast.Expr) (string, bool) {
	switch t := all[name].(type) {
	case *ast.StructType:
		return name, false
	case *ast.ArrayType:
		return name, false
	case nil:
		return name, false
	default:
		return kindOf(t, pkg, all)
	}
}
