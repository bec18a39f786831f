package api

// Line is a route as tests see it.
type Line struct {
	Method, Path, Needs string
	Stream, Ours, Reads bool
	// Asks tells that an object is found before anything is done.
	Asks bool
}

// Table is the table of routes.
func (a *API) Table() []Line {
	out := make([]Line, 0, len(a.table))
	for _, rt := range a.table {
		out = append(out, Line{
			Method: rt.method, Path: rt.path, Needs: rt.needs.String(), Stream: rt.stream, Ours: rt.ours,
			Reads: rt.needs.action == "get" || rt.method == "GET", Asks: rt.needs.scope == object && rt.needs.object != nil && rt.needs.resource != "" && rt.needs.action != "",
		})
	}
	return out
}
