package compare_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

// What goes with a take over is what predecessors declared, Git does not, and nobody else owns; it alone makes a difference.
func TestInherit(t *testing.T) {
	owner := func(manager string, op metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: op, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	ours := owner("lockstep", metav1.ManagedFieldsOperationApply, `{"f:data":{"f:a":{}}}`)
	for name, c := range map[string]struct {
		owners  []metav1.ManagedFieldsEntry
		gone    string // empty for nothing
		verdict compare.Verdict
	}{
		"declared by Git too": {[]metav1.ManagedFieldsEntry{owner("argocd-controller", "Update", `{"f:data":{".":{},"f:a":{}}}`)}, "", compare.Equal},
		"declared no longer":  {[]metav1.ManagedFieldsEntry{owner("argocd-controller", "Apply", `{"f:data":{"f:a":{},"f:b":{}}}`)}, ".data.b", compare.Different},
		"owned by another as well": {[]metav1.ManagedFieldsEntry{
			owner("kubectl-client-side-apply", "Update", `{"f:data":{"f:b":{}}}`), owner("kubectl-edit", "Update", `{"f:data":{"f:b":{}}}`),
		}, "", compare.Equal},
		"of somebody else": {[]metav1.ManagedFieldsEntry{owner("helm", "Update", `{"f:data":{"f:b":{}}}`)}, "", compare.Equal},
		"not there":        {[]metav1.ManagedFieldsEntry{owner("argocd-controller", "Update", `{"f:data":{"f:was":{}}}`)}, "", compare.Equal},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "m"}, "data": map[string]any{"a": "1", "b": "2"},
			}}
			live.SetManagedFields(c.owners)
			normal := live.DeepCopy()
			normal.SetManagedFields(append([]metav1.ManagedFieldsEntry{ours}, c.owners...))
			next, gone, err := compare.Inherit(normal, ownership.Predecessors())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if gone != nil {
				got = gone.String()
			}
			if got != c.gone {
				t.Errorf("goes: %q, want %q", got, c.gone)
			}
			verdict, paths, err := compare.WithNormal(compare.Sides{Normal: next, Live: live, Inherited: gone})
			if err != nil || verdict != c.verdict {
				t.Errorf("verdict %d at %v, %v", verdict, paths, err)
			}
		})
	}
}
