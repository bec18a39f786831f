package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// deletionInfo is the note in an operation that it is an application's deletion; its value is the digest of the rendering
// that the hooks are taken from. A deletion with hooks is written down as an operation is, so that a process which takes it
// up in the middle knows what was begun (decision 6).
const deletionInfo = "lockstep.dev/deletion"

// hookFinalizers makes the finalizers of hooks follow the hooks in Git, before anything of it is applied, while what is in
// Git is known. A change of them wakes the application again.
func (e *Engine) hookFinalizers(ctx context.Context, st *state, l *look) (changed bool, err error) {
	if !l.compared() {
		return false, nil
	}
	list := slices.Clone(l.app.Finalizers)
	for _, by := range []struct {
		phase     plan.Phase
		finalizer string
	}{{plan.PreDelete, PreDeleteFinalizer}, {plan.PostDelete, PostDeleteFinalizer}} {
		wants := slices.ContainsFunc(l.set.hooks, func(d desired) bool { return plan.RunsIn(d.GetAnnotations(), by.phase) })
		for _, f := range []string{by.finalizer, by.finalizer + cleanup} {
			switch has := slices.Contains(list, f); {
			case wants && !has:
				list = append(list, f)
			case !wants && has:
				list = slices.DeleteFunc(list, func(other string) bool { return other == f })
			}
		}
	}
	if slices.Equal(list, l.app.Finalizers) {
		return false, nil
	}
	return true, e.setFinalizers(ctx, st, l.app, list)
}

// deleteHooks runs the hooks of PreDelete or PostDelete, each once. One that fails stops the deletion until what Git declares
// has changed or a person asks again.
func (e *Engine) deleteHooks(ctx context.Context, st *state, app *v1alpha1.Application, phase plan.Phase) (pause, error) {
	l, err := e.attend(ctx, st, app)
	if err != nil {
		return pause{}, err
	}
	r := st.running
	hooks := make([]plan.Desired, 0, len(l.set.hooks))
	for i := range l.set.hooks {
		hooks = append(hooks, plan.Desired{Object: l.set.hooks[i].Object})
	}
	steps := plan.DeletionHooks(hooks, phase)
	if len(steps) == 0 {
		return pause{}, nil
	}
	if terminating(app) {
		return e.deletionFailed(ctx, st, l, "the deletion was terminated on request", true)
	}
	for _, step := range steps {
		if p, err := e.deleteStep(ctx, st, l, step); err != nil || p.waits != "" {
			return p, err
		}
	}
	done := r.state(l, v1alpha1.OperationRunning, string(phase)+" hooks have ended")
	return pause{}, e.say(ctx, st, app, done) // before the finalizer goes, so that they are known when it is cleaned up
}

func (e *Engine) deleteStep(ctx context.Context, st *state, l *look, step plan.Step) (pause, error) {
	r := st.running
	if waits, err := e.clearWay(ctx, st, l, step); err != nil || waits != "" {
		return pause{waits: waits, again: afterDelete}, err
	}
	run, err := e.runHooks(ctx, st, l, step)
	switch {
	case err != nil:
		return pause{}, err
	case run.failure != "":
		return e.deletionFailed(ctx, st, l, run.failure, false)
	case run.waits != "":
		p := pause{waits: run.waits, state: r.state(l, v1alpha1.OperationRunning, "deletion: "+run.waits)}
		if run.journal { // written down first, done with the next look
			e.queue.Add(st.key, queue.People)
		}
		return p, nil
	}
	return pause{}, nil
}

// deletionFailed ends the attempt; all removes the hooks that are still running, too.
func (e *Engine) deletionFailed(ctx context.Context, st *state, l *look, why string, all bool) (pause, error) {
	message := why + "; the hook runs again when Git declares something else, or when the annotation " + RefreshAnnotation + " is set"
	if err := e.cleanHooks(ctx, st, l, plan.HookFailed, all); err != nil {
		return pause{}, err // it ends with the next look
	}
	state := st.running.state(l, v1alpha1.OperationFailed, message)
	st.running = nil // the next attempt is taken up from what is written down
	return pause{state: state}, &waitsForPerson{message}
}

// clearWay sees that hooks can be made: it names what makes one impossible, and removes what an earlier attempt left.
func (e *Engine) clearWay(ctx context.Context, st *state, l *look, step plan.Step) (waits string, err error) {
	for _, group := range step.Groups {
		for _, t := range group {
			d := &l.set.hooks[t.Index]
			if d.problem != nil {
				return "", &waitsForPerson{d.problem.Error()}
			}
			key := st.running.hookKey(l, d, t)
			live, exists, err := e.cluster.Lookup(ctx, key)
			if err != nil {
				return "", err
			}
			mark := live.Steering[OperationAnnotation]
			if !exists || mark == st.running.mark(t.Phase) || st.running.ended(key, t.Phase) {
				continue
			}
			if !isLiveHook(live) || live.Owner != "" && !e.marks().names(live, l.app) {
				return "", &waitsForPerson{key.String() + " is there and is no hook of this application: give the hook another name, or delete the object"}
			}
			waits = "waiting for the earlier hook " + key.String() + " to be gone"
			if !live.Deleting {
				if err := e.removeHook(ctx, live); err != nil {
					return "", err
				}
			}
		}
	}
	return waits, nil
}

func (r *running) ended(key manifest.Key, phase plan.Phase) bool {
	known := r.results[result{key: key, phase: phase}]
	return known != nil && known.HookPhase.Completed()
}

// attend takes up the deletion's operation, or begins it, and gives what its hooks are taken from: the same commit for the
// whole attempt.
func (e *Engine) attend(ctx context.Context, st *state, app *v1alpha1.Application) (*look, error) {
	last := app.Status.OperationState
	if !isDeletion(st.running) {
		st.running = nil
		if last != nil && !last.Phase.Completed() && isDeletion(takeUp(last)) {
			st.running = takeUp(last)
		}
	}
	if st.running != nil {
		at := st.running.op.Sync.Revisions
		if one := st.running.op.Sync.Revision; one != "" {
			at = []string{one}
		}
		return e.departure(ctx, st, app, at)
	}
	l, err := e.departure(ctx, st, app, nil)
	if err != nil {
		return nil, err
	}
	r := newRunning(v1alpha1.Operation{}, e.opts.Now())
	if last != nil && last.Phase == v1alpha1.OperationFailed && isDeletion(takeUp(last)) {
		if r = takeUp(last); deletionDigest(r) == l.rendering.digest && app.Annotations[RefreshAnnotation] == "" {
			return nil, &waitsForPerson{last.Message}
		}
		r.retries++
		r.dropUnsuccessful()
	}
	r.op.Info = []*v1alpha1.Info{{Name: deletionInfo, Value: l.rendering.digest}}
	r.op.Sync = &v1alpha1.SyncOperation{Revision: first(l.rendering.revisions)}
	if len(app.Spec.Sources) > 0 {
		r.op.Sync = &v1alpha1.SyncOperation{Revisions: l.rendering.revisions}
	}
	st.running = r
	return l, nil
}

// dropUnsuccessful forgets the hooks that another attempt has to run again.
func (r *running) dropUnsuccessful() {
	r.order = slices.DeleteFunc(r.order, func(at result) bool {
		again := r.results[at].HookPhase != v1alpha1.OperationSucceeded
		if again {
			delete(r.results, at)
		}
		return again
	})
}

func isDeletion(r *running) bool { return r != nil && deletionDigest(r) != "" }

func deletionDigest(r *running) string {
	for _, info := range r.op.Info {
		if info != nil && info.Name == deletionInfo {
			return info.Value
		}
	}
	return ""
}

// departure renders the application for its last hooks, from fixed revisions where there are some. It fails while the source
// has no valid rendering: an older one might run the wrong hook.
func (e *Engine) departure(ctx context.Context, st *state, app *v1alpha1.Application, fixed []string) (*look, error) {
	if l := st.leaving; l != nil && fixed != nil && slices.Equal(l.rendering.revisions, fixed) && sameJSON(l.app.Spec, app.Spec) {
		l.app = app
		return l, e.watched(ctx, l.set.kinds)
	}
	rules, err := e.ground(app)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(rules.Enforceable(), rules.Destination(project.Cluster{Server: InClusterServer, Name: InClusterName}, app.Spec.Destination.Namespace)); err != nil {
		return nil, &waitsForPerson{"spec.project: " + err.Error()}
	}
	r := request{key: st.key, app: app, sources: effective(app.Spec), rules: rules, since: e.asked(st, app), fixed: fixed}
	r.afresh = app.Annotations[RefreshAnnotation] == "hard"
	if len(r.sources) == 0 {
		return nil, &waitsForPerson{"spec.source: is missing; the deletion hooks can not be found"}
	}
	if err := e.capabilities(&r); err != nil {
		return nil, err
	}
	rendered, err := e.chain().render(ctx, r, nil)
	if err != nil {
		return nil, fmt.Errorf("the deletion hooks can not be rendered: %w", err)
	}
	p := preparation{
		marks: e.marks(), app: app, rules: rules, kinds: e.cluster, key: e.opts.Key, seal: e.sealer.seal,
		cluster: project.Cluster{Server: InClusterServer, Name: InClusterName},
	}
	set, err := p.prepare(rendered)
	if err != nil {
		return nil, err
	}
	st.leaving = &look{app: app, rules: rules, rendering: rendered, set: set}
	return st.leaving, e.watched(ctx, set.kinds)
}

// watched makes sure that kinds are watched. Of one that is not served nothing can be there; where it is declared it is said.
func (e *Engine) watched(ctx context.Context, kinds []schema.GroupKind) error {
	for _, gk := range kinds {
		if err := e.cluster.Watch(ctx, gk); err != nil && !errors.Is(err, cluster.ErrNoKind) && !errors.Is(err, cluster.ErrNotWatchable) {
			return err
		}
	}
	return nil
}

// cleanUp deletes the hooks of this deletion whose policy says so, now that everything has ended well. It needs no source:
// the hooks themselves carry their policies.
func (e *Engine) cleanUp(ctx context.Context, st *state, app *v1alpha1.Application) (pause, error) {
	last := app.Status.OperationState
	if last == nil || !isDeletion(takeUp(last)) {
		return pause{}, nil
	}
	r := takeUp(last)
	deletion := fmt.Sprintf("%x-", r.started.Unix()) // whichever attempt it was
	for _, at := range r.order {
		if err := e.cluster.Watch(ctx, at.key.GroupKind()); errors.Is(err, cluster.ErrNoKind) {
			continue
		} else if err != nil {
			return pause{}, err
		}
		live, exists, err := e.cluster.Lookup(ctx, at.key)
		if err != nil {
			return pause{}, err
		}
		if !exists || live.Deleting || !strings.HasPrefix(live.Steering[OperationAnnotation], deletion) ||
			!slices.Contains(plan.HookPolicies(live.Steering), plan.HookSucceeded) {
			continue
		}
		if err := e.removeHook(ctx, live); err != nil {
			return pause{}, err
		}
	}
	st.running = nil
	if last.Phase.Completed() {
		return pause{}, nil
	}
	done, now := last.DeepCopy(), metav1.NewTime(e.opts.Now().Truncate(time.Second))
	done.Phase, done.Message, done.FinishedAt = v1alpha1.OperationSucceeded, "the deletion hooks have ended", &now
	return pause{}, e.say(ctx, st, app, done)
}
