package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/assess"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/plan"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// The finalizers of applications whose source has hooks of PreDelete and PostDelete (contract §1.5). They come and go with
// the hooks. The clean-ups are Argo CD's; we clean up with the phase, and take them off where they are.
const (
	preDeleteFinalizer  = "pre-delete-finalizer.argocd.argoproj.io"
	postDeleteFinalizer = "post-delete-finalizer.argocd.argoproj.io"
	cleanupSuffix       = "/cleanup"
)

// deletionInfo is the note in an operation that it runs the hooks of a deletion, and of which phase.
const deletionInfo = "lockstep.dev/deletion"

// ownFinalizers are those that are ours to take off.
func ownFinalizers(app *v1alpha1.Application) []string {
	ours := []string{
		CascadeFinalizer, foregroundFinalizer, backgroundFinalizer, preDeleteFinalizer, preDeleteFinalizer + cleanupSuffix,
		postDeleteFinalizer, postDeleteFinalizer + cleanupSuffix,
	}
	return slices.DeleteFunc(slices.Clone(app.Finalizers), func(f string) bool { return !slices.Contains(ours, f) })
}

// hookFinalizers sets the finalizers that the hooks of the source ask for, before anything of it is applied. Without a valid
// rendering they stay as they are.
func (e *Engine) hookFinalizers(ctx context.Context, st *state, l *look) (changed bool, err error) {
	if !l.compared() {
		return false, nil
	}
	next := slices.Clone(l.app.Finalizers)
	for phase, finalizer := range map[plan.Phase]string{plan.PreDelete: preDeleteFinalizer, plan.PostDelete: postDeleteFinalizer} {
		wanted := slices.ContainsFunc(l.set.hooks, func(d desired) bool {
			return slices.Contains(plan.HookPhases(d.GetAnnotations(), false), phase)
		})
		has := slices.Contains(next, finalizer)
		switch {
		case wanted && !has:
			next = append(next, finalizer)
		case !wanted && has:
			next = slices.DeleteFunc(next, func(f string) bool { return f == finalizer || f == finalizer+cleanupSuffix })
		}
	}
	if slices.Equal(next, l.app.Finalizers) {
		return false, nil
	}
	slices.Sort(next)
	return true, e.setFinalizers(ctx, st, l.app, next)
}

// deletionHooks runs the hooks of a phase and takes its finalizer off when all have succeeded. It needs the source once
// more; one that is broken by now keeps the application until it is mended, or until the annotation lets it go.
func (e *Engine) deletionHooks(ctx context.Context, st *state, l *look, phase plan.Phase) error {
	if err := e.prepareDeletion(ctx, st, l); err != nil {
		return e.blocked(ctx, st, l.app, fmt.Errorf("hooks of %s: %w", phase, err))
	}
	if e.failedBefore(l, phase) {
		return nil // said already; another try follows a new commit or a refresh
	}
	e.resumeDeletion(st, l, phase)
	r := st.running
	for _, step := range plan.DeletionHooks(l.hooksPlanned(), phase) {
		run, err := e.runHooks(ctx, st, l, step)
		switch {
		case err != nil:
			return e.blocked(ctx, st, l.app, err)
		case run.failure != "":
			e.cleanHooks(ctx, st, l, plan.HookFailed, false)
			st.running = nil
			return e.deletionState(ctx, st, l, r.state(l, v1alpha1.OperationFailed, run.failure), run.failure)
		case run.journal:
			e.queue.Add(st.key, queue.People)
		}
		if run.journal || run.waits != "" {
			return e.deletionState(ctx, st, l, r.state(l, v1alpha1.OperationRunning, run.waits), "")
		}
	}
	e.cleanHooks(ctx, st, l, plan.HookSucceeded, false)
	e.hooksSeen.forget(r)
	st.running = nil
	finalizer := map[plan.Phase]string{plan.PreDelete: preDeleteFinalizer, plan.PostDelete: postDeleteFinalizer}[phase]
	return e.release(ctx, st, l.app, finalizer, finalizer+cleanupSuffix)
}

// prepareDeletion renders the source and makes its hooks ready.
func (e *Engine) prepareDeletion(ctx context.Context, st *state, l *look) error {
	r := request{key: st.key, app: l.app, sources: effective(l.app.Spec), rules: l.rules, since: e.asked(st, l.app)}
	if err := e.capabilities(&r); err != nil {
		return err
	}
	rendered, err := e.chain().render(ctx, r, st.rendering)
	if err != nil {
		return err
	}
	st.rendering, l.rendering = rendered, rendered
	p := preparation{
		app: l.app, rules: l.rules, kinds: e.cluster, key: e.opts.Key, seal: e.sealer.seal,
		cluster: project.Cluster{Server: InClusterServer, Name: InClusterName},
	}
	if l.set, err = p.prepare(rendered); err != nil {
		return err
	}
	l.hooks = l.set.hooks
	for _, gk := range l.set.kinds {
		if err := e.cluster.Watch(ctx, gk); err != nil && !errors.Is(err, cluster.ErrNotWatchable) {
			return err
		}
	}
	for i := range l.hooks {
		if l.hooks[i].problem != nil {
			return l.hooks[i].problem
		}
	}
	return nil
}

func (l *look) hooksPlanned() []plan.Desired {
	hooks := make([]plan.Desired, 0, len(l.hooks))
	for i := range l.hooks {
		hooks = append(hooks, plan.Desired{Object: l.hooks[i].Object})
	}
	return hooks
}

// failedBefore tells that the hooks of this very source have failed, and that nobody has asked for another try.
func (e *Engine) failedBefore(l *look, phase plan.Phase) bool {
	last := l.app.Status.OperationState
	return last != nil && last.Phase == v1alpha1.OperationFailed && deletionOf(last.Operation) == phase &&
		last.SyncResult != nil && slices.Equal(revisionsOf(*last.SyncResult), l.rendering.revisions) &&
		l.app.Annotations[RefreshAnnotation] == ""
}

// deletionOf is the phase of a deletion whose hooks an operation runs; empty for a sync.
func deletionOf(op v1alpha1.Operation) plan.Phase {
	for _, info := range op.Info {
		if info != nil && info.Name == deletionInfo {
			return plan.Phase(info.Value)
		}
	}
	return ""
}

// resumeDeletion takes up the hooks of a phase where this process, or one before it, has left them.
func (e *Engine) resumeDeletion(st *state, l *look, phase plan.Phase) {
	if st.running != nil && deletionOf(st.running.op) == phase {
		return
	}
	st.running = nil
	if last := l.app.Status.OperationState; last != nil && last.Phase == v1alpha1.OperationRunning && deletionOf(last.Operation) == phase {
		withoutRequest := *l
		withoutRequest.app = l.app.DeepCopy()
		withoutRequest.app.Operation = nil // nothing but the deletion goes on
		e.resume(st, &withoutRequest)
		return
	}
	st.running = newRunning(v1alpha1.Operation{Info: []*v1alpha1.Info{{Name: deletionInfo, Value: string(phase)}}}, e.opts.Now())
}

// deletionState writes how far the hooks of a deletion are, and, when they have failed, what blocks it.
func (e *Engine) deletionState(ctx context.Context, st *state, l *look, state *v1alpha1.OperationState, failure string) error {
	now := metav1.NewTime(e.opts.Now())
	if state.Phase.Completed() {
		state.FinishedAt = &now
	}
	status := *l.app.Status.DeepCopy()
	status.OperationState = state
	var conditions []v1alpha1.ApplicationCondition
	if failure != "" {
		conditions = []v1alpha1.ApplicationCondition{{Type: v1alpha1.ConditionDeletionError, Message: oneLine(failure +
			"; the hooks are tried again after a new commit or a refresh; to let the application go and leave its objects behind, set its annotation " +
			OrphanAnnotation + " to true")}}
	}
	status.Conditions = assess.Conditions(l.app.Status.Conditions, assess.Evaluated{
		Types: []v1alpha1.ApplicationConditionType{v1alpha1.ConditionDeletionError}, Conditions: conditions,
	}, now)
	patch, err := statusPatch(l.app, status, false, l.app.Annotations[RefreshAnnotation] != "")
	if err != nil || patch == nil {
		return err
	}
	return e.write(ctx, st.key, l.app, patch)
}
