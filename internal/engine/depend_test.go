package engine

import (
	"slices"
	"testing"
)

// Names may have blanks around them; what can be no list of names is a label selector.
func TestNamesOrSelector(t *testing.T) {
	for text, want := range map[string][]string{
		"web": {"web"}, "web,db": {"web", "db"}, "web, db": {"web", "db"}, " web ,db, ": {"web", "db"},
		"tier=base": nil, "tier in (a, b)": nil, "!tier": nil, "team, tier=base": nil, "example.com/team": nil,
	} {
		names, ok := namesOf(text)
		if ok != (want != nil) || !slices.Equal(names, want) {
			t.Errorf("%q: %q, %v; want %q", text, names, ok, want)
		}
	}
}
