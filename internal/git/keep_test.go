package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/gitserver/gittest"
)

func TestRestart(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "1"})
	c := repo.Resolve("main")
	dir := t.TempDir()
	s, err := git.Open(git.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	r := git.Repo{URL: repo.URL()}
	ensure(t, s, r, c, "refs/heads/main")
	if _, err := git.Open(git.Options{Dir: dir}); err == nil {
		t.Fatal("two stores of one directory")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Refs(t.Context(), r); !errors.Is(err, git.ErrClosed) {
		t.Errorf("closed store: %v", err)
	}
	// What a process that was killed leaves behind.
	mirror := mirrorDir(t, dir)
	for _, name := range []string{"packed-refs.lock", "HEAD.lock", "shallow.lock", "refs/lockstep/keep/" + c + ".lock", "objects/pack/tmp_pack_x"} {
		if err := os.WriteFile(filepath.Join(mirror, filepath.FromSlash(name)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := open(t, git.Options{Dir: dir})
	before := srv.Counts()
	if data := read(t, again, r, c, "a"); data != "1" {
		t.Errorf("a = %q", data)
	}
	if after := srv.Counts(); after.Fetches != before.Fetches {
		t.Error("a restart fetched what was there")
	}
	next := repo.Commit(map[string]string{"a": "2"}, "2")
	ensure(t, again, r, next, "refs/heads/main")
	if err := again.Release(t.Context(), r, c); err != nil {
		t.Fatal(err)
	}
}

// mirrorDir is the folder of the only mirror.
func mirrorDir(t *testing.T, dir string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "mirrors", "*", "*.git"))
	if err != nil || len(list) != 1 {
		t.Fatalf("mirrors: %v, %v", list, err)
	}
	return list[0]
}

func TestKeepLetsGo(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "1"})
	c1 := repo.Resolve("main")
	c2 := repo.Commit(map[string]string{"a": "2"}, "2")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	dir := t.TempDir()
	s := open(t, git.Options{Dir: dir, Grace: time.Hour, Now: clock})
	r := git.Repo{URL: repo.URL()}
	ensure(t, s, r, c1, "")
	ensure(t, s, r, c2, "")
	kept := func() int {
		list, _ := filepath.Glob(filepath.Join(mirrorDir(t, dir), "refs", "lockstep", "keep", "*"))
		return len(list)
	}
	if err := s.Keep(t.Context(), r, []string{c2}); err != nil || kept() != 2 {
		t.Fatalf("%d kept within the grace, want 2 (%v)", kept(), err)
	}
	mu.Lock()
	now = now.Add(2 * time.Hour)
	mu.Unlock()
	if err := s.Keep(t.Context(), r, []string{c2}); err != nil || kept() != 1 {
		t.Fatalf("%d kept, want 1 (%v)", kept(), err)
	}
	if data := read(t, s, r, c1, "a"); data != "1" {
		t.Errorf("a commit that was let go is fetched again; got %q", data)
	}
	if err := s.Sweep(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if list, _ := filepath.Glob(filepath.Join(dir, "mirrors", "*")); len(list) != 0 {
		t.Errorf("left after sweep: %v", list)
	}
	if data := read(t, s, r, c2, "a"); data != "2" {
		t.Errorf("after sweep: %q", data)
	}
}

func TestTidy(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "0"})
	dir := t.TempDir()
	s := open(t, git.Options{Dir: dir})
	r := git.Repo{URL: repo.URL()}
	first := repo.Resolve("main")
	ensure(t, s, r, first, "")
	mirror := mirrorDir(t, dir)
	// As many loose objects as long use leaves.
	loose := filepath.Join(mirror, "objects", "17")
	if err := os.MkdirAll(loose, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 21 {
		if err := os.WriteFile(filepath.Join(loose, "tmp_obj_"+strings.Repeat("y", i+1)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Keep(t.Context(), r, []string{first}); err != nil {
		t.Fatal(err)
	}
	if packs, _ := filepath.Glob(filepath.Join(mirror, "objects", "pack", "*.pack")); len(packs) != 1 {
		t.Errorf("packs after tidying: %v", packs)
	}
	if data := read(t, s, r, first, "a"); data != "0" {
		t.Errorf("a = %q", data)
	}
}
