package engine

import (
	"slices"

	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// declaredChanges compares two renderings, object by object. The values of Secrets are left out.
func declaredChanges(before, after *rendering) []Difference {
	old, was := declared(before)
	now, is := declared(after)
	var list []Difference
	for i := range now {
		o := &now[i]
		at, known := was[o.key]
		if !known {
			d := Difference{Key: o.key, Origin: o.Origin, Verdict: compare.Missing}
			_, d.Next = presentable(nil, o.Unstructured)
			list = append(list, d)
			continue
		}
		if d, differs := changed(&old[at], o); differs {
			list = append(list, d)
		}
	}
	for i := range old {
		o := &old[i]
		if _, still := is[o.key]; !still {
			d := Difference{Key: o.key, Origin: o.Origin, Verdict: compare.Different, Extra: true}
			d.Live, _ = presentable(o.Unstructured, nil)
			list = append(list, d)
		}
	}
	return list
}

// changed compares an object before and after the range, without what either rendering made up.
func changed(old, now *desired) (Difference, bool) {
	made := append(slices.Clip(now.generated), old.generated...)
	from, to := without(old.Unstructured, made), without(now.Unstructured, made)
	d := Difference{Key: now.key, Origin: now.Origin, Verdict: compare.Different}
	for _, p := range job.Differing(from.Object, to.Object) {
		d.Paths = append(d.Paths, p.String())
	}
	if len(d.Paths) == 0 {
		return d, false
	}
	d.Live, d.Next = presentable(from, to)
	return d, true
}

// declared are the objects of a rendering, the last of several with one key, and where each key stands. Which kinds know no
// namespace is not asked: objects that name none have none here.
func declared(r *rendering) (list []desired, places map[manifest.Key]int) {
	places = make(map[manifest.Key]int, len(r.objects))
	for i, o := range r.objects {
		d := desired{Object: o, key: manifest.KeyOf(o.Unstructured), generated: r.generated[i]}
		if at, known := places[d.key]; known {
			list[at] = d
			continue
		}
		places[d.key] = len(list)
		list = append(list, d)
	}
	return list, places
}
