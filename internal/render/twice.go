package render

import (
	"fmt"
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
		paths := job.Differing(o.Object, other.Object)
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
