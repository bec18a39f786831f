package compare

import (
	"fmt"
	"reflect"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

// differing lists the paths of set at which a and b hold different values. No schema is needed: the path elements of a
// managedFields entry say themselves by which keys a list is matched.
func differing(set *fieldpath.Set, a, b map[string]any) []string {
	var out []string
	set.Iterate(func(p fieldpath.Path) {
		left, okLeft := ownership.At(a, p)
		right, okRight := ownership.At(b, p)
		if okLeft != okRight || (okLeft && !sameLeaf(set, p, left, right)) {
			out = append(out, p.String())
		}
	})
	out = append(out, disordered(set, a, b)...)
	sort.Strings(out)
	return slices.Compact(out)
}

// dropped lists the fields that we own in live, by before, and that the dry run removed from the object.
func dropped(set, before *fieldpath.Set, normal, live *unstructured.Unstructured) []string {
	if before == nil {
		return nil
	}
	var out []string
	before.Difference(set).Iterate(func(p fieldpath.Path) {
		_, there := ownership.At(live.Object, p)
		_, stays := ownership.At(normal.Object, p)
		if there && !stays {
			out = append(out, p.String())
		}
	})
	sort.Strings(out)
	return out
}

// sameLeaf compares two values at a path of the set. A container that is itself a member stands for "exists": its content
// is compared by the paths below it, if there are any; an atomic one has none and is compared whole.
func sameLeaf(set *fieldpath.Set, p fieldpath.Path, a, b any) bool {
	if isContainer(a) && isContainer(b) && hasChildren(set, p) {
		return true
	}
	return reflect.DeepEqual(normalNumber(a), normalNumber(b))
}

func isContainer(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func hasChildren(set *fieldpath.Set, p fieldpath.Path) bool {
	for _, e := range p {
		set = set.WithPrefix(e)
	}
	return !set.Empty()
}

// normalNumber makes whole floats integers, so that one number has one form.
func normalNumber(v any) any {
	switch n := v.(type) {
	case float64:
		if n == float64(int64(n)) {
			return int64(n)
		}
	case int:
		return int64(n)
	case map[string]any:
		out := make(map[string]any, len(n))
		for k, item := range n {
			out[k] = normalNumber(item)
		}
		return out
	case []any:
		out := make([]any, len(n))
		for i, item := range n {
			out[i] = normalNumber(item)
		}
		return out
	}
	return v
}

// Describe is the first difference, as people read it.
func Describe(paths []string) string {
	switch len(paths) {
	case 0:
		return ""
	case 1:
		return paths[0] + " differs"
	}
	return fmt.Sprintf("%s and %d more fields differ", paths[0], len(paths)-1)
}
