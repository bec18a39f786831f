package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Path leads to a field of an object: names of fields (string) and places in lists (int).
type Path []any

// Field is the path of a field of what p leads to.
func (p Path) Field(name string) Path { return append(slices.Clip(p), name) }

// Index is the path of a place in the list that p leads to.
func (p Path) Index(i int) Path { return append(slices.Clip(p), i) }

// String is how messages name the field: spec.containers[0].image.
func (p Path) String() string {
	var b strings.Builder
	for i, e := range p {
		switch e := e.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", e)
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			fmt.Fprintf(&b, "%v", e)
		}
	}
	return b.String()
}

// Get reads the value at p in root.
func (p Path) Get(root any) (any, bool) {
	for _, e := range p {
		switch e := e.(type) {
		case string:
			m, ok := root.(map[string]any)
			if !ok {
				return nil, false
			}
			if root, ok = m[e]; !ok {
				return nil, false
			}
		case int:
			list, ok := root.([]any)
			if !ok || e < 0 || e >= len(list) {
				return nil, false
			}
			root = list[e]
		}
	}
	return root, true
}

// Set puts value at p in root, where all but the last step exist; it tells whether it could.
func (p Path) Set(root, value any) bool {
	if len(p) == 0 {
		return false
	}
	parent, ok := p[:len(p)-1].Get(root)
	if !ok {
		return false
	}
	switch e := p[len(p)-1].(type) {
	case string:
		m, ok := parent.(map[string]any)
		if ok {
			m[e] = value
		}
		return ok
	case int:
		list, ok := parent.([]any)
		if ok && e >= 0 && e < len(list) {
			list[e] = value
			return true
		}
	}
	return false
}

// UnmarshalJSON reads what json.Marshal writes: places in lists are int again.
func (p *Path) UnmarshalJSON(data []byte) error {
	var steps []json.RawMessage
	if err := json.Unmarshal(data, &steps); err != nil {
		return err
	}
	*p = make(Path, len(steps))
	for i, step := range steps {
		var name string
		if json.Unmarshal(step, &name) == nil {
			(*p)[i] = name
			continue
		}
		var index int
		if err := json.Unmarshal(step, &index); err != nil {
			return err
		}
		(*p)[i] = index
	}
	return nil
}
