package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

// item is one declared object and what was found of it.
type item struct {
	desired *desired
	live    cluster.Live
	exists  bool
	verdict compare.Verdict
	paths   []string
	// holder is the other application that owns the object and still declares it.
	holder string
	// masked tells that the object is in step only because what differs is ignored.
	masked bool
	// note says why the object could not be compared or will not go through, or what differs and who wrote it.
	note string
}

func (i item) inSync() bool { return i.verdict == compare.Equal && i.holder == "" }

// judge compares every declared object with the cluster.
func (e *Engine) judge(ctx context.Context, st *state, app *v1alpha1.Application, set *desiredSet, exact bool) ([]item, error) {
	items := make([]item, 0, len(set.objects))
	for i := range set.objects {
		it, err := e.judgeOne(ctx, st, app, set, i, exact)
		if err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	return items, nil
}

// judgeOne compares one object; exact asks the API server where an apply is due anyway and only the display would profit.
func (e *Engine) judgeOne(ctx context.Context, st *state, app *v1alpha1.Application, set *desiredSet, i int, exact bool) (item, error) {
	d := &set.objects[i]
	it := item{desired: d}
	if d.problem != nil {
		it.verdict, it.note = compare.Missing, d.problem.Error()
		return it, nil
	}
	if d.resource.Resource == "" { // its definition comes with the same sync
		it.verdict = compare.Missing
		return it, nil
	}
	if d.made {
		if it.verdict = compare.Missing; tried(app, set) {
			it.verdict = compare.Equal
		}
		return it, nil
	}
	var err error
	if it.live, it.exists, err = e.cluster.Lookup(ctx, d.key); err != nil {
		return it, err
	}
	if it.live.Owner != "" && !e.marks().names(it.live, app) {
		it.holder = e.holder(it.live)
	}
	pair := st.proofs[d.key]
	it.verdict = compare.Decide(d.hash, compare.Facts{Live: it.exists, Entry: it.live.Entry, Applied: pair})
	ignore := st.ignoring.rules.For(d.key)
	if it.verdict != compare.Undecided && (it.verdict != compare.Different || ignore.Empty()) {
		return it, nil
	}
	if !exact && ignore.Empty() && pair.Entry == it.live.Entry && pair.Entry != "" {
		it.verdict = compare.Different // untouched since our last apply, and Git says something else now
		return it, nil
	}
	err = e.ask(ctx, st, app, &it, ignore)
	return it, err
}

// ask lets the API server decide: one dry run and one read, remembered until either side changes.
func (e *Engine) ask(ctx context.Context, st *state, app *v1alpha1.Application, it *item, ignore compare.Ignore) error {
	d := it.desired
	from := inherited(app)
	mark := it.live.Entry + it.live.Content + string(it.live.UID) + strings.Join(from, " ")
	if v, ok := st.verdicts[d.key]; ok && v.desired == d.hash && v.live == mark {
		it.verdict, it.paths, it.masked, it.note = v.result, v.paths, v.masked, v.note
		return nil
	}
	if !ignore.Empty() { // before the object is read, so that no change behind the reading is missed
		e.closely.Store(d.key, true)
	}
	found, live, err := e.consult(ctx, app, d, question{exists: it.exists, applied: st.proofs[d.key].Desired == d.hash, ignore: ignore})
	if err != nil {
		return it.refused(ctx, err)
	}
	if live == nil {
		it.verdict, it.exists = compare.Missing, false
		return nil
	}
	it.verdict, it.paths, it.masked = found.Verdict, found.Paths, found.Masked
	if found.Verdict == compare.Different {
		it.note = drift(app, live, it.live, found.Paths)
	}
	if found.Loose {
		e.closely.Store(d.key, true)
	} else {
		e.closely.Delete(d.key)
	}
	if st.verdicts == nil {
		st.verdicts = map[key]verdict{}
	}
	st.verdicts[d.key] = verdict{desired: d.hash, live: mark, result: it.verdict, paths: it.paths, masked: it.masked, note: it.note}
	return nil
}

// question is what the API server is asked of a declared object.
type question struct {
	exists bool
	// applied tells that exactly this object was applied before.
	applied bool
	ignore  compare.Ignore
}

// consult compares by one dry run and one read of the object, which is nil when it is not there.
func (e *Engine) consult(ctx context.Context, app *v1alpha1.Application, d *desired, q question) (compare.Finding, *unstructured.Unstructured, error) {
	body, err := e.prepared(ctx, d, q.exists, validatesLoosely(objectOptions(d), syncOptions(app, &v1alpha1.SyncOperation{})))
	if err != nil {
		return compare.Finding{}, nil, err
	}
	normal, err := e.writer.Apply(ctx, target(d.resource), d.key, body, apply.Mode{DryRun: true})
	if err != nil {
		return compare.Finding{}, nil, err
	}
	live, err := e.cluster.Get(ctx, d.resource, d.key)
	if apierrors.IsNotFound(err) {
		return compare.Finding{}, nil, nil
	}
	if err != nil {
		return compare.Finding{}, nil, fmt.Errorf("%s: %w", d.key, err)
	}
	sides, err := foresee(ctx, e.writer, d, compare.Sides{Normal: normal, Live: live, Applied: q.applied}, inherited(app))
	if err != nil {
		return compare.Finding{}, nil, err
	}
	found, err := q.ignore.WithNormal(ctx, sides)
	if err != nil {
		return found, nil, fmt.Errorf("%s: %w", d.key, err)
	}
	return found, live, nil
}

// refused takes in the API server's answer to a dry run: that it would not go through. Other errors are returned.
func (i *item) refused(ctx context.Context, err error) error {
	var refused *apply.Error
	if ctx.Err() != nil || !asError(err, &refused) || refused.Retry {
		return err
	}
	i.verdict, i.note = compare.Different, err.Error()
	return nil
}

// holder is the application that the object's mark names, if it still declares it; else empty. Of one that was not
// rendered since the start, what it declared last counts.
func (e *Engine) holder(l cluster.Live) string {
	for _, key := range e.marked(l) {
		found, _ := e.applications.get(key)
		if found == nil || found.DeletionTimestamp != nil {
			continue
		}
		if slices.Contains(e.owners.of(l.Key), key) || !e.owners.knows(key) && listedIn(found)[l.Key] {
			return e.marks().instance(found)
		}
	}
	return ""
}

// extras are the live objects that carry the application's mark and are not declared any more; unproven are those among
// them that nothing shows to have been applied for it.
func (e *Engine) extras(st *state, app *v1alpha1.Application, set *desiredSet) (extras []cluster.Live, unproven []manifest.Key) {
	for _, l := range e.owned(app) {
		if _, declared := set.byKey[l.Key]; declared || isLiveHook(l) || isSelf(app, l) {
			continue
		}
		switch {
		case st.proven(l):
			extras = append(extras, l)
		case !l.Controlled: // controllers give their labels on to what they make
			unproven = append(unproven, l.Key)
		}
	}
	slices.SortFunc(extras, func(a, b cluster.Live) int { return compareKeys(a.Key, b.Key) })
	slices.SortFunc(unproven, compareKeys)
	return extras, unproven
}

func isLiveHook(l cluster.Live) bool {
	u := &unstructured.Unstructured{}
	u.SetAnnotations(l.Steering)
	return isHook(u)
}

func isSelf(app *v1alpha1.Application, l cluster.Live) bool {
	return l.Key.Group == v1alpha1.Group && l.Key.Kind == v1alpha1.ApplicationKind && l.UID == app.UID
}

func target(r cluster.Resource) apply.Target {
	return apply.Target{Resource: r.GroupVersionResource, Namespaced: r.Namespaced, Patchable: r.Patchable}
}

// kindsInUse are the kinds to watch for an application: declared, and those of its last status, so that what left Git is
// still seen.
func kindsInUse(app *v1alpha1.Application, set *desiredSet) []schema.GroupKind {
	kinds := slices.Clone(set.kinds)
	add := func(group, kind string) {
		gk := schema.GroupKind{Group: group, Kind: kind}
		if !slices.Contains(kinds, gk) {
			kinds = append(kinds, gk)
		}
	}
	for _, r := range app.Status.Resources {
		add(r.Group, r.Kind)
	}
	if op := app.Status.OperationState; op != nil && op.SyncResult != nil {
		for _, r := range op.SyncResult.Resources {
			add(r.Group, r.Kind)
		}
	}
	return kinds
}

func wave(d *desired) int64 { return int64(plan.Wave(d.GetAnnotations())) }
