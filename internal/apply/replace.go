package apply

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

// Replacement is an object in the place of a live one.
type Replacement struct {
	// Body is JSON after Clean.
	Body []byte
	// Live is the object as it was read; the replacement goes through for exactly this version.
	Live *unstructured.Unstructured
	// From are the predecessors whose fields are taken over with it.
	From []string
}

// Replace puts the object in the place of the live one: what others have set goes, too (Replace=true). What belongs to the
// cluster and no manifest stays: finalizers and owner references that the manifest does not name, the status, and the
// operation of an Application. What it wrote is ours afterwards as after an apply; an apply of the same object follows it.
func (w *Writer) Replace(ctx context.Context, t Target, key manifest.Key, r Replacement, m Mode) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(r.Body); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	o.SetResourceVersion(r.Live.GetResourceVersion())
	o.SetUID(r.Live.GetUID())
	if o.GetFinalizers() == nil {
		o.SetFinalizers(r.Live.GetFinalizers())
	}
	if o.GetOwnerReferences() == nil {
		o.SetOwnerReferences(r.Live.GetOwnerReferences())
	}
	for _, field := range []string{"status", "operation"} {
		if v, there := r.Live.Object[field]; there {
			o.Object[field] = v
		}
	}
	opts := metav1.UpdateOptions{FieldManager: ownership.Replacer, FieldValidation: validation(m)}
	if m.DryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	out, err := w.at(t, key.Namespace).Update(ctx, o, opts)
	if err != nil || m.DryRun {
		return out, problem(key, err)
	}
	return w.TakeOver(ctx, t, key, out, append(slices.Clone(r.From), ownership.Replacer))
}
