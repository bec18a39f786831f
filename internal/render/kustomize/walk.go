package kustomize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// Bounds of a walk.
const (
	maxDepth   = 100
	maxFolders = 5000
	maxFetches = 200
)

// walker visits every kustomization of a build before Kustomize does, and lays over it what Kustomize can not get by itself:
// sources of other places and rendered charts. On the way it finds what is missing, and says so better.
type walker struct {
	ctx    context.Context
	in     job.Input
	space  *space
	charts ChartRenderer
	// mounted are the folders of trees fetched, by locator.
	mounted map[job.Locator]string
	fetches int
	// visited are the namespaces that charts of a folder inherited when it was visited.
	visited map[string]visit
	// resources are the manifest files met, to explain errors.
	resources []string
	// schema says that a kustomization brings an OpenAPI schema.
	schema bool
	// laidFiles numbers the files and folders laid in; laidFrom tells where they and the mounts come from.
	laidFiles int
	laidFrom  map[string]laidIn
	// metadata is the buildMetadata of the kustomization that is built.
	metadata []string
}

// visit is what a visit of a folder depended on, and whether that mattered.
type visit struct {
	namespace string
	hasCharts bool
}

// place is a kustomization within the walk.
type place struct {
	// dir is the folder, without links; file is the kustomization in it.
	dir, file string
	// namespace is what helmCharts inherit from the kustomizations above.
	namespace string
	// config says that the objects are configurations of generators or transformers.
	config bool
	// above are the folders and repositories on the way here, the nearest last.
	above []string
}

func newWalker(ctx context.Context, in job.Input, charts ChartRenderer) *walker {
	return &walker{
		ctx: ctx, in: in, charts: charts, space: newSpace(ctx, in.Tree),
		mounted: map[job.Locator]string{}, visited: map[string]visit{}, laidFrom: map[string]laidIn{},
	}
}

// run prepares the build of dir and returns the path of its kustomization file.
func (w *walker) run(dir string) (string, error) {
	p := place{dir: dir}
	k, err := w.load(&p)
	if err != nil {
		return p.file, err
	}
	w.metadata = k.BuildMetadata
	changed := false
	if o := w.in.Source.Kustomize; o != nil {
		if err := w.edit(&p, k, *o); err != nil {
			return p.file, err
		}
		changed = true
	}
	_, err = w.prepare(p, k, changed)
	return p.file, err
}

// key names a place among the visited.
func (p place) key() string {
	if p.config {
		return p.dir + " config"
	}
	return p.dir
}

// fail is an error of a kustomization.
func (p place) fail(format string, args ...any) error {
	return &job.Error{File: p.file, Reason: fmt.Sprintf(format, args...)}
}

// load reads the kustomization of a folder and sets p.file.
func (w *walker) load(p *place) (*types.Kustomization, error) {
	f, rest, err := w.space.split(p.dir)
	if err != nil {
		return nil, &job.Error{File: p.dir, Reason: err.Error()}
	}
	name, err := FileOf(tree.Follow(f), rest)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, &job.Error{File: p.dir, Reason: "the folder has no kustomization.yaml, kustomization.yml or Kustomization"}
	}
	p.file = path.Join(mountOf(p.dir), name)
	data, err := w.read(p.file)
	if err != nil {
		return nil, &job.Error{File: p.file, Reason: err.Error()}
	}
	var k types.Kustomization
	if err := k.Unmarshal(data); err != nil {
		return nil, kustomizationError(p.file, data, err)
	}
	k.FixKustomization()
	return &k, nil
}

func (w *walker) read(name string) ([]byte, error) {
	real, err := w.space.resolve(name)
	if err != nil {
		return nil, err
	}
	return w.space.readFile(real)
}

// below visits the kustomization in a folder, once for each way in which the visit can differ.
func (w *walker) below(p place) error {
	if len(p.above) > maxDepth || len(w.visited) > maxFolders {
		return &job.Error{File: p.dir, Reason: fmt.Sprintf("kustomizations lie more than %d deep in one another, or are more than %d", maxDepth, maxFolders)}
	}
	key := p.key()
	if before, ok := w.visited[key]; ok && (before.namespace == p.namespace || !before.hasCharts) {
		return nil
	}
	k, err := w.load(&p)
	if err != nil {
		return err
	}
	hasCharts, err := w.prepare(p, k, false)
	if err != nil {
		return err
	}
	w.visited[key] = visit{namespace: p.namespace, hasCharts: hasCharts}
	return nil
}

// prepare visits what a kustomization names, and lays the kustomization over itself where that changes it. It tells whether
// charts lie in it or below.
func (w *walker) prepare(p place, k *types.Kustomization, changed bool) (hasCharts bool, err error) {
	r := &references{walker: w, place: p, kustomization: k, changed: changed}
	if p.config {
		if err := r.checkConfigFile(p.file); err != nil {
			return false, err
		}
	}
	if err := r.resolve(); err != nil {
		return false, err
	}
	if err := r.inflate(); err != nil {
		return false, err
	}
	if !r.changed {
		return r.hasCharts, nil
	}
	text, err := yaml.Marshal(k)
	if err != nil {
		return false, p.fail("%v", err)
	}
	w.space.laid[p.file] = text
	return r.hasCharts, nil
}

// cycle refuses a folder that is at or above one on the way to it.
func (p place) cycle(dir string) error {
	for _, above := range append(p.above, p.dir) {
		if above == dir || dir == "." || strings.HasPrefix(above, dir+"/") {
			return p.fail("%s leads back to %s, which is at or above a kustomization on the way to it", dir, above)
		}
	}
	return nil
}

// child is the place of a folder named in p.
func (p place) child(k *types.Kustomization, dir string, more ...string) place {
	c := place{dir: dir, namespace: k.Namespace, config: p.config}
	if c.namespace == "" {
		c.namespace = p.namespace
	}
	c.above = append(append(append([]string{}, p.above...), p.dir), more...)
	return c
}

// relative is the way from one folder to another, both counted from the root.
func relative(from, to string) string {
	if from == "." {
		return to
	}
	return strings.Repeat("../", strings.Count(from, "/")+1) + to
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
