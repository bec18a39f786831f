package directory

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/gobwas/glob"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// filter is the choice of files by include and exclude.
type filter struct{ include, exclude glob.Glob }

func newFilter(include, exclude string) (f filter, err error) {
	if f.include, err = compile("include", include); err != nil {
		return filter{}, err
	}
	f.exclude, err = compile("exclude", exclude)
	return f, err
}

// compile takes no separators, so that * matches slashes too: patterns written for Argo CD count on it.
func compile(field, pattern string) (g glob.Glob, err error) {
	if pattern == "" {
		return nil, nil
	}
	// The pattern comes from outside, and the library has panicked for odd ones.
	defer func() {
		if r := recover(); r != nil {
			g, err = nil, fmt.Errorf("spec.source.directory.%s: pattern %q can not be used", field, pattern)
		}
	}()
	if g, err = glob.Compile(pattern); err != nil {
		return nil, fmt.Errorf("spec.source.directory.%s: pattern %q: %w", field, pattern, err)
	}
	return g, nil
}

func (f filter) takes(name string) bool {
	if f.exclude != nil && f.exclude.Match(name) {
		return false
	}
	return f.include == nil || f.include.Match(name)
}

// list returns the paths of the files to read, in the order of a walk.
func (r *renderer) list() ([]string, error) {
	f, err := newFilter(r.opts.Include, r.opts.Exclude)
	if err != nil {
		return nil, err
	}
	var files []string
	var visit func(rel string) error
	visit = func(rel string) error {
		entries, err := r.tree.ReadDir(path.Join(r.in.Path, rel))
		if err != nil {
			return &job.Error{File: path.Join(r.in.Path, rel), Reason: "can not be listed: " + err.Error()}
		}
		for _, e := range entries {
			name := path.Join(rel, e.Name)
			switch {
			case e.Kind == tree.Dir && r.opts.Recurse && e.Name != ".git":
				err = visit(name)
			case (e.Kind == tree.File || e.Kind == tree.Link) && r.isCandidate(e.Name) && f.takes(name):
				var ok bool
				if ok, err = r.isReadable(e, path.Join(r.in.Path, name)); ok {
					files = append(files, path.Join(r.in.Path, name))
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return files, visit(".")
}

func (r *renderer) isCandidate(base string) bool {
	if strings.HasPrefix(base, ".argocd-source") && path.Ext(base) == ".yaml" {
		return false
	}
	switch path.Ext(base) {
	case ".yaml", ".yml", ".json", jsonnetExt:
		return true
	}
	return r.opts.DisableExtensionFilter
}

// isReadable looks where a link leads.
func (r *renderer) isReadable(e tree.Entry, name string) (bool, error) {
	if e.Kind == tree.File {
		return true, nil
	}
	target, err := r.tree.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.warn(name, "left out, the link leads nowhere")
		return false, nil
	case err != nil:
		return false, &job.Error{File: name, Reason: "the link can not be followed: " + err.Error()}
	case target.Kind != tree.File:
		r.warn(name, "left out, the link leads to a %s", target.Kind)
		return false, nil
	}
	return true, nil
}
