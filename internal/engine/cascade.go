package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
	"github.com/lockstep-cd/lockstep/internal/project"
)

// The times after which a cascade looks again by itself; the going of objects wakes it sooner.
const (
	afterDelete  = time.Second
	whileDeleted = 5 * time.Second
)

// cascade deletes what the application owns, in the reverse order of waves, one wave at a time. What is kept by its own
// annotations, by the project, by another application or by being a definition stays.
func (e *Engine) cascade(ctx context.Context, st *state, app *v1alpha1.Application) (pause, error) {
	l, err := e.inventory(ctx, st, app)
	if err != nil {
		return pause{}, err
	}
	for _, x := range l.extras {
		if x.Deleting && !x.Controlled && l.shared[x.Key] == "" {
			p := pause{waits: "waiting for " + x.Key.String() + " to be gone", again: whileDeleted}
			p.detail = e.heldBy(ctx, st, p, x.Key)
			return p, nil
		}
	}
	steps, kept := plan.Delete(l.leftovers())
	if len(steps) == 0 {
		e.leaveBehind(st, l, kept)
		return pause{}, nil
	}
	if err := e.mayGo(st, l, steps); err != nil {
		return pause{}, err
	}
	// For the writer only; an operation that was under way ends with the application.
	deletion := st.running
	st.running = newRunning(v1alpha1.Operation{}, e.opts.Now())
	defer func() { st.running = deletion }()
	refusal, err := e.perform(ctx, st, l, steps[0], cascadeOptions(app))
	if err == nil && refusal != "" {
		err = errors.New(refusal)
	}
	p := pause{waits: fmt.Sprintf("wave %d is being deleted", steps[0].Wave), again: afterDelete}
	if apierrors.IsConflict(err) { // decided anew with the next look
		return p, nil
	}
	return p, err
}

func cascadeOptions(app *v1alpha1.Application) plan.Set {
	opts := plan.Set{}
	if slices.Contains(app.Finalizers, backgroundFinalizer) {
		opts["PrunePropagationPolicy=background"] = true
	}
	return opts
}

// inventory finds what a cascade would delete and who else needs it.
func (e *Engine) inventory(ctx context.Context, st *state, app *v1alpha1.Application) (*look, error) {
	rules, err := e.ground(app)
	if err != nil {
		return nil, err
	}
	set := &desiredSet{byKey: map[manifest.Key]int{}}
	switch {
	case st.desired != nil:
		set.kinds = st.desired.kinds
	case st.leaving != nil:
		set.kinds = st.leaving.set.kinds
	case app.Status.ReconciledAt == nil:
		// Nothing was written down of it: it may have been applied all the same, just before a process ended.
		if l, err := e.departure(ctx, st, app, nil); err == nil {
			set.kinds = l.set.kinds
		}
	}
	if err := e.watched(ctx, kindsInUse(app, set)); err != nil {
		return nil, err
	}
	l := &look{app: app, rules: rules, set: set, prune: true}
	l.extras, l.unproven = e.extras(st, app, set)
	for _, x := range e.owned(app) { // hooks of syncs stay until now
		if isLiveHook(x) && st.proven(x) && !plan.RunsIn(x.Steering, plan.PreDelete) && !plan.RunsIn(x.Steering, plan.PostDelete) {
			l.extras = append(l.extras, x)
		}
	}
	l.extras = slices.DeleteFunc(l.extras, func(x cluster.Live) bool { return staysBehind(app, rules, x) != "" })
	e.needed(ctx, st, l)
	return l, nil
}

// mayGo says what of the deletion waits for a person or for another application; nil when nothing does.
func (e *Engine) mayGo(st *state, l *look, steps []plan.Step) error {
	if approved(l.app, l.app.DeletionTimestamp.Time) {
		return nil
	}
	var all []manifest.Key
	for _, s := range steps {
		for _, g := range s.Groups {
			for _, t := range g {
				all = append(all, t.Key)
			}
		}
	}
	if keys := unconfirmed(l, all); len(keys) > 0 {
		return &waitsForPerson{confirmation("delete", keys)}
	}
	waits := e.holds(st.key, all)
	var waiting []plan.Kept
	for _, k := range all {
		if waits[k] != "" {
			waiting = append(waiting, plan.Kept{Key: k, Reason: waits[k]})
		}
	}
	if len(waiting) > 0 {
		return &waitsForPerson{heldUp("deletion", waiting)}
	}
	return nil
}

// unconfirmed are the objects that only a person's word since the deletion lets go.
func unconfirmed(l *look, all []manifest.Key) []manifest.Key {
	p := l.app.Spec.SyncPolicy
	whole := p != nil && plan.SetOf(p.SyncOptions).Has("Delete=confirm")
	var keys []manifest.Key
	for _, x := range l.extras {
		if slices.Contains(all, x.Key) && (whole || plan.ParseOptions(x.Steering[plan.SyncOptionsAnnotation]).Has("Delete=confirm")) {
			keys = append(keys, x.Key)
		}
	}
	return keys
}

// staysBehind says why no deletion of an application takes the object; empty when it does.
func staysBehind(app *v1alpha1.Application, rules project.Rules, x cluster.Live) string {
	options := plan.ParseOptions(x.Steering[plan.SyncOptionsAnnotation])
	p := app.Spec.SyncPolicy
	switch {
	case x.Key.Group == "apiextensions.k8s.io" && x.Key.Kind == "CustomResourceDefinition":
		return "everything of its kind would go with it"
	case options.Has("Delete=false"), p != nil && plan.SetOf(p.SyncOptions).Has("Delete=false") && !options.Has("Delete=true"):
		return "its sync options say Delete=false"
	case strings.TrimSpace(x.Steering["helm.sh/resource-policy"]) == "keep":
		return "helm.sh/resource-policy keeps it"
	}
	if err := permitted(rules, x.Key); err != nil {
		return err.Error()
	}
	return ""
}

// heldBy says what holds an object that is on its way out, once that takes long.
func (e *Engine) heldBy(ctx context.Context, st *state, p pause, k manifest.Key) string {
	if st.patience.what != p.waits || e.opts.Now().Sub(st.patience.since) < quietWait {
		return ""
	}
	r, err := e.cluster.Kind(k.GroupKind().WithVersion(""))
	if err != nil {
		return ""
	}
	u, err := e.cluster.Get(ctx, r, k)
	if err != nil || len(u.GetFinalizers()) == 0 {
		return ""
	}
	return ": its finalizers " + strings.Join(u.GetFinalizers(), ", ") + " are not taken off; look at who should do that"
}

// leaveBehind reports what stays in the cluster after the application, and why.
func (e *Engine) leaveBehind(st *state, l *look, kept []plan.Kept) {
	var lines []string
	for _, k := range kept {
		lines = append(lines, k.Key.String()+" "+k.Reason)
	}
	if len(l.unproven) > 0 {
		lines = append(lines, list(l.unproven)+": only a label names the application, and there is no record that it was applied for it")
	}
	extras, _ := e.extras(st, l.app, l.set)
	for _, x := range extras {
		if why := staysBehind(l.app, l.rules, x); why != "" {
			lines = append(lines, x.Key.String()+": "+why)
		}
	}
	if len(lines) == 0 {
		return
	}
	e.log.Info("objects left behind", "application", st.key, "objects", len(lines))
	e.events.add(l.app, "Normal", "LeftBehind", oneLine("objects left behind: "+strings.Join(lines, "; ")), e.opts.Now())
}
