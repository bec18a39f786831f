package install

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/crds"
)

func TestReconcile(t *testing.T) {
	var (
		source = []string{"spec", "source"}
		helm   = []string{"spec", "source", "helm"}
	)
	tests := []struct {
		name    string
		edit    func(version map[string]any)
		diff    Difference
		written bool
		// columns tells whether the columns of ours are taken too.
		columns bool
	}{
		{name: "the same", edit: func(map[string]any) {}},
		{name: "older", written: true, columns: true, diff: Difference{Missing: []string{"spec.source.tagPrefix"}}, edit: func(v map[string]any) {
			delete(at(v, source...), "tagPrefix")
			v["additionalPrinterColumns"] = []any{}
		}},
		{name: "newer", diff: Difference{Extra: []string{"spec.source.helm.tomorrow"}}, edit: func(v map[string]any) {
			at(v, helm...)["tomorrow"] = map[string]any{"type": "string"}
			v["additionalPrinterColumns"] = []any{}
		}},
		{name: "older and with fields of its own", written: true, edit: func(v map[string]any) {
			delete(at(v, source...), "tagPrefix")
			at(v, source...)["ksonnet"] = map[string]any{"type": "object", "properties": map[string]any{"environment": map[string]any{"type": "string"}}}
			v["additionalPrinterColumns"] = []any{}
		}, diff: Difference{Missing: []string{"spec.source.tagPrefix"}, Extra: []string{"spec.source.ksonnet"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ours, theirs := application(t), application(t)
			theirs.SetResourceVersion("7")
			editVersion(theirs, test.edit)
			got, diff, err := reconcile(theirs, ours)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.diff, diff); d != "" {
				t.Errorf("difference (-want +got):\n%s", d)
			}
			if (got != nil) != test.written {
				t.Fatalf("written: %v, want %v", got != nil, test.written)
			}
			if got == nil {
				return
			}
			if got.GetResourceVersion() != "7" {
				t.Errorf("resourceVersion %q: a writer in between would be run over", got.GetResourceVersion())
			}
			if got.Object["status"] != nil || got.GetLabels() != nil {
				t.Errorf("fields that are not ours are applied: %v", got.Object)
			}
			have := versionsOf(got)[0]
			if columns, _ := have["additionalPrinterColumns"].([]any); (len(columns) > 0) != test.columns {
				t.Errorf("columns %v, want them taken over: %v", columns, test.columns)
			}
			for _, side := range []*unstructured.Unstructured{theirs, ours} {
				if _, rest := Merge(schemaOf(have), schemaOf(versionsOf(side)[0])); !rest.Accepts() {
					t.Errorf("the result does not accept all: %+v", rest)
				}
			}
		})
	}
}

func TestReconcileStops(t *testing.T) {
	tests := []struct {
		name string
		edit func(crd *unstructured.Unstructured)
		want string
	}{
		{"other type", func(crd *unstructured.Unstructured) {
			editVersion(crd, func(v map[string]any) { at(v, "spec")["project"] = map[string]any{"type": "object"} })
		}, "spec.project: object in the cluster, string in ours"},
		{"status subresource", func(crd *unstructured.Unstructured) {
			editVersion(crd, func(v map[string]any) { v["subresources"] = map[string]any{"status": map[string]any{}} })
		}, "version v1alpha1 has a status subresource"},
		{"not served", func(crd *unstructured.Unstructured) {
			editVersion(crd, func(v map[string]any) { v["served"] = false })
		}, "version v1alpha1 is not served"},
		{"other version", func(crd *unstructured.Unstructured) {
			editVersion(crd, func(v map[string]any) { v["name"] = "v2" })
		}, "version v1alpha1 is missing"},
		{"other scope", func(crd *unstructured.Unstructured) {
			object(crd.Object["spec"])["scope"] = "Cluster"
		}, `spec.scope is "Cluster", want "Namespaced"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			theirs := application(t)
			test.edit(theirs)
			got, _, err := reconcile(theirs, application(t))
			var conflict *ConflictError
			if !errors.As(err, &conflict) || got != nil {
				t.Fatalf("got %v, %v; want a ConflictError and nothing to write", got, err)
			}
			for _, want := range []string{"CustomResourceDefinition/applications.argoproj.io", test.want} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not contain %q", err, want)
				}
			}
		})
	}
}

// Other versions are somebody else's and stay.
func TestReconcileKeepsOtherVersions(t *testing.T) {
	theirs := application(t)
	spec := object(theirs.Object["spec"])
	other := map[string]any{"name": "v1", "served": true, "storage": false, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}
	spec["versions"] = []any{other, spec["versions"].([]any)[0]}
	delete(at(versionsOf(theirs)[1], "spec", "source"), "tagPrefix")
	got, _, err := reconcile(theirs, application(t))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(other, versionsOf(got)[0]); d != "" {
		t.Errorf("the other version (-want +got):\n%s", d)
	}
}

func TestEstablishment(t *testing.T) {
	crd := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "NamesAccepted", "status": "False", "message": `"app" is already in use`},
		map[string]any{"type": "Established", "status": "False"},
	}}}}
	if ok, why := establishment(crd); ok || !strings.Contains(why, `"app" is already in use`) {
		t.Errorf("got %v, %q", ok, why)
	}
}

// application is our definition of Application, fresh.
func application(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		if crd.GetName() == "applications.argoproj.io" {
			return crd
		}
	}
	t.Fatal("no definition of Application")
	return nil
}

func editVersion(crd *unstructured.Unstructured, edit func(map[string]any)) { edit(versionsOf(crd)[0]) }

// at is the properties at a path of the schema.
func at(version map[string]any, path ...string) map[string]any {
	properties := object(schemaOf(version)["properties"])
	for _, field := range path {
		properties = object(object(properties[field])["properties"])
	}
	return properties
}
