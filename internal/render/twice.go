package render

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// generated compares two renderings of one source and tells the fields that come out differently each time (DESIGN.md
// §2.2): they are no part of what Git says. Objects that are not in both, by name, are left out.
func generated(a, b job.Output) (map[int][]job.Path, []string) {
	second := map[manifest.Key]manifest.Object{}
	for _, o := range b.Objects {
		second[o.Key()] = o
	}
	found := map[int][]job.Path{}
	var warnings []string
	for i, o := range a.Objects {
		other, ok := second[o.Key()]
		if !ok {
			warnings = append(warnings, fmt.Sprintf("%s has another name in each rendering; give it a fixed one", o.Key()))
			continue
		}
		paths := differing(nil, o.Object, other.Object)
		if len(paths) == 0 {
			continue
		}
		found[i] = paths
		names := make([]string, 0, len(paths))
		for _, p := range paths {
			names = append(names, p.String())
		}
		warnings = append(warnings, fmt.Sprintf("%s: %s comes out differently in each rendering; it is set when the object is made and kept after that",
			o.Key(), strings.Join(names, ", ")))
	}
	return found, warnings
}

// differing lists where a and b differ, as deep as both have the same shape.
func differing(at job.Path, a, b any) []job.Path {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		var out []job.Path
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
		var out []job.Path
		for i := range x {
			out = append(out, differing(at.Index(i), x[i], y[i])...)
		}
		return out
	}
	if reflect.DeepEqual(a, b) {
		return nil
	}
	return []job.Path{slices.Clone(at)}
}
