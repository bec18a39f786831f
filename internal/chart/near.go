package chart

import (
	"slices"
	"sort"
	"strings"
)

// near are those of all that name may have been meant for, the nearest first.
func near(name string, all []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	for _, other := range all {
		d := distance(name, other)
		if strings.Contains(other, name) || strings.Contains(name, other) {
			d = min(d, 1)
		}
		if d <= 1+len(name)/4 {
			found = append(found, candidate{other, d})
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].distance < found[j].distance })
	names := make([]string, 0, len(found))
	for _, c := range found {
		names = append(names, c.name)
	}
	return names[:min(len(names), 3)]
}

// distance is the number of letters to insert, remove or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
