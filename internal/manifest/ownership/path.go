package ownership

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// At reads the value at p; false when there is none. No schema is needed: the elements of a path say themselves by which
// keys a list is matched.
func At(root any, p fieldpath.Path) (any, bool) {
	for _, e := range p {
		var ok bool
		if root, ok = Step(root, e); !ok {
			return nil, false
		}
	}
	return root, true
}

// Step goes down by one element. Of several list items with the same keys the first is meant.
func Step(from any, e fieldpath.PathElement) (any, bool) {
	if e.FieldName != nil {
		m, ok := from.(map[string]any)
		if !ok {
			return nil, false
		}
		v, ok := m[*e.FieldName]
		return v, ok
	}
	list, _ := from.([]any)
	if e.Index != nil {
		if *e.Index >= 0 && *e.Index < len(list) {
			return list[*e.Index], true
		}
		return nil, false
	}
	for _, item := range list {
		if Names(e, item) {
			return item, true
		}
	}
	return nil, false
}

// Names tells whether e, a set of keys or a value, names the item of a list.
func Names(e fieldpath.PathElement, item any) bool {
	switch {
	case e.Key != nil:
		m, ok := item.(map[string]any)
		return ok && Matches(m, *e.Key)
	case e.Value != nil:
		return value.Equals(value.NewValueInterface(item), *e.Value)
	}
	return false
}

// Matches tells whether an item of a list has all keys. A key that is absent in the item matches its default in the entry
// only for the port protocol, the one default key of the built-in kinds.
func Matches(m map[string]any, keys value.FieldList) bool {
	for _, k := range keys {
		v, ok := m[k.Name]
		if !ok && k.Name == "protocol" {
			v = "TCP"
		} else if !ok {
			return false
		}
		if !value.Equals(value.NewValueInterface(v), k.Value) {
			return false
		}
	}
	return true
}

// Without is v less the members of gone, as an apply leaves it when its manager gives them up: a field goes with all that
// is below it unless keep, what others own, names it or something below. V is not changed; what is not touched is shared.
func Without(v any, gone, keep *fieldpath.Set) any {
	if gone.Empty() {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			if left, stays := without(item, fieldpath.PathElement{FieldName: &name}, gone, keep); stays {
				out[name] = left
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for i, item := range v {
			if left, stays := without(item, elementOf(item, i, gone), gone, keep); stays {
				out = append(out, left)
			}
		}
		return out
	}
	return v
}

func without(item any, e fieldpath.PathElement, gone, keep *fieldpath.Set) (any, bool) {
	below := keep.WithPrefix(e)
	if gone.Members.Has(e) && !keep.Members.Has(e) && below.Empty() {
		return nil, false
	}
	return Without(item, gone.WithPrefix(e), below), true
}

// Only is v reduced to the members of set, as an apply that declares nothing else would send it: what a member names goes in
// with all that is below it, unless the set names parts of that. V is not changed; what is taken whole is shared.
func Only(v any, set *fieldpath.Set) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, item := range v {
			if part, in := only(item, fieldpath.PathElement{FieldName: &name}, set); in {
				out[name] = part
			}
		}
		return out
	case []any:
		out := []any{}
		for i, item := range v {
			if part, in := only(item, elementOf(item, i, set), set); in {
				out = append(out, part)
			}
		}
		return out
	}
	return v
}

func only(item any, e fieldpath.PathElement, set *fieldpath.Set) (any, bool) {
	below := set.WithPrefix(e)
	if below.Empty() {
		return item, set.Members.Has(e)
	}
	return Only(item, below), true
}

// elementOf is how the set names an item of a list, or else its index.
func elementOf(item any, i int, set *fieldpath.Set) fieldpath.PathElement {
	found := fieldpath.PathElement{Index: &i}
	look := func(e fieldpath.PathElement) {
		if Names(e, item) {
			found = e
		}
	}
	set.Members.Iterate(look)
	set.Children.Iterate(look)
	return found
}
