package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/plan"
)

func TestCycle(t *testing.T) {
	edges := map[string][]string{
		"a": {"b", "x"}, "b": {"c"}, "c": {"a", "d"}, "d": {"d"}, "x": {"y"}, "y": nil, "outside": {"a"},
	}
	next := func(n string) []string { return edges[n] }
	for start, want := range map[string][]string{
		"a": {"a", "b", "c", "a"}, "d": {"d", "d"}, "x": nil, "outside": nil, "nobody": nil,
	} {
		if diff := cmp.Diff(want, plan.Cycle(start, next)); diff != "" {
			t.Errorf("%s: %s", start, diff)
		}
	}
}
