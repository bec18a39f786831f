package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// running is an operation under way.
type running struct {
	op      v1alpha1.Operation
	started metav1.Time
	retries int64
	notYet  time.Time // a retry is not made before
	results map[result]*v1alpha1.ResourceResult
	order   []result
	// intents are hooks that this process noted as about to be made.
	intents map[result]bool
	trouble trouble
	// request is the operation as it was asked for; nil for one of our own.
	request *v1alpha1.Operation
	// failing is why the attempt failed, while the hooks of SyncFail run.
	failing string
	// selective operations write no history.
	selective bool
	checked   bool
	message   string
}

// outcome is what an operation came to in one look.
type outcome struct {
	// state is what status.operationState becomes; nil leaves it.
	state *v1alpha1.OperationState
	// taken tells that spec's operation request was taken up and is to be cleared.
	taken bool
	// deployed is the history entry of a finished deployment.
	deployed *v1alpha1.RevisionHistory
	refusal  string
	// rests is why automated sync does nothing although something is to be done.
	rests string
	// pin is the digest that a rollback leaves automated sync resting at.
	pin string
}

func automated(app *v1alpha1.Application) plan.Auto {
	p := app.Spec.SyncPolicy
	if p == nil || p.Automated == nil {
		return plan.Auto{}
	}
	a := p.Automated
	return plan.Auto{Enabled: a.Enabled == nil || *a.Enabled, Prune: a.Prune, SelfHeal: a.SelfHeal, AllowEmpty: a.AllowEmpty}
}

// operate goes on with the operation under way, or begins one that is asked for or due.
func (e *Engine) operate(ctx context.Context, st *state, l *look) (outcome, error) {
	e.resume(st, l)
	var out outcome
	switch {
	case st.running != nil && terminating(l.app):
		e.cleanHooks(ctx, st, l, plan.HookFailed, true)
		return e.finish(st, l, v1alpha1.OperationFailed, "operation was terminated on request"), nil
	case st.running != nil && l.app.Operation == nil && e.superseded(st, l):
		if l.app.Annotations[SupersedeAnnotation] == "at-once" {
			e.cleanHooks(ctx, st, l, plan.HookFailed, true)
		}
		e.supersede(st, l)
	case st.running == nil && l.app.Operation != nil:
		st.running = newRunning(*l.app.Operation, e.opts.Now())
		st.running.request = l.app.Operation
		out.taken = true
	case st.running != nil && l.app.Operation != nil && sameJSON(st.running.request, l.app.Operation):
		out.taken = true // taking it up could not be written down at the first attempt
	}
	if st.running == nil {
		if !e.begin(st, l, &out) {
			return out, nil
		}
	}
	more, err := e.advance(ctx, st, l)
	more.taken = out.taken
	return more, err
}

// resume takes up an operation that a process before us left unfinished.
func (e *Engine) resume(st *state, l *look) {
	last := l.app.Status.OperationState
	if st.running != nil || last == nil || last.Phase.Completed() || l.app.Operation != nil {
		return
	}
	r := newRunning(last.Operation, last.StartedAt.Time)
	r.retries = last.RetryCount
	if last.SyncResult != nil {
		for _, res := range last.SyncResult.Resources {
			if res == nil {
				continue
			}
			at := result{
				key:   manifest.Key{Group: res.Group, Kind: res.Kind, Namespace: res.Namespace, Name: res.Name},
				phase: plan.Phase(res.SyncPhase),
			}
			r.results[at], r.order = res, append(r.order, at)
		}
	}
	st.running = r
}

func newRunning(op v1alpha1.Operation, now time.Time) *running {
	if op.Sync == nil {
		op.Sync = &v1alpha1.SyncOperation{}
	}
	return &running{
		op: op, started: metav1.NewTime(now.Truncate(time.Second)), results: map[result]*v1alpha1.ResourceResult{},
		intents:   map[result]bool{},
		selective: len(op.Sync.Resources) > 0,
	}
}

// begin starts an automated sync where one is due.
func (e *Engine) begin(st *state, l *look, out *outcome) bool {
	if !l.compared() {
		return false
	}
	if reason := pinned(l); reason != "" {
		out.rests = reason
		return false
	}
	act, reason := plan.Automate(automated(l.app), e.situation(st, l))
	if held := l.rules.Windows(); held != nil && (act == plan.SyncAll || act == plan.Heal) {
		act, reason = plan.Refuse, held.Error()
	}
	out.refusal = reason
	if act == plan.SyncAll {
		if out.rests = e.waitsFor(l.app); out.rests != "" {
			return false
		}
	}
	switch act {
	case plan.SyncAll:
		st.running = newRunning(e.automatic(l, nil), e.opts.Now())
		st.noteSuperseded()
		st.attempted = l.rendering.digest
		return true
	case plan.Heal:
		resources, wait := e.healable(st, l)
		if wait > 0 {
			e.queue.AddAfter(st.key, queue.Drift, wait)
		}
		if len(resources) == 0 {
			return false
		}
		st.running = newRunning(e.automatic(l, resources), e.opts.Now())
		return true
	}
	return false
}

func (e *Engine) situation(st *state, l *look) plan.Situation {
	s := plan.Situation{OutOfSync: l.outOfSync(), Empty: len(l.set.objects) == 0 && len(l.extras) > 0}
	for _, x := range l.extras {
		if l.prunable(x) {
			s.Extras++
		}
	}
	last := l.app.Status.OperationState
	same := st.tried(l.app, l.set)
	s.New = !same
	s.Failed = same && last != nil && (last.Phase == v1alpha1.OperationFailed || last.Phase == v1alpha1.OperationError)
	return s
}

// tried tells whether the last whole sync was one to this set.
func (st *state) tried(app *v1alpha1.Application, set *desiredSet) bool {
	last := app.Status.OperationState
	if st.attempted == "" && last != nil && last.SyncResult != nil {
		// After a restart only the revision tells.
		if slices.Equal(revisionsOf(*last.SyncResult), set.revisions) && sameSources(*last.SyncResult, app) {
			st.attempted = set.digest
		}
	}
	return st.attempted == set.digest
}

// prunable tells whether a sync with prune would take the object away: what stays whatever is done starts no sync, else one
// would follow the other without end.
func (l *look) prunable(x cluster.Live) bool {
	options := plan.ParseOptions(x.Steering[plan.SyncOptionsAnnotation])
	all := syncOptions(l.app, &v1alpha1.SyncOperation{})
	switch {
	case x.Controlled, x.Deleting, l.shared[x.Key] != "", compare.IgnoresExtraneous(x.Steering), options.Has("Prune=false"):
		return false
	}
	return !all.Has("Prune=false") || options.Has("Prune=true")
}

func revisionsOf(r v1alpha1.SyncOperationResult) []string {
	if len(r.Revisions) > 0 {
		return r.Revisions
	}
	return []string{r.Revision}
}

func sameSources(r v1alpha1.SyncOperationResult, app *v1alpha1.Application) bool {
	if len(app.Spec.Sources) > 0 {
		return sameJSON(r.Sources, app.Spec.Sources)
	}
	return sameJSON(r.Source, first(effective(app.Spec)))
}

// automatic is the operation that automated sync asks for.
func (e *Engine) automatic(l *look, resources []v1alpha1.SyncOperationResource) v1alpha1.Operation {
	op := v1alpha1.Operation{
		InitiatedBy: v1alpha1.OperationInitiator{Automated: true},
		Retry:       v1alpha1.RetryStrategy{Limit: 5},
		Sync:        &v1alpha1.SyncOperation{Prune: automated(l.app).Prune, Resources: resources},
	}
	if p := l.app.Spec.SyncPolicy; p != nil {
		op.Sync.SyncOptions = p.SyncOptions
		if p.Retry != nil {
			op.Retry = *p.Retry
		}
	}
	if len(l.app.Spec.Sources) > 0 {
		op.Sync.Revisions = l.rendering.revisions
	} else {
		op.Sync.Revision = first(l.rendering.revisions)
	}
	return op
}

// The pauses between putting one object back again and again: at once, then 2 s, 6 s … up to 5 minutes; forgotten after
// 10 minutes of peace.
const (
	healFirst  = 2 * time.Second
	healFactor = 3
	healMax    = 5 * time.Minute
	healForget = 10 * time.Minute
)

// healable are the objects that may be put back now, and how long until the next may.
func (e *Engine) healable(st *state, l *look) ([]v1alpha1.SyncOperationResource, time.Duration) {
	now := e.opts.Now()
	var out []v1alpha1.SyncOperationResource
	var wait time.Duration
	if st.heals == nil {
		st.heals = map[key]heal{}
	}
	for _, it := range l.items {
		if it.inSync() || it.holder != "" || it.desired.problem != nil {
			continue
		}
		h := st.heals[it.desired.key]
		if now.Sub(h.last) > healForget {
			h = heal{}
		}
		if d := h.next.Sub(now); d > 0 {
			if wait == 0 || d < wait {
				wait = d
			}
			continue
		}
		pause := healFirst
		for range h.count {
			pause = min(pause*healFactor, healMax)
		}
		st.heals[it.desired.key] = heal{count: h.count + 1, next: now.Add(pause), last: now}
		k := it.desired.key
		out = append(out, v1alpha1.SyncOperationResource{Group: k.Group, Kind: k.Kind, Namespace: k.Namespace, Name: k.Name})
	}
	return out, wait
}

// finish ends the operation under way.
func (e *Engine) finish(st *state, l *look, phase v1alpha1.OperationPhase, message string) outcome {
	r := st.running
	st.running = nil
	e.hooksSeen.forget(r)
	now := metav1.NewTime(e.opts.Now().Truncate(time.Second))
	state := r.state(l, phase, message)
	state.FinishedAt = &now
	if len(r.op.Sync.Manifests) > 0 { // they may hold Secrets, and are of no use any more
		state.Operation.Sync = r.op.Sync.DeepCopy()
		state.Operation.Sync.Manifests = nil
	}
	out := outcome{state: state}
	if phase == v1alpha1.OperationSucceeded && !r.selective && !r.op.Sync.DryRun && l.compared() {
		if len(r.op.Sync.Manifests) == 0 { // else there would be nothing to go back to
			out.deployed = deployment(l, r, now)
		}
		st.attempted = l.rendering.digest
	}
	if phase != v1alpha1.OperationSucceeded {
		e.queue.Add(st.key, queue.Commits) // the source may have moved on meanwhile
	}
	e.opts.Metrics.synced(string(phase))
	e.announce(l.app, r, phase, message)
	return out
}

func deployment(l *look, r *running, now metav1.Time) *v1alpha1.RevisionHistory {
	started := r.started
	h := &v1alpha1.RevisionHistory{DeployedAt: now, DeployStartedAt: &started, InitiatedBy: r.op.InitiatedBy}
	if len(l.app.Spec.Sources) > 0 {
		h.Sources, h.Revisions = l.sources(r), l.rendering.revisions
	} else {
		h.Source, h.Revision = first(l.sources(r)), first(l.rendering.revisions)
	}
	return h
}

// sources are those that the operation used.
func (l *look) sources(r *running) []v1alpha1.ApplicationSource {
	switch {
	case r != nil && len(r.op.Sync.Sources) > 0:
		return r.op.Sync.Sources
	case r != nil && r.op.Sync.Source != nil:
		return []v1alpha1.ApplicationSource{*r.op.Sync.Source}
	}
	return effective(l.app.Spec)
}

// state is the operation as the custom resource shows it.
func (r *running) state(l *look, phase v1alpha1.OperationPhase, message string) *v1alpha1.OperationState {
	s := &v1alpha1.OperationState{Operation: r.op, Phase: phase, Message: message, StartedAt: r.started, RetryCount: r.retries}
	res := &v1alpha1.SyncOperationResult{}
	if l.rendering != nil {
		if len(l.app.Spec.Sources) > 0 {
			res.Sources, res.Revisions = l.sources(r), l.rendering.revisions
		} else {
			res.Source, res.Revision = first(l.sources(r)), first(l.rendering.revisions)
		}
	}
	for _, at := range r.order {
		res.Resources = append(res.Resources, r.results[at])
	}
	s.SyncResult = res
	return s
}

func (r *running) note(k manifest.Key, version string, code v1alpha1.ResultCode, message string) {
	at := result{key: k, phase: plan.Sync}
	if _, again := r.results[at]; !again {
		r.order = append(r.order, at)
	} else if message == inStep {
		return // what this operation did to it stays
	}
	r.results[at] = &v1alpha1.ResourceResult{
		Group: k.Group, Version: version, Kind: k.Kind, Namespace: k.Namespace, Name: k.Name,
		Status: code, Message: message, SyncPhase: v1alpha1.SyncPhase(plan.Sync),
	}
}

// fail ends an attempt: a retry is scheduled while some are left.
func (e *Engine) fail(st *state, l *look, message string, final bool) outcome {
	r := st.running
	limit := r.op.Retry.Limit
	if final || limit >= 0 && r.retries >= limit {
		if r.retries > 0 {
			message = fmt.Sprintf("%s (retried %d times)", message, r.retries)
		}
		return e.finish(st, l, v1alpha1.OperationFailed, message)
	}
	wait := backoff(r.op.Retry.Backoff, r.retries)
	r.drop()
	r.retries++
	r.notYet = e.opts.Now().Add(wait)
	r.message = fmt.Sprintf("%s; retry %d follows at %s", message, r.retries, r.notYet.UTC().Format(time.RFC3339))
	e.queue.AddAfter(st.key, queue.Commits, wait)
	return outcome{state: r.state(l, v1alpha1.OperationRunning, r.message)}
}

// drop forgets the hooks of an attempt that failed: the next one runs its own.
func (r *running) drop() {
	r.failing, r.intents = "", map[result]bool{}
	r.order = slices.DeleteFunc(r.order, func(at result) bool {
		hook := r.results[at].HookType != ""
		if hook {
			delete(r.results, at)
		}
		return hook
	})
}

// inStep is the result of an object that needed nothing.
const inStep = "is in step"

// backoff is the pause before retry n+1: 5 s, doubling, at most 3 minutes, unless the policy says otherwise.
func backoff(b *v1alpha1.Backoff, n int64) time.Duration {
	wait, factor, limit := 5*time.Second, int64(2), 3*time.Minute
	if b != nil {
		wait, limit = duration(b.Duration, wait), duration(b.MaxDuration, limit)
		if b.Factor != nil && *b.Factor > 0 {
			factor = *b.Factor
		}
	}
	for range n {
		if wait >= limit {
			break
		}
		wait *= time.Duration(factor)
	}
	return min(wait, limit)
}

// duration reads Go's form or bare seconds.
func duration(text string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d
	}
	if d, err := time.ParseDuration(text + "s"); err == nil && d > 0 {
		return d
	}
	return otherwise
}

var errNotCompared = errors.New("the application could not be compared")
