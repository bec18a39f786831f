package engine

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/internal/plan"
)

// How long a CustomResourceDefinition may take until its kind is served, and how often that is asked.
const (
	establishTimeout = 20 * time.Second
	establishPause   = 30 * time.Millisecond
)

// established waits until the kinds that the group's definitions define are served, and gives the objects of these kinds
// their resource.
func (e *Engine) established(ctx context.Context, l *look, group []plan.Task) error {
	waits := false
	for _, t := range group {
		waits = waits || t.Action == plan.Apply && t.Key.Kind == "CustomResourceDefinition"
	}
	if !waits {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, establishTimeout)
	defer cancel()
	tick := time.NewTicker(establishPause)
	defer tick.Stop()
	for {
		e.cluster.Invalidate()
		missing := e.place(l)
		if missing == (schema.GroupVersionKind{}) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kind %s is not served %s after its definition was applied", missing, establishTimeout)
		case <-tick.C:
		}
	}
}

// place gives objects of kinds that are served by now their resource; it answers a kind that is still not served.
func (e *Engine) place(l *look) schema.GroupVersionKind {
	for i := range l.set.objects {
		d := &l.set.objects[i]
		if d.resource.Resource != "" || d.problem != nil {
			continue
		}
		res, err := e.cluster.Kind(d.GroupVersionKind())
		if err != nil {
			return d.GroupVersionKind()
		}
		d.resource = res
	}
	return schema.GroupVersionKind{}
}
