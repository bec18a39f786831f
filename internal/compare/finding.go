package compare

import (
	"context"
	"reflect"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

// Finding is what a comparison by the normal form found.
type Finding struct {
	Verdict Verdict
	// Paths are the fields that differ and are not ignored, in order.
	Paths []string
	// Masked tells that the objects are equal only because some of what differs is ignored.
	Masked bool
	// Loose tells that fields of an equal object are not in our own entry any more, so that the entry will not tell when
	// they change again: whoever keeps the verdict has to follow the object's content.
	Loose bool
}

// Sides are what is compared by the normal form.
type Sides struct {
	// Normal is the answer of a dry run of the desired object, Live the object as it is; nil when there is none.
	Normal, Live *unstructured.Unstructured
	// Applied tells that exactly this desired object was applied before: then a field that left our own entry since was
	// changed by somebody, and counts as different even where its value was put back (ownership must be taken again).
	Applied bool
	// Inherited are the fields that predecessors declared and the desired object does not: an apply takes them away. Normal
	// is the object after that, see Inherit. Nil when there are none.
	Inherited *fieldpath.Set
}

// over is set, what we would own, with what is inherited.
func (s Sides) over(set *fieldpath.Set) *fieldpath.Set {
	if s.Inherited == nil {
		return set
	}
	return set.Union(s.Inherited)
}

// WithNormal decides as the function of this name does, with what the rules name taken out of both sides first. An error
// names the rule that could not be evaluated.
func (i Ignore) WithNormal(ctx context.Context, s Sides) (Finding, error) {
	verdict, paths, err := WithNormal(s)
	if err != nil || verdict == Missing || verdict == Undecided {
		return Finding{Verdict: verdict}, err
	}
	set, err := Owned(s.Normal.GetManagedFields(), Manager)
	if err != nil {
		return Finding{}, err
	}
	own, err := Owned(s.Live.GetManagedFields(), Manager)
	if err != nil {
		return Finding{}, err
	}
	lost := lostFields(set, own)
	if len(lost) == 0 && len(paths) == 0 {
		return Finding{Verdict: Equal}, nil
	}
	normal := s.Normal
	if !i.Empty() {
		left, live, err := i.trim(ctx, s)
		if err != nil {
			return Finding{}, err
		}
		normal = left
		paths = append(differing(s.over(set), normal.Object, live.Object), dropped(set, own, normal, live)...)
	}
	f := Finding{Verdict: Equal, Masked: verdict == Different}
	for _, p := range lost {
		left, there := ownership.At(normal.Object, p)
		full, _ := ownership.At(s.Normal.Object, p)
		switch {
		case !there: // ignored
			f.Loose, f.Masked = f.Loose || i.dynamic(), true
		case !hasChildren(set, p) && !reflect.DeepEqual(left, full), !s.Applied:
			f.Loose = true // a value that is ignored in part, or nobody knows since when it is not ours
		case !slices.Contains(paths, p.String()):
			paths = append(paths, p.String())
		}
	}
	if len(paths) > 0 {
		sort.Strings(paths)
		return Finding{Verdict: Different, Paths: paths}, nil
	}
	return f, nil
}

// trim is both sides less what is ignored.
func (i Ignore) trim(ctx context.Context, s Sides) (normal, live *unstructured.Unstructured, err error) {
	left, err := i.cutOf(ctx, s.Normal.Object, s.Live)
	if err != nil {
		return nil, nil, err
	}
	right, err := i.cutOf(ctx, s.Live.Object, s.Live)
	if err != nil {
		return nil, nil, err
	}
	return left.object(s.Normal), right.object(s.Live), nil
}

// lostFields are those that an apply would own and that our own entry does not have; none when there is no entry, for then
// nothing was ever applied.
func lostFields(set, own *fieldpath.Set) []fieldpath.Path {
	if own == nil {
		return nil
	}
	var out []fieldpath.Path
	set.Difference(own).Iterate(func(p fieldpath.Path) { out = append(out, p.Copy()) })
	return out
}
