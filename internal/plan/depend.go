package plan

import "slices"

// Cycle finds a path from start back to start along the edges that next gives, shortest first; nil when there is none. The
// path begins and ends with start.
func Cycle(start string, next func(string) []string) []string {
	type walk struct {
		at   string
		from *walk
	}
	seen := map[string]bool{}
	queue := []*walk{{at: start}}
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		for _, n := range next(w.at) {
			if n == start {
				path := []string{start}
				for v := w; v != nil; v = v.from {
					path = append(path, v.at)
				}
				slices.Reverse(path)
				return path
			}
			if !seen[n] {
				seen[n] = true
				queue = append(queue, &walk{at: n, from: w})
			}
		}
	}
	return nil
}
