package git_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/tree"
	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/gitserver/gittest"
)

// open opens a store that ends with the test.
func open(t *testing.T, o git.Options) *git.Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := git.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func ensure(t *testing.T, s *git.Store, r git.Repo, commit, ref string) string {
	t.Helper()
	got, err := s.Ensure(t.Context(), r, git.Want{Commit: commit, Ref: ref})
	if err != nil {
		t.Fatalf("ensure %s %s: %v", commit, ref, err)
	}
	return got
}

func read(t *testing.T, s *git.Store, r git.Repo, commit, name string) string {
	t.Helper()
	f, err := s.Tree(t.Context(), r, commit)
	if err != nil {
		t.Fatal(err)
	}
	data, err := f.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRefsAndTags(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("team/app", map[string]string{"a.yaml": "1"})
	c1 := repo.Resolve("main")
	c2 := repo.CommitTo("env/b2b", map[string]string{"a.yaml": "2"}, "second")
	tagObject := repo.AnnotatedTag("v1", c1, "release")
	repo.Tag("light", c1)
	repo.SetRef("refs/pull/1/head", c2)
	s := open(t, git.Options{})
	r := git.Repo{URL: repo.URL()}
	got, err := s.Refs(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	want := git.Refs{
		Head: c1, HeadRef: "refs/heads/main", Branches: map[string]string{"main": c1, "env/b2b": c2},
		Tags: map[string]string{"v1": c1, "light": c1}, Other: map[string]string{"refs/pull/1/head": c2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// C033: the tag object's id leads to the commit too, and a moved tag is followed.
	if id := ensure(t, s, r, tagObject, ""); id != c1 {
		t.Errorf("tag object leads to %s, want %s", id, c1)
	}
	if id := ensure(t, s, r, c1, "refs/tags/v1"); id != c1 {
		t.Errorf("tag leads to %s, want %s", id, c1)
	}
	repo.AnnotatedTag("v1", c2, "moved")
	got, err = s.Refs(t.Context(), r)
	if err != nil || got.Tags["v1"] != c2 {
		t.Fatalf("moved tag is %s, want %s (%v)", got.Tags["v1"], c2, err)
	}
	ensure(t, s, r, c2, "refs/tags/v1")
	if data := read(t, s, r, c2, "a.yaml"); data != "2" {
		t.Errorf("a.yaml = %q", data)
	}
}

func TestEmptyRepository(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("empty", nil)
	refs, err := open(t, git.Options{}).Refs(t.Context(), git.Repo{URL: repo.URL()})
	if err != nil || refs.Head != "" || len(refs.Branches) != 0 {
		t.Errorf("%+v, %v", refs, err)
	}
}

func TestTree(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{
		"README":         "hello",
		"app/base/x":     "x",
		"app.d":          "sorts between app and app/ for git",
		"app/umlaut ä":   "ok",
		"link":           gitserver.Symlink + "app/base",
		"out":            gitserver.Symlink + "../../etc/passwd",
		"vendor/lib":     gitserver.Submodule + strings.Repeat("1", 40),
		"deep/a/b/c/d/e": "deep",
	})
	c1 := repo.Resolve("main")
	s := open(t, git.Options{})
	f, err := s.Tree(t.Context(), git.Repo{URL: repo.URL()}, c1)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := f.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name+" "+e.Kind.String())
		if len(e.Hash) != 40 || e.Size != -1 {
			t.Errorf("%+v", e)
		}
	}
	want := []string{"README file", "app folder", "app.d file", "deep folder", "link link", "out link", "vendor folder"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if e, err := f.Stat("vendor/lib"); err != nil || e.Kind != tree.Submodule || e.Hash != strings.Repeat("1", 40) {
		t.Errorf("submodule: %+v, %v", e, err)
	}
	view := tree.Follow(f)
	for name, want := range map[string]string{"link/x": "x", "deep/a/b/c/d/e": "deep", "app/umlaut ä": "ok"} {
		if data, err := view.ReadFile(name); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if _, err := view.ReadFile("out"); !errors.Is(err, tree.ErrOutside) {
		t.Errorf("link out of the tree: %v", err)
	}
	for _, name := range []string{"no", "app/no", "README/no", "link/x", "app/base/x/y"} {
		if _, err := f.ReadFile(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"app", "link", "vendor/lib"} {
		if _, err := f.ReadFile(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The listing is the caller's own.
	entries[0].Name = "changed"
	if again, _ := f.ReadDir("."); again[0].Name != "README" {
		t.Error("a caller changed the cached folder")
	}
}

func TestCommit(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "1"})
	c1 := repo.Resolve("main")
	c2 := repo.Commit(map[string]string{"a": "2"}, "web: use\na newer image\n\nBecause.")
	got, err := open(t, git.Options{}).Commit(t.Context(), git.Repo{URL: repo.URL()}, c2)
	if err != nil {
		t.Fatal(err)
	}
	if got.Hash != c2 || len(got.Parents) != 1 || got.Parents[0] != c1 || got.Author != "Ada Example" || got.Email != "ada@example.org" ||
		got.Subject != "web: use a newer image" || got.Date.Format(time.RFC3339) != "2026-01-01T13:00:02+01:00" {
		t.Errorf("%+v", got)
	}
}

func TestForcePushAndDeletedBranch(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "1"})
	c1 := repo.Resolve("main")
	c2 := repo.Commit(map[string]string{"a": "2"}, "to be taken away")
	s := open(t, git.Options{})
	r := git.Repo{URL: repo.URL()}
	ensure(t, s, r, c2, "refs/heads/main")
	repo.SetBranch("main", c1)
	c3 := repo.Commit(map[string]string{"a": "3"}, "forced")
	repo.Prune()
	ensure(t, s, r, c3, "refs/heads/main")
	if err := s.Keep(t.Context(), r, []string{c2, c3}); err != nil {
		t.Fatal(err)
	}
	before := srv.Counts()
	if data := read(t, s, r, c2, "a"); data != "2" {
		t.Errorf("the commit that was pushed over reads %q", data)
	}
	if after := srv.Counts(); after != before {
		t.Errorf("a kept commit needed the server: %+v, then %+v", before, after)
	}
	// The ref moved on between looking and fetching: the commit is had all the same.
	c4 := repo.Commit(map[string]string{"a": "4"}, "4")
	repo.Commit(map[string]string{"a": "5"}, "5")
	ensure(t, s, r, c4, "refs/heads/main")
	c6 := repo.CommitTo("gone", map[string]string{"a": "6"}, "6")
	repo.DeleteBranch("gone")
	ensure(t, s, r, c6, "refs/heads/gone") // the server still has the object
	repo.Prune()
	_, err := s.Ensure(t.Context(), r, git.Want{Commit: strings.Repeat("d", 40), Ref: "refs/heads/gone"})
	if !errors.Is(err, git.ErrUnknownRevision) {
		t.Errorf("commit that nobody has: %v", err)
	}
}

func TestCommitsWithoutRef(t *testing.T) {
	for _, old := range []bool{false, true} {
		srv := gittest.Start(t, gitserver.Options{ProtocolV0: old})
		repo := srv.Create("app", map[string]string{"a": "1"})
		c1 := repo.Resolve("main")
		repo.Commit(map[string]string{"a": "2"}, "2")
		c3 := repo.CommitTo("side", map[string]string{"a": "3"}, "3")
		s := open(t, git.Options{})
		r := git.Repo{URL: repo.URL()}
		// A server of the first protocol gives out no single commits: then everything is fetched.
		if got := ensure(t, s, r, c1, ""); got != c1 {
			t.Errorf("got %s, want %s", got, c1)
		}
		if got := ensure(t, s, r, c3[:8], ""); got != c3 {
			t.Errorf("got %s, want %s", got, c3)
		}
		_, err := s.Ensure(t.Context(), r, git.Want{Commit: "0123456"})
		if want := "repository " + repo.URL() + ": no branch or tag leads to a commit that starts with 0123456"; !errors.Is(err, git.ErrUnknownRevision) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		_, err = s.Ensure(t.Context(), r, git.Want{Commit: strings.Repeat("0", 39) + "1"})
		if !errors.Is(err, git.ErrUnknownRevision) {
			t.Errorf("unknown commit: %v", err)
		}
		tree := repo.Resolve("main^{tree}")
		if _, err = s.Ensure(t.Context(), r, git.Want{Commit: tree}); !errors.Is(err, git.ErrUnknownRevision) {
			t.Errorf("a tree is no commit: %v", err)
		}
	}
}

func TestDepth(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "1"})
	for range 5 {
		repo.Commit(map[string]string{"a": repo.Resolve("main")}, "next")
	}
	tip := repo.Resolve("main")
	s := open(t, git.Options{})
	r := git.Repo{URL: repo.URL(), Depth: 1}
	ensure(t, s, r, tip, "refs/heads/main")
	next := repo.Commit(map[string]string{"a": "new"}, "next")
	ensure(t, s, r, next, "refs/heads/main")
	if data := read(t, s, r, next, "a"); data != "new" {
		t.Errorf("a = %q", data)
	}
}

func TestOneFetchForAll(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "1", "b/c": "2"})
	c := repo.Resolve("main")
	s := open(t, git.Options{Readers: 2})
	r := git.Repo{URL: repo.URL()}
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			if _, err := s.Ensure(t.Context(), r, git.Want{Commit: c, Ref: "refs/heads/main"}); err != nil {
				t.Error(err)
			}
			f, err := s.Tree(t.Context(), r, c)
			if err != nil {
				t.Error(err)
				return
			}
			for range 20 {
				if data, err := f.ReadFile("b/c"); err != nil || string(data) != "2" {
					t.Errorf("%q, %v", data, err)
				}
			}
		})
	}
	wg.Wait()
	if n := srv.Counts().Fetches; n != 1 {
		t.Errorf("%d fetches, want 1", n)
	}
}

func TestBigFileIsRefused(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"big": strings.Repeat("x", 5000), "small": "ok"})
	c := repo.Resolve("main")
	s := open(t, git.Options{MaxFile: 4000})
	f, err := s.Tree(t.Context(), git.Repo{URL: repo.URL()}, c)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.ReadFile("big")
	if want := "read big: is 5000 bytes large, more than the 4000 that are read: refused"; !errors.Is(err, git.ErrRefused) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if data, err := f.ReadFile("small"); err != nil || string(data) != "ok" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "1"})
	s := open(t, git.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	f, err := s.Tree(ctx, git.Repo{URL: repo.URL()}, repo.Resolve("main"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := f.ReadFile("a"); !errors.Is(err, context.Canceled) {
		t.Errorf("read after the end: %v", err)
	}
}
