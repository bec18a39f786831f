package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/handover"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/queue"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/spec"
)

type key = manifest.Key

// Annotations on an Application that steer the engine.
const (
	RefreshAnnotation       = "argocd.argoproj.io/refresh"
	SkipReconcileAnnotation = handover.SkipAnnotation
	// refreshTimestampAnnotation tells one request for a look from the next.
	refreshTimestampAnnotation = "argocd.argoproj.io/refresh-timestamp"
)

// The names of the cluster that Lockstep runs against.
const (
	InClusterServer = "https://kubernetes.default.svc"
	InClusterName   = "in-cluster"
)

// kindPause is after how long a kind that the cluster does not serve is asked for again: nothing tells when its definition
// comes.
const kindPause = 30 * time.Second

// look is one application with everything that was found out about it.
type look struct {
	app       *v1alpha1.Application
	rules     project.Rules
	rendering *rendering
	set       *desiredSet
	items     []item
	extras    []cluster.Live
	// invalid and failed say why the application could not be compared.
	invalid, failed error
	warnings        []v1alpha1.ApplicationCondition
	// prune and only are what the operation under way asks for.
	prune bool
	only  []v1alpha1.SyncOperationResource
	// hooks are those that the operation runs; install tells that it is the first deployment.
	hooks   []desired
	install bool
	// approved tells that a person has confirmed the deletions since the operation began.
	approved bool
	// judged tells that items and extras are those of set.
	judged bool
	// shared says, by extra object, which other application needs it and why.
	shared map[manifest.Key]string
	// waits says, by extra object, for whom its deletion has to wait.
	waits map[manifest.Key]string
	// unproven carry the application's label, and nothing shows that they were applied for it.
	unproven []manifest.Key
}

func (l *look) compared() bool { return l.invalid == nil && l.failed == nil && l.set != nil }

// reconcile takes one application through the chain.
func (e *Engine) reconcile(ctx context.Context, appKey string) error {
	app, bad := e.applications.get(appKey)
	if app == nil {
		e.forget(appKey)
		return e.opts.Records.Drop(appKey)
	}
	st := e.state(appKey)
	st.busy.Lock()
	defer st.busy.Unlock()
	if st.distrusted.Swap(false) {
		e.distrust(st)
	}
	if e.outdated.turn(appKey) { // whatever this look comes to, the next has its turn
		defer e.renderedAgain(appKey)
	}
	if st.proofs == nil {
		st.proofs = e.opts.Records.Load(appKey)
	}
	mine, found := e.ours(app)
	if !mine {
		return e.leave(ctx, st, app, found)
	}
	st.away.Store(false)
	st.contest = found.Kind
	if app.DeletionTimestamp != nil {
		st.seen.Store(true)
		return e.delete(ctx, st, app)
	}
	if by := handover.PausedBy(app); by != "" {
		st.seen.Store(true)
		e.wake(e.doubts.note(appKey, e.doubts.asOf(appKey), doubt{reason: "it is paused by " + by, paused: true}))
		return nil
	}
	l, asOf := &look{app: app, invalid: bad}, e.doubts.asOf(appKey)
	if bad == nil {
		e.examine(ctx, st, l, e.asked(st, app))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e.settle(st, l, asOf)
	if changed, err := e.hookFinalizers(ctx, st, l); changed || err != nil {
		return err // the change wakes the application again
	}
	outcome, err := e.operate(ctx, st, l)
	if err != nil {
		return err
	}
	if err := e.report(ctx, st, l, outcome); err != nil {
		return err
	}
	st.seen.Store(true)
	st.looked = looked{count: st.looked.count + 1, application: wakeHash(app), rules: l.rules, failed: cmp.Or(l.invalid, l.failed)}
	if l.failed != nil {
		return e.again(st, l.failed)
	}
	st.failures, st.unreached = 0, 0
	if l.set != nil && l.set.stale {
		e.queue.AddAfter(st.key, queue.Housekeeping, kindPause)
	}
	return nil
}

// again decides when a comparison that failed is made again: a fault of a source's content waits for its repository's next
// look; what could not be got from a source, and everything else, is tried with growing pauses.
func (e *Engine) again(st *state, err error) error {
	var source *sourceFault
	if !errors.As(err, &source) {
		return err
	}
	st.failures = 0
	if source.unreached {
		wait := max(min(retryAsk<<min(st.unreached, 8), e.opts.PollInterval), minAsk)
		st.unreached++
		e.queue.AddAfter(st.key, queue.Housekeeping, wait)
	}
	return nil
}

// sourceFault is an error of a source. A new look at its repository wakes the application when its refs have moved;
// unreached tells that it was not the content that was at fault, but getting it.
type sourceFault struct {
	cause     error
	unreached bool
}

func (e *sourceFault) Error() string { return e.cause.Error() }
func (e *sourceFault) Unwrap() error { return e.cause }

// asked is the moment after which repositories must have been looked at: now, when somebody asked for it.
func (e *Engine) asked(st *state, app *v1alpha1.Application) time.Time {
	if app.Annotations[RefreshAnnotation] == "hard" {
		st.rendering, st.verdicts = nil, nil
		if st.desired != nil {
			st.desired.dropped = nil
		}
	}
	if app.Annotations[RefreshAnnotation] != "" || app.Operation != nil {
		return time.Now()
	}
	return time.Time{}
}

// examine resolves, renders and compares.
func (e *Engine) examine(ctx context.Context, st *state, l *look, since time.Time) {
	if l.invalid = e.check(l); l.invalid != nil {
		return
	}
	if l.invalid = st.ignore(l.app); l.invalid != nil {
		return
	}
	r := request{key: st.key, app: l.app, sources: effective(l.app.Spec), rules: l.rules, since: since, unreached: &atomic.Bool{}}
	r.afresh = l.app.Annotations[RefreshAnnotation] == "hard"
	if l.failed = e.capabilities(&r); l.failed != nil {
		return
	}
	rendered, err := e.rendered(ctx, st, r)
	if err != nil {
		l.blame(err, r.unreached.Load())
		if st.rendering == nil {
			return
		}
		rendered = st.rendering // what was valid last is still kept in step
	}
	l.rendering = rendered
	e.compareTo(ctx, st, l, true)
}

func (l *look) blame(err error, unreached bool) {
	var spec *specError
	if errors.As(err, &spec) {
		l.invalid = err
		return
	}
	l.failed = &sourceFault{err, unreached}
}

// compareTo makes l.rendering ready and compares it; keep registers it as what the application declares.
func (e *Engine) compareTo(ctx context.Context, st *state, l *look, keep bool) {
	set := st.desired
	if !keep || set == nil || set.digest != l.rendering.digest || set.stale || set.inputs != l.rendering.inputs || !set.rules.Equal(l.rules) || set.marks != e.marks() {
		if set != nil && set.marks != e.marks() {
			st.remarked = true
		}
		var err error
		p := preparation{
			marks: e.marks(), app: l.app, rules: l.rules, kinds: e.cluster, key: e.opts.Key, seal: e.sealer.seal,
			cluster: project.Cluster{Server: InClusterServer, Name: InClusterName},
		}
		if set, err = p.prepare(l.rendering); err != nil {
			l.failed = cmp.Or(l.failed, err)
			return
		}
		set.inputs, set.rules = l.rendering.inputs, l.rules
		if keep {
			e.declare(st, l.app, set)
		}
	}
	set.revisions = l.rendering.revisions
	l.set = set
	l.warnings = append(append(l.warnings, set.warnings...), unsupported(l.app, set)...)
	l.warnings = append(l.warnings, e.leftOut(l.app, set)...)
	if err := e.watched(ctx, kindsInUse(l.app, set)); err != nil {
		l.failed = cmp.Or(l.failed, err)
		return
	}
	items, err := e.judge(ctx, st, l.app, set, !automated(l.app).Enabled)
	if err != nil {
		l.failed = cmp.Or(l.failed, err)
		return
	}
	l.items = items
	e.recall(st, l)
	e.remains(ctx, st, l)
	l.judged = true
}

// check judges the Application itself: its project and its destination.
func (e *Engine) check(l *look) error {
	name := projectOf(l.app)
	rules, ok := e.projects.rules(name)
	if !ok {
		return fmt.Errorf("spec.project: project %s does not exist", name)
	}
	return e.checkBy(l, rules)
}

// checkBy judges the Application by the rules of its project.
func (e *Engine) checkBy(l *look, rules project.Rules) error {
	d := l.app.Spec.Destination
	l.rules = rules
	if err := spec.Check(l.app.Spec); err != nil {
		return err
	}
	if err := e.circular(l.app); err != nil {
		return err
	}
	if err := validSupersede(l.app); err != nil {
		return err
	}
	if err := rules.Enforceable(); err != nil {
		return fmt.Errorf("spec.project: %w", err)
	}
	if len(effective(l.app.Spec)) == 0 {
		return errors.New("spec.source: is missing; name a repository and a path or chart")
	}
	if err := destination(d); err != nil {
		return err
	}
	if err := rules.Destination(project.Cluster{Server: InClusterServer, Name: InClusterName}, d.Namespace); err != nil {
		return fmt.Errorf("spec.destination: %w", err)
	}
	return nil
}

// destination says why the destination can not be reached.
func destination(d v1alpha1.ApplicationDestination) error {
	switch {
	case d.Server == "" && d.Name == "":
		return errors.New("spec.destination: server or name is missing")
	case d.Server != "" && d.Name != "":
		return errors.New("spec.destination: server and name exclude each other; set one of them")
	case d.Name != "" && d.Name != InClusterName:
		return fmt.Errorf("spec.destination.name: cluster %s is not known; known is %s", d.Name, InClusterName)
	case d.Server != "" && strings.ToLower(trimSlash(d.Server)) != InClusterServer:
		return fmt.Errorf("spec.destination.server: cluster %s is not known; known is %s", d.Server, InClusterServer)
	}
	return nil
}

func (e *Engine) capabilities(r *request) error {
	version, apis, err := e.cluster.Capabilities()
	r.caps = job.Capabilities{KubeVersion: version, APIVersions: apis}
	if err == nil {
		e.onCapabilities(r.caps)
	}
	return err
}

func (e *Engine) chain() *Chain {
	return &Chain{
		Sources: e.opts.Sources, repos: e.repos, tool: e.opts.Render, metrics: e.opts.Metrics,
		version: e.opts.Version, cache: e.opts.Cache, readers: e.readers, names: e.names,
	}
}

// outOfSync tells whether a declared object differs or is missing, or the namespace has other metadata than it should.
func (l *look) outOfSync() bool {
	if l.namespaceDiffers(l.app.Status.OperationState) {
		return true
	}
	for _, it := range l.items {
		if it.verdict != compare.Equal {
			return true
		}
	}
	return false
}
