package compare

import (
	"fmt"
	"reflect"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

// Likeness tells whether two tools render an object the same way.
type Likeness uint8

// The answers. Unknown stands where the other one left no trace of what it rendered.
const (
	Unknown Likeness = iota
	Alike
	Unlike
)

// Sent compares what Argo CD sent when it applied on the client's side, as its annotation keeps it, with desired; both
// without what only marks the owner. It names what differs.
func Sent(sent, desired *unstructured.Unstructured) (Likeness, []string) {
	var paths []string
	unlike("", sent.Object, desired.Object, &paths)
	if len(paths) > 0 {
		sort.Strings(paths)
		return Unlike, paths
	}
	return Alike, nil
}

// Declared compares the fields that Argo CD declared of live by server-side apply with those that an apply of ours would
// declare, as its dry run answered: which fields, and their values. Marks names the fields that only mark the owner.
func Declared(live, normal *unstructured.Unstructured, marks func(fieldpath.Path) bool) (Likeness, []string, error) {
	theirs, err := Owned(live.GetManagedFields(), ownership.ArgoCD)
	if err != nil || theirs == nil {
		return Unknown, nil, err
	}
	ours, err := Owned(normal.GetManagedFields(), Manager)
	if err != nil || ours == nil {
		return Unknown, nil, err
	}
	var paths []string
	note := func(p fieldpath.Path) {
		if !marks(p) {
			paths = append(paths, p.String())
		}
	}
	theirs.Difference(ours).Iterate(note)
	ours.Difference(theirs).Iterate(note)
	theirs.Intersection(ours).Leaves().Iterate(func(p fieldpath.Path) {
		a, _ := ownership.At(live.Object, p)
		b, _ := ownership.At(normal.Object, p)
		if !reflect.DeepEqual(a, b) {
			note(p)
		}
	})
	if len(paths) > 0 {
		sort.Strings(paths)
		return Unlike, paths, nil
	}
	return Alike, nil, nil
}

// unlike notes where a and b differ, without their values: they may be secret. An empty map is as good as none.
func unlike(at string, a, b any, paths *[]string) {
	x, isMapA := a.(map[string]any)
	y, isMapB := b.(map[string]any)
	if (isMapA || a == nil) && (isMapB || b == nil) && (isMapA || isMapB) {
		for name := range x {
			unlike(at+"."+name, x[name], y[name], paths)
		}
		for name := range y {
			if _, both := x[name]; !both {
				unlike(at+"."+name, nil, y[name], paths)
			}
		}
		return
	}
	p, isListA := a.([]any)
	q, isListB := b.([]any)
	if isListA && isListB && len(p) == len(q) {
		for i := range p {
			unlike(fmt.Sprintf("%s[%d]", at, i), p[i], q[i], paths)
		}
		return
	}
	if !reflect.DeepEqual(a, b) {
		*paths = append(*paths, at)
	}
}
