package tree

// Different is the first path, in order, of which two sets found something else; empty when they agree on all that both
// read. Nil agrees with everything.
func Different(a, b *ReadSet) string {
	if a == nil || b == nil || a == b {
		return ""
	}
	b.mu.Lock()
	other := make(map[read]string, len(b.found))
	for r, found := range b.found {
		other[r] = found
	}
	b.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	first := ""
	for r, found := range a.found {
		if now, both := other[r]; both && now != found && (first == "" || r.path < first) {
			first = r.path
		}
	}
	return first
}
