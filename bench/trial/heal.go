package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/bench/report"
	"github.com/lockstep-cd/lockstep/bench/workload"
)

const (
	// healLimit is how long one object may take to be put back, and givenUp how many in a row may not before it ends.
	healLimit = 10 * time.Second
	givenUp   = 5
)

// target is one object that a hand changes.
type target struct {
	application int
	kind        workload.Kind
}

// heal changes objects by hand, one after the other, and waits until each is right again. The time runs from before the
// change is sent until the observer sees the declared content again.
func (r *running) heal(ctx context.Context) ([]report.Measure, error) {
	targets, err := r.targets()
	if err != nil {
		return nil, err
	}
	if err := r.quiet(ctx); err != nil {
		return nil, err
	}
	r.say("change %d objects by hand", len(targets))
	var took []float64
	missed := 0
	for n, t := range targets {
		d, err := r.changeByHand(ctx, t)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			if missed++; missed >= givenUp && len(took) == 0 {
				return nil, fmt.Errorf("%d objects in a row were not put back within %s", missed, healLimit)
			}
			r.note("hand change: %s %s/%s was not put back within %s", t.kind.Kind, r.Spec.Namespace(t.application), r.Spec.Name(t.application), healLimit)
		case err != nil:
			return nil, err
		default:
			took = append(took, float64(d)/float64(time.Millisecond))
		}
		if missed >= givenUp {
			targets = targets[:n+1]
			break
		}
	}
	return []report.Measure{
		{Name: "hand change → put back, p50", Unit: "ms", Value: new(percentile(took, 50)), Later: &report.Target{Max: 100, Below: true}},
		{Name: "hand change → put back, p99", Unit: "ms", Value: new(percentile(took, 99)), Later: &report.Target{Max: 500, Below: true}},
		{
			Name: "hand changes not put back", Value: new(float64(len(targets) - len(took))), Later: &report.Target{},
			Note: fmt.Sprintf("of %d", len(targets)),
		},
	}, nil
}

// targets are different objects, spread over applications and kinds.
func (r *running) targets() ([]target, error) {
	n, k := r.Spec.Applications, len(r.Spec.Kinds)
	count := min(r.HandChanges, n*k)
	targets := make([]target, count)
	for j := range targets {
		application, kind := j%n, j/n
		if n >= count {
			application, kind = j*n/count, j%k
		}
		var err error
		targets[j].application = application
		if targets[j].kind, err = workload.KindOf(r.Spec.Kinds[kind]); err != nil {
			return nil, err
		}
	}
	return targets, nil
}

func (r *running) changeByHand(ctx context.Context, t target) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, healLimit)
	defer cancel()
	r.observer.Forget()
	namespace, name := r.Spec.Namespace(t.application), r.Spec.Name(t.application)
	sent := time.Now()
	err := r.cluster.client.Patch(types.MergePatchType).AbsPath(t.kind.ObjectPath(namespace, name)).
		Param("fieldManager", "kubectl-edit").Body(t.kind.HandChange()).Do(ctx).Error()
	if err != nil {
		return 0, fmt.Errorf("%s %s/%s: change by hand: %w", t.kind.Kind, namespace, name, err)
	}
	for {
		back, err := r.observer.PutBack(ctx)
		if err != nil {
			return 0, err
		}
		if back.Application == t.application && back.Kind == t.kind.Name {
			return back.Right.Sub(sent), nil
		}
	}
}
