package tree

// Different is the first path, in order, of which two sets found something else; empty when they agree on all that both
// read. Nil agrees with everything.
func Different(a, b Reads) string {
	other := make(map[question]string, len(b))
	for _, r := range b {
		other[question{r.Op, r.Path}] = r.Found
	}
	for _, r := range a {
		if now, both := other[question{r.Op, r.Path}]; both && now != r.Found {
			return r.Path
		}
	}
	return ""
}
