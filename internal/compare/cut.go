package compare

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

// cut is the set of places in one object that are ignored, as a tree: indexes are those of the object as it is, so that
// taking one element out of a list moves no other place.
type cut struct {
	whole  bool
	fields map[string]*cut
	items  map[int]*cut
}

func (c *cut) empty() bool { return !c.whole && len(c.fields) == 0 && len(c.items) == 0 }

func (c *cut) field(name string) *cut {
	if c.fields == nil {
		c.fields = map[string]*cut{}
	}
	if c.fields[name] == nil {
		c.fields[name] = &cut{}
	}
	return c.fields[name]
}

func (c *cut) item(i int) *cut {
	if c.items == nil {
		c.items = map[int]*cut{}
	}
	if c.items[i] == nil {
		c.items[i] = &cut{}
	}
	return c.items[i]
}

// add marks a place; steps are names of fields and indexes of items.
func (c *cut) add(steps []any) {
	for _, s := range steps {
		switch s := s.(type) {
		case string:
			c = c.field(s)
		case int:
			c = c.item(s)
		}
	}
	c.whole = true
}

// pointer marks what a JSON pointer names, if it is there.
func (c *cut) pointer(root any, tokens []string) {
	steps := make([]any, 0, len(tokens))
	for _, t := range tokens {
		switch v := root.(type) {
		case map[string]any:
			next, ok := v[t]
			if !ok {
				return
			}
			root, steps = next, append(steps, t)
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(v) {
				return
			}
			root, steps = v[i], append(steps, i)
		default:
			return
		}
	}
	c.add(steps)
}

// path marks what a path of jq names, if it is there: names, indexes from the start or the end, and slices.
func (c *cut) path(root any, path []any) { c.pathFrom(root, path, nil) }

func (c *cut) pathFrom(root any, path, steps []any) {
	if len(path) == 0 {
		c.add(steps)
		return
	}
	switch v := root.(type) {
	case map[string]any:
		name, ok := path[0].(string)
		if next, there := v[name]; ok && there {
			c.pathFrom(next, path[1:], append(slices.Clip(steps), name))
		}
	case []any:
		from, to := span(path[0], len(v))
		for i := from; i < to; i++ {
			rest := path[1:]
			if _, slice := path[0].(map[string]any); slice && len(rest) > 0 {
				if at, ok := rest[0].(int); !ok || from+at != i { // an index behind a slice counts from its start
					continue
				}
				rest = rest[1:]
			}
			c.pathFrom(v[i], rest, append(slices.Clip(steps), i))
		}
	}
}

// span is the range of indexes that one step of a jq path means in a list of n items.
func span(step any, n int) (from, to int) {
	clamp := func(v any, otherwise int) int {
		i, ok := v.(int)
		if !ok {
			return otherwise
		}
		if i < 0 {
			i += n
		}
		return min(max(i, 0), n)
	}
	switch s := step.(type) {
	case int:
		if s < 0 {
			s += n
		}
		if s >= 0 && s < n {
			return s, s + 1
		}
	case map[string]any:
		return clamp(s["start"], 0), clamp(s["end"], n)
	}
	return 0, 0
}

// managers marks the fields that one of the managers owns in live. Fields by which an item of a list is found stay: without
// them the other fields of the item could not be compared.
func (c *cut) managers(object any, live *unstructured.Unstructured, trusted []string) error {
	if len(trusted) == 0 || live == nil {
		return nil
	}
	for _, f := range live.GetManagedFields() {
		if f.FieldsV1 == nil || !slices.Contains(trusted, f.Manager) {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(f.FieldsV1.GetRawBytes())); err != nil {
			return fmt.Errorf("managedFields of %s: %w", f.Manager, err)
		}
		set.Leaves().Iterate(func(p fieldpath.Path) {
			if steps, ok := stepsOf(object, p); ok && !isKeyField(p) {
				c.add(steps)
			}
		})
	}
	return nil
}

func isKeyField(p fieldpath.Path) bool {
	if len(p) < 2 || p[len(p)-1].FieldName == nil || p[len(p)-2].Key == nil {
		return false
	}
	name := *p[len(p)-1].FieldName
	return slices.ContainsFunc(*p[len(p)-2].Key, func(f value.Field) bool { return f.Name == name })
}

// stepsOf turns a path of managedFields into names and indexes of the object.
func stepsOf(root any, p fieldpath.Path) ([]any, bool) {
	steps := make([]any, 0, len(p))
	for _, e := range p {
		next, ok := ownership.Step(root, e)
		if !ok {
			return nil, false
		}
		if e.FieldName != nil {
			steps = append(steps, *e.FieldName)
		} else {
			steps = append(steps, indexOf(root, e))
		}
		root = next
	}
	return steps, true
}

// indexOf is the place in a list of the item that e names; -1 when it is not there.
func indexOf(list any, e fieldpath.PathElement) int {
	if e.Index != nil {
		return *e.Index
	}
	items, _ := list.([]any)
	for i := range items {
		if _, ok := ownership.Step(items[i:i+1], e); ok {
			return i
		}
	}
	return -1
}

// without is v less what is cut. Nothing of v is changed; what is not touched is shared.
func (c *cut) without(v any) any {
	if c.empty() {
		return v
	}
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, item := range t {
			switch child := c.fields[k]; {
			case child == nil:
				out[k] = item
			case !child.whole:
				out[k] = child.without(item)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(t))
		for i, item := range t {
			switch child := c.items[i]; {
			case child == nil:
				out = append(out, item)
			case !child.whole:
				out = append(out, child.without(item))
			}
		}
		return out
	}
	return v
}

// object is o less what is cut.
func (c *cut) object(o *unstructured.Unstructured) *unstructured.Unstructured {
	m, _ := c.without(o.Object).(map[string]any)
	return &unstructured.Unstructured{Object: m}
}
