package plan

import "strings"

// Set is a set of sync options; exact, case-sensitive strings such as Prune=false.
type Set map[string]bool

// ParseOptions reads the annotation: options separated by commas, blanks around them dropped.
func ParseOptions(annotation string) Set {
	s := Set{}
	for option := range strings.SplitSeq(annotation, ",") {
		if option = strings.TrimSpace(option); option != "" {
			s[option] = true
		}
	}
	return s
}

// SetOf makes a set of a list.
func SetOf(options []string) Set {
	s := Set{}
	for _, option := range options {
		s[strings.TrimSpace(option)] = true
	}
	return s
}

// Has tells whether the option is set.
func (s Set) Has(option string) bool { return s[option] }

// Value is what stands behind "name=" in the set, and whether there is such an option.
func (s Set) Value(name string) (string, bool) {
	for option := range s {
		if v, ok := strings.CutPrefix(option, name+"="); ok {
			return v, true
		}
	}
	return "", false
}
