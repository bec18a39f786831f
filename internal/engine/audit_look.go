package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/handover"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/record"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// held is a copy of what the loop holds of one application at a moment at which nobody works on it.
type held struct {
	app       *v1alpha1.Application
	looked    looked
	rendering *rendering
	// commits are what the sources led to when the rendering was made, or later where it is known to say the same.
	commits []string
	// claims are the hashes of what is declared, by object; nil when nothing was prepared yet.
	claims map[manifest.Key]string
	// stale tells that a kind was not served; a timer asks for it again.
	stale  bool
	proofs record.Proofs
	marks  marks
}

// held copies; errInFlight says that it is not the moment.
func (a *auditor) held(key string) (held, error) {
	e := a.engine
	app, bad := e.applications.get(key)
	e.mu.Lock()
	st := e.states[key]
	e.mu.Unlock()
	if app == nil || st == nil || bad != nil || !st.busy.TryLock() {
		return held{}, errInFlight
	}
	defer st.busy.Unlock()
	if e.queue.Asked(key) {
		return held{}, errInFlight
	}
	switch op := app.Status.OperationState; {
	case app.DeletionTimestamp != nil, handover.Paused(app), st.away.Load():
		return held{}, errors.New("is not compared: it is being deleted, paused or not ours")
	case app.Operation != nil, op != nil && !op.Phase.Completed(), st.running != nil, st.failures > 0, st.unreached > 0,
		st.looked.count == 0, app.Annotations[RefreshAnnotation] != "":
		return held{}, errInFlight
	}
	h := held{app: app, looked: st.looked, rendering: st.rendering, proofs: maps.Clone(st.proofs)}
	if h.commits = e.readers.commits(key); h.commits == nil && st.rendering != nil {
		h.commits = st.rendering.resolved
	}
	if st.desired != nil {
		h.claims, h.stale, h.marks = claims(st.desired), st.desired.stale, st.desired.marks
	}
	return h, nil
}

// claims say of each object what is declared, in a form that is equal where the declaration is.
func claims(set *desiredSet) map[manifest.Key]string {
	out := make(map[manifest.Key]string, len(set.objects))
	for i := range set.objects {
		d := &set.objects[i]
		out[d.key] = d.hash
		if d.problem != nil {
			out[d.key] += " refused: " + d.problem.Error()
		}
	}
	return out
}

// compare takes one look from scratch and holds it against what is held; looks tells one state of the application from the
// next.
func (a *auditor) compare(ctx context.Context, key string) (list []Mismatch, looks int, err error) {
	h, err := a.held(key)
	if err != nil {
		return nil, 0, err
	}
	f, err := a.look(ctx, key, h)
	if err != nil {
		return nil, 0, err
	}
	again, err := a.held(key)
	if err != nil {
		return nil, 0, err
	}
	if again.looked.count != h.looked.count || again.app.ResourceVersion != h.app.ResourceVersion {
		return nil, 0, errInFlight
	}
	return a.differences(key, h, f), h.looked.count, nil
}

// fresh is what a look from scratch found.
type fresh struct {
	*look
	caps job.Capabilities
	// exists tells that there is the project; unreached that a source could not be got, which says nothing about its content.
	exists, unreached bool
	// settings are those in force now.
	settings *configuration
}

// look resolves, renders and compares without anything that was found out before, except for what the repositories had when
// they were asked last: the audit adds no requests to them.
func (a *auditor) look(ctx context.Context, key string, h held) (fresh, error) {
	app, err := a.application(ctx, h.app)
	if err != nil {
		return fresh{}, err
	}
	f := fresh{look: &look{app: app}}
	rules, exists, err := a.project(ctx, projectOf(app))
	if err != nil {
		return f, err
	}
	f.exists = exists
	if !exists {
		f.invalid = fmt.Errorf("spec.project: project %s does not exist", projectOf(app))
		return f, nil
	}
	if f.invalid = a.engine.checkBy(f.look, rules); f.invalid != nil {
		return f, nil
	}
	if f.settings, err = a.configuration(ctx); err != nil {
		return f, err
	}
	ignore, err := compare.ParseRules(app.Spec.IgnoreDifferences)
	if err != nil {
		f.invalid = err
		return f, nil
	}
	if err := a.render(ctx, &f); err != nil || f.rendering == nil {
		return f, err
	}
	e := a.engine
	p := preparation{
		app: app, rules: rules, kinds: a.kinds, key: e.opts.Key, seal: e.sealer.seal,
		cluster: project.Cluster{Server: InClusterServer, Name: InClusterName}, marks: f.settings.marks,
	}
	if f.set, f.failed = p.prepare(f.rendering); f.failed != nil {
		return f, f.failed
	}
	for i := range f.set.objects {
		it, err := a.judge(ctx, h, app, &f.set.objects[i], ignore)
		if err != nil {
			return f, err
		}
		f.items = append(f.items, it)
	}
	return f, a.leftovers(ctx, f.look)
}

// render fills in the rendering, or why there is none.
func (a *auditor) render(ctx context.Context, f *fresh) error {
	a.kinds.Invalidate()
	version, apis, err := a.kinds.Capabilities()
	if err != nil {
		return err
	}
	f.caps = job.Capabilities{KubeVersion: version, APIVersions: apis}
	e, unreached := a.engine, &atomic.Bool{}
	chain := &Chain{Sources: e.opts.Sources, repos: e.repos, tool: e.opts.Render, metrics: a.metrics, version: e.opts.Version}
	// Without a key nothing is followed: the audit must not change whom the next look at a repository wakes.
	rendered, err := chain.render(ctx, request{app: f.app, sources: effective(f.app.Spec), rules: f.rules, caps: f.caps, unreached: unreached}, nil)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		f.unreached = unreached.Load()
		f.blame(err, f.unreached)
		return nil
	}
	f.rendering = rendered
	return nil
}

func (a *auditor) application(ctx context.Context, known *v1alpha1.Application) (*v1alpha1.Application, error) {
	u, err := a.client.Resource(v1alpha1.Applications()).Namespace(known.Namespace).Get(ctx, known.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errInFlight
	}
	if err != nil {
		return nil, err
	}
	app := &v1alpha1.Application{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, app); err != nil {
		return nil, err
	}
	if app.UID != known.UID {
		return nil, errInFlight
	}
	return app, nil
}

func (a *auditor) project(ctx context.Context, name string) (project.Rules, bool, error) {
	u, err := a.client.Resource(v1alpha1.AppProjects()).Namespace(a.engine.opts.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return project.Rules{}, false, nil
	}
	if err != nil {
		return project.Rules{}, false, err
	}
	p := &v1alpha1.AppProject{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
		return project.Rules{}, false, err
	}
	return project.Of(p), true, nil
}

// configuration is what the settings ask for now.
func (a *auditor) configuration(ctx context.Context) (*configuration, error) {
	core := a.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(a.engine.opts.Namespace)
	return configurationNow(ctx, core, a.engine.opts.Namespace)
}

// judge compares one declared object with what is in the cluster now, see judgeOne.
func (a *auditor) judge(ctx context.Context, h held, app *v1alpha1.Application, d *desired, rules *compare.Rules) (item, error) {
	it := item{desired: d, verdict: compare.Missing}
	if d.problem != nil || d.resource.Resource == "" || d.made {
		return it, nil
	}
	e, ignore, pair := a.engine, rules.For(d.key), h.proofs[d.key]
	live, err := e.cluster.Get(ctx, d.resource, d.key)
	if apierrors.IsNotFound(err) {
		return it, nil
	}
	if err != nil {
		return it, fmt.Errorf("%s: %w", d.key, err)
	}
	it.exists, it.live = true, e.configuration.Load().live(live) //nolint:contextcheck // a rule of health that runs a script has its own bounds
	if automated(app).Enabled && ignore.Empty() && pair.Entry != "" && pair.Entry == it.live.Entry && pair.Desired != d.hash {
		it.verdict = compare.Different // an apply is due, and the loop does not ask either
		return it, nil
	}
	found, live, err := e.consult(ctx, app, d, question{exists: true, applied: pair.Desired == d.hash, ignore: ignore})
	if err != nil {
		err = it.refused(ctx, err)
		return it, err
	}
	if live == nil {
		it.exists = false
		return it, nil
	}
	it.verdict, it.live = found.Verdict, e.configuration.Load().live(live) //nolint:contextcheck // a rule of health that runs a script has its own bounds
	return it, nil
}

// leftovers are the objects that the status holds to be extra, where they are still there.
func (a *auditor) leftovers(ctx context.Context, l *look) error {
	for _, r := range leftovers(l.app, l.set) {
		res, err := a.kinds.Kind(schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind})
		if err != nil {
			continue // a kind that is served no more has no objects
		}
		live, err := a.engine.cluster.Get(ctx, res, manifest.Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		l.extras = append(l.extras, a.engine.configuration.Load().live(live)) //nolint:contextcheck // a rule of health that runs a script has its own bounds
	}
	return nil
}
