package repository_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-cd/lockstep/internal/repository"
)

// secret makes a Secret of a type out of keys and values by turns.
func secret(kind string, pairs ...string) *corev1.Secret {
	s := &corev1.Secret{Data: map[string][]byte{}}
	s.Labels = map[string]string{repository.TypeLabel: kind}
	for i := 0; i < len(pairs); i += 2 {
		s.Data[pairs[i]] = []byte(pairs[i+1])
	}
	return s
}

func TestFromSecret(t *testing.T) {
	cases := []struct {
		name   string
		secret *corev1.Secret
		want   repository.Entry
		ok     bool
	}{
		{"a git repository", secret("repository", "url", "https://x/y\n", "username", "me\n", "password", "p w "),
			repository.Entry{URL: "https://x/y", Kind: "git", Username: "me", Password: "p w "}, true},
		{"a template", secret("repo-creds", "url", "https://x", "bearerToken", "t", "project", "team"),
			repository.Entry{URL: "https://x", Kind: "git", Template: true, BearerToken: "t", Project: "team"}, true},
		{"Helm", secret("repository", "url", "https://x", "type", "helm", "name", "charts", "tlsClientCertData", "C", "tlsClientCertKey", "K"),
			repository.Entry{URL: "https://x", Kind: "helm", Name: "charts", ClientCert: "C", ClientKey: "K"}, true},
		{"Helm in a registry", secret("repository", "url", "ghcr.io/x", "type", "helm", "enableOCI", "true"),
			repository.Entry{URL: "ghcr.io/x", Kind: "oci"}, true},
		{"a registry over HTTP", secret("repository", "url", "oci://x", "type", "oci", "insecureOCIForceHttp", "True"),
			repository.Entry{URL: "oci://x", Kind: "oci", PlainHTTP: true}, true},
		{"ssh", secret("repository", "url", "git@x:y", "sshPrivateKey", "KEY\n", "insecureIgnoreHostKey", "true", "proxy", "http://p", "noProxy", "a,b"),
			repository.Entry{URL: "git@x:y", Kind: "git", SSHPrivateKey: "KEY\n", Insecure: true, IgnoreHostKey: true, Proxy: "http://p", NoProxy: "a,b"}, true},
		{"insecure", secret("repository", "url", "https://x/y", "insecure", "true", "forceHttpBasicAuth", "true"),
			repository.Entry{URL: "https://x/y", Kind: "git", Insecure: true, IgnoreHostKey: true, ForceBasicAuth: true}, true},
		{"a GitHub App", secret("repository", "url", "https://x/y", "githubAppID", "1", "githubAppInstallationID", "2", "githubAppPrivateKey", "K", "githubAppEnterpriseBaseUrl", "https://g"),
			repository.Entry{URL: "https://x/y", Kind: "git", Exchanged: repository.Exchanged{GitHubApp: "1", GitHubInstallation: "2", GitHubKey: "K", GitHubURL: "https://g"}}, true},
		{"Azure, as repo-creds spells it", secret("repo-creds", "url", "https://x", "azureServicePrincipalClientID", "c", "azureServicePrincipalClientSecret", "s", "azureServicePrincipalTenantID", "t"),
			repository.Entry{URL: "https://x", Kind: "git", Template: true, Exchanged: repository.Exchanged{AzureClient: "c", AzureSecret: "s", AzureTenant: "t"}}, true},
		{"LFS, no submodules, depth", secret("repository", "url", "https://x/y", "enableLfs", "true", "enableSubmodules", "false", "depth", "3"),
			repository.Entry{URL: "https://x/y", Kind: "git", LFS: true, NoSubmodules: true, Depth: 3}, true},
		{"not insecure", secret("repository", "url", "https://x/y", "insecure", "false"), repository.Entry{URL: "https://x/y", Kind: "git"}, true},
		{"without a URL", secret("repository", "username", "me"), repository.Entry{}, false},
		{"of another type", secret("cluster", "url", "https://x"), repository.Entry{}, false},
		{"without a type", &corev1.Secret{Data: map[string][]byte{"url": []byte("https://x")}}, repository.Entry{}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, ok := repository.FromSecret(c.secret)
			if ok != c.ok {
				t.Errorf("ok is %v", ok)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func set(t *testing.T, secrets map[string]*corev1.Secret) *repository.Set {
	t.Helper()
	s := repository.NewSet()
	for name, sec := range secrets {
		e, ok := repository.FromSecret(sec)
		if !ok {
			t.Fatalf("secret %s holds no entry", name)
		}
		s.Put(name, &e)
	}
	return s
}

func TestFind(t *testing.T) {
	s := set(t, map[string]*corev1.Secret{
		"a-common":  secret("repository", "url", "https://x/team/app.git", "username", "common", "password", "1"),
		"b-common":  secret("repository", "url", "https://x/team/app", "username", "later", "password", "1"),
		"own":       secret("repository", "url", "https://x/team/app", "username", "own", "password", "1", "project", "team"),
		"foreign":   secret("repository", "url", "https://x/secret/app", "username", "foreign", "password", "1", "project", "other"),
		"open":      secret("repository", "url", "https://x/open/app", "type", "helm", "name", "open", "insecure", "true", "insecureOCIForceHttp", "true"),
		"host":      secret("repo-creds", "url", "https://x", "username", "host", "password", "1"),
		"longer":    secret("repo-creds", "url", "https://x/open", "username", "longer", "password", "1"),
		"mine":      secret("repo-creds", "url", "https://x/open", "username", "mine", "password", "1", "project", "team"),
		"not-mine":  secret("repo-creds", "url", "https://x/open/app", "username", "not-mine", "password", "1", "project", "other"),
		"scp":       secret("repo-creds", "url", "git@y:org", "sshPrivateKey", "scp"),
		"registry":  secret("repo-creds", "url", "oci://r", "type", "oci", "username", "reg", "password", "1"),
		"one-place": secret("repo-creds", "url", "https://x/one/app", "username", "one", "password", "1"),
	})
	cases := []struct{ name, url, project, username, kind string }{
		{"the project's own", "https://x/team/app", "team", "own", "git"},
		{"the common one, first by name", "https://x/team/app", "default", "common", "git"},
		{"another spelling", "HTTPS://X/team/app.git/", "default", "common", "git"},
		{"another project's stays with it", "https://x/secret/app", "team", "host", "git"},
		{"the other project's own", "https://x/secret/app", "other", "foreign", "git"},
		{"the longest template", "https://x/open/app", "default", "longer", "helm"},
		{"the project's own template", "https://x/open/app", "team", "mine", "helm"},
		{"the longest of the other project", "https://x/open/app", "other", "not-mine", "helm"},
		{"a whole part only", "https://x/opening", "default", "host", "git"},
		{"the name with .git", "https://x/one/app.git", "default", "one", "git"},
		{"another host", "https://x.evil.example/app", "default", "", ""},
		{"a host that ends in .git", "https://x.git", "default", "", ""},
		{"a host that ends in .git, with a path", "https://x.git/app", "default", "", ""},
		{"a user that looks like the host", "https://x@evil.example/app", "default", "", ""},
		{"another port", "https://x:8443/app", "default", "", ""},
		{"a registry", "oci://r/charts", "default", "reg", "oci"},
		{"unknown", "https://nowhere/app", "default", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for range 20 { // whatever order a map is read in
				got := s.Find(c.url, c.project)
				if got.Username != c.username || got.Kind != c.kind || got.URL != c.url || got.Template {
					t.Fatalf("got %+v, want user %q and kind %q", got, c.username, c.kind)
				}
			}
		})
	}
	if got := s.Find("git@y:org/app", "default"); got.SSHPrivateKey != "scp" {
		t.Errorf("scp form: got %+v", got)
	}
	if got := s.Find("git@y:organisation/app", "default"); got.SSHPrivateKey != "" {
		t.Error("credentials for git@y:org went to git@y:organisation")
	}
}

func TestTemplateKeepsWhatTheRepositorySays(t *testing.T) {
	s := set(t, map[string]*corev1.Secret{
		"repo": secret("repository", "url", "https://x/app", "type", "helm", "name", "n", "insecure", "true", "insecureOCIForceHttp", "true",
			"forceHttpBasicAuth", "true", "proxy", "http://p"),
		"creds": secret("repo-creds", "url", "https://x", "username", "u", "password", "p", "proxy", "http://q", "noProxy", "z"),
	})
	want := repository.Entry{
		URL: "https://x/app", Kind: "helm", Name: "n", Username: "u", Password: "p", Insecure: true, IgnoreHostKey: true, PlainHTTP: true,
		ForceBasicAuth: true, Proxy: "http://p", NoProxy: "z",
	}
	if d := cmp.Diff(want, s.Find("https://x/app", "")); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestPutTellsChanges(t *testing.T) {
	s := repository.NewSet()
	e := repository.Entry{URL: "https://x/y", Username: "a"}
	other := e
	other.Password = "new"
	for i, step := range []struct {
		e    *repository.Entry
		want bool
	}{{nil, false}, {&e, true}, {&e, false}, {&other, true}, {nil, true}, {nil, false}} {
		if got := s.Put("secret", step.e); got != step.want {
			t.Errorf("step %d: changed is %v", i, got)
		}
	}
	if got := s.Find("https://x/y", ""); got.Username != "" {
		t.Errorf("what was removed is found: %+v", got)
	}
}

func TestGit(t *testing.T) {
	s := set(t, map[string]*corev1.Secret{
		"r": secret("repository", "url", "https://Git.example:8443/x/y", "username", "u", "password", "p", "tlsClientCertData", "C", "tlsClientCertKey", "K"),
	})
	s.KnownHosts("git.example ssh-ed25519 AAAA")
	s.Authorities(map[string]string{"git.example": "PEM", "::1": "PEM6"})
	got := s.Git(s.Find("https://Git.example:8443/x/y", ""))
	if got.URL != "https://Git.example:8443/x/y" || got.Credentials.Username != "u" || got.Credentials.Password != "p" ||
		got.Credentials.CA != "PEM" || got.Credentials.KnownHosts == "" || got.Credentials.TLSClientCert != "C" || got.Credentials.TLSClientKey != "K" {
		t.Errorf("got %+v", got)
	}
	for url, want := range map[string]string{
		"git@git.example:x/y": "PEM", "ssh://me@git.example:22/x": "PEM", "https://[::1]:8443/x": "PEM6", "https://other/x": "", "oci://git.example/x": "PEM",
	} {
		if ca := s.CA(url); ca != want {
			t.Errorf("CA(%s) = %q", url, ca)
		}
	}
}

func TestNamed(t *testing.T) {
	s := set(t, map[string]*corev1.Secret{
		"a": secret("repository", "url", "https://x/charts", "type", "helm", "name", "charts"),
		"b": secret("repository", "url", "https://y/charts", "type", "helm", "name", "charts", "project", "team"),
		"c": secret("repository", "url", "https://z/app", "name", "app"),
	})
	for project, want := range map[string]string{"default": "https://x/charts", "team": "https://y/charts"} {
		if e, ok := s.Named("charts", project); !ok || e.URL != want {
			t.Errorf("project %s: %q, want %q", project, e.URL, want)
		}
	}
	if e, ok := s.Named("app", "default"); ok {
		t.Errorf("a Git repository is no repository of charts: %q", e.URL)
	}
}
