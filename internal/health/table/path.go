package table

import (
	"fmt"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/field"
)

// step goes down one level: into a field by its name, or into each element of a list.
type step struct {
	name string
	each bool
}

// path leads to fields of an object: status.parents[].conditions, metadata.annotations[example.com/paused].
type path []step

// parsePath reads a path. A name in brackets may hold dots; empty brackets are each element of a list.
func parsePath(text string) (path, error) {
	var p path
	for rest := text; rest != ""; {
		if inner, ok := strings.CutPrefix(rest, "["); ok {
			name, after, found := strings.Cut(inner, "]")
			if !found {
				return nil, fmt.Errorf("path %q: a bracket is not closed", text)
			}
			p, rest = append(p, step{name: name, each: name == ""}), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(rest, ".[")
		switch {
		case end == 0:
			return nil, fmt.Errorf("path %q: a name is empty", text)
		case end < 0:
			p, rest = append(p, step{name: rest}), ""
		default:
			p, rest = append(p, step{name: rest[:end]}), strings.TrimPrefix(rest[end:], ".")
		}
	}
	return p, nil
}

// values are what a path leads to: none, one, or with lists on the way several. A null is no value.
func (p path) values(f field.Map) []any {
	at := []any{map[string]any(f)}
	for _, s := range p {
		var next []any
		for _, value := range at {
			if s.each {
				list, _ := value.([]any)
				next = append(next, list...)
			} else if object, ok := value.(map[string]any); ok && object[s.name] != nil {
				next = append(next, object[s.name])
			}
		}
		at = next
	}
	return at
}

// maps are the objects in the lists that a path leads to.
func (p path) maps(f field.Map) []field.Map {
	var result []field.Map
	for _, value := range p.values(f) {
		list, _ := value.([]any)
		for _, element := range list {
			if object, ok := element.(map[string]any); ok {
				result = append(result, object)
			}
		}
	}
	return result
}

// last is the name of the field at the end.
func (p path) last() string {
	for i := len(p) - 1; i >= 0; i-- {
		if !p[i].each {
			return p[i].name
		}
	}
	return ""
}

// empty tells whether a value says nothing: an empty text, list or object.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
