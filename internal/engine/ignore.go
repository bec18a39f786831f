package engine

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

// respectOption makes syncs leave ignored fields as they are in the cluster; without it they are only not compared.
const respectOption = "RespectIgnoreDifferences=true"

// raceLimit is how often an apply is made anew because the object changed between reading and writing it.
const raceLimit = 10

// ignoring are an application's rules of what is not compared, and the spec they were made of.
type ignoring struct {
	spec  []v1alpha1.ResourceIgnoreDifferences
	rules *compare.Rules
}

// ignore takes over the rules of the spec; verdicts by other rules are forgotten.
func (st *state) ignore(app *v1alpha1.Application) error {
	if st.ignoring.rules != nil && sameJSON(st.ignoring.spec, app.Spec.IgnoreDifferences) {
		return nil
	}
	rules, err := compare.ParseRules(app.Spec.IgnoreDifferences)
	if err != nil {
		return err
	}
	st.ignoring, st.verdicts = ignoring{spec: app.Spec.IgnoreDifferences, rules: rules}, nil
	return nil
}

// read is what is kept of a live object. The content of those that are followed closely is part of it: of fields that are
// not in our entry nothing else tells that they change.
func (e *Engine) read(u *unstructured.Unstructured) cluster.Live {
	l := e.configuration.Load().live(u)
	if _, closely := e.closely.Load(l.Key); closely {
		l.Content = contentOf(u)
	}
	return l
}

// drift says what differs and who wrote it; another application's mark on the object says more than its manager.
func drift(app *v1alpha1.Application, live *unstructured.Unstructured, l cluster.Live, paths []string) string {
	if l.Owner != "" && l.Owner != app.Name && !l.ByLabel {
		return compare.Describe(paths) + "; last applied by application " + l.Owner
	}
	return compare.Drift(live, paths)
}

// masked tells that a whole sync applies the object although it counts as in step: what differs is only not compared, and
// the operation has not applied it yet. ApplyOutOfSyncOnly=true leaves it alone.
func (r *running) masked(it *item, opts plan.Set) bool {
	if !it.masked || it.holder != "" || opts.Has(respectOption) || opts.Has("ApplyOutOfSyncOnly=true") {
		return false
	}
	done := r.results[result{key: it.desired.key, phase: plan.Sync}]
	return done == nil || done.Message == inStep
}

// put applies an object as Git declares it, or, where ignored fields are respected, with these as they are.
func (e *Engine) put(ctx context.Context, st *state, it *item, mode apply.Mode, opts plan.Set) (*unstructured.Unstructured, error) {
	d := it.desired
	ignore := st.ignoring.rules.For(d.key)
	if ignore.Empty() || !opts.Has(respectOption) || !it.exists || !d.applied() {
		body, err := e.prepared(ctx, d, it.exists, mode.Loose)
		if err != nil {
			return nil, err
		}
		return e.writer.Apply(ctx, d.target(), d.key, body, mode)
	}
	for try := 0; ; try++ {
		body, err := e.respectful(ctx, d, ignore, mode.Loose)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.key, err)
		}
		out, err := e.writer.Apply(ctx, target(d.resource), d.key, body, mode)
		if try < raceLimit && apierrors.IsConflict(err) {
			continue
		}
		return out, err
	}
}

// respectful is the body of d with the ignored fields as they are now. It goes through only for the version of the object
// that was read: a value that somebody else changes at the same moment must not be put back.
func (e *Engine) respectful(ctx context.Context, d *desired, ignore compare.Ignore, loose bool) ([]byte, error) {
	plain, err := e.prepared(ctx, d, true, loose)
	if err != nil {
		return nil, err
	}
	live, err := e.cluster.Get(ctx, d.resource, d.key)
	if apierrors.IsNotFound(err) {
		return plain, nil
	}
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(plain); err != nil {
		return nil, err
	}
	mixed, changed, err := ignore.Respect(ctx, u.Object, live, TrackingAnnotation, InstallationAnnotation)
	if err != nil || !changed {
		return plain, err
	}
	meta, _ := mixed["metadata"].(map[string]any)
	meta["resourceVersion"] = live.GetResourceVersion()
	return json.Marshal(mixed)
}
