package main

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/chart"
	gitstore "github.com/lockstep-cd/lockstep/internal/git"
)

// files of a repository with three charts, of which one needs the others, and folders that are no charts.
func sample() map[string]string {
	return map[string]string{
		"charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.0\ndependencies:\n" +
			"- {name: base, version: 0.1.0, repository: 'file://../base'}\n" +
			"- {name: cache, version: '>=2', repository: 'https://charts.example.org/all/'}\n",
		"charts/web/templates/a.yaml":             "{}\n",
		"charts/web/charts/inner/Chart.yaml":      "apiVersion: v2\nname: inner\nversion: 0.0.1\n",
		"charts/base/Chart.yaml":                  "apiVersion: v2\nname: base\nversion: 0.1.0\n",
		"charts/cache/Chart.yaml":                 "apiVersion: v2\nname: cache\nversion: 0.0.0-stand-in\n",
		"charts/lib/Chart.yaml":                   "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n",
		"charts/stuck/Chart.yaml":                 "apiVersion: v2\nname: stuck\nversion: 1.0.0\ndependencies:\n- {name: gone, version: 1.0.0, repository: 'https://gone.example.org'}\n",
		"deploy/prod/kustomization.yaml":          "resources: [a.yaml]\n",
		"deploy/prod/a.yaml":                      "{}\n",
		"deploy/parts/logging/kustomization.yaml": "kind: Component\n",
		"plain/a.yaml":                            "{}\n",
	}
}

// repository makes a checkout with one commit.
func repository(t *testing.T, files map[string]string) *checkout {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "-b", "main"}, {"add", "--all"},
		{"-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "--quiet", "-m", "first"},
		{"remote", "add", "origin", "git@git.example.org:team/sample.git"},
	} {
		if _, err := git(t.Context(), nil, append([]string{"-C", dir}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	c, err := openCheckout(t.Context(), dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPublicURL(t *testing.T) {
	for in, want := range map[string]string{
		"git@github.com:a/b.git":           "https://github.com/a/b",
		"ssh://git@github.com:22/a/b.git":  "https://github.com/a/b",
		"https://user@example.org/a/b.git": "https://example.org/a/b",
		"https://example.org/a/b/":         "https://example.org/a/b",
		"/srv/git/a":                       "",
	} {
		u, err := publicURL(in)
		if want == "" {
			if err == nil {
				t.Errorf("%s: accepted as %s", in, u)
			}
			continue
		}
		if err != nil || u.String() != want {
			t.Errorf("%s: %v, %v, want %s", in, u, err, want)
		}
	}
}

func TestFind(t *testing.T) {
	c := repository(t, sample())
	for name, test := range map[string]struct {
		globs []string
		want  []string
	}{
		"charts and kustomizations that stand by themselves": {nil, []string{"charts/base", "charts/cache", "charts/stuck", "charts/web", "deploy/prod"}},
		"folders by glob, plain ones too":                    {[]string{"plain", "deploy/**"}, []string{"deploy/prod", "plain"}},
	} {
		items, err := c.find(t.Context(), test.globs)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range items {
			got = append(got, i.Path)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOffer goes the way that Lockstep goes: through the proxy, to public URLs, with the authority as the only one trusted.
func TestOffer(t *testing.T) {
	c := repository(t, sample())
	subjects := publish(t, c)
	o, err := startOffer(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	if err := o.repository(t.Context(), c, []string{c.head}); err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects {
		if s.err != nil {
			continue
		}
		if err := o.publish(t.Context(), s.chart); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("git", func(t *testing.T) {
		for _, u := range []string{"https://git.example.org/team/sample", "https://git.example.org/team/sample.git"} {
			if got := gitFile(t, o, u, c.head, "plain/a.yaml"); got != "{}\n" {
				t.Errorf("%s: plain/a.yaml is %q", u, got)
			}
		}
	})
	charts, err := chart.Open(chart.Options{Dir: t.TempDir(), AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = charts.Close() }()
	for _, repo := range []string{"https://charts.example.org/all", "oci://registry.example.org/team"} {
		t.Run(repo, func(t *testing.T) {
			r := chart.Repo{URL: repo, Credentials: chart.Credentials{Proxy: o.urls.URL(), CA: o.urls.caPEM}}
			f, _, err := charts.Pull(t.Context(), r, "web", "1.2.0")
			if err != nil {
				t.Fatal(err)
			}
			for _, inside := range []string{"Chart.yaml", "charts/base/Chart.yaml", "charts/cache/Chart.yaml", "charts/inner/Chart.yaml"} {
				if _, err := f.Stat(inside); err != nil {
					t.Errorf("%s: %v", inside, err)
				}
			}
		})
	}
	t.Run("unknown", func(t *testing.T) {
		r := chart.Repo{URL: "https://gone.example.org", Credentials: chart.Credentials{Proxy: o.urls.URL(), CA: o.urls.caPEM}}
		if _, err := charts.Versions(t.Context(), r, "gone"); err == nil {
			t.Error("a repository that nobody offers has versions")
		}
		if diff := cmp.Diff([]string{"gone.example.org/index.yaml"}, o.urls.misses()); diff != "" {
			t.Errorf("misses (-want +got):\n%s", diff)
		}
	})
}

// A checkout that lacks a part of its history is served all the same, by commits of its own.
func TestHistoryThatIsNotWhole(t *testing.T) {
	c := repository(t, sample())
	dir := filepath.Dir(c.gitDir)
	blob, err := c.git(t.Context(), "rev-parse", "HEAD:deploy/prod/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"rm", "--quiet", "deploy/prod/kustomization.yaml"},
		{"-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "--quiet", "-m", "second"},
	} {
		if _, err := git(t.Context(), nil, append([]string{"-C", dir}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(c.gitDir, "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	if c, err = openCheckout(t.Context(), dir, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	o, err := startOffer(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	if err := o.repository(t.Context(), c, []string{c.head}); err != nil {
		t.Fatal(err)
	}
	if c.revision(c.head) == c.head {
		t.Error("the commit is served with a history that is not there")
	}
	if got := gitFile(t, o, c.url.String(), c.revision(c.head), "plain/a.yaml"); got != "{}\n" {
		t.Errorf("plain/a.yaml is %q", got)
	}
}

// publish packages the sample's charts for a Helm repository and a registry.
func publish(t *testing.T, c *checkout) []*subject {
	t.Helper()
	const all = "https://charts.example.org/all"
	var subjects []*subject
	for _, i := range []item{
		{Path: "charts/web", Repository: all},
		{Path: "charts/web", Repository: "oci://registry.example.org/team"},
		{Path: "charts/cache", Repository: all, Version: "2.3.4", ServeOnly: true},
		{Path: "charts/stuck", Repository: all},
	} {
		subjects = append(subjects, newSubject(t.Context(), c, i))
	}
	p := &packer{dir: t.TempDir()}
	if err := p.pack(t.Context(), subjects); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"1.2.0", "1.2.0", "2.3.4", "1.0.0"} {
		if subjects[i].version != want {
			t.Errorf("%s: version %s, want %s", subjects[i].Path, subjects[i].version, want)
		}
	}
	if err := subjects[3].err; err == nil || !strings.Contains(err.Error(), "needs chart gone 1.0.0 of https://gone.example.org") {
		t.Errorf("chart without its dependency: %v", err)
	}
	return subjects
}

func gitFile(t *testing.T, o *offer, url, commit, file string) string {
	t.Helper()
	store, err := gitstore.Open(gitstore.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	r := gitstore.Repo{URL: url, Credentials: gitstore.Credentials{Proxy: o.urls.URL(), CA: string(o.urls.caPEM)}}
	f, err := store.Tree(t.Context(), r, commit)
	if err != nil {
		t.Fatal(err)
	}
	data, err := f.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The checkout that a person works in is not touched.
func TestCheckoutStaysAsItIs(t *testing.T) {
	c := repository(t, sample())
	dir := filepath.Dir(c.gitDir)
	before := status(t, dir)
	if _, err := c.tree(context.Background(), c.head); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, status(t, dir)); diff != "" {
		t.Errorf("checkout (-before +after):\n%s", diff)
	}
}

func status(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("git", "-C", dir, "status", "--porcelain", "--ignored").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	index, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	return string(out) + string(index)
}
