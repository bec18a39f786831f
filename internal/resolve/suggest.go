package resolve

import (
	"sort"
	"strings"
)

// maxCompared bounds how many names are compared: a suggestion is a courtesy.
const maxCompared = 5000

// suggest gives "; did you mean 'a' or 'b'?" for the names nearest to text, or nothing.
func suggest(text string, names []string) string {
	type near struct {
		name string
		far  int
	}
	var list []near
	limit := max(1, min(3, len(text)/3))
	sort.Strings(names)
	for i, n := range names {
		if i == maxCompared {
			break
		}
		far := distance(strings.ToLower(text), strings.ToLower(n), limit)
		// feature/x is near for somebody who wrote x
		if tail := n[strings.LastIndexByte(n, '/')+1:]; far > limit && tail == text {
			far = limit
		}
		if far <= limit {
			list = append(list, near{n, far})
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].far < list[j].far })
	switch {
	case len(list) == 0:
		return ""
	case len(list) == 1 || list[0].far < list[1].far || list[0].name == list[1].name:
		return "; did you mean '" + list[0].name + "'?"
	}
	return "; did you mean '" + list[0].name + "' or '" + list[1].name + "'?"
}

// distance counts the letters to insert, delete, replace or swap with their neighbour; limit+1 when it is more than limit.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return min(row[len(b)], limit+1)
}
