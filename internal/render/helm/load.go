package helm

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/ignore"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

const (
	// maxFiles bounds the files and folders of a chart with all its dependencies.
	maxFiles = 20000
	// maxDepth bounds folders in folders and charts in charts.
	maxDepth = 50
)

// files are the files of a chart by their path in it.
type files map[string][]byte

// reader reads one chart with everything below it, within one budget.
type reader struct {
	left  int64
	count int
}

func (r *reader) take(file string, size int) error {
	r.count++
	r.left -= int64(size)
	switch {
	case r.left < 0:
		return &job.Error{File: file, Reason: fmt.Sprintf("the rendering reads more than %d MB", job.MaxRead>>20)}
	case r.count > maxFiles:
		return &job.Error{File: file, Reason: fmt.Sprintf("the chart has more than %d files and folders", maxFiles)}
	}
	return nil
}

// folder reads the chart in the folder dir of f, leaving out what its .helmignore names.
func (r *reader) folder(f tree.FS, dir string) (files, error) {
	view, rules := tree.Follow(f), ignore.Empty()
	ignoreFile := path.Join(dir, ignore.HelmIgnore)
	if _, ok, err := tree.Exists(view, ignoreFile); err != nil {
		return nil, err
	} else if ok {
		data, err := view.ReadFile(ignoreFile)
		if err != nil {
			return nil, err
		}
		if rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return nil, &job.Error{File: ignoreFile, Reason: err.Error()}
		}
	}
	rules.AddDefaults()
	w := walker{reader: r, view: view, rules: rules, root: dir, out: files{}}
	return w.out, w.walk(".", 0)
}

// all reads the chart in the folder dir of f whole, as it came out of an archive.
func (r *reader) all(f tree.FS, dir string) (files, error) {
	w := walker{reader: r, view: tree.Follow(f), root: dir, out: files{}}
	return w.out, w.walk(".", 0)
}

type walker struct {
	*reader
	view  tree.FS
	rules *ignore.Rules
	root  string
	out   files
}

func (w *walker) walk(dir string, depth int) error {
	at := path.Join(w.root, dir)
	if depth > maxDepth {
		return &job.Error{File: at, Reason: fmt.Sprintf("more than %d folders deep: is a link leading to its own folder?", maxDepth)}
	}
	// Folders count too: two links to their own folder make more of them than can ever be visited.
	if err := w.take(at, 0); err != nil {
		return err
	}
	entries, err := w.view.ReadDir(at)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		if e.Kind == tree.Link {
			target, err := w.view.Stat(path.Join(w.root, name))
			if err != nil && !w.ignores(name, false) {
				return &job.Error{File: path.Join(w.root, name), Reason: "the link can't be followed: " + err.Error()}
			}
			e = target
		}
		if w.ignores(name, e.Kind == tree.Dir) {
			continue
		}
		switch e.Kind {
		case tree.Dir:
			err = w.walk(name, depth+1)
		case tree.File:
			err = w.file(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) ignores(name string, dir bool) bool {
	return w.rules != nil && w.rules.Ignore(name, info{name: path.Base(name), dir: dir})
}

func (w *walker) file(name string) error {
	at := path.Join(w.root, name)
	data, err := w.view.ReadFile(at)
	if err != nil {
		return err
	}
	w.out[name] = bytes.TrimPrefix(data, []byte("\ufeff"))
	return w.take(at, len(data))
}

// info is what ignore rules want to know of a file.
type info struct {
	name string
	dir  bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return 0 }
func (i info) Mode() fs.FileMode  { return 0 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }

// packed is the chart in an archive, such as charts/web-1.0.tgz; its one top folder is taken off.
func (r *reader) packed(file string, data []byte) (files, error) {
	unpacked, err := tree.Untar(bytes.NewReader(data), tree.ArchiveLimits{Size: r.left, Files: maxFiles})
	if err != nil {
		return nil, &job.Error{File: file, Reason: "the chart can't be unpacked: " + err.Error()}
	}
	out := files{}
	for name, data := range unpacked {
		if err := r.take(file, len(data)); err != nil {
			return nil, err
		}
		if _, rest, ok := strings.Cut(name, "/"); ok {
			out[rest] = bytes.TrimPrefix(data, []byte("\ufeff"))
		}
	}
	return out, nil
}

// unpackVendored replaces archives in charts/ by the folders they hold, so that Helm's loader, which has no budget
// common to all archives, never unpacks one itself.
func (r *reader) unpackVendored(in files, at string, depth int) (files, error) {
	if depth > maxDepth {
		return nil, &job.Error{File: at, Reason: fmt.Sprintf("more than %d charts in charts", maxDepth)}
	}
	out := make(files, len(in))
	for name, data := range in {
		if !isVendored(name) {
			out[name] = data
			continue
		}
		file := path.Join(at, name)
		sub, err := r.packed(file, data)
		if err == nil {
			sub, err = r.unpackVendored(sub, file, depth+1)
		}
		if err != nil {
			return nil, err
		}
		// The suffix keeps the folder apart from an unpacked chart of the same name.
		out.add(strings.TrimSuffix(name, ".tgz")+"~tgz", sub)
	}
	return out, nil
}

// isVendored tells archives that Helm takes for a dependency: charts/web.tgz, charts/shop/charts/web.tgz.
func isVendored(name string) bool {
	parts := strings.Split(name, "/")
	if len(parts)%2 != 0 || path.Ext(name) != ".tgz" {
		return false
	}
	for i := 0; i < len(parts); i += 2 {
		if parts[i] != "charts" || strings.IndexAny(parts[i+1], "_.") == 0 {
			return false
		}
	}
	return true
}

func (fs files) add(dir string, more files) {
	for name, data := range more {
		fs[path.Join(dir, name)] = data
	}
}

// metadata reads Chart.yaml, with the dependencies that charts of the first API version keep in requirements.yaml.
func (fs files) metadata(at string) (*chart.Metadata, *chart.Lock, error) {
	file := path.Join(at, "Chart.yaml")
	data, ok := fs["Chart.yaml"]
	if !ok {
		return nil, nil, &job.Error{File: at, Reason: "there is no Chart.yaml"}
	}
	md := &chart.Metadata{}
	if err := yaml.Unmarshal(data, md); err != nil {
		return nil, nil, yamlError(file, err)
	}
	switch md.APIVersion {
	case "", chart.APIVersionV1, chart.APIVersionV2:
	default:
		return nil, nil, &job.Error{File: file, Reason: fmt.Sprintf("apiVersion %q is none of v1 and v2", md.APIVersion)}
	}
	var lock *chart.Lock
	for name, into := range map[string]any{"requirements.yaml": md, "Chart.lock": &lock, "requirements.lock": &lock} {
		if data, ok := fs[name]; ok {
			if err := yaml.Unmarshal(data, into); err != nil {
				return nil, nil, yamlError(path.Join(at, name), err)
			}
		}
	}
	return md, lock, nil
}

// chart makes the files a chart of the Helm library. Dependencies are sorted by name and version: the library itself
// leaves their order to chance, and with it that of their CRDs.
func (fs files) chart(at string) (*chart.Chart, error) {
	buffered := make([]*archive.BufferedFile, 0, len(fs))
	for name, data := range fs {
		buffered = append(buffered, &archive.BufferedFile{Name: name, Data: data})
	}
	sort.Slice(buffered, func(i, j int) bool { return buffered[i].Name < buffered[j].Name })
	c, err := loader.LoadFiles(buffered)
	if err != nil {
		return nil, chartError(at, err)
	}
	sortDependencies(c)
	return c, nil
}

func sortDependencies(c *chart.Chart) {
	deps := c.Dependencies()
	sort.SliceStable(deps, func(i, j int) bool {
		if deps[i].Name() != deps[j].Name() {
			return deps[i].Name() < deps[j].Name()
		}
		return deps[i].Metadata.Version < deps[j].Metadata.Version
	})
	for _, dep := range deps {
		sortDependencies(dep)
	}
}
