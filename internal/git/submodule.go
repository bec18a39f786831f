package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

const (
	// maxModules bounds the submodules of one repository, maxNested how deep they lie in each other.
	maxModules = 1000
	maxNested  = 10
	modulesTxt = ".gitmodules"
)

// Modules answers for the submodules of a repository: the repository behind a URL with its credentials, or why it may not
// be used.
type Modules func(ctx context.Context, url string) (Repo, error)

// TreeWith is Tree with the submodules laid in, each at the commit that its parent names and where .gitmodules says where
// it comes from. One is fetched when something below it is read, so that one nobody reads needs no credentials. Without
// modules they are left out.
func (s *Store) TreeWith(ctx context.Context, r Repo, commit string, modules Modules) (tree.FS, error) {
	return s.nested(ctx, r, commit, modules, 0)
}

func (s *Store) nested(ctx context.Context, r Repo, commit string, modules Modules, depth int) (tree.FS, error) {
	t, err := s.Tree(ctx, r, commit)
	if err != nil || modules == nil {
		return t, err
	}
	data, err := t.ReadFile(modulesTxt)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	places := parseModules(data)
	if len(places) > maxModules {
		return nil, &Error{Repo: hideUserinfo(r.URL), Kind: ErrRefused, What: fmt.Sprintf("%s names more than %d submodules", modulesTxt, maxModules)}
	}
	return &laid{FS: t, ctx: ctx, s: s, repo: r, open: modules, depth: depth, places: places, trees: map[string]*module{}}, nil
}

// laid is a tree with its submodules. It holds the context of its rendering because the methods of FS take none.
type laid struct {
	tree.FS
	ctx   context.Context
	s     *Store
	repo  Repo
	open  Modules
	depth int
	// places are the URLs by path.
	places map[string]string

	mu    sync.Mutex
	trees map[string]*module
}

// module is a submodule that was asked for; what went wrong is not tried again in the same rendering.
type module struct {
	once sync.Once
	tree tree.FS
	err  error
}

// within is the submodule that name lies in, and the rest of the path there; false where name lies in none.
func (l *laid) within(name string) (tree.FS, string, bool, error) {
	for at := name; at != "." && at != "/"; at = path.Dir(at) {
		if _, named := l.places[at]; !named {
			continue
		}
		e, err := l.FS.Stat(at)
		if err != nil || e.Kind != tree.Submodule {
			return nil, "", false, nil // what .gitmodules says of it is a leftover
		}
		rest := strings.TrimPrefix(strings.TrimPrefix(name, at), "/")
		if rest == "" {
			rest = "."
		}
		t, err := l.module(at, e.Hash)
		return t, rest, true, err
	}
	return nil, "", false, nil
}

func (l *laid) module(at, commit string) (tree.FS, error) {
	l.mu.Lock()
	m, ok := l.trees[at]
	if !ok {
		m = &module{}
		l.trees[at] = m
	}
	l.mu.Unlock()
	m.once.Do(func() {
		m.tree, m.err = l.fetch(l.places[at], commit)
		if m.err != nil {
			m.err = fmt.Errorf("submodule %s: %w", at, m.err)
		}
	})
	return m.tree, m.err
}

func (l *laid) fetch(raw, commit string) (tree.FS, error) {
	at, err := against(l.repo.URL, raw)
	if err != nil {
		return nil, err
	}
	if l.depth >= maxNested {
		return nil, refused(at, fmt.Sprintf("lies more than %d submodules deep", maxNested))
	}
	if err := CheckURL(at); err != nil {
		return nil, err
	}
	r, err := l.open(l.ctx, at)
	if err != nil {
		return nil, err
	}
	return l.s.nested(l.ctx, r, commit, l.open, l.depth+1)
}

// Stat implements tree.FS. A submodule is a folder; it is not fetched to say so.
func (l *laid) Stat(name string) (tree.Entry, error) {
	if _, named := l.places[name]; named {
		e, err := l.FS.Stat(name)
		if err == nil && e.Kind == tree.Submodule {
			e.Kind = tree.Dir
		}
		return e, err
	}
	t, rest, in, err := l.within(name)
	switch {
	case err != nil:
		return tree.Entry{}, err
	case in:
		return t.Stat(rest)
	}
	return l.FS.Stat(name)
}

// ReadFile implements tree.FS.
func (l *laid) ReadFile(name string) ([]byte, error) {
	t, rest, in, err := l.within(name)
	switch {
	case err != nil:
		return nil, err
	case in:
		return t.ReadFile(rest)
	}
	return l.FS.ReadFile(name)
}

// ReadLink implements tree.FS.
func (l *laid) ReadLink(name string) (string, error) {
	t, rest, in, err := l.within(name)
	switch {
	case err != nil:
		return "", err
	case in:
		return t.ReadLink(rest)
	}
	return l.FS.ReadLink(name)
}

// ReadDir implements tree.FS.
func (l *laid) ReadDir(name string) ([]tree.Entry, error) {
	t, rest, in, err := l.within(name)
	switch {
	case err != nil:
		return nil, err
	case in:
		return t.ReadDir(rest)
	}
	entries, err := l.FS.ReadDir(name)
	for i := range entries {
		if _, named := l.places[path.Join(name, entries[i].Name)]; named && entries[i].Kind == tree.Submodule {
			entries[i].Kind = tree.Dir
		}
	}
	return entries, err
}
