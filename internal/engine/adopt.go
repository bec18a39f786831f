package engine

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

const (
	// noTakeOver keeps what other tools declared theirs: our applies never take it away.
	noTakeOver = "ClientSideApplyMigration=false"
	// predecessorAnnotation names one more field manager to take over from.
	predecessorAnnotation = "argocd.argoproj.io/client-side-apply-migration-manager"
)

// predecessors are the field managers that the application's objects are taken over from.
func predecessors(app *v1alpha1.Application, opts plan.Set) []string {
	if opts.Has(noTakeOver) {
		return nil
	}
	return ownership.Predecessors(app.Annotations[predecessorAnnotation])
}

// inherited are the predecessors that count when the application is compared.
func inherited(app *v1alpha1.Application) []string {
	return predecessors(app, syncOptions(app, &v1alpha1.SyncOperation{}))
}

// foresee adds to the sides what taking over makes of an apply: fields that predecessors declared and Git does not go. It
// costs one more dry run where there are any, and nothing for objects that we have applied before.
func foresee(ctx context.Context, w *apply.Writer, d *desired, s compare.Sides, from []string) (compare.Sides, error) {
	if len(from) == 0 || compare.EntryHash(s.Live.GetManagedFields()) != "" {
		return s, nil
	}
	next, gone, err := compare.Inherit(s.Normal, from)
	if err != nil || gone == nil {
		return s, err
	}
	answer, err := w.Foresee(ctx, target(d.resource), d.key, s.Live, next)
	if err != nil {
		return s, err
	}
	answer.SetManagedFields(s.Normal.GetManagedFields())
	s.Normal, s.Inherited = answer, gone
	return s, nil
}

// adopt applies an object; one that is there and that we have not applied before is taken over first.
func (e *Engine) adopt(ctx context.Context, st *state, app *v1alpha1.Application, it *item, mode apply.Mode, opts plan.Set) (*unstructured.Unstructured, error) {
	from, d := predecessors(app, opts), it.desired
	if len(from) == 0 || !it.exists || it.live.Entry != "" || mode.DryRun || !d.applied() {
		return e.put(ctx, st, it, mode, opts)
	}
	if err := e.takeOver(ctx, d, from); err != nil {
		return nil, err
	}
	out, err := e.put(ctx, st, it, mode, opts)
	if err != nil {
		return nil, err
	}
	// Where nobody was known as owner, the apply made an entry of unknown origin.
	return e.writer.TakeOver(ctx, target(d.resource), d.key, out, from)
}

func (e *Engine) takeOver(ctx context.Context, d *desired, from []string) error {
	live, err := e.cluster.Get(ctx, d.resource, d.key)
	if err == nil {
		_, err = e.writer.TakeOver(ctx, target(d.resource), d.key, live, from)
	}
	switch {
	case apierrors.IsNotFound(err): // gone meanwhile: the apply makes it anew
		return nil
	case err != nil:
		return fmt.Errorf("%s: take over: %w", d.key, err)
	}
	return nil
}
