package job

import (
	"maps"
	"reflect"
	"slices"
)

// Differing lists where a and b differ, as deep as both have the same shape, in order.
func Differing(a, b any) []Path { return differing(nil, a, b) }

func differing(at Path, a, b any) []Path {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		var out []Path
		keys := slices.Collect(maps.Keys(x))
		for k := range y {
			if _, both := x[k]; !both {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		for _, k := range keys {
			out = append(out, differing(at.Field(k), x[k], y[k])...)
		}
		return out
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		var out []Path
		for i := range x {
			out = append(out, differing(at.Index(i), x[i], y[i])...)
		}
		return out
	}
	if reflect.DeepEqual(a, b) {
		return nil
	}
	return []Path{slices.Clone(at)}
}
