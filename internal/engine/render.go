package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/rendercache"
	"github.com/lockstep-cd/lockstep/internal/resolve"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// renderTimeout bounds one rendering.
const renderTimeout = 2 * time.Minute

// rendering is what an application's sources render to, with everything that decided the result.
type rendering struct {
	// inputs is the hash of the spec's share; revisions are what the target revisions led to.
	inputs    string
	resolved  []string // what resolve answered, before a source was opened
	revisions []string
	objects   []manifest.Object
	// generated are, by index of the object, fields that come out differently each time; they are no part of the digest.
	generated map[int][]job.Path
	warnings  []string
	types     []v1alpha1.ApplicationSourceType
	parts     []part
	// digest is the hash of the objects; equal digests mean nothing to do.
	digest string
	// tool is the version of what rendered.
	tool string
}

// request is one rendering to be made.
type request struct {
	key     string // of the application
	app     *v1alpha1.Application
	sources []v1alpha1.ApplicationSource
	rules   project.Rules
	// since asks for looks at the repositories made after it.
	since time.Time
	// fixed are revisions to use rather than the target revisions (a sync to a revision, a rollback).
	fixed []string
	caps  job.Capabilities
	// afresh asks for a new rendering, whatever was rendered before.
	afresh bool
	// unreached notes that something the rendering needs could not be got, which may be over with the next attempt; nil
	// notes nothing.
	unreached *atomic.Bool
	// demanded is what decides over signatures of the sources; empty where none is demanded.
	demanded string
}

func (r request) note(err error) {
	if err != nil && r.unreached != nil {
		r.unreached.Store(true)
	}
}

// Renderer renders one source: render.Render does it in this process, a pool of workers apart from it.
type Renderer func(ctx context.Context, in job.Input) (job.Output, error)

// Chain is the first half of the chain, from an application to its manifests.
type Chain struct {
	Sources *Sources
	repos   *repos
	tool    Renderer
	metrics *Metrics
	// version is that of the tool; cache keeps what was rendered, readers tell what holds without looking, and names hear what
	// charts name repositories by. All may be nil.
	version string
	cache   *rendercache.Store
	readers *readers
	names   *names
}

// opened is a source resolved and opened.
type opened struct {
	source   v1alpha1.ApplicationSource
	revision string
	tree     tree.FS
	modules  *moduleURLs
}

// render makes a rendering; old, or else what is kept on disk, is taken over where nothing that it read has changed.
func (c *Chain) render(ctx context.Context, r request, old *rendering) (*rendering, error) {
	ctx, cancel := context.WithTimeout(ctx, renderTimeout)
	defer cancel()
	r.demanded = c.Sources.demanded(r)
	out := &rendering{inputs: inputsHash(r, c.Sources.laysIn(r)...), tool: c.version}
	revs, err := c.resolve(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := c.signed(ctx, r, revs); err != nil {
		return nil, err
	}
	for _, rev := range revs {
		out.resolved = append(out.resolved, rev.Commit)
	}
	if old == nil || old.inputs != out.inputs {
		old = c.load(r, out.inputs)
	}
	if !r.afresh {
		if same, err := c.reuse(ctx, old, out, r, revs); same != nil || err != nil {
			return same, err
		}
	}
	if err := c.make(ctx, r, revs, out); err != nil {
		return nil, err
	}
	c.save(r, out)
	return out, nil
}

// make renders every source into out.
func (c *Chain) make(ctx context.Context, r request, revs []resolve.Revision, out *rendering) error {
	sources, err := c.open(ctx, r, revs)
	if err != nil {
		return err
	}
	for _, s := range sources {
		out.revisions = append(out.revisions, s.revision)
	}
	for i, s := range sources {
		if s.source.Ref != "" && s.source.Path == "" {
			out.parts = append(out.parts, part{})
			continue
		}
		if err := c.renderSource(ctx, r, i, sources, out); err != nil {
			return sourceError(s, err)
		}
	}
	for i, s := range sources { // a $ref may have led into any of them
		out.parts[i].Fetched = append(out.parts[i].Fetched, s.modules.all()...)
	}
	out.digest, err = digestOf(out.objects, out.generated)
	return err
}

// sourceError adds the repository and revision to what a renderer says.
func sourceError(s opened, err error) error {
	rev := s.revision
	if len(rev) == 40 {
		rev = rev[:7]
	}
	return fmt.Errorf("%s at %s: %w", strings.Join(nonEmpty(s.source.RepoURL, s.source.Chart), " "), rev, err)
}

func nonEmpty(list ...string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// resolve finds what every source's target revision leads to, after checking that the source may be used at all.
func (c *Chain) resolve(ctx context.Context, r request) ([]resolve.Revision, error) {
	revs := make([]resolve.Revision, 0, len(r.sources))
	for i := range r.sources {
		s := r.source(i)
		if err := checkSource(r.field(i), s); err != nil {
			return nil, &specError{err}
		}
		if err := r.rules.Source(s.RepoURL); err != nil {
			return nil, &specError{fmt.Errorf("%s.repoURL: %w", r.field(i), err)}
		}
		rev, err := c.repos.resolve(ctx, r.key, located{s, projectOf(r.app)}, r.since)
		if err != nil {
			return nil, err
		}
		revs = append(revs, rev)
	}
	return revs, nil
}

// source is source i with the revision that is used.
func (r request) source(i int) v1alpha1.ApplicationSource {
	s := r.sources[i]
	if i < len(r.fixed) && r.fixed[i] != "" {
		s.TargetRevision = r.fixed[i]
	}
	return s
}

func (r request) field(i int) string {
	switch {
	case r.app.Spec.SourceHydrator != nil:
		return "spec.sourceHydrator.syncSource"
	case len(r.app.Spec.Sources) > 0:
		return "spec.sources[" + strconv.Itoa(i) + "]"
	}
	return "spec.source"
}

func (c *Chain) open(ctx context.Context, r request, revs []resolve.Revision) ([]opened, error) {
	out := make([]opened, 0, len(revs))
	for i, rev := range revs {
		s, err := c.openOne(ctx, r, i, rev)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (c *Chain) openOne(ctx context.Context, r request, i int, rev resolve.Revision) (opened, error) {
	s := r.source(i)
	modules := &moduleURLs{rules: r.rules}
	t, full, err := c.Sources.open(ctx, located{s, projectOf(r.app)}, rev, modules.may)
	r.note(err)
	return opened{source: s, revision: full, tree: t, modules: modules}, err
}

func (c *Chain) renderSource(ctx context.Context, r request, i int, sources []opened, out *rendering) error {
	s, notes := sources[i], newNotes()
	path := "."
	if !isChart(s.source) || s.source.Chart == "" && s.source.Path != "" {
		clean, err := tree.Clean(s.source.Path)
		if err != nil {
			return err
		}
		path = clean
	}
	in := job.Input{
		Source: s.source, Tree: notes.record(s.tree), Path: path, Refs: notes.refs(sources), Project: projectOf(r.app), AppName: r.app.Name, Namespace: r.app.Spec.Destination.Namespace,
		Capabilities: r.caps, Env: buildEnv(r, s), Fetch: &fetcher{chain: c, request: r, notes: notes}, Urgent: byHand(r.app),
	}
	started := time.Now()
	result, err := guarded(ctx, c.tool, in)
	c.metrics.rendered(time.Since(started), err)
	if err != nil {
		if errors.Is(err, job.ErrInterrupted) {
			r.note(err) // its source is not at fault
		}
		return err
	}
	for j := range result.Objects {
		result.Objects[j].Origin.Source = i
	}
	for j, paths := range result.Generated {
		if out.generated == nil {
			out.generated = map[int][]job.Path{}
		}
		out.generated[len(out.objects)+j] = paths
	}
	out.objects = append(out.objects, result.Objects...)
	if len(out.objects) > job.MaxObjects {
		return fmt.Errorf("renders to more than %d objects; split the application", job.MaxObjects)
	}
	out.warnings = append(out.warnings, result.Warnings...)
	out.types = append(out.types, result.Type)
	out.parts = append(out.parts, notes.part(result.Asked.Answers(in.Capabilities, in.Env)))
	return nil
}

// guarded renders; a panic of a library is an error of this one rendering.
func guarded(ctx context.Context, tool Renderer, in job.Input) (out job.Output, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the renderer broke down: %v (please report it): %s", p, firstFrames(debug.Stack()))
		}
	}()
	return tool(ctx, in)
}

func firstFrames(stack []byte) string {
	lines := strings.SplitN(string(stack), "\n", 12)
	return strings.Join(lines[:min(len(lines), 11)], " | ")
}

func buildEnv(r request, s opened) map[string]string {
	env := clusterEnv(r.caps)
	maps.Copy(env, map[string]string{
		"ARGOCD_APP_NAME": r.app.Name, "ARGOCD_APP_NAMESPACE": r.app.Spec.Destination.Namespace,
		"ARGOCD_APP_PROJECT_NAME": projectOf(r.app), revisionVariable: s.revision,
		revisionVariable + "_SHORT": s.revision[:min(7, len(s.revision))], revisionVariable + "_SHORT_8": s.revision[:min(8, len(s.revision))],
		"ARGOCD_APP_SOURCE_PATH": s.source.Path, "ARGOCD_APP_SOURCE_REPO_URL": s.source.RepoURL,
		"ARGOCD_APP_SOURCE_TARGET_REVISION": s.source.TargetRevision,
	})
	return env
}

// clusterEnv are the build variables that come from the cluster.
func clusterEnv(c job.Capabilities) map[string]string {
	return map[string]string{"KUBE_VERSION": strings.TrimPrefix(c.KubeVersion, "v"), "KUBE_API_VERSIONS": strings.Join(c.APIVersions, ",")}
}

// inputsHash covers what of the application decides over its rendering, besides what a rendering reads and asks.
func inputsHash(r request, more ...bool) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, part := range []any{r.sources, r.app.Name, r.app.Spec.Destination.Namespace, projectOf(r.app), r.fixed, more} {
		_ = enc.Encode(part) // a hash does not fail to be written to
	}
	_, _ = h.Write([]byte(r.demanded)) // nor does it here
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func digestOf(objects []manifest.Object, generated map[int][]job.Path) (string, error) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for i, o := range objects {
		if err := enc.Encode(without(o.Unstructured, generated[i]).Object); err != nil {
			return "", fmt.Errorf("%s: %w", o.Key(), err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// specError is a fault of the Application itself: no source can mend it.
type specError struct{ cause error }

func (e *specError) Error() string { return e.cause.Error() }
func (e *specError) Unwrap() error { return e.cause }
