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
	// goal is what the operation works on, sources and revisions what that came from; empty before its first look.
	goal      string
	sources   []v1alpha1.ApplicationSource
	revisions []string
	several   bool
	// rendered is the goal, where it is not what the spec renders to; kept are Secrets among local manifests.
	rendered *rendering
	kept     []manifest.Key
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
	// message is what was said last of where it stands.
	message string
	// changes are objects whose controllers may not have seen the last change; resumed is when this process took the
	// operation up, if another had begun it.
	changes map[manifest.Key]change
	resumed time.Time
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
	// superseded is the operation that gave way in this look.
	superseded *running
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
	var err error
	switch {
	case st.running == nil:
	case terminating(l.app):
		return e.terminate(ctx, st, l)
	default:
		if out, err = e.supersede(ctx, st, l); err != nil {
			return outcome{}, err
		}
	}
	rests := out.rests
	if st.running == nil && l.app.Operation != nil {
		taken, fine := e.take(st, l)
		if taken.taken = true; !fine {
			return taken, nil
		}
		out.taken = true
	}
	if st.running == nil && !e.begin(st, l, &out) {
		return out, nil
	}
	if l.app.Operation != nil && sameJSON(st.running.request, l.app.Operation) {
		out.taken = true // taking it up could not be written down at the first attempt
	}
	more, err := e.advance(ctx, st, l)
	if more.taken = out.taken; !more.taken {
		rests = cmp.Or(pending(l.app), rests)
	}
	if st.running != nil {
		more.rests = rests
	}
	return more, err
}

// terminate ends the operation, as somebody asked: its running hooks are deleted, nothing else is undone.
func (e *Engine) terminate(ctx context.Context, st *state, l *look) (outcome, error) {
	message := "operation was terminated on request"
	if err := e.cleanHooks(ctx, st, l, plan.HookFailed, true); err != nil {
		if passes(err) {
			return outcome{}, err
		}
		message += "; a hook could not be deleted: " + err.Error()
	}
	return e.finish(st, l, v1alpha1.OperationFailed, message), nil
}

// resume takes up an operation that a process before us left unfinished.
func (e *Engine) resume(st *state, l *look) {
	last := l.app.Status.OperationState
	if st.running != nil || last == nil || last.Phase.Completed() {
		return
	}
	st.running = takeUp(last)
	st.running.resumed = e.opts.Now()
	if sameJSON(l.app.Operation, last.Operation) { // Argo CD leaves the request in place while it works on it
		st.running.request = l.app.Operation
	}
}

// takeUp is the operation as it was written down last.
func takeUp(last *v1alpha1.OperationState) *running {
	r := newRunning(last.Operation, last.StartedAt.Time)
	r.retries, r.failing, r.message = last.RetryCount, noted(&r.op, failingNote), last.Message
	if last.FinishedAt != nil { // the attempt that ended then is to be followed by another
		r.notYet = last.FinishedAt.Add(backoff(r.op.Retry.Backoff, r.retries-1))
	}
	if last.SyncResult == nil {
		return r
	}
	if f := strings.Fields(noted(&r.op, renderingNote)); len(f) == 2 && !r.local() {
		r.goal, r.several = f[0], len(last.SyncResult.Sources) > 0
		r.sources, r.revisions = last.SyncResult.Sources, revisionsOf(*last.SyncResult)
		if !r.several {
			r.sources = []v1alpha1.ApplicationSource{last.SyncResult.Source}
		}
	}
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
	return r
}

func newRunning(op v1alpha1.Operation, now time.Time) *running {
	op = *op.DeepCopy()
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
	act, reason := plan.Automate(automated(l.app), e.situation(l))
	if held := l.rules.Windows(); held != nil && (act == plan.SyncAll || act == plan.Heal) {
		act, reason = plan.Refuse, held.Error()
	}
	out.refusal = reason
	if act == plan.SyncAll {
		if out.rests = e.waitsFor(l.app); out.rests != "" {
			return false
		}
	}
	now := e.opts.Now()
	switch act {
	case plan.SyncAll:
		st.running = newRunning(e.automatic(l, nil), now)
	case plan.Heal:
		known := putBack(l.app)
		if st.remarked {
			known, st.remarked = heals{}, false
		}
		resources, wait, next := known.due(l.items, now)
		if wait > 0 {
			e.queue.AddAfter(st.key, queue.Drift, wait)
		}
		if len(resources) == 0 {
			return false
		}
		st.running = newRunning(e.automatic(l, resources), now)
		st.running.op.Sync.SelfHealAttemptsCount = next.most()
		st.running.noteDown(healsNote, next.String())
	default:
		return false
	}
	if out.superseded != nil {
		st.running.follow(out.superseded)
	}
	return true
}

func (e *Engine) situation(l *look) plan.Situation {
	s := plan.Situation{OutOfSync: l.outOfSync(), Empty: len(l.set.objects) == 0 && len(l.extras) > 0}
	for _, x := range l.extras {
		if l.prunable(x) {
			s.Extras++
		}
	}
	if last, known := lastAttempt(l.app); known {
		same := last.goal == l.goal()
		s.Failed = same && last.failed && last.means == l.means()
		s.New = !same || last.failed && !s.Failed || !last.failed && l.namespaceDiffers(l.app.Status.OperationState)
		return s
	}
	last := l.app.Status.OperationState
	s.New = !tried(l.app, l.set) || l.namespaceDiffers(last)
	s.Failed = !s.New && (last.Phase == v1alpha1.OperationFailed || last.Phase == v1alpha1.OperationError)
	return s
}

// tried tells whether the last whole sync was one to this set. Of an operation without a note, as those of Argo CD, only the
// revision tells.
func tried(app *v1alpha1.Application, set *desiredSet) bool {
	if last, known := lastAttempt(app); known {
		return last.goal == goalOf(set.digest, app)
	}
	last := app.Status.OperationState
	return last != nil && last.SyncResult != nil && slices.Equal(revisionsOf(*last.SyncResult), set.revisions) &&
		sameSources(*last.SyncResult, app)
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
	return op
}

// finish ends the operation under way and tells of it.
func (e *Engine) finish(st *state, l *look, phase v1alpha1.OperationPhase, message string) outcome {
	r := st.running
	out := e.end(st, l, phase, message)
	if phase != v1alpha1.OperationSucceeded {
		e.queue.Add(st.key, queue.Commits) // the source may have moved on meanwhile
	}
	e.opts.Metrics.synced(string(phase))
	e.announce(l.app, r, phase, message)
	return out
}

// end makes the operation under way one that has ended.
func (e *Engine) end(st *state, l *look, phase v1alpha1.OperationPhase, message string) outcome {
	r := st.running
	st.running = nil
	e.hooksSeen.forget(r)
	now := metav1.NewTime(e.opts.Now().Truncate(time.Second))
	whole := r.whole()
	r.withoutManifests()
	r.noteDown(failingNote, "")
	state := r.state(l, phase, message)
	state.FinishedAt = &now
	out := outcome{state: state}
	if phase == v1alpha1.OperationSucceeded && whole {
		out.deployed = deployment(r, now)
	}
	return out
}

func deployment(r *running, now metav1.Time) *v1alpha1.RevisionHistory {
	started := r.started
	h := &v1alpha1.RevisionHistory{DeployedAt: now, DeployStartedAt: &started, InitiatedBy: r.op.InitiatedBy}
	if r.several {
		h.Sources, h.Revisions = r.sources, r.revisions
	} else {
		h.Source, h.Revision = first(r.sources), first(r.revisions)
	}
	return h
}

// state is the operation as the custom resource shows it.
func (r *running) state(l *look, phase v1alpha1.OperationPhase, message string) *v1alpha1.OperationState {
	r.message = message
	s := &v1alpha1.OperationState{Operation: r.op, Phase: phase, Message: message, StartedAt: r.started, RetryCount: r.retries}
	sources, revisions, several := r.sources, r.revisions, r.several
	if r.goal == "" && l.rendering != nil && !r.local() {
		sources, revisions, several = l.sources(r), l.rendering.revisions, len(l.app.Spec.Sources) > 0
	}
	res := &v1alpha1.SyncOperationResult{}
	if several {
		res.Sources, res.Revisions = sources, revisions
	} else {
		res.Source, res.Revision = first(sources), first(revisions)
	}
	for _, at := range r.order {
		res.Resources = append(res.Resources, r.results[at])
	}
	res.ManagedNamespaceMetadata = r.given(l)
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
	if r.op.Retry.Refresh && !r.fixed() {
		r.anew()
	}
	message = fmt.Sprintf("%s; retry %d follows at %s", message, r.retries, r.notYet.UTC().Format(time.RFC3339))
	e.queue.AddAfter(st.key, queue.Commits, wait)
	return outcome{state: r.resting(l, message)}
}

// resting is the state between two attempts. As in Argo CD it has the time at which the last one ended, from which another
// process works out when the next is due (contract §2.8).
func (r *running) resting(l *look, message string) *v1alpha1.OperationState {
	state := r.state(l, v1alpha1.OperationRunning, message)
	ended := metav1.NewTime(r.notYet.Add(-backoff(r.op.Retry.Backoff, r.retries-1)).Truncate(time.Second))
	state.FinishedAt = &ended
	return state
}

// drop forgets the hooks of an attempt that failed: the next one runs its own.
func (r *running) drop() {
	r.failing, r.intents, r.changes, r.checked = "", map[result]bool{}, nil, false
	r.noteDown(failingNote, "")
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
