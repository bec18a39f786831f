package plan

import (
	"slices"
	"strings"
)

// Set is a set of sync options; exact, case-sensitive strings such as Prune=false.
type Set map[string]bool

// ParseOptions reads the annotation: options separated by commas, blanks around them dropped.
func ParseOptions(annotation string) Set {
	return SetOf(strings.Split(annotation, ","))
}

// SetOf makes a set of a list; blanks around the options are dropped.
func SetOf(options []string) Set {
	s := Set{}
	for _, option := range options {
		if option = strings.TrimSpace(option); option != "" {
			s[option] = true
		}
	}
	return s
}

// Has tells whether the option is set.
func (s Set) Has(option string) bool { return s[option] }

// Value is what stands behind "name=" in the set, and whether there is such an option. Of several the first in the order of
// the alphabet counts, so that false counts more than true.
func (s Set) Value(name string) (string, bool) {
	values := s.Values(name)
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// Values are all values that the set has for name, sorted.
func (s Set) Values(name string) []string {
	var out []string
	for option := range s {
		if v, ok := strings.CutPrefix(option, name+"="); ok {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}
