package chart_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/chart"
	"github.com/lockstep-cd/lockstep/test/registry"
)

var login = registry.Login{Username: "me", Password: "secret"}

func push(t *testing.T, r *registry.OCI, below string, files map[string]string) string {
	t.Helper()
	digest, err := r.PushChart(context.Background(), login, below, files)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// TestRegistry holds for registries that are open, ask for a password, or for a token.
func TestRegistry(t *testing.T) {
	secret := registry.Options{Username: "me", Password: "secret"}
	withTLS := secret
	withTLS.TLS = true
	for name, r := range map[string]*registry.OCI{
		"open": registry.StartOCI(registry.Options{}), "password": registry.StartOCI(secret), "TLS": registry.StartOCI(withTLS),
		"token": registry.StartTokenOCI(secret), "token over TLS": registry.StartTokenOCI(withTLS),
	} {
		t.Run(name, func(t *testing.T) {
			defer r.Close()
			ctx := context.Background()
			first := push(t, r, "charts", files("web", "1.0.0"))
			push(t, r, "charts", files("web", "1.2.0+build.5"))
			repo := chart.Repo{URL: r.URL() + "/charts", Credentials: chart.Credentials{PlainHTTP: r.CA() == nil, CA: r.CA(), Username: "me", Password: "secret"}}
			s := store(t, nil)
			versions, err := s.Versions(ctx, repo, "web")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"1.2.0+build.5", "1.0.0"}, versions); diff != "" {
				t.Error(diff)
			}
			for _, version := range []string{"1.0.0", first} {
				f, digest, err := s.Pull(ctx, repo, "web", version)
				if err != nil {
					t.Fatal(err)
				}
				if got := content(t, f, "templates/a.yaml"); got != "of web 1.0.0" || digest != first {
					t.Errorf("%q, %s", got, digest)
				}
			}
			if f, _, err := s.Pull(ctx, repo, "web", "1.2.0+build.5"); err != nil || content(t, f, "templates/a.yaml") != "of web 1.2.0+build.5" {
				t.Error(err)
			}
			if name == "open" {
				return
			}
			for password, want := range map[string]string{"": "asks for credentials (401) and there are none for it", "wrong": "refuses the credentials (401)"} {
				bad := repo
				bad.Password = password
				if password == "" {
					bad.Username = ""
				}
				_, _, err := s.Pull(ctx, bad, "web", "1.0.0")
				if !errors.Is(err, chart.ErrAuth) || !strings.HasSuffix(err.Error(), want) {
					t.Errorf("password %q: %v", password, err)
				}
			}
		})
	}
}

func TestPlainArtifacts(t *testing.T) {
	ctx := context.Background()
	r := registry.StartOCI(registry.Options{})
	defer r.Close()
	one, err := registry.Tar(map[string]string{"app/a.yaml": "1", "app/b.yaml": "1"})
	if err != nil {
		t.Fatal(err)
	}
	two, err := registry.Tar(map[string]string{"app/b.yaml": "2"})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := r.PushArtifact(ctx, login, "shop/config:latest",
		registry.Layer{MediaType: registry.ArtifactLayer, Data: one}, registry.Layer{MediaType: registry.ArtifactLayer, Data: two},
		registry.Layer{MediaType: "text/yaml", Title: "c.yaml", Data: []byte("3")})
	if err != nil {
		t.Fatal(err)
	}
	s := store(t, nil)
	f, got, err := s.Pull(ctx, chart.Repo{URL: r.URL() + "/shop/config", Credentials: chart.Credentials{PlainHTTP: true}}, "", "latest")
	if err != nil {
		t.Fatal(err)
	}
	if got != digest {
		t.Errorf("digest %s, want %s", got, digest)
	}
	for name, want := range map[string]string{"app/a.yaml": "1", "app/b.yaml": "2", "c.yaml": "3"} {
		if text := content(t, f, name); text != want {
			t.Errorf("%s: %q", name, text)
		}
	}
}

func TestMovedTag(t *testing.T) {
	ctx := context.Background()
	r := registry.StartOCI(registry.Options{})
	defer r.Close()
	s := store(t, nil)
	repo := chart.Repo{URL: r.URL(), Credentials: chart.Credentials{PlainHTTP: true}}
	chartFiles := files("web", "1.0.0")
	for _, text := range []string{"before", "after"} {
		chartFiles["templates/a.yaml"] = text
		push(t, r, "", chartFiles)
		f, _, err := s.Pull(ctx, repo, "web", "1.0.0")
		if err != nil {
			t.Fatal(err)
		}
		if got := content(t, f, "templates/a.yaml"); got != text {
			t.Errorf("%q, want %q", got, text)
		}
	}
}

// TestIndexThatNamesRegistry is a Helm repository whose charts lie in a registry.
func TestIndexThatNamesRegistry(t *testing.T) {
	ctx := context.Background()
	r := registry.StartOCI(registry.Options{})
	defer r.Close()
	push(t, r, "charts", files("web", "1.0.0"))
	h := helmRepo(t, registry.Options{})
	c, err := registry.Pack(files("web", "1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	h.AddAt(c, r.URL()+"/charts/web:1.0.0", "")
	f, _, err := store(t, nil).Pull(ctx, chart.Repo{URL: h.URL(), Credentials: chart.Credentials{PlainHTTP: true}}, "web", "1.0.0")
	if err != nil || content(t, f, "templates/a.yaml") != "of web 1.0.0" {
		t.Error(err)
	}
}

func TestRegistryErrors(t *testing.T) {
	ctx := context.Background()
	r := registry.StartOCI(registry.Options{})
	defer r.Close()
	push(t, r, "charts", files("web", "1.0.0"))
	push(t, r, "charts", files("web", "1.1.0"))
	if _, err := r.PushArtifact(ctx, login, "broken:1", registry.Layer{MediaType: registry.ArtifactLayer, Data: []byte("no archive")}); err != nil {
		t.Fatal(err)
	}
	closed := registry.StartOCI(registry.Options{})
	closed.Close()
	s := store(t, nil)
	for name, q := range map[string]struct {
		url, chart, version string
		kind                error
		want                string
	}{
		"chart":       {r.URL() + "/charts", "wev", "1.0.0", chart.ErrNoChart, "has no chart or artifact charts/wev"},
		"version":     {r.URL() + "/charts", "web", "2.0.0", chart.ErrNoVersion, "chart web has no version 2.0.0: it has 1.1.0, 1.0.0"},
		"no version":  {r.URL() + "/charts", "web", "", chart.ErrNoVersion, "web: no version is named"},
		"odd version": {r.URL() + "/charts", "web", "../x", chart.ErrNoVersion, `web: "../x" can't be a version in a registry`},
		"odd name":    {r.URL() + "/Charts", "web", "1", chart.ErrInvalid, `"Charts/web" can't be the name of a repository in a registry`},
		"no name":     {r.URL(), "", "1", chart.ErrInvalid, "names a registry and no repository in it"},
		"archive":     {r.URL(), "broken", "1", chart.ErrInvalid, "artifact broken: archive: unexpected EOF"},
		"unreachable": {closed.URL(), "web", "1.0.0", chart.ErrUnreachable, "can't be reached: dial tcp "},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := s.Pull(ctx, chart.Repo{URL: q.url, Credentials: chart.Credentials{PlainHTTP: true}}, q.chart, q.version)
			if err == nil || !strings.HasPrefix(err.Error(), "repository "+q.url+": "+q.want) || !errors.Is(err, q.kind) {
				t.Errorf("\n got %v\nwant %s", err, q.want)
			}
		})
	}
}
