package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/render"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// previewAtOnce bounds the objects that a preview asks the API server for at a time.
const previewAtOnce = 8

// Manifests is what an application renders to.
type Manifests struct {
	Objects []manifest.Object
	// Revisions are what the target revisions led to, in the order of the sources.
	Revisions []string
	Warnings  []string
}

// Render runs the chain up to the manifests, once and without a cluster or a project's rules: for people who look at
// their own sources. Fixed revisions stand in for the target revisions, in the order of the sources.
func Render(ctx context.Context, s *Sources, app *v1alpha1.Application, caps job.Capabilities, fixed ...string) (Manifests, error) {
	r, err := renderOnce(ctx, s, request{app: app, rules: project.Anything(), caps: caps, fixed: fixed})
	if err != nil {
		return Manifests{}, err
	}
	return Manifests{Objects: r.objects, Revisions: r.revisions, Warnings: r.warnings}, nil
}

// NewFetcher answers for sources that templates name, for somebody who renders a folder of their own.
func NewFetcher(s *Sources, app *v1alpha1.Application) job.Fetcher {
	return &fetcher{chain: chainOnce(s), request: request{app: app, key: app.Name, rules: project.Anything()}, notes: newNotes()}
}

func renderOnce(ctx context.Context, s *Sources, r request) (*rendering, error) {
	r.key, r.sources = r.app.Name, effective(r.app.Spec)
	if len(r.sources) == 0 {
		return nil, errors.New("spec.source: is missing; name a repository and a path or chart")
	}
	return chainOnce(s).render(ctx, r, nil)
}

// chainOnce renders in this process: what somebody looks at by hand is run with their own rights, as the tools would.
func chainOnce(s *Sources) *Chain {
	return &Chain{Sources: s, repos: newRepos(s, 0, nil, nil), tool: render.Render, metrics: NewMetrics(prometheus.NewRegistry())}
}

// Difference is what a sync would do to one object.
type Difference struct {
	Key     manifest.Key
	Origin  manifest.Origin
	Verdict compare.Verdict
	// Extra tells that the object left the source, so that a sync with prune deletes it.
	Extra bool
	// Paths are the fields that differ.
	Paths []string
	// Live is the object as it is, Next as a sync would leave it; nil where it is not there. Values of Secrets are left
	// out, but that they differ is to be seen.
	Live, Next *unstructured.Unstructured
	// Note says why the object can not be compared or would not go through, or who wrote what differs.
	Note string
	// Rendering tells whether Argo CD applied the same of a declared object, and Unlike which fields it did not.
	Rendering compare.Likeness
	Unlike    []string
	// seen is what else is known of the live object.
	seen         cluster.Live
	ignoreHealth bool
}

// Preview compares applications with their cluster, once and without a loop.
type Preview struct {
	sources *Sources
	cluster *cluster.Cluster
	writer  *apply.Writer
}

// NewPreview makes a preview for the cluster that config reaches. The caller's rights there are what it works with.
func NewPreview(config *rest.Config, sources *Sources) (*Preview, error) {
	c, err := cluster.New(cluster.Options{REST: config, Read: readByDefault, OnChange: func(cluster.Change) {}})
	if err != nil {
		return nil, err
	}
	w, err := apply.New(config)
	return &Preview{sources: sources, cluster: c, writer: w}, err
}

// Diff compares what the application's sources declare with the cluster and returns every object, in the order of the
// source and what left it last. Each object that exists costs one read and one dry run. Nothing is written.
func (p *Preview) Diff(ctx context.Context, app *v1alpha1.Application, rules project.Rules, fixed ...string) ([]Difference, error) {
	caps, err := p.Capabilities()
	if err != nil {
		return nil, err
	}
	rendered, err := renderOnce(ctx, p.sources, request{app: app, rules: rules, caps: caps, fixed: fixed})
	if err != nil {
		return nil, err
	}
	return p.against(ctx, app, rules, rendered)
}

// DiffObjects does the same with objects that stand in for those of the sources.
func (p *Preview) DiffObjects(ctx context.Context, app *v1alpha1.Application, rules project.Rules, objects []manifest.Object) ([]Difference, error) {
	return p.against(ctx, app, rules, &rendering{objects: objects})
}

// Capabilities are what renderers see of the cluster.
func (p *Preview) Capabilities() (job.Capabilities, error) {
	version, apis, err := p.cluster.Capabilities()
	return job.Capabilities{KubeVersion: version, APIVersions: apis}, err
}

func (p *Preview) against(ctx context.Context, app *v1alpha1.Application, rules project.Rules, rendered *rendering) ([]Difference, error) {
	c, err := p.configuration(ctx, app)
	if err != nil {
		return nil, err
	}
	prep := preparation{
		marks: c.marks, app: app, rules: rules, kinds: p.cluster, seal: func(plain []byte) []byte { return plain },
		cluster: project.Cluster{Server: InClusterServer, Name: InClusterName},
	}
	set, err := prep.prepare(rendered)
	if err != nil {
		return nil, err
	}
	ignore, err := compare.ParseRules(app.Spec.IgnoreDifferences)
	if err != nil {
		return nil, err
	}
	return p.all(ctx, app, set, previewed{c, ignore})
}

// previewed is by what a preview judges.
type previewed struct {
	*configuration
	ignore *compare.Rules
}

func (p *Preview) all(ctx context.Context, app *v1alpha1.Application, set *desiredSet, by previewed) ([]Difference, error) {
	gone := leftovers(app, set)
	out := make([]Difference, len(set.objects)+len(gone))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(previewAtOnce)
	for i := range set.objects {
		group.Go(func() (err error) {
			out[i], err = p.one(ctx, app, &set.objects[i], by)
			return err
		})
	}
	for i, r := range gone {
		group.Go(func() (err error) {
			out[len(set.objects)+i], err = p.leftover(ctx, app, by.configuration, r)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, func(d Difference) bool { return d.Key == (manifest.Key{}) }), nil
}

// leftovers are the objects of the last status that are not declared any more.
func leftovers(app *v1alpha1.Application, set *desiredSet) []v1alpha1.ResourceStatus {
	return slices.DeleteFunc(slices.Clone(app.Status.Resources), func(r v1alpha1.ResourceStatus) bool {
		_, declared := set.byKey[manifest.Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}]
		return declared || r.Hook
	})
}

// leftover tells whether an object that is declared no more is still there and ours; the zero value says it is not.
func (p *Preview) leftover(ctx context.Context, app *v1alpha1.Application, c *configuration, r v1alpha1.ResourceStatus) (Difference, error) {
	key := manifest.Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	resource, err := p.cluster.Kind(schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind})
	if errors.Is(err, cluster.ErrNoKind) {
		return Difference{}, nil
	}
	if err != nil {
		return Difference{}, fmt.Errorf("%s: %w", key, err)
	}
	live, err := p.cluster.Get(ctx, resource, key)
	switch {
	case apierrors.IsNotFound(err):
		return Difference{}, nil
	case err != nil:
		return Difference{}, fmt.Errorf("%s: %w", key, err)
	}
	seen := c.live(live) //nolint:contextcheck // a rule of health that runs a script has its own bounds
	if !c.marks.names(seen, app) {
		return Difference{}, nil
	}
	shown, _ := presentable(live, nil)
	return Difference{Key: key, Verdict: compare.Different, Extra: true, Live: shown, seen: seen}, nil
}

// one compares a declared object.
func (p *Preview) one(ctx context.Context, app *v1alpha1.Application, d *desired, by previewed) (Difference, error) {
	diff := Difference{Key: d.key, Origin: d.Origin, Verdict: compare.Missing}
	if d.problem != nil {
		diff.Note = d.problem.Error()
		return diff, nil
	}
	declared := &unstructured.Unstructured{}
	if err := declared.UnmarshalJSON(d.body); err != nil {
		return diff, fmt.Errorf("%s: %w", d.key, err)
	}
	_, next := presentable(nil, declared)
	diff.Next = next
	if d.resource.Resource == "" || d.made {
		return diff, nil // its definition comes with the same sync, or each sync makes another
	}
	live, err := p.cluster.Get(ctx, d.resource, d.key)
	if apierrors.IsNotFound(err) {
		return diff, nil
	}
	if err != nil {
		return diff, fmt.Errorf("%s: %w", d.key, err)
	}
	diff.seen = by.live(live) //nolint:contextcheck // a rule of health that runs a script has its own bounds
	diff.ignoreHealth = d.GetAnnotations()[ignoreHealthAnnotation] == "true"
	sides, err := p.sides(ctx, app, d, live)
	if err != nil {
		var refused *apply.Error
		if ctx.Err() != nil || !errors.As(err, &refused) || refused.Retry {
			return diff, err
		}
		diff.Verdict, diff.Note = compare.Different, refused.Reason
		diff.Live, diff.Next = presentable(live, declared)
		return diff, nil
	}
	found, err := by.ignore.For(d.key).WithNormal(ctx, sides)
	if err != nil {
		return diff, fmt.Errorf("%s: %w", d.key, err)
	}
	diff.Verdict, diff.Paths = found.Verdict, found.Paths
	if found.Verdict == compare.Different && compare.Author(live, found.Paths) != "" {
		diff.Note = drift(app, live, diff.seen, found.Paths)
	}
	if err := diff.renderedAs(app, declared, live, sides.Normal); err != nil {
		return diff, err
	}
	diff.Live, diff.Next = presentable(live, sides.Normal)
	return diff, nil
}

// configuration is what the engine uses, read from its settings; who may not read them gets the usual ones.
func (p *Preview) configuration(ctx context.Context, app *v1alpha1.Application) (*configuration, error) {
	r, err := p.cluster.Kind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err != nil {
		return nil, err
	}
	c, err := configurationNow(ctx, inNamespace{p.cluster, r, app.Namespace}, "")
	if apierrors.IsForbidden(err) {
		c, _ = configured(nil, "")
		return c, nil
	}
	return c, err
}

// sides are the object as it is and as a sync would leave it.
func (p *Preview) sides(ctx context.Context, app *v1alpha1.Application, d *desired, live *unstructured.Unstructured) (compare.Sides, error) {
	body := d.body
	if validatesLoosely(objectOptions(d), syncOptions(app, &v1alpha1.SyncOperation{})) {
		var err error
		if body, _, err = known(p.cluster, body); err != nil {
			return compare.Sides{}, fmt.Errorf("%s: %w", d.key, err)
		}
	}
	normal, err := p.writer.Apply(ctx, target(d.resource), d.key, body, apply.Mode{DryRun: true})
	if err != nil {
		return compare.Sides{}, err
	}
	return foresee(ctx, p.writer, d, compare.Sides{Normal: normal, Live: live}, inherited(app))
}
