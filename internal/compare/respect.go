package compare

import (
	"bytes"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

// Respect is rule 3 of writing (DESIGN.md §2.5): body, the object as Git declares it, with the ignored fields as they are
// in live. A field that another manager owns is left out, since an apply leaves it then as it is; any other is sent with
// its live value, also one that Git declares no longer and that the apply would take away. What is not in live is sent as
// in Git. The object's identity and the annotations named by keep are always Git's. It tells whether anything is ignored
// in either side; then the answer holds only for this version of live. Body is not changed.
func (i Ignore) Respect(ctx context.Context, body map[string]any, live *unstructured.Unstructured, keep ...string) (map[string]any, bool, error) {
	return i.mixed(ctx, body, live, false, keep)
}

// Keep is Respect for a body that replaces the live object: what is ignored is all there with its live value, whoever owns it,
// since a replacement takes away what is not sent.
func (i Ignore) Keep(ctx context.Context, body map[string]any, live *unstructured.Unstructured, keep ...string) (map[string]any, bool, error) {
	return i.mixed(ctx, body, live, true, keep)
}

func (i Ignore) mixed(ctx context.Context, body map[string]any, live *unstructured.Unstructured, all bool, keep []string) (map[string]any, bool, error) {
	if i.Empty() || live == nil {
		return body, false, nil
	}
	git, err := i.cutOf(ctx, body, live)
	if err != nil {
		return nil, false, err
	}
	now, err := i.cutOf(ctx, live.Object, live)
	if err != nil {
		return nil, false, err
	}
	if git.empty() && now.empty() {
		return body, false, nil
	}
	o, err := ownersOf(live.GetManagedFields())
	if err != nil {
		return nil, false, err
	}
	if all {
		o = owners{own: o.own.Union(o.other), other: &fieldpath.Set{}}
	}
	out, _ := o.mix(body, live.Object, git).(map[string]any)
	o.retain(out, live.Object, now)
	return identify(out, body, keep), true, nil
}

// identify gives out the identity of body. Out shares its parts with body, so what is changed is copied.
func identify(out, body map[string]any, keep []string) map[string]any {
	top := shallow(out)
	top["apiVersion"], top["kind"] = body["apiVersion"], body["kind"]
	meta, _ := out["metadata"].(map[string]any)
	meta = shallow(meta)
	top["metadata"] = meta
	from, _ := body["metadata"].(map[string]any)
	for _, field := range []string{"name", "namespace"} {
		if v, ok := from[field]; ok {
			meta[field] = v
		}
	}
	delete(meta, "managedFields")
	marks, _ := from["annotations"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	annotations = shallow(annotations)
	for _, k := range keep {
		if v, ok := marks[k]; ok {
			annotations[k] = v
		}
	}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	return top
}

func shallow(m map[string]any) map[string]any {
	out := make(map[string]any, len(m)+1)
	for k, v := range m {
		out[k] = v
	}
	return out
}

// owners are the fields below one place of an object that are ours by apply, and those of everybody else.
type owners struct {
	own, other *fieldpath.Set
}

func ownersOf(fields []metav1.ManagedFieldsEntry) (owners, error) {
	own, err := Owned(fields, Manager)
	if err != nil {
		return owners{}, err
	}
	o := owners{own: own, other: &fieldpath.Set{}}
	if own == nil {
		o.own = &fieldpath.Set{}
	}
	mine := applied(fields, Manager)
	for i := range fields {
		f := &fields[i]
		if f == mine || f.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(f.FieldsV1.GetRawBytes())); err != nil {
			return owners{}, fmt.Errorf("managedFields of %s: %w", f.Manager, err)
		}
		o.other = o.other.Union(set)
	}
	return o, nil
}

func (o owners) below(e fieldpath.PathElement) owners {
	return owners{own: o.own.WithPrefix(e), other: o.other.WithPrefix(e)}
}

// mix is git with the places of c taken from live.
func (o owners) mix(git, live any, c *cut) any {
	switch g := git.(type) {
	case map[string]any:
		l, _ := live.(map[string]any)
		return o.mixMap(g, l, c)
	case []any:
		l, _ := live.([]any)
		return o.mixList(g, l, c)
	}
	return git
}

func (o owners) mixMap(git, live map[string]any, c *cut) map[string]any {
	out := make(map[string]any, len(git))
	for k, v := range git {
		child := c.fields[k]
		was, there := live[k]
		if child == nil || !there {
			out[k] = v
			continue
		}
		e := fieldpath.PathElement{FieldName: &k}
		if !child.whole {
			out[k] = o.below(e).mix(v, was, child)
		} else if kept, ok := o.keep(e, was); ok {
			out[k] = kept
		}
	}
	return out
}

func (o owners) mixList(git, live []any, c *cut) []any {
	out := make([]any, 0, len(git))
	for i, v := range git {
		child := c.items[i]
		e, was, there := o.counterpart(v, i, live)
		if child == nil || !there {
			out = append(out, v)
			continue
		}
		if !child.whole {
			out = append(out, o.below(e).mix(v, was, child))
		} else if kept, ok := o.keep(e, was); ok {
			out = append(out, kept)
		}
	}
	return out
}

// counterpart finds the item of live that item i of a list in Git stands for: by the keys that the entries of ownership
// use in this list, or, where nobody owns single items, by its place.
func (o owners) counterpart(item any, i int, live []any) (fieldpath.PathElement, any, bool) {
	for _, set := range []*fieldpath.Set{o.own, o.other} {
		for e := range elements(set) {
			switch {
			case e.Value != nil:
				return fieldpath.PathElement{}, nil, false // a set of plain values: an item has no fields, it is there or not
			case e.Key == nil:
				continue
			}
			if m, ok := item.(map[string]any); ok && ownership.Matches(m, *e.Key) {
				was, there := ownership.Step(live, e)
				return e, was, there
			}
		}
	}
	if o.keyed() || i >= len(live) {
		return fieldpath.PathElement{}, nil, false
	}
	return fieldpath.PathElement{Index: &i}, live[i], true
}

func (o owners) keyed() bool {
	for _, set := range []*fieldpath.Set{o.own, o.other} {
		for e := range elements(set) {
			if e.Key != nil {
				return true
			}
		}
	}
	return false
}

// elements are the steps that lead on from a place: to members and to what has members below it.
func elements(s *fieldpath.Set) func(yield func(fieldpath.PathElement) bool) {
	return func(yield func(fieldpath.PathElement) bool) {
		for e := range s.Members.All() {
			if !yield(e) {
				return
			}
		}
		for e := range s.Children.All() {
			if !s.Members.Has(e) && !yield(e) {
				return
			}
		}
	}
}

// keep is the part of a live value at e that has to be sent so that an apply leaves it: all that nobody else owns. It
// tells whether there is any.
func (o owners) keep(e fieldpath.PathElement, live any) (any, bool) {
	sub := o.below(e)
	if sub.other.Empty() {
		return live, !o.other.Members.Has(e)
	}
	// Others own parts of it: then ours are sent, one by one.
	switch v := live.(type) {
	case map[string]any:
		out := map[string]any{}
		for own := range elements(sub.own) {
			if value, there := ownership.Step(v, own); there && own.FieldName != nil {
				if kept, ok := sub.keep(own, value); ok {
					out[*own.FieldName] = kept
				}
			}
		}
		return out, len(out) > 0
	case []any:
		var out []any
		for own := range elements(sub.own) {
			value, there := ownership.Step(v, own)
			if !there {
				continue
			}
			if kept, ok := sub.keep(own, value); ok {
				out = append(out, withKeys(kept, own))
			}
		}
		return out, len(out) > 0
	}
	return live, false
}

// withKeys gives an item of a list the fields it is found by.
func withKeys(item any, e fieldpath.PathElement) any {
	m, ok := item.(map[string]any)
	if !ok || e.Key == nil {
		return item
	}
	m = shallow(m)
	for _, f := range *e.Key {
		m[f.Name] = f.Value.Unstructured()
	}
	return m
}

// retain puts into out what is ignored, ours alone, and declared no longer. Out is of our making down to the places that
// Git shares, which are copied on the way.
func (o owners) retain(out, live map[string]any, now *cut) {
	trimmed, _ := now.without(live).(map[string]any)
	o.own.Iterate(func(p fieldpath.Path) {
		v, there := ownership.At(live, p)
		if _, stays := ownership.At(trimmed, p); !there || stays || o.other.Has(p) || isContainer(v) && hasChildren(o.own, p) {
			return
		}
		if _, sent := ownership.At(out, p); !sent {
			p = p.Copy()
			if next, ok := put(out, p, v, func(n int) bool { _, stays := ownership.At(trimmed, p[:n]); return !stays }); ok {
				out[*p[0].FieldName] = next.(map[string]any)[*p[0].FieldName]
			}
		}
	})
}

// put is root with v at p; what it changes is copied. Missing maps are made; an item of a list only where it is itself
// ignored, as told for the length of its path: one that Git took out goes.
func put(root any, p fieldpath.Path, v any, ignored func(n int) bool) (any, bool) {
	return putFrom(root, p, 0, v, ignored)
}

func putFrom(root any, p fieldpath.Path, n int, v any, ignored func(n int) bool) (any, bool) {
	if n == len(p) {
		return v, true
	}
	e := p[n]
	if e.FieldName != nil {
		m, ok := root.(map[string]any)
		if !ok && root != nil {
			return nil, false
		}
		next, ok := putFrom(m[*e.FieldName], p, n+1, v, ignored)
		if !ok {
			return nil, false
		}
		m = shallow(m)
		m[*e.FieldName] = next
		return m, true
	}
	list, ok := root.([]any)
	if !ok && root != nil || e.Index != nil {
		return nil, false
	}
	at := indexOf(list, e)
	if at < 0 && !ignored(n+1) {
		return nil, false
	}
	var old any
	if at >= 0 {
		old = list[at]
	}
	next, ok := putFrom(old, p, n+1, v, ignored)
	if !ok {
		return nil, false
	}
	list = append([]any(nil), list...)
	if at >= 0 {
		list[at] = withKeys(next, e)
	} else {
		list = append(list, withKeys(next, e))
	}
	return list, true
}
