package helm

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// loading is the loading of one chart with everything it depends on.
type loading struct {
	reader
	// source is the tree the chart lies in; dependencies with file:// are read from it.
	source tree.FS
	fetch  job.Fetcher
}

// load reads the chart at dir. An archived chart came out of a chart repository: nothing of it is ignored.
func (l *loading) load(ctx context.Context, dir string, archived bool) (*chart.Chart, error) {
	var in files
	var err error
	if archived {
		in, err = l.all(l.source, dir)
	} else {
		in, err = l.folder(l.source, dir)
	}
	if err != nil {
		return nil, err
	}
	if in, err = l.complete(ctx, in, dir, 0); err != nil {
		return nil, err
	}
	return in.chart(dir)
}

// complete adds to the files of a chart the dependencies that are not in its charts folder.
func (l *loading) complete(ctx context.Context, in files, at string, depth int) (files, error) {
	if depth > maxDepth {
		return nil, &job.Error{File: path.Join(at, "Chart.yaml"), Reason: "the charts depend on each other in a circle"}
	}
	md, lock, err := in.metadata(at)
	if err != nil {
		return nil, err
	}
	if in, err = l.unpackVendored(in, at, 0); err != nil {
		return nil, err
	}
	have := in.vendored()
	added := map[string]bool{}
	for _, dep := range md.Dependencies {
		if dep == nil || have[dep.Name] {
			continue
		}
		key := strings.Join([]string{dep.Name, dep.Version, dep.Repository}, " ")
		if added[key] {
			continue // the same chart under another alias
		}
		added[key] = true
		sub, err := l.dependency(ctx, dependency{Dependency: dep, of: md.Name, at: at, lock: lock, depth: depth})
		if err != nil {
			return nil, err
		}
		in.add(fmt.Sprintf("charts/dependency~%d", len(added)), sub)
	}
	return in, nil
}

// vendored are the names of the charts in the charts folder.
func (fs files) vendored() map[string]bool {
	have := map[string]bool{}
	for name := range fs {
		parts := strings.Split(name, "/")
		if len(parts) != 3 || parts[0] != "charts" || parts[2] != "Chart.yaml" || strings.IndexAny(parts[1], "_.") == 0 {
			continue
		}
		// What can't be read is reported when the whole chart is loaded.
		if md, _, err := (files{"Chart.yaml": fs[name]}).metadata(name); err == nil {
			have[md.Name] = true
		}
	}
	return have
}

// dependency is one entry of the dependencies in the Chart.yaml at a path.
type dependency struct {
	*chart.Dependency
	of    string
	at    string
	lock  *chart.Lock
	depth int
}

func (d dependency) errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return fmt.Errorf("%s: chart %s: dependency %s: %w", path.Join(d.at, "Chart.yaml"), d.of, d.name(), err)
}

func (d dependency) name() string { return strings.TrimSpace(d.Name + " " + d.Version) }

func (l *loading) dependency(ctx context.Context, d dependency) (files, error) {
	repo := d.Repository
	switch {
	case repo == "":
		return nil, d.errorf("not in charts/, and no repository is named")
	case strings.HasPrefix(repo, "file://"):
		return l.neighbour(ctx, d, strings.TrimPrefix(repo, "file://"))
	case strings.HasPrefix(repo, "@"), strings.HasPrefix(repo, "alias:"):
		// Who fetches knows the repositories by name.
	case !strings.Contains(repo, "://"):
		return nil, d.errorf("not in charts/, and repository %q is no URL", repo)
	}
	version, err := d.version()
	if err != nil {
		return nil, err
	}
	f, err := job.FetchFrom(ctx, l.fetch, job.Locator{Kind: job.LocateChart, URL: repo, Chart: d.Name, Version: version})
	if errors.Is(err, job.ErrNoFetcher) {
		return nil, d.errorf("not in charts/: %w; run helm dependency build and commit the charts folder", err)
	}
	if err != nil {
		return nil, d.errorf("not in charts/: %w", err)
	}
	in, err := l.all(f, ".")
	if err != nil {
		return nil, d.errorf("%w", err)
	}
	if in, err = l.unpackVendored(in, d.Name, 0); err != nil {
		return nil, d.errorf("%w", err)
	}
	return in, d.check(in, d.Name)
}

// version is the one that Chart.lock has, or else the range of Chart.yaml.
func (d dependency) version() (string, error) {
	if d.lock == nil {
		return d.Version, nil
	}
	other := ""
	for _, locked := range d.lock.Dependencies {
		if locked == nil || locked.Name != d.Name {
			continue
		}
		if d.Version == "" || chartutil.IsCompatibleRange(d.Version, locked.Version) {
			return locked.Version, nil
		}
		other = locked.Version
	}
	if other != "" {
		return "", d.errorf("the lock file has version %s: run helm dependency update", other)
	}
	return "", d.errorf("missing in the lock file: run helm dependency update")
}

// neighbour is a dependency in another folder of the same source.
func (l *loading) neighbour(ctx context.Context, d dependency, dir string) (files, error) {
	at, err := tree.Clean(path.Join(d.at, dir))
	if err != nil || path.IsAbs(dir) {
		return nil, d.errorf("%s: %w", d.Repository, tree.ErrOutside)
	}
	e, ok, err := tree.Exists(tree.Follow(l.source), at)
	switch {
	case err != nil:
		return nil, d.errorf("%w", err)
	case ok && e.Kind == tree.File:
		return l.neighbourArchive(d, at)
	case !ok:
		return nil, d.errorf("there is no folder %s", at)
	}
	in, err := l.folder(l.source, at)
	if err != nil {
		return nil, d.errorf("%w", err)
	}
	if in, err = l.complete(ctx, in, at, d.depth+1); err != nil {
		return nil, err
	}
	return in, d.check(in, at)
}

func (l *loading) neighbourArchive(d dependency, at string) (files, error) {
	data, err := tree.Follow(l.source).ReadFile(at)
	if err != nil {
		return nil, d.errorf("%w", err)
	}
	in, err := l.packed(at, data)
	if err != nil {
		return nil, d.errorf("%w", err)
	}
	if in, err = l.unpackVendored(in, at, 0); err != nil {
		return nil, d.errorf("%w", err)
	}
	return in, d.check(in, at)
}

// check refuses a chart of another name or version than asked for: Helm would leave it out without a word.
func (d dependency) check(in files, at string) error {
	md, _, err := in.metadata(at)
	switch {
	case err != nil:
		return d.errorf("%w", err)
	case md.Name != d.Name:
		return d.errorf("the chart at %s is named %s", at, md.Name)
	case d.Version != "" && !chartutil.IsCompatibleRange(d.Version, md.Version):
		return d.errorf("the chart at %s has version %s", at, md.Version)
	}
	return nil
}
