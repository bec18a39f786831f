package engine

import (
	"context"

	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

// untried is the result of a dry run for an object that the API server can not be asked about yet.
const untried = "would be created; that could not be tried, since its kind or namespace comes with the same sync"

// comesLater tells that a dry run can not ask the API server about an object: its kind or its namespace is not there, and a
// sync would make it.
func (e *Engine) comesLater(ctx context.Context, l *look, d *desired, opts plan.Set) (bool, error) {
	if d.resource.Resource == "" {
		return true, nil
	}
	k := manifest.Key{Kind: "Namespace", Name: d.key.Namespace}
	_, declared := l.set.byKey[k]
	made := l.makesNamespace(opts) && l.app.Spec.Destination.Namespace == d.key.Namespace
	if !d.resource.Namespaced || !declared && !made {
		return false, nil
	}
	if err := e.cluster.Watch(ctx, k.GroupKind()); err != nil {
		return false, err
	}
	return !e.cluster.Exists(k), nil
}
