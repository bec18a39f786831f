package apply_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

// entry is an entry of managedFields: manager, operation, subresource, fields, version.
func entry(manager, operation, subresource, fields string, version ...string) metav1.ManagedFieldsEntry {
	e := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource,
		APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
	if len(version) > 0 {
		e.APIVersion = version[0]
	}
	return e
}

// owners are the entries in lines, in order.
func owners(list []metav1.ManagedFieldsEntry) []string {
	out := []string{}
	for _, f := range list {
		out = append(out, strings.TrimSpace(strings.Join([]string{f.Manager, string(f.Operation), f.Subresource, f.FieldsV1.GetRawString()}, " ")))
	}
	slices.Sort(out)
	return out
}

func TestTakeOverPatch(t *testing.T) {
	const noted = `{"data":{"a":"1"},"metadata":{"labels":{"l":"1"}}}`
	for name, c := range map[string]struct {
		annotation string
		extra      string
		before     []metav1.ManagedFieldsEntry
		after      []string // nil for no patch
		drops      bool
	}{
		"Argo CD by both operations, and kubectl": {
			annotation: noted, drops: true,
			before: []metav1.ManagedFieldsEntry{
				entry("argocd-controller", "Apply", "", `{"f:data":{"f:a":{}}}`),
				entry("argocd-controller", "Update", "", `{"f:data":{"f:b":{}},"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`),
				entry("kubectl-client-side-apply", "Update", "", `{"f:data":{"f:c":{}},"f:status":{"f:x":{}}}`),
			},
			after: []string{`lockstep Apply  {"f:data":{"f:a":{},"f:b":{},"f:c":{}}}`},
		},
		"others and subresources stay": {
			before: []metav1.ManagedFieldsEntry{
				entry("argocd-controller", "Update", "", `{"f:data":{"f:a":{}}}`),
				entry("argocd-controller", "Update", "status", `{"f:status":{"f:x":{}}}`),
				entry("kubectl-edit", "Update", "", `{"f:data":{"f:d":{}}}`),
			},
			after: []string{
				`argocd-controller Update status {"f:status":{"f:x":{}}}`,
				`kubectl-edit Update  {"f:data":{"f:d":{}}}`,
				`lockstep Apply  {"f:data":{"f:a":{}}}`,
			},
		},
		"joined with ours": {
			before: []metav1.ManagedFieldsEntry{
				entry("kubectl-client-side-apply", "Update", "", `{"f:data":{"f:a":{}}}`),
				entry("lockstep", "Apply", "", `{"f:data":{"f:b":{}}}`),
				entry("lockstep", "Update", "", `{"f:data":{"f:e":{}}}`),
			},
			after: []string{`lockstep Apply  {"f:data":{"f:a":{},"f:b":{}}}`, `lockstep Update  {"f:data":{"f:e":{}}}`},
		},
		"of another version what is there": {
			before: []metav1.ManagedFieldsEntry{entry("argocd-controller", "Update", "", `{"f:data":{"f:a":{},"f:moved":{}}}`, "v1beta1")},
			after:  []string{`lockstep Apply  {"f:data":{"f:a":{}}}`},
		},
		"unknown origin as far as it was declared": {
			annotation: noted, drops: true,
			before: []metav1.ManagedFieldsEntry{entry("before-first-apply", "Update", "", `{"f:data":{".":{},"f:a":{},"f:b":{}},"f:metadata":{"f:finalizers":{}}}`)},
			after:  []string{`lockstep Apply  {"f:data":{".":{},"f:a":{}}}`},
		},
		"named by the application": {
			extra:  "pipeline",
			before: []metav1.ManagedFieldsEntry{entry("pipeline", "Update", "", `{"f:data":{"f:a":{}}}`)},
			after:  []string{`lockstep Apply  {"f:data":{"f:a":{}}}`},
		},
		"nobody to take over from": {
			annotation: noted,
			before:     []metav1.ManagedFieldsEntry{entry("pipeline", "Update", "", `{"f:data":{"f:a":{}}}`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: m, resourceVersion: "7"}, data: {a: "1", b: "2", c: "3", d: "4", e: "5"}}`)
			if c.annotation != "" {
				live.SetAnnotations(map[string]string{ownership.LastApplied: c.annotation})
			}
			live.SetManagedFields(c.before)
			patch, err := apply.TakeOverPatch(live, ownership.Predecessors(c.extra))
			if err != nil {
				t.Fatal(err)
			}
			checkPatch(t, patch, c.after, c.drops)
		})
	}
}

// checkPatch reads a patch of owners.
func checkPatch(t *testing.T, patch []byte, after []string, drops bool) {
	t.Helper()
	if after == nil {
		if patch != nil {
			t.Errorf("patch %s", patch)
		}
		return
	}
	var ops []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(patch, &ops); err != nil {
		t.Fatal(err)
	}
	if len(ops) < 2 || ops[0].Path != "/metadata/resourceVersion" || string(ops[0].Value) != `"7"` {
		t.Fatalf("no precondition: %s", patch)
	}
	var list []metav1.ManagedFieldsEntry
	if err := json.Unmarshal(ops[1].Value, &list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, owners(list)); diff != "" {
		t.Error(diff)
	}
	if (len(ops) == 3) != drops {
		t.Errorf("operations %+v", ops)
	}
}

// A fault in what the API server keeps names the object and the manager.
func TestTakeOverPatchOfRubbish(t *testing.T) {
	live := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: n}}`)
	live.SetManagedFields([]metav1.ManagedFieldsEntry{entry("argocd-controller", "Update", "", `{"x":{}}`)})
	_, err := apply.TakeOverPatch(live, ownership.Predecessors())
	if err == nil || !strings.Contains(err.Error(), "argocd-controller") || !strings.Contains(err.Error(), "m") {
		t.Errorf("error %v", err)
	}
}

func (s *site) create(target apply.Target, manager, text string) *unstructured.Unstructured {
	s.t.Helper()
	u := parse(s.t, text)
	out, err := s.client.Resource(target.Resource).Namespace(s.ns).Create(s.t.Context(), u, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *site) merge(target apply.Target, name, patch string) *unstructured.Unstructured {
	s.t.Helper()
	out, err := s.client.Resource(target.Resource).Namespace(s.ns).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// The object changed since it was read: it is read again, and the change stays.
func TestTakeOverThenGiveBack(t *testing.T) {
	s := newSite(t)
	cms := core("configmaps")
	live := s.create(cms, "kubectl-client-side-apply", `{apiVersion: v1, kind: ConfigMap, metadata: {name: m, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}, data: {a: "1", b: "2"}}`)
	s.merge(cms, "m", `{"data":{"hand":"x"}}`)
	key := manifest.KeyOf(live)
	taken, err := s.writer.TakeOver(t.Context(), cms, key, live, ownership.Predecessors())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`kubectl-edit Update  {"f:data":{"f:hand":{}}}`, `lockstep Apply  {"f:data":{".":{},"f:a":{},"f:b":{}}}`}
	if diff := cmp.Diff(want, owners(taken.GetManagedFields())); diff != "" {
		t.Error(diff)
	}
	if a := taken.GetAnnotations(); len(a) > 0 {
		t.Errorf("annotations %v", a)
	}
	again, err := s.writer.TakeOver(t.Context(), cms, key, taken, ownership.Predecessors())
	if err != nil || again.GetResourceVersion() != taken.GetResourceVersion() {
		t.Errorf("with nothing to take over: version %s after %s, %v", again.GetResourceVersion(), taken.GetResourceVersion(), err)
	}
	if _, err := s.apply(cms, apply.Mode{}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {a: "1"}}`); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "hand": "x"}, s.data("m")); diff != "" {
		t.Errorf("b is declared no longer: %s", diff)
	}
	back, err := s.writer.GiveBack(t.Context(), cms, key, taken, false) // which is stale by now
	if err != nil {
		t.Fatal(err)
	}
	want = []string{`argocd-controller Apply  {"f:data":{"f:a":{}}}`, `kubectl-edit Update  {"f:data":{"f:hand":{}}}`}
	if diff := cmp.Diff(want, owners(back.GetManagedFields())); diff != "" {
		t.Error(diff)
	}
	s.argoApplies(cms, `{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {c: "3"}}`)
	if diff := cmp.Diff(map[string]string{"c": "3", "hand": "x"}, s.data("m")); diff != "" {
		t.Errorf("Argo CD does not own what it was given: %s", diff)
	}
	if none, err := s.writer.GiveBack(t.Context(), cms, key, back, false); err != nil || none.GetResourceVersion() != back.GetResourceVersion() {
		t.Errorf("with nothing to give back: %v, %v", none, err)
	}
}

func (s *site) argoApplies(target apply.Target, text string) {
	s.t.Helper()
	u := parse(s.t, text)
	if _, err := s.client.Resource(target.Resource).Namespace(s.ns).Apply(s.t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "argocd-controller"}); err != nil {
		s.t.Fatal(err)
	}
}

// An object without books and without a note of client-side apply: who declared what is not known, so nothing is taken away
// at first; from then on the books say what is ours.
func TestTakeOverOfUnknownOrigin(t *testing.T) {
	s := newSite(t)
	cms := core("configmaps")
	s.create(cms, "anybody", `{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {a: "1", b: "2"}}`)
	live := s.merge(cms, "m", `{"metadata":{"managedFields":[{}]}}`)
	if n := len(live.GetManagedFields()); n > 0 {
		t.Fatalf("%d entries", n)
	}
	if _, err := s.writer.TakeOver(t.Context(), cms, manifest.KeyOf(live), live, ownership.Predecessors()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ declared, left string }{{`{a: "1", c: "3"}`, "map[a:1 b:2 c:3]"}, {`{c: "3"}`, "map[b:2 c:3]"}} {
		out, err := s.apply(cms, apply.Mode{}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: `+step.declared+`}`)
		if err != nil {
			t.Fatal(err)
		}
		if out, err = s.writer.TakeOver(t.Context(), cms, manifest.KeyOf(out), out, ownership.Predecessors()); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(s.data("m")); got != step.left {
			t.Errorf("declared %s: %s, owners %v", step.declared, got, owners(out.GetManagedFields()))
		}
	}
}
