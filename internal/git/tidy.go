package git

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// maxPacks and maxLoose are how much a mirror may be scattered before it is packed anew. Loose objects are counted
	// in one folder of 256, as git itself does.
	maxPacks = 40
	maxLoose = 20
)

// tidy packs a mirror anew that has become scattered, and drops what nothing leads to any more. git's own automatic way
// is off: it would run when somebody waits for a commit. The caller has the turn.
func (s *Store) tidy(ctx context.Context, dir string) error {
	packs, _ := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.pack"))
	loose, _ := filepath.Glob(filepath.Join(dir, "objects", "17", "*"))
	if len(packs) <= maxPacks && len(loose) <= maxLoose {
		return nil
	}
	_, err := s.local(ctx, dir, "gc", "--quiet", "--prune=1.hour.ago")
	if err != nil {
		removeLocks(dir)
	}
	return err
}

// removeLocks takes away what a git that was killed has left behind: locks, half-received packs. Only the one who has
// the mirror's turn calls it, so nobody holds them.
func removeLocks(dir string) {
	patterns := []string{
		"*.lock", "gc.pid", "objects/info/*.lock", "objects/pack/tmp_*", "objects/pack/*.keep", "objects/pack/*.lock",
		"objects/tmp_objdir-*", "objects/pack/.tmp-*",
	}
	for _, p := range patterns {
		list, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(p)))
		for _, name := range list {
			_ = os.RemoveAll(name) // what stays makes git fail with its own words
		}
	}
	_ = filepath.WalkDir(filepath.Join(dir, "refs"), func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasSuffix(name, ".lock") {
			_ = os.Remove(name)
		}
		return nil
	})
}

// Sweep removes the mirrors of all repositories but those at the URLs.
func (s *Store) Sweep(ctx context.Context, inUse []string) error {
	used := map[string]bool{}
	for _, u := range inUse {
		used[mirrorName(Normalize(u))] = true
	}
	root := filepath.Join(s.opt.Dir, "mirrors")
	list, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range list {
		if used[e.Name()] {
			continue
		}
		if err := s.removeMirror(ctx, filepath.Join(root, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) removeMirror(ctx context.Context, base string) error {
	s.mu.Lock()
	var m *mirror
	for _, candidate := range s.mirrors {
		if candidate.base == base {
			m = candidate
		}
	}
	s.mu.Unlock()
	if m == nil {
		return os.RemoveAll(base)
	}
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.unlock()
	dir, _ := m.at()
	m.use(0, map[string]time.Time{})
	s.readers.drop(dir)
	return os.RemoveAll(base)
}
