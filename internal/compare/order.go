package compare

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

// disordered lists the paths of lists whose items, found by their keys, stand in another order in b than in a. The order
// of init containers or of variables that name each other has a meaning, and an apply puts it right; where items of
// others stand between ours has none.
func disordered(set *fieldpath.Set, a, b map[string]any) []string {
	var out []string
	last := map[string]places{}
	set.Iterate(func(p fieldpath.Path) {
		if len(p) == 0 || p[len(p)-1].Key == nil {
			return
		}
		list := p[:len(p)-1]
		at, ok := last[list.String()]
		if !ok {
			left, _ := ownership.At(a, list)
			right, _ := ownership.At(b, list)
			at.a, _ = left.([]any)
			at.b, _ = right.([]any)
		}
		at.add(p[len(p)-1])
		last[list.String()] = at
	})
	for list, at := range last {
		if at.differ() {
			out = append(out, list)
		}
	}
	slices.Sort(out)
	return out
}

// places are the indexes of the same items in two lists.
type places struct {
	a, b  []any
	pairs [][2]int
}

func (l *places) add(e fieldpath.PathElement) {
	i, j := indexOf(l.a, e), indexOf(l.b, e)
	if i >= 0 && j >= 0 {
		l.pairs = append(l.pairs, [2]int{i, j})
	}
}

func (l *places) differ() bool {
	slices.SortFunc(l.pairs, func(x, y [2]int) int { return x[0] - y[0] })
	return !slices.IsSortedFunc(l.pairs, func(x, y [2]int) int { return x[1] - y[1] })
}
