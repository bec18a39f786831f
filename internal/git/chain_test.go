package git_test

import (
	"testing"

	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/resolve"
	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/gitserver/gittest"
)

// From target revision to content, as the engine goes: look, resolve, get, read.
func TestFromTargetRevisionToContent(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "1"})
	c1 := repo.Resolve("main")
	repo.AnnotatedTag("v1.0.0", c1, "first")
	c2 := repo.CommitTo("env/b2b", map[string]string{"a": "2"}, "2")
	repo.AnnotatedTag("web-1.1.0", c2, "second")
	repo.AnnotatedTag("both", c1, "tag")
	repo.SetBranch("both", c2)
	s := open(t, git.Options{})
	r := git.Repo{URL: repo.URL()}
	for _, tc := range []struct{ target, prefix, want string }{
		{"", "", c1}, {"HEAD", "", c1}, {"main", "", c1}, {"env/b2b", "", c2}, {"refs/heads/env/b2b", "", c2}, {"v1.0.0", "", c1},
		{"refs/tags/v1.0.0", "", c1}, {"1.x", "", c1}, {"1.x", "web-", c2}, {c1, "", c1}, {c2[:7], "", c2}, {"both", "", c2},
		{"refs/tags/both", "", c1},
	} {
		refs, err := s.Refs(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		rev, err := resolve.Git(resolve.Refs(refs), tc.target, tc.prefix)
		if err != nil {
			t.Fatal(err)
		}
		if got := ensure(t, s, r, rev.Commit, rev.Ref); got != tc.want {
			t.Errorf("%q leads to %s, want %s", tc.target, got, tc.want)
		}
		want := "1"
		if tc.want == c2 {
			want = "2"
		}
		if data := read(t, s, r, tc.want, "a"); data != want {
			t.Errorf("%q reads %q", tc.target, data)
		}
	}
}
