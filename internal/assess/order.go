package assess

import (
	"cmp"
	"slices"

	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// sortItems orders items by their keys, so that the same objects always give the same words.
func sortItems(items []Item) {
	slices.SortStableFunc(items, func(a, b Item) int { return compareKeys(a.Key, b.Key) })
}

func compareKeys(a, b manifest.Key) int {
	return cmp.Or(
		cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
	)
}

// unique sorts texts and drops empty and repeated ones; nil when nothing is left.
func unique(texts []string) []string {
	result := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })
	slices.Sort(result)
	result = slices.Compact(result)
	if len(result) == 0 {
		return nil
	}
	return result
}
