package git_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/tree"
	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/gitserver/gittest"
)

func modulesFile(places ...string) string {
	var out strings.Builder
	for i := 0; i < len(places); i += 2 {
		fmt.Fprintf(&out, "[submodule \"m%d\"]\n\tpath = %s\n\turl = %s\n", i, places[i], places[i+1])
	}
	return out.String()
}

// Submodules are laid in, nested ones and those with relative URLs too, at the commits that are named.
func TestSubmodulesAreLaidIn(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	inner := srv.Create("team/inner", map[string]string{"x.yaml": "inner"})
	lib := srv.Create("team/lib", map[string]string{
		".gitmodules": modulesFile("deep/inner", "../inner.git"), "deep/inner": gitserver.Submodule + inner.Resolve("main"), "lib.yaml": "1",
	})
	pinned := lib.Resolve("main")
	lib.Commit(map[string]string{"lib.yaml": "2"}, "later")
	top := srv.Create("team/app", map[string]string{
		".gitmodules": modulesFile("vendor/lib", lib.URL(), "gone", "../gone.git"), "vendor/lib": gitserver.Submodule + pinned, "vendor/a.yaml": "a",
	})
	s := open(t, git.Options{})
	f, err := s.TreeWith(t.Context(), git.Repo{URL: top.URL()}, top.Resolve("main"), func(_ context.Context, url string) (git.Repo, error) {
		return git.Repo{URL: url}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"vendor/a.yaml": "a", "vendor/lib/lib.yaml": "1", "vendor/lib/deep/inner/x.yaml": "inner"} {
		if data, err := f.ReadFile(name); err != nil || string(data) != want {
			t.Errorf("%s is %q, %v; want %q", name, data, err, want)
		}
	}
	var seen []string
	if err := tree.Walk(f, "vendor", func(name string, e tree.Entry) error {
		seen = append(seen, e.Kind.String()+" "+name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := "file vendor/a.yaml,folder vendor/lib,file vendor/lib/.gitmodules,folder vendor/lib/deep,folder vendor/lib/deep/inner,file vendor/lib/deep/inner/x.yaml,file vendor/lib/lib.yaml"
	if got := strings.Join(seen, ","); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// C036, second half: a private submodule that nobody reads is not asked for; read, the error names its URL. Off, it is left
// out.
func TestC036UnusedSubmodule(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	private := gittest.Start(t, gitserver.Options{Username: "u", Password: "secret"})
	hidden := private.Create("x/y", map[string]string{"a": "1"})
	repo := srv.Create("b", map[string]string{
		".gitmodules": modulesFile("vendor", hidden.URL()), "vendor": gitserver.Submodule + hidden.Resolve("main"), "app/cm.yaml": "plain",
	})
	s := open(t, git.Options{})
	r, c := git.Repo{URL: repo.URL()}, repo.Resolve("main")
	f, err := s.TreeWith(t.Context(), r, c, func(_ context.Context, url string) (git.Repo, error) { return git.Repo{URL: url}, nil })
	if err != nil {
		t.Fatal(err)
	}
	data, err := f.ReadFile("app/cm.yaml")
	if entries, listErr := f.ReadDir("."); err != nil || listErr != nil || string(data) != "plain" || len(entries) != 3 {
		t.Errorf("beside the submodule: %q, %v, %v, %v", data, err, entries, listErr)
	}
	if n := private.Counts(); n.Discoveries+n.Denied != 0 {
		t.Errorf("the private repository was asked %+v", n)
	}
	_, err = f.ReadFile("vendor/a")
	if !errors.Is(err, git.ErrAuth) || !strings.Contains(err.Error(), "submodule vendor: repository "+hidden.URL()) {
		t.Errorf("below the submodule: %v", err)
	}
	off, err := s.TreeWith(t.Context(), r, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := off.Stat("vendor"); err != nil || e.Kind != tree.Submodule {
		t.Errorf("off: %v, %v", e, err)
	}
}

// What .gitmodules says can lead nowhere that its URL may not go, and not around in circles.
func TestHostileSubmodules(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("self", map[string]string{"a": "1"})
	first := repo.Resolve("main")
	for name, c := range map[string]struct{ url, want string }{
		"transport": {"ext::sh%20-c%20id", "which is not allowed"},
		"option":    {"--upload-pack=/bin/sh", "starts with a dash"},
		"above":     {"../../../../x", "leads above"},
		"local":     {"/etc", "is a local path"},
		"forbidden": {"https://elsewhere.invalid/x", "not permitted"},
		"refused":   {"https://u:CANARY@elsewhere.invalid/x", "not permitted"},
	} {
		commit := repo.CommitTo(name, map[string]string{".gitmodules": modulesFile("m", c.url), "m": gitserver.Submodule + first}, name)
		s := open(t, git.Options{})
		f, err := s.TreeWith(t.Context(), git.Repo{URL: repo.URL()}, commit, func(_ context.Context, url string) (git.Repo, error) {
			if strings.Contains(url, "elsewhere") {
				return git.Repo{}, errors.New("not permitted")
			}
			return git.Repo{URL: url}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.ReadFile("m/a")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "submodule m: ") || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
