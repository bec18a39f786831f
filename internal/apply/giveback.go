package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

// maxNote bounds the annotation of client-side apply: the API server takes 256 KiB of annotations.
const maxNote = 240 << 10

// GiveBackPatch is rule 9 of DESIGN.md §2.5: the JSON patch that makes our Apply entry in live's managedFields one of Argo
// CD, joined with what Argo CD has there already. With noted it also writes what we declared into the annotation by which
// client-side apply finds fields that left the source: without it Argo CD would leave those in the cluster for ever. Where
// the note would be larger than annotations may be, there is none, as Argo CD can not apply such an object on the client's
// side either. Nil when we own nothing.
func GiveBackPatch(live *unstructured.Unstructured, noted bool) ([]byte, error) {
	fields := live.GetManagedFields()
	ours := slices.IndexFunc(fields, ownership.IsOurs)
	if ours < 0 {
		return nil, nil
	}
	set, err := ownership.FieldsOf(fields[ours])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifest.KeyOf(live), err)
	}
	heir := metav1.ManagedFieldsEntry{Manager: ownership.ArgoCD, APIVersion: fields[ours].APIVersion, Time: fields[ours].Time}
	entries, err := bequeath(slices.Delete(slices.Clone(fields), ours, ours+1), heir, set)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifest.KeyOf(live), err)
	}
	ops := ownersPatch(live, entries)
	if !noted {
		return json.Marshal(ops)
	}
	note, err := json.Marshal(declaredOf(live, set))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifest.KeyOf(live), err)
	}
	if len(note) <= maxNote {
		if live.GetAnnotations() == nil {
			ops = append(ops, operation{Op: "add", Path: "/metadata/annotations", Value: map[string]any{}})
		}
		ops = append(ops, operation{Op: "add", Path: "/metadata/annotations/" + escape(ownership.LastApplied), Value: string(note) + "\n"})
	}
	return json.Marshal(ops)
}

// declaredOf is the object as an apply of the fields in set sends it.
func declaredOf(live *unstructured.Unstructured, set *fieldpath.Set) map[string]any {
	out, _ := ownership.Only(live.Object, set).(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	o := &unstructured.Unstructured{Object: out}
	if metadata, ok := out["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	o.SetGroupVersionKind(live.GroupVersionKind())
	o.SetName(live.GetName())
	if live.GetNamespace() != "" {
		o.SetNamespace(live.GetNamespace())
	}
	return o.Object
}

// GiveBack makes what we own in live Argo CD's and answers the object as it is then; see GiveBackPatch. When live has
// changed meanwhile it is read again. With nothing to give back nothing is written.
func (w *Writer) GiveBack(ctx context.Context, t Target, key manifest.Key, live *unstructured.Unstructured, noted bool) (*unstructured.Unstructured, error) {
	return w.hand(ctx, t, handing{key, live, ownership.ArgoCD}, func(live *unstructured.Unstructured) ([]byte, error) {
		return GiveBackPatch(live, noted)
	})
}
