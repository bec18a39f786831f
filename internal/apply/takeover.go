package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

// raceLimit is how often a write is made anew because the object changed between reading and writing it: controllers that
// write a status often may win more than once.
const raceLimit = 5

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// TakeOverPatch is rule 2 of DESIGN.md §2.5: the JSON patch that turns the entries of the predecessors in live's
// managedFields into one Apply entry of ours and drops the annotation of client-side apply. It goes through only for the
// version of live that is passed in. Entries of subresources stay as they are. Nil when there is nothing to take over, and
// when nobody at all would be left as owner: then it is to be made again after the first apply.
func TakeOverPatch(live *unstructured.Unstructured, predecessors []string) ([]byte, error) {
	in, err := ownership.InheritanceOf(live, predecessors)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifest.KeyOf(live), err)
	}
	if in.Entries == 0 {
		return nil, nil
	}
	entries := in.Rest
	if !in.Fields.Empty() {
		heir := metav1.ManagedFieldsEntry{Manager: Manager, APIVersion: live.GetAPIVersion(), Time: in.Since}
		if entries, err = bequeath(in.Rest, heir, in.Fields); err != nil {
			return nil, fmt.Errorf("%s: %w", manifest.KeyOf(live), err)
		}
	}
	if len(entries) == 0 { // the API server would begin its books anew, and call all of unknown origin again
		return nil, nil
	}
	ops := ownersPatch(live, entries)
	if _, there := live.GetAnnotations()[ownership.LastApplied]; there {
		ops = append(ops, operation{Op: "remove", Path: "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"})
	}
	return json.Marshal(ops)
}

// bequeath adds the fields to the Apply entry of the heir in entries, which is made if there is none.
func bequeath(entries []metav1.ManagedFieldsEntry, heir metav1.ManagedFieldsEntry, set *fieldpath.Set) ([]metav1.ManagedFieldsEntry, error) {
	heir.Operation, heir.FieldsType = metav1.ManagedFieldsOperationApply, "FieldsV1"
	out := make([]metav1.ManagedFieldsEntry, 0, len(entries)+1)
	for _, f := range entries {
		if f.Manager != heir.Manager || f.Operation != heir.Operation || f.Subresource != "" {
			out = append(out, f)
			continue
		}
		more, err := ownership.FieldsOf(f)
		if err != nil {
			return nil, err
		}
		set = set.Union(more)
	}
	raw, err := set.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("managedFields of %s: %w", heir.Manager, err)
	}
	heir.FieldsV1 = metav1.NewFieldsV1(string(raw))
	return append(out, heir), nil
}

// ownersPatch sets the managedFields of exactly this version of live.
func ownersPatch(live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) []operation {
	return []operation{
		{Op: "replace", Path: "/metadata/resourceVersion", Value: live.GetResourceVersion()},
		{Op: "add", Path: "/metadata/managedFields", Value: entries},
	}
}

// TakeOver makes what the predecessors own in live ours, in one write that changes nothing else than the annotation of
// client-side apply, and answers the object as it is then. When live has changed meanwhile it is read again. With nothing to
// take over nothing is written. To be called before the first apply and, for what is of unknown origin, after it.
func (w *Writer) TakeOver(ctx context.Context, t Target, key manifest.Key, live *unstructured.Unstructured, predecessors []string) (*unstructured.Unstructured, error) {
	return w.hand(ctx, t, handing{key, live, Manager}, func(live *unstructured.Unstructured) ([]byte, error) {
		if len(live.GetManagedFields()) > 0 {
			return TakeOverPatch(live, predecessors)
		}
		booked, err := w.booked(ctx, t, key, live)
		if err != nil {
			return nil, err
		}
		return TakeOverPatch(booked, predecessors)
	})
}

// handing is an object whose ownership changes hands, and the field manager that the write is booked on.
type handing struct {
	key     manifest.Key
	live    *unstructured.Unstructured
	manager string
}

// hand writes the patch that patchOf makes of live.
func (w *Writer) hand(ctx context.Context, t Target, h handing, patchOf func(*unstructured.Unstructured) ([]byte, error)) (*unstructured.Unstructured, error) {
	client, live := w.at(t, h.key.Namespace), h.live
	for try := 0; ; try++ {
		patch, err := patchOf(live)
		if err != nil || patch == nil {
			return live, err
		}
		out, err := client.Patch(ctx, h.key.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: h.manager})
		if try >= raceLimit || !apierrors.IsConflict(err) {
			return out, problem(h.key, err)
		}
		if live, err = client.Get(ctx, h.key.Name, metav1.GetOptions{}); err != nil {
			return nil, problem(h.key, err)
		}
	}
}

// booked is live with the managedFields that the API server gives an object without any at its first apply: all is of
// unknown origin. Nothing is written.
func (w *Writer) booked(ctx context.Context, t Target, key manifest.Key, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	name := &unstructured.Unstructured{}
	name.SetGroupVersionKind(live.GroupVersionKind())
	name.SetName(live.GetName())
	name.SetNamespace(live.GetNamespace())
	body, err := name.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	answer, err := w.Apply(ctx, t, key, body, Mode{DryRun: true})
	if err != nil {
		return nil, err
	}
	live = live.DeepCopy()
	live.SetManagedFields(answer.GetManagedFields())
	return live, nil
}

// Foresee answers what the API server would make of next in place of live: defaults and what admission adds. Nothing is
// written. Status and what the API server keeps itself are not looked at.
func (w *Writer) Foresee(ctx context.Context, t Target, key manifest.Key, live, next *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(changes(live, next))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	out, err := w.at(t, key.Namespace).Patch(ctx, key.Name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: Manager, DryRun: []string{metav1.DryRunAll}})
	return out, problem(key, err)
}

func changes(live, next *unstructured.Unstructured) []operation {
	ops := []operation{}
	diff := func(prefix string, before, after map[string]any, concerned func(string) bool) {
		for field := range before {
			if _, stays := after[field]; !stays && concerned(field) {
				ops = append(ops, operation{Op: "remove", Path: prefix + escape(field)})
			}
		}
		for field, v := range after {
			if concerned(field) {
				ops = append(ops, operation{Op: "add", Path: prefix + escape(field), Value: v})
			}
		}
	}
	diff("/", live.Object, next.Object, func(field string) bool {
		return !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, field)
	})
	before, _ := live.Object["metadata"].(map[string]any)
	after, _ := next.Object["metadata"].(map[string]any)
	diff("/metadata/", before, after, func(field string) bool {
		return slices.Contains([]string{"labels", "annotations", "finalizers", "ownerReferences"}, field)
	})
	return ops
}

// escape makes a name a token of a JSON pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
