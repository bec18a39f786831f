package compare

import (
	"fmt"
	"reflect"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// differing lists the paths of set at which a and b hold different values. No schema is needed: the path elements of a
// managedFields entry say themselves by which keys a list is matched.
func differing(set *fieldpath.Set, a, b map[string]any) []string {
	var out []string
	set.Iterate(func(p fieldpath.Path) {
		left, okLeft := at(a, p)
		right, okRight := at(b, p)
		if okLeft != okRight || (okLeft && !sameLeaf(set, p, left, right)) {
			out = append(out, p.String())
		}
	})
	sort.Strings(out)
	return out
}

// dropped lists the fields of live's own entry that the dry run removed from the object.
func dropped(set *fieldpath.Set, normal, live *unstructured.Unstructured) ([]string, error) {
	before, err := Owned(live.GetManagedFields(), Manager)
	if err != nil || before == nil {
		return nil, err
	}
	var out []string
	before.Difference(set).Iterate(func(p fieldpath.Path) {
		_, there := at(live.Object, p)
		_, stays := at(normal.Object, p)
		if there && !stays {
			out = append(out, p.String())
		}
	})
	sort.Strings(out)
	return out, nil
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

// at reads the value at p.
func at(root any, p fieldpath.Path) (any, bool) {
	cur := root
	for _, e := range p {
		var ok bool
		if cur, ok = step(cur, e); !ok {
			return nil, false
		}
	}
	return cur, true
}

func step(cur any, e fieldpath.PathElement) (any, bool) {
	switch {
	case e.FieldName != nil:
		m, ok := cur.(map[string]any)
		if !ok {
			return nil, false
		}
		v, ok := m[*e.FieldName]
		return v, ok
	case e.Key != nil:
		list, _ := cur.([]any)
		for _, item := range list {
			if m, ok := item.(map[string]any); ok && matches(m, *e.Key) {
				return item, true
			}
		}
	case e.Value != nil:
		list, _ := cur.([]any)
		for _, item := range list {
			if value.Equals(value.NewValueInterface(item), *e.Value) {
				return item, true
			}
		}
	case e.Index != nil:
		list, _ := cur.([]any)
		if *e.Index >= 0 && *e.Index < len(list) {
			return list[*e.Index], true
		}
	}
	return nil, false
}

// matches tells whether an element of a list has all keys. A key that is absent in the element matches its default in the
// entry only for the port protocol, the one default key of the built-in kinds.
func matches(m map[string]any, keys value.FieldList) bool {
	for _, k := range keys {
		v, ok := m[k.Name]
		if !ok && k.Name == "protocol" {
			v = "TCP"
		} else if !ok {
			return false
		}
		if !value.Equals(value.NewValueInterface(v), k.Value) {
			return false
		}
	}
	return true
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
