package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/handover"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// controllerSelector finds Argo CD's application controllers, however they were installed: its manifests, its chart and its
// operator all set these labels.
const controllerSelector = "app.kubernetes.io/part-of=argocd,app.kubernetes.io/component=application-controller"

// neighbour follows the workloads of one kind that run Argo CD's application controllers in the namespace of the
// applications.
type neighbour struct {
	kind    string
	changed func()

	mu    sync.Mutex
	alive map[string]bool
}

// neighbours are those of the kinds that controllers are installed as.
type neighbours []*neighbour

func (e *Engine) newNeighbours() neighbours {
	changed := func() {
		for _, key := range e.applications.keys() {
			e.queue.Add(key, queue.Housekeeping)
		}
	}
	return neighbours{
		{kind: "StatefulSet", changed: changed, alive: map[string]bool{}},
		{kind: "Deployment", changed: changed, alive: map[string]bool{}},
	}
}

// followNeighbours begins to watch and returns when the first lists are in: no application is judged before.
func (e *Engine) followNeighbours(ctx context.Context) error {
	plurals := map[string]string{"StatefulSet": "statefulsets", "Deployment": "deployments"}
	for _, n := range e.neighbours {
		gvr := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: plurals[n.kind]}
		client := selected{ResourceInterface: e.applications.dynamic.Resource(gvr).Namespace(e.opts.Namespace), by: metav1.ListOptions{LabelSelector: controllerSelector}}
		store := &each{
			known: map[string]bool{}, drop: func(name string) { n.set(name, false) },
			put: func(u *unstructured.Unstructured) error { n.set(u.GetName(), works(u)); return nil },
		}
		if err := e.follower.follow(ctx, client, gvr.GroupVersion().WithKind(n.kind), store); err != nil {
			return err
		}
	}
	return nil
}

// running is one of the controllers that run; empty when none does.
func (n neighbours) running(namespace string) string {
	for _, kind := range n {
		kind.mu.Lock()
		for name, alive := range kind.alive {
			if alive {
				kind.mu.Unlock()
				return kind.kind + " " + namespace + "/" + name
			}
		}
		kind.mu.Unlock()
	}
	return ""
}

// works tells whether a workload runs, or is to run, a controller.
func works(u *unstructured.Unstructured) bool {
	wanted, set, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	there, _, _ := unstructured.NestedInt64(u.Object, "status", "replicas")
	return !set || wanted > 0 || there > 0
}

func (n *neighbour) set(name string, alive bool) {
	n.mu.Lock()
	moved := n.alive[name] != alive
	if alive {
		n.alive[name] = true
	} else {
		delete(n.alive, name)
	}
	n.mu.Unlock()
	if moved {
		n.changed()
	}
}

// ours tells whether Lockstep keeps the application: it is selected, not pledged to Argo CD, and no Argo CD that runs keeps
// it, too. The finding says why an application that should be ours is left alone.
func (e *Engine) ours(app *v1alpha1.Application) (bool, handover.Finding) {
	if e.opts.Applications != nil && !e.opts.Applications.Matches(labels.Set(app.Labels)) || handover.Pledged(app) {
		return false, handover.Finding{}
	}
	claim, seen, on := e.applications.claim(e.applications.key(app.Name))
	found := handover.Contested(app, claim, handover.Evidence{
		Controller: e.neighbours.running(e.opts.Namespace), Seen: seen, On: on, Now: e.opts.Now(),
	})
	return found.Kind == handover.None, found
}

// leave does nothing with an application that is not ours, but keep in mind what it declares, so that no prune of ours takes
// that away, and say once why.
func (e *Engine) leave(ctx context.Context, st *state, app *v1alpha1.Application, found handover.Finding) error {
	if !st.away.Swap(true) {
		e.putDown(st)
	}
	e.wake(e.owners.set(st.key, declaredBy(app)))
	e.wake(e.doubts.clear(st.key, e.doubts.asOf(st.key))) // that is all we can know, and it is there from the start
	if found.Kind != st.contest {
		st.contest = found.Kind
		if found.Kind != handover.None {
			e.log.Warn("application left alone", "application", st.key, "reason", found.Reason)
			e.events.add(app, "Warning", "ManagedByArgoCD", found.Reason, e.opts.Now())
		}
	}
	if !found.Until.IsZero() {
		e.queue.AddAfter(st.key, queue.Housekeeping, found.Until.Sub(e.opts.Now()))
	}
	st.seen.Store(true)
	if app.Annotations[handover.ReleasingAnnotation] != handover.Asked {
		return nil
	}
	// Nothing of ours is under way any more: one worker at a time has an application.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{handover.ReleasingAnnotation: handover.LetGo}}})
	if err != nil {
		return fmt.Errorf("application %s: %w", app.Name, err)
	}
	return e.write(ctx, st.key, app, patch)
}

// putDown forgets all that was known of an application's sources and objects.
func (e *Engine) putDown(st *state) {
	e.cluster.Unwant(st.wanted)
	for _, k := range st.wanted {
		e.closely.Delete(k)
	}
	e.readers.set(st.key, nil)
	e.repos.unsubscribe(st.key)
	st.wanted, st.desired, st.rendering, st.verdicts, st.running = nil, nil, nil, nil, nil
	st.revisionDue.Store(0)
	st.leaving, st.patience, st.remarked = nil, patience{}, false
}

// declaredBy are the objects that an application which somebody else keeps declares, by its status.
func declaredBy(app *v1alpha1.Application) []manifest.Key {
	keys := []manifest.Key{}
	for _, r := range app.Status.Resources {
		if !r.RequiresPruning && !r.Hook {
			keys = append(keys, manifest.Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
		}
	}
	return keys
}

// awayFrom are the keys of applications that are not ours.
func (e *Engine) awayFrom() map[string]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	keys := map[string]bool{}
	for key, st := range e.states {
		if st.away.Load() {
			keys[key] = true
		}
	}
	return keys
}
