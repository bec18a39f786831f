// Package ownership owns the reading of metadata.managedFields: which fields of an object who has written, and what of them
// Lockstep inherits from the tools that it replaces (DESIGN.md §2.5, rule 2). It is pure; of ours it imports manifest only.
package ownership

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// LastApplied is the annotation in which client-side apply keeps the whole object, with the values of a Secret.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// ArgoCD is the field manager that Argo CD writes as.
const ArgoCD = "argocd-controller"

// unknown is the manager that the API server invents for what was there before it kept books.
const unknown = "before-first-apply"

// Replacer is the field manager of our own replacements. It has an entry only between a replacement and the take-over that
// follows at once, or when a process ended in between.
const Replacer = manifest.FieldManager + "-replace"

// Predecessors are the field managers whose declared fields Lockstep takes over, with those named by extra.
func Predecessors(extra ...string) []string {
	list := []string{ArgoCD, "kubectl-client-side-apply", unknown, Replacer}
	for _, name := range extra {
		if name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// Inheritance is what predecessors leave.
type Inheritance struct {
	// Fields are what they declared, as paths of the object's own version; never nil.
	Fields *fieldpath.Set
	// Rest are the entries of everybody else.
	Rest []metav1.ManagedFieldsEntry
	// Entries is how many entries the predecessors have.
	Entries int
	// Since is the time of their last write; nil when none is known.
	Since *metav1.Time
}

// InheritanceOf finds what the predecessors named declared of o. Left out are the status, which nobody declares, and the
// annotation of client-side apply, which goes in any case. What was there before the API server kept books counts as
// declared as far as that annotation says so: the rest of it may be anybody's, a finalizer or a volume's name.
func InheritanceOf(o *unstructured.Unstructured, predecessors []string) (Inheritance, error) {
	in := Inheritance{Fields: &fieldpath.Set{}}
	for _, f := range o.GetManagedFields() {
		if f.Subresource != "" || !slices.Contains(predecessors, f.Manager) {
			in.Rest = append(in.Rest, f)
			continue
		}
		in.Entries++
		if f.Time != nil && (in.Since == nil || in.Since.Before(f.Time)) {
			in.Since = f.Time
		}
		set, err := declared(o, f)
		if err != nil {
			return Inheritance{}, err
		}
		in.Fields = in.Fields.Union(set)
	}
	return in, nil
}

func declared(o *unstructured.Unstructured, f metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set, err := FieldsOf(f)
	if err != nil {
		return nil, err
	}
	var witness any = o.Object
	switch {
	case f.Manager == unknown:
		witness = lastApplied(o)
	case f.APIVersion == o.GetAPIVersion():
		witness = nil
	}
	out := &fieldpath.Set{}
	set.Iterate(func(p fieldpath.Path) {
		if ownName(p, "status") || ownName(p, "metadata", "annotations", LastApplied) || len(p) == 2 && ownName(p, "metadata", "annotations") && onlyNoted(o) {
			return
		}
		// The paths of another version are only good where this one has them too.
		if witness != nil {
			if _, there := At(witness, p); !there {
				return
			}
		}
		out.Insert(p.Copy())
	})
	return out, nil
}

// onlyNoted tells that o has no annotation but the one of client-side apply: the empty map that it leaves behind is nothing
// that anybody declared.
func onlyNoted(o *unstructured.Unstructured) bool {
	annotations := o.GetAnnotations()
	_, noted := annotations[LastApplied]
	return noted && len(annotations) == 1
}

// FieldsOf are the fields of one entry; empty when it has none.
func FieldsOf(f metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if f.FieldsV1 == nil {
		return set, nil
	}
	if err := set.FromJSON(f.FieldsV1.GetRawReader()); err != nil {
		return nil, fmt.Errorf("managedFields of %s: %w", f.Manager, err)
	}
	return set, nil
}

// Wrote tells whether a manager wrote the field that these names lead to. An entry that can not be read shows nothing.
func Wrote(o *unstructured.Unstructured, manager string, names ...any) bool {
	p, err := fieldpath.MakePath(names...)
	if err != nil {
		return false
	}
	for _, f := range o.GetManagedFields() {
		if f.Manager != manager || f.Subresource != "" {
			continue
		}
		if set, err := FieldsOf(f); err == nil && set.Has(p) {
			return true
		}
	}
	return false
}

// ownName tells whether p begins with these names.
func ownName(p fieldpath.Path, names ...string) bool {
	if len(p) < len(names) {
		return false
	}
	for i, name := range names {
		if p[i].FieldName == nil || *p[i].FieldName != name {
			return false
		}
	}
	return true
}

// lastApplied is the object in the annotation of client-side apply; an empty one when there is none, so that it bears
// witness of nothing.
func lastApplied(o *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	if json.Unmarshal([]byte(o.GetAnnotations()[LastApplied]), &out) != nil || out == nil {
		return map[string]any{}
	}
	if text, ok := out["stringData"].(map[string]any); ok { // which the API server keeps as data
		data, _ := out["data"].(map[string]any)
		if data == nil {
			data = map[string]any{}
		}
		for k, v := range text {
			data[k] = v
		}
		out["data"] = data
	}
	return out
}

// IsOurs tells whether the entry is the one that our applies are kept in.
func IsOurs(f metav1.ManagedFieldsEntry) bool {
	return f.Manager == manifest.FieldManager && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == ""
}
