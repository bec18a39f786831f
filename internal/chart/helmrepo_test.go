package chart_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/chart"
	"github.com/lockstep-cd/lockstep/internal/tree"
	"github.com/lockstep-cd/lockstep/test/registry"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func store(t *testing.T, change func(*chart.Options)) *chart.Store {
	t.Helper()
	o := chart.Options{Dir: t.TempDir(), AllowPrivate: loopback}
	if change != nil {
		change(&o)
	}
	s, err := chart.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func helmRepo(t *testing.T, o registry.Options, charts ...map[string]string) *registry.Helm {
	t.Helper()
	h := registry.StartHelm(o)
	t.Cleanup(h.Close)
	for _, c := range charts {
		if _, err := h.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func files(name, version string) map[string]string {
	return map[string]string{"Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: " + version + "\n", "templates/a.yaml": "of " + name + " " + version}
}

func content(t *testing.T, f tree.FS, name string) string {
	t.Helper()
	data, err := f.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestHelmRepository(t *testing.T) {
	ctx := context.Background()
	h := helmRepo(t, registry.Options{}, files("web", "1.0.0"), files("web", "1.10.0"), files("web", "1.9.0+meta"), files("db", "0.1.0"))
	dir := t.TempDir()
	s := store(t, func(o *chart.Options) { o.Dir = dir })
	repo := chart.Repo{URL: h.URL() + "/"}
	versions, err := s.Versions(ctx, repo, "web")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1.10.0", "1.9.0+meta", "1.0.0"}, versions); diff != "" {
		t.Error(diff)
	}
	for range 2 {
		f, digest, err := s.Pull(ctx, repo, "web", "1.0.0")
		if err != nil {
			t.Fatal(err)
		}
		if got := content(t, f, "templates/a.yaml"); got != "of web 1.0.0" || !strings.HasPrefix(digest, "sha256:") {
			t.Errorf("%q, %s", got, digest)
		}
	}
	if got := h.Requests("GET /charts/web-1.0.0.tgz"); got != 1 {
		t.Errorf("the archive was fetched %d times", got)
	}
	// Another process on the same folder needs the archive no more, and a damaged file is fetched again.
	again := store(t, func(o *chart.Options) { o.Dir = dir })
	if _, _, err := again.Pull(ctx, repo, "web", "1.0.0"); err != nil {
		t.Fatal(err)
	}
	if got := h.Requests("GET /charts/web-1.0.0.tgz"); got != 1 {
		t.Errorf("the archive was fetched %d times", got)
	}
	damage(t, filepath.Join(dir, "blobs"))
	f, _, err := again.Pull(ctx, repo, "web", "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	if content(t, f, "templates/a.yaml") != "of web 1.0.0" || h.Requests("GET /charts/web-1.0.0.tgz") != 2 {
		t.Error("a damaged archive must be fetched again")
	}
	if _, err := h.Add(files("web", "2.0.0")); err != nil {
		t.Fatal(err)
	}
	if versions, err = s.Versions(ctx, repo, "web"); err != nil || versions[0] != "2.0.0" {
		t.Errorf("a new version is not seen: %v, %v", versions, err)
	}
}

func damage(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d files in %s, %v", len(entries), dir, err)
	}
	for _, e := range entries {
		if err := os.WriteFile(filepath.Join(dir, e.Name()), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHelmRepositoryCredentials(t *testing.T) {
	ctx := context.Background()
	login := chart.Credentials{Username: "me", Password: "secret"}
	h := helmRepo(t, registry.Options{Username: "me", Password: "secret", TLS: true}, files("web", "1.0.0"))
	s := store(t, nil)
	good := login
	good.CA = h.CA()
	if _, _, err := s.Pull(ctx, chart.Repo{URL: h.URL(), Credentials: good}, "web", "1.0.0"); err != nil {
		t.Error(err)
	}
	insecure := login
	insecure.Insecure = true
	if _, _, err := s.Pull(ctx, chart.Repo{URL: h.URL(), Credentials: insecure}, "web", "1.0.0"); err != nil {
		t.Error(err)
	}
	// What one had the credentials for is not given to another out of the cache.
	_, _, err := s.Pull(ctx, chart.Repo{URL: h.URL(), Credentials: chart.Credentials{Insecure: true}}, "web", "1.0.0")
	if !errors.Is(err, chart.ErrAuth) || err.Error() != "repository "+h.URL()+": asks for credentials (401) and there are none for it" {
		t.Errorf("%v", err)
	}
	bad := good
	bad.Password = "wrong"
	_, err = s.Versions(ctx, chart.Repo{URL: h.URL(), Credentials: bad}, "web")
	if !errors.Is(err, chart.ErrAuth) || err.Error() != "repository "+h.URL()+": refuses the credentials (401)" {
		t.Errorf("%v", err)
	}
	_, err = s.Versions(ctx, chart.Repo{URL: h.URL(), Credentials: login}, "web")
	if !errors.Is(err, chart.ErrUnreachable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("unknown certificate: %v", err)
	}
	withUser := strings.Replace(h.URL(), "https://", "https://me:secret@", 1)
	if _, err := s.Versions(ctx, chart.Repo{URL: withUser, Credentials: chart.Credentials{CA: h.CA()}}, "web"); err != nil {
		t.Errorf("credentials in the URL: %v", err)
	}
	_, err = s.Versions(ctx, chart.Repo{URL: withUser, Credentials: chart.Credentials{CA: h.CA()}}, "wev")
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.HasSuffix(err.Error(), `has no chart "wev": did you mean web?`) {
		t.Errorf("%v", err)
	}
}

// TestCredentialsStayHome has archives on another host, named by the index or by a redirect.
func TestCredentialsStayHome(t *testing.T) {
	ctx := context.Background()
	other := helmRepo(t, registry.Options{Username: "me", Password: "secret"})
	c, err := registry.Pack(files("web", "1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	other.Put("web.tgz", c.Archive)
	home := helmRepo(t, registry.Options{Username: "me", Password: "secret"})
	home.AddAt(c, other.URL()+"/web.tgz", "")
	c.Name = "moved"
	home.AddAt(c, "moved.tgz", "")
	home.Redirect("moved.tgz", other.URL()+"/web.tgz")
	s := store(t, nil)
	login := chart.Credentials{Username: "me", Password: "secret"}
	for _, name := range []string{"web", "moved"} {
		if _, _, err := s.Pull(ctx, chart.Repo{URL: home.URL(), Credentials: login}, name, "1.0.0"); !errors.Is(err, chart.ErrAuth) {
			t.Errorf("%s: credentials went to another host: %v", name, err)
		}
		pass := login
		pass.PassCredentials = true
		if _, _, err := s.Pull(ctx, chart.Repo{URL: home.URL(), Credentials: pass}, name, "1.0.0"); err != nil {
			t.Errorf("%s with PassCredentials: %v", name, err)
		}
	}
}

func TestHelmRepositoryErrors(t *testing.T) {
	ctx := context.Background()
	h := helmRepo(t, registry.Options{}, files("nginx", "1.0.0"), files("nginx", "1.1.0"), files("redis", "3.0.0"))
	c, err := registry.Pack(files("forged", "1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	h.Put("forged.tgz", c.Archive)
	h.AddAt(c, "forged.tgz", strings.Repeat("0", 64))
	c.Name = "lost"
	h.AddAt(c, "lost.tgz", "")
	climbing, err := registry.Tar(map[string]string{"x/../../y": "out"})
	if err != nil {
		t.Fatal(err)
	}
	c.Name = "climbing"
	h.Put("climbing.tgz", climbing)
	h.AddAt(c, "climbing.tgz", "")
	h.Put("odd/index.yaml", []byte("a: b: c"))
	h.Put("page/index.yaml", []byte("<html>hello</html>"))
	closed := registry.StartHelm(registry.Options{})
	closed.Close()
	s := store(t, nil)
	for name, q := range map[string]struct {
		url, chart, version string
		kind                error
		want                string
	}{
		"chart":       {h.URL(), "ngin", "1.0.0", chart.ErrNoChart, `has no chart "ngin": did you mean nginx?`},
		"far chart":   {h.URL(), "postgresql", "1.0.0", chart.ErrNoChart, `has no chart "postgresql"`},
		"version":     {h.URL(), "nginx", "9.9.9", chart.ErrNoVersion, `chart nginx has no version 9.9.9: it has 1.1.0, 1.0.0`},
		"digest":      {h.URL(), "forged", "1.0.0", chart.ErrDigest, `chart forged 1.0.0: the archive has digest sha256:`},
		"archive":     {h.URL(), "lost", "1.0.0", chart.ErrNoRepository, `has no file lost.tgz (404)`},
		"path":        {h.URL(), "climbing", "1.0.0", tree.ErrOutside, `chart climbing 1.0.0: archive: path x/../../y: leads out of the source`},
		"index":       {h.URL() + "/odd", "x", "1.0.0", chart.ErrNoRepository, `its index.yaml is no YAML: `},
		"page":        {h.URL() + "/page", "x", "1.0.0", chart.ErrNoRepository, `its index.yaml is no YAML: `},
		"no index":    {h.URL() + "/none", "x", "1.0.0", chart.ErrNoRepository, `has no index.yaml (404)`},
		"unreachable": {closed.URL(), "x", "1.0.0", chart.ErrUnreachable, `can't be reached: dial tcp `},
		"no name":     {"http://no-such-host.invalid", "x", "1.0.0", chart.ErrUnreachable, `can't be reached: `},
		"scheme":      {"ftp://h/x", "x", "1.0.0", chart.ErrInvalid, `scheme "ftp" is none of https, http and oci`},
		"no URL":      {"charts", "x", "1.0.0", chart.ErrInvalid, `the URL has no host`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := s.Pull(ctx, chart.Repo{URL: q.url}, q.chart, q.version)
			if err == nil || !strings.HasPrefix(err.Error(), "repository "+q.url+": "+q.want) {
				t.Errorf("\n got %v\nwant %s", err, q.want)
			}
			if !errors.Is(err, q.kind) && !errors.Is(q.kind, tree.ErrOutside) {
				t.Errorf("kind of %v", err)
			}
		})
	}
	h.Break(503)
	if _, err := s.Versions(ctx, chart.Repo{URL: h.URL()}, "nginx"); !errors.Is(err, chart.ErrUnreachable) || !strings.HasSuffix(err.Error(), "answers 503 for index.yaml") {
		t.Errorf("%v", err)
	}
}

func TestHTTPFile(t *testing.T) {
	ctx := context.Background()
	h := helmRepo(t, registry.Options{})
	h.Put("values.yaml", []byte("a: 1"))
	h.Put("big", make([]byte, chart.MaxFile+1))
	s := store(t, nil)
	f, err := s.HTTPFile(ctx, chart.Repo{URL: h.URL() + "/values.yaml?token=hush"})
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, f, "resource"); got != "a: 1" {
		t.Errorf("%q", got)
	}
	_, err = s.HTTPFile(ctx, chart.Repo{URL: h.URL() + "/none?token=hush"})
	if err == nil || err.Error() != "repository "+h.URL()+"/none: has no such file (404)" {
		t.Errorf("%v", err)
	}
	if _, err := s.HTTPFile(ctx, chart.Repo{URL: h.URL() + "/big"}); err == nil || !strings.Contains(err.Error(), "longer than 10 MB") {
		t.Errorf("%v", err)
	}
}
