package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/assess"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// The finalizers that ask for the objects of an application to go with it.
const (
	CascadeFinalizer    = "resources-finalizer.argocd.argoproj.io"
	foregroundFinalizer = CascadeFinalizer + "/foreground"
	backgroundFinalizer = CascadeFinalizer + "/background"
)

// OrphanAnnotation with the value "true" on an Application that is being deleted lets it go at once: its objects stay, and no
// hook is run. It is the way out when its cluster, its project or its source is gone.
const OrphanAnnotation = "lockstep.dev/orphan"

// delete takes an application away, one finalizer after the other: hooks before, the objects, hooks after.
func (e *Engine) delete(ctx context.Context, st *state, app *v1alpha1.Application) error {
	own := ownFinalizers(app)
	if len(own) == 0 {
		return nil
	}
	if app.Annotations[OrphanAnnotation] == "true" {
		e.log.Info("objects are left behind, as the annotation asks", "application", st.key, "annotation", OrphanAnnotation)
		return e.release(ctx, st, app, own...)
	}
	rules, found := e.projects.rules(projectOf(app))
	if !found {
		return e.blocked(ctx, st, app, fmt.Errorf("spec.project: project %s does not exist", projectOf(app)))
	}
	if err := destination(app.Spec.Destination); err != nil {
		return e.blocked(ctx, st, app, err)
	}
	l := &look{app: app, rules: rules, prune: true}
	switch {
	case slices.Contains(own, preDeleteFinalizer):
		return e.deletionHooks(ctx, st, l, plan.PreDelete)
	case cascade(app) != "":
		return e.cascade(ctx, st, l)
	case slices.Contains(own, postDeleteFinalizer):
		return e.deletionHooks(ctx, st, l, plan.PostDelete)
	}
	return e.release(ctx, st, app, own...) // Argo CD's clean-ups: the hooks were cleaned up with their phase
}

// cascade is a sync to an empty desired set: what the application owns goes, in the reverse order of waves, then the
// finalizer. What is kept by its own annotations, by its project, by another application or by being a definition stays.
func (e *Engine) cascade(ctx context.Context, st *state, l *look) error {
	app, finalizer := l.app, cascade(l.app)
	l.set = &desiredSet{byKey: map[manifest.Key]int{}}
	for _, gk := range kindsInUse(app, l.set) {
		// Of a kind that is not served there is nothing to delete.
		if err := e.cluster.Watch(ctx, gk); err != nil && !errors.Is(err, cluster.ErrNoKind) && !errors.Is(err, cluster.ErrNotWatchable) {
			return e.blocked(ctx, st, app, err)
		}
	}
	l.extras = e.extras(app, l.set)
	l.shared = map[manifest.Key]string{}
	for i := range l.extras {
		x := &l.extras[i]
		if others := e.owners.others(st.key, x.Key); len(others) > 0 {
			l.shared[x.Key] = others[0]
		}
	}
	opts := plan.Set{}
	if finalizer == backgroundFinalizer {
		opts["PrunePropagationPolicy=background"] = true
	}
	l.extras = slices.DeleteFunc(l.extras, func(x cluster.Live) bool { return staysBehind(app, x) || l.forbids(x) })
	if keys := unconfirmed(l.extras, app); len(keys) > 0 {
		return e.blocked(ctx, st, app, &waitsForPerson{confirmation("delete", keys)})
	}
	l.approved = approved(app, app.DeletionTimestamp.Time)
	if held := e.doubted(ctx, st, l); held != "" {
		return e.blocked(ctx, st, app, &waitsForPerson{held})
	}
	st.running = newRunning(v1alpha1.Operation{}, e.opts.Now())
	defer func() { st.running = nil }()
	steps := l.plan(opts)
	if len(steps.Steps) > 0 {
		if err := e.cascadeStep(ctx, st, l, steps.Steps[0], opts); err != nil {
			return e.blocked(ctx, st, app, err)
		}
		e.queue.AddAfter(st.key, queue.People, time.Second)
		return nil
	}
	if slices.ContainsFunc(l.extras, func(x cluster.Live) bool { return x.Deleting }) {
		e.queue.AddAfter(st.key, queue.Drift, 5*time.Second) // their going wakes us sooner
		return nil
	}
	return e.release(ctx, st, app, finalizer)
}

func (e *Engine) cascadeStep(ctx context.Context, st *state, l *look, step plan.Step, opts plan.Set) error {
	var mu sync.Mutex
	for _, group := range step.Groups {
		for _, t := range group {
			refusal, err := e.doPrune(ctx, st, l, t, opts, &mu)
			if err != nil {
				return err
			}
			if refusal != "" {
				return fmt.Errorf("%s", refusal)
			}
		}
	}
	return nil
}

func cascade(app *v1alpha1.Application) string {
	for _, f := range app.Finalizers {
		if f == CascadeFinalizer || f == foregroundFinalizer || f == backgroundFinalizer {
			return f
		}
	}
	return ""
}

// forbids tells that the project does not let the application touch an object any more.
func (l *look) forbids(x cluster.Live) bool {
	gk := metav1.GroupKind{Group: x.Key.Group, Kind: x.Key.Kind}
	if l.rules.Kind(gk, x.Key.Name, x.Key.Namespace != "") != nil {
		return true
	}
	here := project.Cluster{Server: InClusterServer, Name: InClusterName}
	return x.Key.Namespace != "" && l.rules.Destination(here, x.Key.Namespace) != nil
}

// staysBehind are objects that no deletion of an application takes: definitions, for everything of their kind would go
// with them, and what says so itself.
func staysBehind(app *v1alpha1.Application, x cluster.Live) bool {
	options := plan.ParseOptions(x.Steering[plan.SyncOptionsAnnotation])
	if p := app.Spec.SyncPolicy; p != nil && plan.SetOf(p.SyncOptions).Has("Delete=false") && !options.Has("Delete=true") {
		return true
	}
	return x.Key.Kind == "CustomResourceDefinition" || options.Has("Delete=false") ||
		strings.TrimSpace(x.Steering["helm.sh/resource-policy"]) == "keep"
}

// unconfirmed are the objects that only a person's word since the deletion lets go.
func unconfirmed(extras []cluster.Live, app *v1alpha1.Application) []manifest.Key {
	if approved(app, app.DeletionTimestamp.Time) {
		return nil
	}
	all := app.Spec.SyncPolicy != nil && plan.SetOf(app.Spec.SyncPolicy.SyncOptions).Has("Delete=confirm")
	var keys []manifest.Key
	for _, x := range extras {
		if all || plan.ParseOptions(x.Steering[plan.SyncOptionsAnnotation]).Has("Delete=confirm") {
			keys = append(keys, x.Key)
		}
	}
	return keys
}

// waitsForPerson is no fault: nothing is tried again before somebody acts.
type waitsForPerson struct{ message string }

func (e *waitsForPerson) Error() string { return e.message }

// blocked says in the status why the deletion does not go on.
func (e *Engine) blocked(ctx context.Context, st *state, app *v1alpha1.Application, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	status := *app.Status.DeepCopy()
	status.Conditions = assess.Conditions(app.Status.Conditions, assess.Evaluated{
		Types: []v1alpha1.ApplicationConditionType{v1alpha1.ConditionDeletionError},
		Conditions: []v1alpha1.ApplicationCondition{{Type: v1alpha1.ConditionDeletionError,
			Message: oneLine(cause.Error() + "; to let the application go and leave its objects behind, set its annotation " + OrphanAnnotation + " to true")}},
	}, metav1.NewTime(e.opts.Now().Truncate(time.Second)))
	patch, err := statusPatch(app, status, false, false)
	if err == nil && patch != nil {
		err = e.write(ctx, st.key, app, patch)
	}
	var person *waitsForPerson
	if err != nil || errors.As(cause, &person) {
		return err
	}
	return cause
}

// release takes finalizers off.
func (e *Engine) release(ctx context.Context, st *state, app *v1alpha1.Application, finalizers ...string) error {
	left := slices.DeleteFunc(slices.Clone(app.Finalizers), func(f string) bool { return slices.Contains(finalizers, f) })
	return e.setFinalizers(ctx, st, app, left)
}

func (e *Engine) setFinalizers(ctx context.Context, st *state, app *v1alpha1.Application, left []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": left, "resourceVersion": app.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("application %s: finalizers: %w", app.Name, err)
	}
	e.queue.Add(st.key, queue.People) // what is next
	return e.write(ctx, st.key, app, patch)
}
