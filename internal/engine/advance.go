package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// applyAtOnce bounds the objects of one kind that one application has under way.
const applyAtOnce = 8

// advance does of the operation under way what can be done without waiting.
func (e *Engine) advance(ctx context.Context, st *state, l *look) (outcome, error) {
	r := st.running
	if wait := r.notYet.Sub(e.opts.Now()); wait > 0 {
		e.queue.AddAfter(st.key, queue.Commits, wait)
		return outcome{state: r.resting(l, r.message)}, nil
	}
	r.notYet = time.Time{}
	t, err := e.aim(ctx, st, l)
	if err != nil {
		return outcome{}, err
	}
	if !t.compared() {
		reason := cmpErr(t.invalid, t.failed)
		var source *sourceFault
		if t.invalid == nil && (!errors.As(reason, &source) || source.unreached) { // not the content's
			return e.problem(ctx, st, t, reason)
		}
		return e.fail(st, l, reason.Error(), t.invalid != nil), nil
	}
	r.aimed(t)
	if missing := t.unmatched(r); missing != "" {
		return e.fail(st, t, missing, true), nil
	}
	return e.carryOut(ctx, st, l, t)
}

// carryOut does the steps towards t, what the operation works on, as far as they need not be waited for.
func (e *Engine) carryOut(ctx context.Context, st *state, l, t *look) (outcome, error) {
	r := st.running
	opts := syncOptions(t.app, r.op.Sync)
	t.prune, t.only = r.op.Sync.Prune, r.op.Sync.Resources
	t.install, t.hooks = r.install(t), r.hooks(t.set)
	t.approved = approved(t.app, r.started.Time)
	t.waits = e.heldBack(st, t)
	if !r.checked {
		if broken := e.validate(t, opts); broken != "" {
			return e.fail(st, t, broken, true), nil
		}
		r.checked = true
	}
	if err := e.namespace(ctx, t, opts, r.op.Sync.DryRun); err != nil {
		return e.problem(ctx, st, t, err)
	}
	steps := t.plan(opts)
	for _, kept := range steps.Kept {
		r.note(kept.Key, "", v1alpha1.ResultPruneSkipped, kept.Reason)
	}
	list := steps.Steps
	if r.failing != "" {
		list = steps.OnFail
	}
	for i, step := range list {
		if i > 0 && r.outdated(l) { // since a hook has ended
			e.queue.Add(st.key, queue.Commits)
			return outcome{state: r.state(t, v1alpha1.OperationRunning, "gives way to a newer commit")}, nil
		}
		waits, failure, err := e.step(ctx, st, t, step, opts, i+1 < len(list))
		switch {
		case err != nil:
			return e.problem(ctx, st, t, err)
		case failure != "":
			return e.failed(ctx, st, t, steps, failure), nil
		}
		r.trouble = trouble{}
		if waits != "" {
			return e.waiting(st, t, waits), nil
		}
	}
	if r.failing != "" {
		return e.failed(ctx, st, t, plan.Plan{}, r.failing), nil
	}
	if len(steps.Unconfirmed) > 0 && !r.op.Sync.DryRun {
		return e.waiting(st, t, confirmation("prune", steps.Unconfirmed)), nil
	}
	if len(steps.Waiting) > 0 {
		return e.waiting(st, t, heldUp("prune", steps.Waiting)), nil
	}
	return e.conclude(ctx, st, l, t)
}

// conclude ends an operation that has done all its steps.
func (e *Engine) conclude(ctx context.Context, st *state, l, t *look) (outcome, error) {
	r := st.running
	if err := e.cleanHooks(ctx, st, t, plan.HookSucceeded, false); err != nil {
		return e.problem(ctx, st, t, err)
	}
	if t != l { // what the spec asks for is compared again with what is now in the cluster
		e.queue.Add(st.key, queue.Commits)
	}
	done := e.finish(st, t, v1alpha1.OperationSucceeded, success(r))
	done.pin = pin(l, t, r)
	return done, nil
}

// step does one step: its objects, then its hooks; before another step follows, what it applied must be healthy.
func (e *Engine) step(ctx context.Context, st *state, l *look, step plan.Step, opts plan.Set, more bool) (waits, failure string, err error) {
	if failure, err = e.perform(ctx, st, l, step, opts); err != nil || failure != "" {
		return "", failure, err
	}
	run, err := e.runHooks(ctx, st, l, step)
	if err != nil {
		return "", "", err
	}
	if run.journal { // written down first, done with the next look
		e.queue.Add(st.key, queue.Commits)
		return run.waits, "", nil
	}
	if run.waits != "" || run.failure != "" || !more || st.running.op.Sync.DryRun {
		return run.waits, run.failure, nil
	}
	if waits = e.unseen(ctx, st, l, step); waits != "" {
		return waits, "", nil
	}
	waits, failure = l.unsettled(step)
	return waits, failure, nil
}

// failed ends an attempt that met a refusal, after the hooks of SyncFail have run.
func (e *Engine) failed(ctx context.Context, st *state, l *look, steps plan.Plan, message string) outcome {
	r := st.running
	if r.failing == "" && len(steps.OnFail) > 0 && !r.op.Sync.DryRun {
		r.failing = message
		r.noteDown(failingNote, message)
		e.queue.Add(st.key, queue.Commits)
		return outcome{state: r.state(l, v1alpha1.OperationRunning, message+"; running the hooks of SyncFail")}
	}
	if r.failing != "" {
		message = r.failing
	}
	if err := e.cleanHooks(ctx, st, l, plan.HookFailed, false); err != nil {
		e.log.Warn("hook not deleted", "application", st.key, "error", err)
	}
	return e.fail(st, l, message, false)
}

func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return errNotCompared
}

func success(r *running) string {
	if r.op.Sync.DryRun {
		return "dry run finished; nothing was changed"
	}
	return "successfully synced"
}

// syncOptions are the operation's options, or, when it names none, the application's. They are not joined: who asks with a list,
// as Argo CD's sync panel does, could not take an option of the application away otherwise (reference/argocd.md §1.2).
func syncOptions(app *v1alpha1.Application, op *v1alpha1.SyncOperation) plan.Set {
	list := slices.Clone(op.SyncOptions)
	if len(list) == 0 && app.Spec.SyncPolicy != nil {
		list = app.Spec.SyncPolicy.SyncOptions
	}
	return plan.SetOf(list)
}

// plan orders the operation's tasks.
func (l *look) plan(opts plan.Set) plan.Plan {
	desired := make([]plan.Desired, 0, len(l.items))
	for _, it := range l.items {
		desired = append(desired, plan.Desired{Object: it.desired.Object, InSync: it.inSync()})
	}
	extra := l.leftovers()
	o := plan.Options{Install: l.install, Prune: l.prune, PruneLast: opts.Has("PruneLast=true"), NoPrune: opts.Has("Prune=false"), Confirm: opts.Has("Prune=confirm"), Approved: l.approved}
	if len(l.only) > 0 {
		o.Only = func(k manifest.Key) bool { return selects(l.only, k) }
	}
	hooks := make([]plan.Desired, 0, len(l.hooks))
	for i := range l.hooks {
		hooks = append(hooks, plan.Desired{Object: l.hooks[i].Object})
	}
	return plan.Make(desired, hooks, extra, o)
}

func selects(list []v1alpha1.SyncOperationResource, k manifest.Key) bool {
	return slices.ContainsFunc(list, func(r v1alpha1.SyncOperationResource) bool {
		return r.Group == k.Group && r.Kind == k.Kind && r.Name == k.Name && (r.Namespace == "" || r.Namespace == k.Namespace)
	})
}

// perform does one step; failure names the first object that was refused.
func (e *Engine) perform(ctx context.Context, st *state, l *look, step plan.Step, opts plan.Set) (failure string, err error) {
	var mu sync.Mutex
	changed := false
	defer func() {
		if changed {
			if serr := e.opts.Records.Save(st.key, st.proofs); serr != nil {
				e.log.Warn("proofs", "application", st.key, "error", serr)
			}
		}
	}()
	for _, group := range step.Groups {
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(applyAtOnce)
		for _, task := range group {
			if task.Action == plan.RunHook {
				continue
			}
			g.Go(func() error {
				refusal, terr := e.do(gctx, st, l, task, opts, &mu)
				mu.Lock()
				defer mu.Unlock()
				changed = true
				if refusal != "" && failure == "" {
					failure = refusal
				}
				return terr
			})
		}
		if err := g.Wait(); err != nil {
			return "", err
		}
		if failure != "" {
			return failure, nil
		}
		if st.running.op.Sync.DryRun {
			continue
		}
		if err := e.established(ctx, l, group); err != nil {
			return err.Error(), nil
		}
	}
	return "", nil
}

// do performs one task. A refusal is an answer about the object; an error is none.
func (e *Engine) do(ctx context.Context, st *state, l *look, task plan.Task, opts plan.Set, mu *sync.Mutex) (string, error) {
	if task.Action == plan.Prune {
		return e.doPrune(ctx, st, l, task, opts, mu)
	}
	r, it := st.running, &l.items[l.set.byKey[task.Key]]
	d := it.desired
	version := d.GroupVersionKind().Version
	mu.Lock()
	answer, spared := r.spared(it, opts)
	if spared {
		r.note(task.Key, version, answer.code, answer.message)
	}
	mu.Unlock()
	if spared {
		return answer.failure, nil
	}
	if r.op.Sync.DryRun {
		later, err := e.comesLater(ctx, l, d, opts)
		if err != nil {
			return "", err
		}
		if later {
			mu.Lock()
			defer mu.Unlock()
			r.note(task.Key, version, v1alpha1.ResultSynced, untried)
			return "", nil
		}
	}
	existed := it.exists
	out, err := e.send(ctx, st, l, it, opts)
	mu.Lock()
	defer mu.Unlock()
	if err != nil {
		var refused *apply.Error
		if passes(err) || !errors.As(err, &refused) {
			return "", err
		}
		r.note(task.Key, version, v1alpha1.ResultSyncFailed, refused.Reason)
		return at(d.Object, errors.New(refused.Reason)).Error(), nil
	}
	r.note(task.Key, version, v1alpha1.ResultSynced, applied(existed, r.op.Sync.DryRun))
	if r.op.Sync.DryRun {
		return "", nil
	}
	e.opts.Metrics.applied.Inc()
	r.changed(d.key, existed, out, e.opts.Now().Add(e.opts.SettleAfter))
	if d.made {
		it.exists, it.verdict = true, compare.Equal
		return "", nil
	}
	e.closely.Delete(d.key)
	it.live, it.exists, it.verdict, it.masked = e.read(out), true, compare.Equal, false //nolint:contextcheck // a rule of health that runs a script has its own bounds
	st.proofs[d.key] = compare.Pair{Desired: d.hash, Entry: it.live.Entry}
	e.cluster.Observe(out)
	return "", nil
}

func applied(existed, dry bool) string {
	text := "created"
	if existed {
		text = "configured"
	}
	if dry {
		return "would be " + text
	}
	return text
}

func (e *Engine) doPrune(ctx context.Context, st *state, l *look, task plan.Task, opts plan.Set, mu *sync.Mutex) (string, error) {
	at := slices.IndexFunc(l.extras, func(x cluster.Live) bool { return x.Key == task.Key })
	x := l.extras[at]
	gone := apply.Gone{Propagation: propagation(opts), DryRun: st.running.op.Sync.DryRun}
	err := e.remove(ctx, x, gone, sameClaim(x))
	mu.Lock()
	defer mu.Unlock()
	if err != nil && passes(err) { // such as that it changed since it was looked at: the next look decides anew
		return "", err
	}
	if err != nil {
		st.running.note(x.Key, x.Version, v1alpha1.ResultSyncFailed, err.Error())
		return err.Error(), nil
	}
	text := "pruned"
	if gone.DryRun {
		text = "would be pruned"
	} else {
		delete(st.proofs, x.Key)
		e.opts.Metrics.pruned.Inc()
		e.log.Info("pruned", "application", st.key, "object", x.Key.String())
	}
	st.running.note(x.Key, x.Version, v1alpha1.ResultPruned, text)
	return "", nil
}

func propagation(opts plan.Set) metav1.DeletionPropagation {
	switch v, _ := opts.Value("PrunePropagationPolicy"); v {
	case "background":
		return metav1.DeletePropagationBackground
	case "orphan":
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationForeground
}

// unsettled tells what of a step the next one has to wait for, or what of it is broken.
func (l *look) unsettled(step plan.Step) (waits, broken string) {
	for _, group := range step.Groups {
		for _, t := range group {
			if t.Action != plan.Apply {
				continue
			}
			it := l.items[l.set.byKey[t.Key]]
			if !it.live.HasHealth || it.holder != "" {
				continue
			}
			switch it.live.Health.Status {
			case v1alpha1.HealthHealthy, v1alpha1.HealthSuspended:
			case v1alpha1.HealthDegraded:
				return "", fmt.Sprintf("wave %d: %s is Degraded: %s", step.Wave, t.Key, it.live.Health.Message)
			default:
				if waits == "" {
					waits = fmt.Sprintf("waiting for %s of wave %d to become healthy", t.Key, step.Wave)
				}
			}
		}
	}
	return waits, ""
}
