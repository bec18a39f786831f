package git_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/tree"
	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/gitserver/gittest"
)

func TestChanges(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a/one": "1", "a/two": "2", "same": "x", "old/file": "y"})
	from := repo.Resolve("main")
	to := repo.Commit(map[string]string{"a/one": "11", "new/deep/file": "z", "ü\n": "odd"}, "next")
	s := open(t, git.Options{})
	r := git.Repo{URL: repo.URL()}
	ensure(t, s, r, to, "refs/heads/main")
	got, err := s.Changes(t.Context(), r, from, to)
	if err != nil {
		t.Fatal(err)
	}
	want := []tree.Change{
		{Path: "a/one"}, {Path: "new", Kind: true}, {Path: "new/deep", Kind: true}, {Path: "new/deep/file", Kind: true}, {Path: "ü\n", Kind: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if back, err := s.Changes(t.Context(), r, to, from); err != nil || len(back) != len(want) {
		t.Errorf("back: %v, %v", back, err)
	}
	if none, err := s.Changes(t.Context(), r, to, to); err != nil || len(none) != 0 {
		t.Errorf("no change: %v, %v", none, err)
	}
	if _, err := s.Changes(t.Context(), r, from, "0123456789012345678901234567890123456789"); err == nil {
		t.Error("a commit that does not exist has no changes")
	}
	// Kept for both: reads of what changed tell the same as the list.
	before, err := s.Tree(t.Context(), r, from)
	if err != nil {
		t.Fatal(err)
	}
	after, err := s.Tree(t.Context(), r, to)
	if err != nil {
		t.Fatal(err)
	}
	view, set := tree.Record(before)
	for _, dir := range []string{".", "a", "old", "new", "new/deep"} {
		_, _ = view.ReadDir(dir) // what is not there is a read too
	}
	concerned := map[tree.Read]bool{}
	for _, c := range got {
		c.Concerns(func(op tree.ReadOp, path string) { concerned[tree.Read{Op: op, Path: path}] = true })
	}
	for _, one := range set.Reads() {
		differs := !tree.Reads{one}.Hold(after)
		if differs != concerned[tree.Read{Op: one.Op, Path: one.Path}] {
			t.Errorf("%v of %s: differs %v, but the list says otherwise", one.Op, one.Path, differs)
		}
	}
}
