package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// OperationAnnotation ties a live hook to one attempt of one operation: on resuming, a live hook with this mark is the hook
// (DESIGN.md §2.5).
const OperationAnnotation = "lockstep.dev/operation"

// installInfo is the note in an operation that it is an application's first deployment. It stands in the custom resource,
// so that it still holds when a process takes the operation up in the middle.
const installInfo = "lockstep.dev/install"

// result names an entry of a sync result: one hook may run in several phases.
type result struct {
	key   manifest.Key
	phase plan.Phase
}

// attempt identifies this attempt of the operation, the same after a restart.
func (r *running) attempt() string { return fmt.Sprintf("%x-%d", r.started.Unix(), r.retries) }

func (r *running) mark(p plan.Phase) string { return r.attempt() + "-" + strings.ToLower(string(p)) }

// hooks are those that the operation runs: none in a selective sync, a dry run or with the strategy apply.
func (r *running) hooks(set *desiredSet) []desired {
	s := r.op.Sync.SyncStrategy
	if r.selective || r.op.Sync.DryRun || s != nil && s.Apply != nil && s.Hook == nil {
		return nil
	}
	return set.hooks
}

// install tells whether this is the application's first deployment, and notes it in the operation.
func (r *running) install(l *look) bool {
	if note := noted(&r.op, installInfo); note != "" {
		return note == "true"
	}
	first := len(l.app.Status.History) == 0 && !slices.ContainsFunc(l.items, func(it item) bool { return it.exists })
	if len(r.hooks(l.set)) > 0 {
		r.noteDown(installInfo, fmt.Sprint(first))
	}
	return first
}

// hookRun is what came of the hooks of a step.
type hookRun struct {
	// journal asks for the operation's state to be written before the next thing is done.
	journal bool
	waits   string
	failure string
}

// runHooks takes the hooks of a step as far as they go without waiting.
func (e *Engine) runHooks(ctx context.Context, st *state, l *look, step plan.Step) (hookRun, error) {
	var run hookRun
	for _, group := range step.Groups {
		for _, t := range group {
			if t.Action != plan.RunHook {
				continue
			}
			h, err := e.hook(ctx, st, l, t)
			if err != nil {
				return run, err
			}
			run.journal = run.journal || h.journal
			if run.waits == "" {
				run.waits = h.waits
			}
			if run.failure == "" {
				run.failure = h.failure
			}
		}
	}
	if run.waits != "" {
		run.failure = "" // the others of the step come to their end first
	}
	return run, nil
}

// hook takes one hook one step further. Its life: noted as about to be made (and written down, so that no process after us
// makes it twice), made, seen to end.
func (e *Engine) hook(ctx context.Context, st *state, l *look, t plan.Task) (hookRun, error) {
	r := st.running
	d := &l.set.hooks[t.Index]
	key := r.hookKey(l, d, t)
	at := result{key: key, phase: t.Phase}
	known := r.results[at]
	if known != nil && known.HookPhase.Completed() {
		return ended(key, known), nil
	}
	live, exists, err := e.cluster.Lookup(ctx, key)
	if err != nil {
		return hookRun{}, err
	}
	seen, wasSeen := e.hooksSeen.get(key, r.mark(t.Phase))
	switch {
	case exists && live.Steering[OperationAnnotation] == r.mark(t.Phase):
		phase, message := hookState(live)
		if !phase.Completed() && wasSeen { // it ended and is being deleted by now
			phase, message = seen.phase, seen.message
		}
		if !phase.Completed() {
			if limit, late := e.overdue(st, d, live); late {
				phase, message = v1alpha1.OperationFailed, fmt.Sprintf("did not end within its deadline of %s", limit)
				if err := e.removeHook(ctx, live); err != nil {
					return hookRun{}, err
				}
			}
		}
		r.noteHook(at, d, phase, message)
	case known != nil && wasSeen:
		r.noteHook(at, d, seen.phase, seen.message)
	case known == nil && exists && slices.Contains(plan.HookPolicies(d.GetAnnotations()), plan.BeforeHookCreation):
		// Before it is noted: what is noted and not there counts as vanished, so that time is to be short.
		return e.removeEarlier(ctx, l, live)
	case known == nil:
		r.noteHook(at, d, v1alpha1.OperationRunning, "is about to be made")
		r.intents[at] = true
		return hookRun{journal: true, waits: "starting hook " + key.String()}, nil
	case !r.intents[at]:
		r.noteHook(at, d, v1alpha1.OperationFailed, "vanished before it was seen to finish")
	case exists && (slices.Contains(plan.HookPolicies(d.GetAnnotations()), plan.BeforeHookCreation) || ranBefore(live)):
		return e.removeEarlier(ctx, l, live)
	default:
		return e.makeHook(ctx, st, l, d, at)
	}
	if now := r.results[at]; now.HookPhase.Completed() {
		return ended(key, now), nil
	}
	return hookRun{waits: "waiting for the end of hook " + key.String()}, nil
}

// ranBefore tells that the live object is a hook of an earlier sync that has run to its end: applied again it would not run
// again, whatever its policy says of its deletion.
func ranBefore(live cluster.Live) bool {
	if live.Steering[OperationAnnotation] == "" || !live.HasHealth {
		return false
	}
	phase, _ := hookState(live)
	switch live.Key.GroupKind().String() {
	case "Job.batch", "Pod", "Workflow.argoproj.io":
		return phase.Completed()
	}
	return false
}

func ended(key manifest.Key, res *v1alpha1.ResourceResult) hookRun {
	if res.HookPhase == v1alpha1.OperationSucceeded {
		return hookRun{}
	}
	return hookRun{failure: fmt.Sprintf("hook %s failed: %s", key, res.Message)}
}

// removeEarlier deletes the hook that an earlier sync left, and waits until it is gone.
func (e *Engine) removeEarlier(ctx context.Context, l *look, live cluster.Live) (hookRun, error) {
	waits := hookRun{waits: "waiting for the earlier hook " + live.Key.String() + " to be gone"}
	e.queue.AddAfter(e.applications.key(l.app.Name), queue.Commits, time.Second) // the mark on it may be another's, who is woken by its end
	if live.Deleting {
		return waits, nil
	}
	return waits, e.removeHook(ctx, live)
}

func (e *Engine) removeHook(ctx context.Context, live cluster.Live) error {
	gone := apply.Gone{Propagation: metav1.DeletePropagationBackground}
	return e.remove(ctx, live, gone, func(now cluster.Live) bool {
		return now.Steering[OperationAnnotation] == live.Steering[OperationAnnotation]
	})
}

func (e *Engine) makeHook(ctx context.Context, st *state, l *look, d *desired, at result) (hookRun, error) {
	r := st.running
	body, err := e.prepared(ctx, d, false, validatesLoosely(objectOptions(d), syncOptions(l.app, r.op.Sync)))
	if err == nil && !d.asks() {
		body, err = hookBody(body, at, r)
	}
	if err != nil {
		return hookRun{}, err
	}
	out, err := e.writer.Apply(ctx, target(d.resource), at.key, body, apply.Mode{})
	if err != nil {
		var refused *apply.Error
		if passes(err) || !errors.As(err, &refused) {
			return hookRun{}, err
		}
		r.noteHook(at, d, v1alpha1.OperationFailed, refused.Reason)
		return ended(at.key, r.results[at]), nil
	}
	e.opts.Metrics.applied.Inc()
	e.cluster.Observe(out)
	phase, message := hookState(e.read(out)) //nolint:contextcheck // a rule of health that runs a script has its own bounds
	r.noteHook(at, d, phase, message)
	if phase.Completed() {
		return ended(at.key, r.results[at]), nil
	}
	return hookRun{waits: "waiting for the end of hook " + at.key.String()}, nil
}

// hookBody is the hook as it is made in this attempt: with its final name and marks.
func hookBody(body []byte, at result, r *running) ([]byte, error) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &u.Object); err != nil {
		return nil, fmt.Errorf("%s: %w", at.key, err)
	}
	u.SetName(at.key.Name)
	u.SetGenerateName("")
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[OperationAnnotation] = r.mark(at.phase)
	if id := annotations[TrackingAnnotation]; strings.HasSuffix(id, "/") { // marked when it had no name yet
		annotations[TrackingAnnotation] = id + at.key.Name
	}
	u.SetAnnotations(annotations)
	return u.MarshalJSON()
}

// hookKey is the hook's key; a generated name is the same throughout the attempt: base, revision, phase and start.
func (r *running) hookKey(l *look, d *desired, t plan.Task) manifest.Key {
	k := d.key
	if k.Name == "" {
		rev := first(l.rendering.revisions)
		k.Name = strings.ToLower(fmt.Sprintf("%s%s-%s-%s", d.GetGenerateName(), rev[:min(7, len(rev))], t.Phase, r.attempt()))
	}
	return k
}

func (r *running) noteHook(at result, d *desired, phase v1alpha1.OperationPhase, message string) {
	if _, again := r.results[at]; !again {
		r.order = append(r.order, at)
	}
	code := v1alpha1.ResultSynced
	if phase == v1alpha1.OperationFailed {
		code = v1alpha1.ResultSyncFailed
	}
	r.results[at] = &v1alpha1.ResourceResult{
		Group: at.key.Group, Version: d.GroupVersionKind().Version, Kind: at.key.Kind, Namespace: at.key.Namespace, Name: at.key.Name,
		Status: code, Message: message, HookPhase: phase, HookType: v1alpha1.HookType(at.phase), SyncPhase: v1alpha1.SyncPhase(at.phase),
	}
}

// hookState reads the end of a hook off its health; what has no health is done once it is made.
func hookState(l cluster.Live) (v1alpha1.OperationPhase, string) {
	if !l.HasHealth {
		return v1alpha1.OperationSucceeded, "made"
	}
	message := l.Health.Message
	switch l.Health.Status {
	case v1alpha1.HealthHealthy:
		return v1alpha1.OperationSucceeded, message
	case v1alpha1.HealthDegraded, v1alpha1.HealthUnknown:
		return v1alpha1.OperationFailed, message
	}
	return v1alpha1.OperationRunning, message
}

// cleanHooks deletes the hooks of this attempt whose policy says so, now that the whole sync has ended; all takes those that
// have not ended, too. The live hooks tell their policies: the source may have none of them any more.
func (e *Engine) cleanHooks(ctx context.Context, st *state, l *look, end plan.DeletePolicy, all bool) error {
	r := st.running
	var failed error
	for _, at := range r.order {
		if r.results[at].HookType == "" {
			continue
		}
		live, exists, err := e.cluster.Lookup(ctx, at.key)
		if err == nil && exists && !live.Deleting && live.Steering[OperationAnnotation] == r.mark(at.phase) &&
			(slices.Contains(plan.HookPolicies(live.Steering), end) || all && !r.results[at].HookPhase.Completed()) {
			err = e.removeHook(ctx, live)
		}
		failed = cmp.Or(failed, err)
	}
	return failed
}

// hooksSeen remembers how hooks ended, from the moment the watch said so: a Job may be gone a moment later.
type hooksSeen struct {
	mu   sync.Mutex
	ends map[manifest.Key]hookEnd
}

type hookEnd struct {
	mark    string
	phase   v1alpha1.OperationPhase
	message string
}

func (h *hooksSeen) note(l cluster.Live) {
	mark := l.Steering[OperationAnnotation]
	if mark == "" || l.Deleting {
		return
	}
	phase, message := hookState(l)
	if !phase.Completed() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ends == nil {
		h.ends = map[manifest.Key]hookEnd{}
	}
	h.ends[l.Key] = hookEnd{mark: mark, phase: phase, message: message}
}

func (h *hooksSeen) get(key manifest.Key, mark string) (hookEnd, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end, ok := h.ends[key]
	return end, ok && end.mark == mark
}

// forget drops what is known of an attempt's hooks, when the operation has ended.
func (h *hooksSeen) forget(r *running) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, at := range r.order {
		if end, ok := h.ends[at.key]; ok && end.mark == r.mark(at.phase) {
			delete(h.ends, at.key)
		}
	}
}
