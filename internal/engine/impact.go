package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/resolve"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// ImpactOptions say what a range of commits is held against.
type ImpactOptions struct {
	// Repository is the URL of the repository, From and To are the ends of the range: anything that a target revision can be.
	Repository, From, To string
	// AnyRevision takes the range for what every application follows of the repository; else it is what those follow that
	// are at one of its ends.
	AnyRevision bool
	// Everywhere also looks at applications of other repositories: their sources may name this one, as a remote base does.
	Everywhere bool
	// Rules are those of a project.
	Rules func(ctx context.Context, project string) (project.Rules, error)
	// Capabilities are what charts see of the cluster.
	Capabilities job.Capabilities
	// AtOnce bounds the renderings under way; default 4.
	AtOnce int
}

// Impact is what a range of commits changes in one application.
type Impact struct {
	App *v1alpha1.Application
	// Changes are the objects that are declared otherwise after the range, with Live as they are declared before it; none
	// when the range changes files that the application reads, and not what they render to.
	Changes []Difference
	// Err says why the application can not be rendered at one of the ends.
	Err error
}

// Impacts are those of all applications.
type Impacts struct {
	// From and To are the commits at the ends of the range.
	From, To string
	// Concerned are the applications that read something that the range changes, or can not be rendered.
	Concerned []Impact
	// Elsewhere follow the repository at neither end of the range; Others is the number of those that it does not concern.
	Elsewhere []*v1alpha1.Application
	Others    int
}

// FindImpacts finds the applications that a range of commits changes, and what it changes in each: every application is rendered
// before the range, and those that read what it changes also after it. Nothing is asked of a cluster.
func FindImpacts(ctx context.Context, s *Sources, apps []v1alpha1.Application, o ImpactOptions) (Impacts, error) {
	f := &finder{sources: s, o: o, found: make([]Impact, len(apps))}
	f.repo = repoKey(v1alpha1.ApplicationSource{RepoURL: o.Repository})
	projectName := ""
	if i := slices.IndexFunc(apps, func(a v1alpha1.Application) bool { return f.uses(&a) }); i >= 0 {
		projectName = projectOf(&apps[i]) // its credentials reach the repository, if any do
	}
	if err := f.ends(ctx, projectName); err != nil {
		return Impacts{}, err
	}
	f.before, f.after = f.world(f.from), f.world(f.to)
	var group errgroup.Group
	group.SetLimit(cmp.Or(o.AtOnce, 4))
	for i := range apps {
		if !o.Everywhere && !f.uses(&apps[i]) {
			f.count()
			continue
		}
		group.Go(func() error {
			f.one(ctx, i, &apps[i])
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return Impacts{}, err
	}
	out := f.out
	out.From, out.To = f.from.Commit, f.to.Commit
	out.Concerned = slices.DeleteFunc(f.found, func(i Impact) bool { return i.App == nil })
	slices.SortFunc(out.Elsewhere, func(a, b *v1alpha1.Application) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// finder looks for the applications that a range concerns.
type finder struct {
	sources       *Sources
	o             ImpactOptions
	repo          string // key of the repository
	from, to      resolve.Revision
	changes       []tree.Change
	before, after *Chain

	mu    sync.Mutex
	out   Impacts
	found []Impact // by place of the application
}

// ends resolves the ends of the range and lists what differs between them.
func (f *finder) ends(ctx context.Context, projectName string) error {
	at := located{ApplicationSource: v1alpha1.ApplicationSource{RepoURL: f.o.Repository}, project: projectName}
	if isChart(at.ApplicationSource) {
		return fmt.Errorf("repository %s: is a registry of charts; only commits of a Git repository have a range", f.o.Repository)
	}
	if err := git.CheckURL(f.o.Repository); err != nil {
		return fmt.Errorf("repository %s: %w", f.o.Repository, err)
	}
	repos := newRepos(f.sources, 0, nil, nil)
	repo := f.sources.Repositories.Git(f.sources.Repositories.Find(f.o.Repository, projectName))
	for _, end := range []struct {
		target string
		rev    *resolve.Revision
	}{{f.o.From, &f.from}, {f.o.To, &f.to}} {
		at.TargetRevision = end.target
		rev, err := repos.resolve(ctx, "", at, time.Time{})
		if err != nil {
			return err
		}
		if rev.Commit, err = f.sources.Git.Ensure(ctx, repo, git.Want{Commit: rev.Commit, Ref: rev.Ref}); err != nil {
			return err
		}
		*end.rev = rev
	}
	var err error
	f.changes, err = f.sources.Git.Changes(ctx, repo, f.from.Commit, f.to.Commit)
	return err
}

// world is a chain in which the repository is at one end of the range for all that follow it there.
func (f *finder) world(at resolve.Revision) *Chain {
	c := chainOnce(f.sources)
	c.repos.shift = func(repo string, found resolve.Revision) resolve.Revision {
		if repo == f.repo && (f.o.AnyRevision || found.Commit == f.from.Commit || found.Commit == f.to.Commit) {
			return at
		}
		return found
	}
	return c
}

// uses tells whether a source of the application lies in the repository.
func (f *finder) uses(app *v1alpha1.Application) bool {
	return slices.ContainsFunc(effective(app.Spec), func(s v1alpha1.ApplicationSource) bool { return repoKey(s) == f.repo })
}

// follows tells whether a source of the application leads to an end of the range. One that can not be resolved does: what is
// wrong with it is told.
func (f *finder) follows(ctx context.Context, app *v1alpha1.Application) bool {
	for _, s := range effective(app.Spec) {
		if repoKey(s) != f.repo {
			continue
		}
		rev, err := f.before.repos.resolve(ctx, keyOf(app), located{s, projectOf(app)}, time.Time{})
		if err != nil || rev.Commit == f.from.Commit {
			return true
		}
	}
	return false
}

// elsewhere counts an application that the range is not for.
func (f *finder) elsewhere(app *v1alpha1.Application) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.uses(app) {
		f.out.Elsewhere = append(f.out.Elsewhere, app)
	} else {
		f.out.Others++
	}
}

func (f *finder) count() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.out.Others++
}

// one finds out what the range changes in an application.
func (f *finder) one(ctx context.Context, i int, app *v1alpha1.Application) {
	follows := f.follows(ctx, app)
	if !follows && !f.o.Everywhere {
		f.elsewhere(app)
		return
	}
	found := Impact{App: app}
	before, err := f.render(ctx, f.before, app, nil)
	if err != nil && !follows { // what is wrong with it is not of the range
		f.elsewhere(app)
		return
	}
	if err != nil {
		found.Err = fmt.Errorf("before the range: %w", err)
		before = &rendering{} // what is wrong may be mended by the range
	} else if f.leaves(app, before) {
		return
	}
	after, err := f.render(ctx, f.after, app, before)
	switch {
	case err == nil:
		found.Changes = declaredChanges(before, after)
	case found.Err == nil:
		found.Err = fmt.Errorf("after the range: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found[i] = found
}

// leaves tells whether the range does not concern an application, and counts it.
func (f *finder) leaves(app *v1alpha1.Application, before *rendering) bool {
	key := keyOf(app)
	known := readerOf(app, key, func(l located) string { return repoKey(l.ApplicationSource) }, before)
	if !slices.ContainsFunc(known.prints, func(p *footprint) bool { return p.repo == f.repo && p.made == f.from.Commit }) {
		f.elsewhere(app)
		return true
	}
	all := newReaders()
	all.set(key, known)
	step := step{repo: f.repo, from: f.from.Commit, to: f.to.Commit, full: f.to.Commit, changes: f.changes}
	if f.from.Commit != f.to.Commit && len(all.advance(step, []string{key})) > 0 {
		return false
	}
	f.count()
	return true
}

func keyOf(app *v1alpha1.Application) string { return app.Namespace + "/" + app.Name }

func (f *finder) render(ctx context.Context, c *Chain, app *v1alpha1.Application, old *rendering) (*rendering, error) {
	r := request{key: keyOf(app), app: app, sources: effective(app.Spec), caps: f.o.Capabilities}
	if len(r.sources) == 0 {
		return nil, errors.New("spec.source: is missing; name a repository and a path or chart")
	}
	var err error
	if r.rules, err = f.o.Rules(ctx, projectOf(app)); err != nil {
		return nil, err
	}
	return c.render(ctx, r, old)
}
