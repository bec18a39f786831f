package ownership_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

func set(t *testing.T, text string) *fieldpath.Set {
	t.Helper()
	s := &fieldpath.Set{}
	if err := s.FromJSON(bytes.NewReader([]byte(text))); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWithout(t *testing.T) {
	const object = `{"spec":{"a":1,"map":{"x":1,"y":2},"list":[{"name":"p","v":1,"w":2},{"name":"q","v":3}],"set":["r","s"]}}`
	for name, c := range map[string]struct{ gone, keep, left string }{
		"a field":              {`{"f:spec":{"f:a":{}}}`, `{}`, `{"spec":{"map":{"x":1,"y":2},"list":[{"name":"p","v":1,"w":2},{"name":"q","v":3}],"set":["r","s"]}}`},
		"with all below":       {`{"f:spec":{"f:map":{}}}`, `{}`, `{"spec":{"a":1,"list":[{"name":"p","v":1,"w":2},{"name":"q","v":3}],"set":["r","s"]}}`},
		"others own below":     {`{"f:spec":{"f:map":{".":{},"f:x":{}}}}`, `{"f:spec":{"f:map":{"f:y":{}}}}`, `{"spec":{"a":1,"map":{"y":2},"list":[{"name":"p","v":1,"w":2},{"name":"q","v":3}],"set":["r","s"]}}`},
		"others own it":        {`{"f:spec":{"f:a":{}}}`, `{"f:spec":{"f:a":{}}}`, object},
		"an item by its key":   {`{"f:spec":{"f:list":{"k:{\"name\":\"q\"}":{".":{},"f:v":{}}}}}`, `{}`, `{"spec":{"a":1,"map":{"x":1,"y":2},"list":[{"name":"p","v":1,"w":2}],"set":["r","s"]}}`},
		"a field of an item":   {`{"f:spec":{"f:list":{"k:{\"name\":\"p\"}":{"f:v":{}}}}}`, `{}`, `{"spec":{"a":1,"map":{"x":1,"y":2},"list":[{"name":"p","w":2},{"name":"q","v":3}],"set":["r","s"]}}`},
		"an item by its value": {`{"f:spec":{"f:set":{"v:\"r\"":{}}}}`, `{}`, `{"spec":{"a":1,"map":{"x":1,"y":2},"list":[{"name":"p","v":1,"w":2},{"name":"q","v":3}],"set":["s"]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var before, want, unchanged any
			for text, into := range map[string]*any{object: &before, c.left: &want} {
				if err := json.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			if c.left == object {
				before = want
			}
			got := ownership.Without(before, set(t, c.gone), set(t, c.keep))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if err := json.Unmarshal([]byte(object), &unchanged); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(unchanged, before); diff != "" {
				t.Errorf("the original was changed: %s", diff)
			}
		})
	}
}

func TestIsOurs(t *testing.T) {
	ours := metav1.ManagedFieldsEntry{Manager: "lockstep", Operation: metav1.ManagedFieldsOperationApply}
	status, update := ours, ours
	status.Subresource, update.Operation = "status", metav1.ManagedFieldsOperationUpdate
	if !ownership.IsOurs(ours) || ownership.IsOurs(status) || ownership.IsOurs(update) {
		t.Error("our entry is the one of applies to the object itself")
	}
}

// An object whose one annotation is that of client-side apply: with it the map goes, too, which nobody declared.
func TestOnlyNoted(t *testing.T) {
	for name, c := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"nothing else":   {map[string]string{ownership.LastApplied: "{}"}, `{"f:data":{"f:a":{}}}`},
		"another beside": {map[string]string{ownership.LastApplied: "{}", "note": "x"}, `{"f:data":{"f:a":{}},"f:metadata":{"f:annotations":{}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "1"}}}
			o.SetAnnotations(c.annotations)
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Manager: ownership.ArgoCD, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
				FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}},"f:metadata":{"f:annotations":{".":{},"f:` + ownership.LastApplied + `":{}}}}`),
			}})
			in, err := ownership.InheritanceOf(o, ownership.Predecessors())
			if err != nil {
				t.Fatal(err)
			}
			if !in.Fields.Equals(set(t, c.want)) {
				t.Errorf("inherited %s, want %s", in.Fields, c.want)
			}
		})
	}
}

func TestOnly(t *testing.T) {
	const object = `{"spec":{"a":1,"empty":{},"map":{"x":1,"y":2},"list":[{"name":"p","v":1,"w":2},{"name":"q","v":3}],"set":["r","s"]}}`
	for name, c := range map[string]struct{ set, want string }{
		"a field":               {`{"f:spec":{"f:a":{}}}`, `{"spec":{"a":1}}`},
		"an empty map":          {`{"f:spec":{"f:empty":{}}}`, `{"spec":{"empty":{}}}`},
		"a part of a map":       {`{"f:spec":{"f:map":{".":{},"f:x":{}}}}`, `{"spec":{"map":{"x":1}}}`},
		"a list as a whole":     {`{"f:spec":{"f:list":{}}}`, `{"spec":{"list":[{"name":"p","v":1,"w":2},{"name":"q","v":3}]}}`},
		"a part of an item":     {`{"f:spec":{"f:list":{"k:{\"name\":\"p\"}":{".":{},"f:name":{},"f:v":{}}}}}`, `{"spec":{"list":[{"name":"p","v":1}]}}`},
		"an item by its value":  {`{"f:spec":{"f:set":{"v:\"s\"":{}}}}`, `{"spec":{"set":["s"]}}`},
		"what is not there any": {`{"f:spec":{"f:a":{},"f:gone":{}}}`, `{"spec":{"a":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var before, want any
			for text, into := range map[string]*any{object: &before, c.want: &want} {
				if err := json.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, ownership.Only(before, set(t, c.set))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
