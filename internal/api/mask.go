package api

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// mask selects fields of an answer, as the parameter fields says: "metadata.name,items.spec" keeps those only, with a "-" in
// front they are left out. Lists are passed through.
type mask struct {
	drops bool
	root  *node
}

// node is one step of the paths; without steps below it is an end.
type node struct{ below map[string]*node }

// maxMask bounds the length of the parameter.
const maxMask = 4 << 10

func parseMask(text string) (mask, error) {
	if len(text) > maxMask {
		return mask{}, invalid("fields is longer than %d characters", maxMask)
	}
	text, drops := strings.CutPrefix(text, "-")
	if text == "" {
		return mask{}, nil
	}
	m := mask{drops: drops, root: &node{}}
	for path := range strings.SplitSeq(text, ",") {
		at := m.root
		for part := range strings.SplitSeq(strings.TrimSpace(path), ".") {
			if at.below == nil {
				at.below = map[string]*node{}
			}
			if at.below[part] == nil {
				at.below[part] = &node{}
			}
			at = at.below[part]
		}
	}
	return m, nil
}

// of is the value with the fields that the mask leaves. What it leaves out is never made into JSON.
func (m mask) of(value any) any {
	if m.root == nil || value == nil {
		return value
	}
	return m.apply(reflect.ValueOf(value), m.root)
}

func (m mask) apply(v reflect.Value, at *node) any {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil
		}
		if encodesItself(v.Type()) {
			return v.Interface()
		}
		v = v.Elem()
	}
	if len(at.below) == 0 || encodesItself(v.Type()) {
		return v.Interface()
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			return nil
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = m.apply(v.Index(i), at)
		}
		return out
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return v.Interface()
		}
		out := map[string]any{}
		for it := v.MapRange(); it.Next(); {
			m.put(out, it.Key().String(), it.Value(), at)
		}
		return out
	case reflect.Struct:
		out := map[string]any{}
		for _, f := range fieldsOf(v.Type()) {
			value, err := v.FieldByIndexErr(f.index)
			if err != nil || f.omits && value.IsZero() || f.omits && value.Kind() == reflect.Slice && value.Len() == 0 || f.omits && value.Kind() == reflect.Map && value.Len() == 0 {
				continue
			}
			m.put(out, f.name, value, at)
		}
		return out
	}
	return v.Interface()
}

func (m mask) put(out map[string]any, name string, v reflect.Value, at *node) {
	next := at.below[name]
	switch {
	case next == nil && m.drops:
		out[name] = v.Interface()
	case next == nil, m.drops && len(next.below) == 0:
	default:
		out[name] = m.apply(v, next)
	}
}

var (
	jsonType = reflect.TypeFor[json.Marshaler]()
	textType = reflect.TypeFor[encoding.TextMarshaler]()
)

// encodesItself tells that a type decides over its JSON as a whole.
func encodesItself(t reflect.Type) bool {
	return t.Implements(jsonType) || t.Implements(textType) || t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(jsonType)
}

// jsonField is a field of a struct as encoding/json sees it.
type jsonField struct {
	name  string
	index []int
	omits bool
}

// fieldsOf are the fields of a struct, those of embedded ones included.
func fieldsOf(t reflect.Type) []jsonField {
	if known, ok := shapes.Load(t); ok {
		return known.([]jsonField) //nolint:forcetypeassert // nothing else is stored
	}
	var out []jsonField
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{f.Index[0]}, inner.index...)
				out = append(out, inner)
			}
			continue
		case name == "":
			name = f.Name
		}
		out = append(out, jsonField{name, f.Index, strings.Contains(options, "omitempty") && f.Type.Kind() != reflect.Struct})
	}
	shapes.Store(t, out)
	return out
}

// shapes are the fields of types that were asked for.
var shapes sync.Map
