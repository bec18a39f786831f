package crds

import (
	"encoding/json"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A definition is kept in an annotation by client-side apply, and all annotations together have this limit.
const annotationLimit = 262144

func TestDefinitionsAreSmallAndPlain(t *testing.T) {
	for kind, crd := range definitions(t) {
		text, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) >= annotationLimit/2 {
			t.Errorf("%s: %d bytes of JSON, want fewer than half of %d", kind, len(text), annotationLimit)
		}
		version := versionOf(t, crd)
		if sub, _, _ := unstructured.NestedMap(version, "subresources"); len(sub) > 0 {
			t.Errorf("%s: subresources %v; controllers write the status on the object itself", kind, sub)
		}
	}
}

func TestRequiredFields(t *testing.T) {
	tests := []struct {
		kind, path string
		want       []string
	}{
		{"Application", "", []string{"metadata", "spec"}},
		{"Application", "spec", []string{"destination", "project"}},
		{"Application", "spec.source", []string{"repoURL"}},
		{"Application", "status", nil},
		{"Application", "operation", nil},
		{"AppProject", "", []string{"metadata", "spec"}},
		{"AppProject", "spec", nil},
		{"AppProject", "status", nil},
	}
	all := definitions(t)
	for _, test := range tests {
		node := schemaOf(t, all[test.kind])
		for name := range strings.SplitSeq(test.path, ".") {
			if name != "" {
				node = child(node, name)
			}
		}
		got, _, _ := unstructured.NestedStringSlice(node, "required")
		sort.Strings(got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s %s: required (-want +got):\n%s", test.kind, test.path, diff)
		}
	}
}

// The only places that keep what the schema does not name.
func TestUnknownFieldsAreKeptInValuesOnly(t *testing.T) {
	for kind, crd := range definitions(t) {
		walk(schemaOf(t, crd), "", func(path string, node map[string]any) {
			kept := node["x-kubernetes-preserve-unknown-fields"] == true
			if want := strings.HasSuffix(path, ".helm.valuesObject"); kept != want {
				t.Errorf("%s%s: keeps unknown fields: %v, want %v", kind, path, kept, want)
			}
		})
	}
}

func TestEveryFieldInUseIsThere(t *testing.T) {
	text, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	sections := parseFields(t, string(text))
	all := definitions(t)
	checked := 0
	for _, root := range []string{"Application", "Application spec", "Application operation", "Application status", "AppProject spec", "AppProject status"} {
		kind, field, _ := strings.Cut(root, " ")
		node := schemaOf(t, all[kind])
		if field != "" {
			node = child(node, field)
		}
		checked += checkFields(t, sections, root, node, root)
	}
	if checked < 400 {
		t.Errorf("%d fields checked: the list is not read as it is meant", checked)
	}
}

// field is one entry of the list: where it stands in its section, and its type.
type field struct{ path, kind string }

// parseFields reads the list of fields by section.
func parseFields(t *testing.T, text string) map[string][]field {
	t.Helper()
	sections, section := map[string][]field{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
		default:
			base, fields, ok := strings.Cut(line, ": ")
			if !ok {
				t.Fatalf("fields.txt: %q has no base path", line)
			}
			for _, entry := range strings.Fields(fields) {
				name, kind, _ := strings.Cut(entry, ":")
				path := strings.TrimPrefix(base+"."+name, "..")
				sections[section] = append(sections[section], field{path, kind})
			}
		}
	}
	return sections
}

// checkFields compares a section with a schema and returns the number of fields compared.
func checkFields(t *testing.T, sections map[string][]field, section string, node map[string]any, at string) int {
	t.Helper()
	if len(sections[section]) == 0 {
		t.Fatalf("fields.txt: no section %q", section)
	}
	checked := 0
	for _, f := range sections[section] {
		got := follow(node, f.path)
		where := at + "." + f.path
		checked++
		if got == nil {
			t.Errorf("%s: not in the schema", where)
			continue
		}
		if sub, ok := strings.CutPrefix(f.kind, "@"); ok {
			checked += checkFields(t, sections, sub, got, where)
			continue
		}
		if kind := typeOf(got); kind != f.kind {
			t.Errorf("%s: type %s, want %s", where, kind, f.kind)
		}
	}
	return checked
}

// follow walks a dotted path; nil when it is not there.
func follow(node map[string]any, path string) map[string]any {
	for name := range strings.SplitSeq(path, ".") {
		plain := strings.TrimRight(name, "[]{}")
		node = child(node, plain)
		switch name[len(plain):] {
		case "[]":
			node, _, _ = unstructured.NestedMap(node, "items")
		case "{}":
			node, _, _ = unstructured.NestedMap(node, "additionalProperties")
		}
		if node == nil {
			return nil
		}
	}
	return node
}

func typeOf(node map[string]any) string {
	if node["x-kubernetes-int-or-string"] == true {
		return "int-or-string"
	}
	kind, _ := node["type"].(string)
	return kind
}

func walk(node map[string]any, path string, visit func(string, map[string]any)) {
	visit(path, node)
	properties, _, _ := unstructured.NestedMap(node, "properties")
	for name := range properties {
		walk(child(node, name), path+"."+name, visit)
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if sub, ok := node[key].(map[string]any); ok {
			walk(sub, path+"[]", visit)
		}
	}
}

func child(node map[string]any, name string) map[string]any {
	sub, _, _ := unstructured.NestedMap(node, "properties", name)
	return sub
}

func definitions(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	kinds, byKind := []string{}, map[string]*unstructured.Unstructured{}
	for _, crd := range all {
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		kinds, byKind[kind] = append(kinds, kind), crd
	}
	slices.Sort(kinds)
	if diff := cmp.Diff([]string{"AppProject", "Application"}, kinds); diff != "" {
		t.Fatalf("kinds (-want +got):\n%s", diff)
	}
	return byKind
}

func versionOf(t *testing.T, crd *unstructured.Unstructured) map[string]any {
	t.Helper()
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if len(versions) != 1 {
		t.Fatalf("%s: %d versions, want 1", crd.GetName(), len(versions))
	}
	return versions[0].(map[string]any)
}

func schemaOf(t *testing.T, crd *unstructured.Unstructured) map[string]any {
	t.Helper()
	schema, ok, err := unstructured.NestedMap(versionOf(t, crd), "schema", "openAPIV3Schema")
	if err != nil || !ok {
		t.Fatalf("%s: no schema: %v", crd.GetName(), err)
	}
	return schema
}
