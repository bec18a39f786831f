package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

type sub struct {
	base FS
	dir  string
}

// Sub is the part of f below dir, as a tree of its own. Links that lead out of dir lead out of the tree.
func Sub(f FS, dir string) (FS, error) {
	p, err := Resolve(f, dir)
	if err != nil {
		return nil, err
	}
	e, err := f.Stat(p)
	if err != nil {
		return nil, err
	}
	if e.Kind != Dir {
		return nil, fmt.Errorf("path %s: is a %s, not a folder", dir, e.Kind)
	}
	if p == "." {
		return f, nil
	}
	return sub{base: f, dir: p}, nil
}

func (s sub) at(name string) string { return path.Join(s.dir, name) }

func (s sub) Stat(name string) (Entry, error)      { return s.base.Stat(s.at(name)) }
func (s sub) ReadFile(name string) ([]byte, error) { return s.base.ReadFile(s.at(name)) }
func (s sub) ReadDir(name string) ([]Entry, error) { return s.base.ReadDir(s.at(name)) }
func (s sub) ReadLink(name string) (string, error) { return s.base.ReadLink(s.at(name)) }

type overlay struct {
	upper, base FS
}

// Overlay is base with upper laid over it: a file of upper hides what base has at its path; folders merge.
func Overlay(base, upper FS) FS { return overlay{upper: upper, base: base} }

func (o overlay) pick(name string) FS {
	if e, ok, err := Exists(o.upper, name); err == nil && ok && e.Kind != Dir {
		return o.upper
	}
	return o.base
}

func (o overlay) Stat(name string) (Entry, error) {
	if e, err := o.upper.Stat(name); err == nil && e.Kind != Dir {
		return e, nil
	}
	e, err := o.base.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return o.upper.Stat(name)
	}
	return e, err
}

func (o overlay) ReadFile(name string) ([]byte, error) { return o.pick(name).ReadFile(name) }
func (o overlay) ReadLink(name string) (string, error) { return o.pick(name).ReadLink(name) }

func (o overlay) ReadDir(name string) ([]Entry, error) {
	above, upErr := o.upper.ReadDir(name)
	below, err := o.base.ReadDir(name)
	switch {
	case upErr != nil && !errors.Is(upErr, fs.ErrNotExist):
		return nil, upErr
	case upErr != nil:
		return below, err
	case err != nil && errors.Is(err, fs.ErrNotExist):
		return above, nil
	case err != nil:
		return nil, err
	}
	merged := make([]Entry, 0, len(above)+len(below))
	taken := make(map[string]bool, len(above))
	for _, e := range above {
		taken[e.Name] = true
		merged = append(merged, e)
	}
	for _, e := range below {
		if !taken[e.Name] {
			merged = append(merged, e)
		}
	}
	return sortEntries(merged), nil
}
