package git_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/gitserver/gittest"
)

// closedPort is an address where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return addr
}

// The only test of what git, curl and ssh print: real programs against real servers.
func TestErrorsOfRemotes(t *testing.T) {
	locked := gittest.Start(t, gitserver.Options{Username: "ada", Password: "pa55word"})
	secret := locked.Create("secret", map[string]string{"a": "1"})
	plain := gittest.Start(t, gitserver.Options{SSH: true})
	public := plain.Create("public", map[string]string{"a": "1"})
	tls := gittest.Start(t, gitserver.Options{TLS: true})
	safe := tls.Create("safe", map[string]string{"a": "1"})
	broken := gittest.Start(t, gitserver.Options{})
	broken.Break(gitserver.Fault{Status: http.StatusInternalServerError})
	forbidden := gittest.Start(t, gitserver.Options{})
	forbidden.Break(gitserver.Fault{Status: http.StatusForbidden})
	busy := gittest.Start(t, gitserver.Options{})
	busy.Break(gitserver.Fault{Status: http.StatusTooManyRequests})
	slow := gittest.Start(t, gitserver.Options{})
	slow.Break(gitserver.Fault{Delay: time.Hour})
	cut := gittest.Start(t, gitserver.Options{})
	cutRepo := cut.Create("cut", map[string]string{"a": "1"})
	cut.Break(gitserver.Fault{Cut: 20})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>\n<body>a web page\n")) }))
	defer web.Close()
	closed := closedPort(t)
	otherHost := strings.ReplaceAll(plain.KnownHosts(), "[127.0.0.1]", "[127.0.0.9]")
	otherKey := gittest.Start(t, gitserver.Options{SSH: true})

	for _, tc := range []struct {
		name string
		repo git.Repo
		kind error
		want string // after "repository URL: "
	}{
		{"no credentials", git.Repo{URL: secret.URL()}, git.ErrAuth, "it needs credentials and none are configured, or there is no such repository: configure credentials for it, or check the URL"},
		{"wrong password", git.Repo{URL: secret.URL(), Credentials: git.Credentials{Username: "ada", Password: "wr0ngpass"}}, git.ErrAuth, "the server did not accept the credentials: check user name, password or token"},
		{"wrong bearer", git.Repo{URL: secret.URL(), Credentials: git.Credentials{BearerToken: "t0ken"}}, git.ErrAuth, "the server did not accept the credentials: check user name, password or token"},
		{"unknown repository", git.Repo{URL: plain.URL("nowhere")}, git.ErrNotFound, "there is no such repository, or the credentials may not see it: check the URL and the credentials"},
		{"a web page", git.Repo{URL: web.URL + "/x"}, git.ErrNotFound, "the server answers, but not as a Git repository does: check the URL"},
		{"refused connection", git.Repo{URL: "http://" + closed + "/x.git"}, git.ErrUnreachable, "the server can not be reached"},
		{"unknown host", git.Repo{URL: "https://no-such-host.invalid/x.git"}, git.ErrUnreachable, "the host name can not be resolved: check the URL and the DNS"},
		{"500", git.Repo{URL: broken.URL("x")}, git.ErrUnreachable, "the server answered with an error of its own (5xx)"},
		{"403", git.Repo{URL: forbidden.URL("x")}, git.ErrAuth, "the server denies access (403): give the credentials the right to read it"},
		{"429", git.Repo{URL: busy.URL("x")}, git.ErrUnreachable, "the server asks for fewer requests (429)"},
		{"slow", git.Repo{URL: slow.URL("x")}, git.ErrUnreachable, "no answer in time"},
		{"cut off", git.Repo{URL: cutRepo.URL()}, git.ErrUnreachable, ""},
		{"unknown authority", git.Repo{URL: safe.URL()}, git.ErrUntrusted, "the server's TLS certificate is not trusted: configure its certificate authority"},
		{"ssh, unknown host key", git.Repo{URL: public.SSHURL(), Credentials: git.Credentials{SSHPrivateKey: plain.ClientKey(), KnownHosts: otherHost}}, git.ErrUntrusted, "the server's ssh host key is not a known one: add it to the ssh known hosts, after checking it"},
		{"ssh, no key", git.Repo{URL: public.SSHURL(), Credentials: git.Credentials{KnownHosts: plain.KnownHosts()}}, git.ErrAuth, "the server accepted no ssh key: configure a private key that it knows"},
		{"ssh, other key", git.Repo{URL: public.SSHURL(), Credentials: git.Credentials{SSHPrivateKey: otherKey.ClientKey(), KnownHosts: plain.KnownHosts()}}, git.ErrAuth, "the server accepted no ssh key: configure a private key that it knows"},
		{"ssh, no key at all", git.Repo{URL: public.SSHURL(), Credentials: git.Credentials{SSHPrivateKey: "n0 key", KnownHosts: plain.KnownHosts()}}, git.ErrAuth, ""},
		{"ssh, unknown repository", git.Repo{URL: plain.SSHURL("nowhere"), Credentials: git.Credentials{SSHPrivateKey: plain.ClientKey(), KnownHosts: plain.KnownHosts()}}, git.ErrNotFound, "there is no Git repository at this address: check the URL"},
		{"ssh, refused connection", git.Repo{URL: "ssh://git@" + closed + "/x.git", Credentials: git.Credentials{InsecureIgnoreHostKey: true}}, git.ErrUnreachable, "the connection was refused"},
		{"ssh behind a proxy", git.Repo{URL: "git@h:x", Credentials: git.Credentials{Proxy: "http://p"}}, nil, "credentials: a proxy is configured, and proxies work for https and http only"},
		{"line break in a password", git.Repo{URL: secret.URL(), Credentials: git.Credentials{Username: "ada", Password: "a\nhost=b"}}, nil, "credentials: user name, password or token contains a line break"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := open(t, git.Options{RefsTimeout: timeout(tc.name)})
			_, err := s.Refs(t.Context(), tc.repo)
			if err == nil {
				t.Fatal("no error")
			}
			t.Log(err)
			if tc.kind != nil && !errors.Is(err, tc.kind) {
				t.Errorf("kind of %v is not %v", err, tc.kind)
			}
			if want := "repository " + tc.repo.URL + ": " + tc.want; tc.want != "" && err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			for _, part := range []string{"pa55word", "wr0ngpass", "t0ken", "n0 key", "PRIVATE"} {
				if strings.Contains(err.Error(), part) {
					t.Errorf("a secret in %q", err)
				}
			}
		})
	}
}

func timeout(name string) time.Duration {
	if name == "slow" {
		return 500 * time.Millisecond
	}
	return 30 * time.Second
}

func TestUnreachableAndBackAgain(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "1"})
	c := repo.Resolve("main")
	s := open(t, git.Options{})
	r := git.Repo{URL: repo.URL()}
	ensure(t, s, r, c, "refs/heads/main")
	next := repo.Commit(map[string]string{"a": "2"}, "2")
	if err := srv.Pause(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ensure(t.Context(), r, git.Want{Commit: next, Ref: "refs/heads/main"}); !errors.Is(err, git.ErrUnreachable) {
		t.Errorf("while it is down: %v", err)
	}
	if data := read(t, s, r, c, "a"); data != "1" {
		t.Errorf("what is here can be read: %q", data)
	}
	if err := srv.Resume(); err != nil {
		t.Fatal(err)
	}
	ensure(t, s, r, next, "refs/heads/main")
	// A fetch that breaks off leaves a mirror that works.
	big := map[string]string{}
	for i := range 300 {
		big["f/"+strings.Repeat("n", i+1)] = strings.Repeat(time.Duration(i*7919).String(), 50)
	}
	third := repo.Commit(big, "3")
	srv.Break(gitserver.Fault{Cut: 2000})
	if _, err := s.Ensure(t.Context(), r, git.Want{Commit: third, Ref: "refs/heads/main"}); !errors.Is(err, git.ErrUnreachable) {
		t.Errorf("cut off: %v", err)
	}
	srv.Break(gitserver.Fault{})
	ensure(t, s, r, third, "refs/heads/main")
	if data := read(t, s, r, third, "f/n"); data == "" {
		t.Error("f/n is empty")
	}
}

func TestLocalRoots(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("team/app", map[string]string{"a": "1"})
	c := repo.Resolve("main")
	outside := gittest.Start(t, gitserver.Options{})
	other := outside.Create("other", map[string]string{"a": "1"})
	if err := os.Symlink(other.Dir(), filepath.Join(srv.Dir(), "sly.git")); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 { // another user's folder is readable: the administrator named the root
		if err := os.Lchown(repo.Dir(), 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, git.Options{LocalRoots: []string{srv.Dir()}})
	for _, u := range []string{repo.Dir(), "file://" + repo.Dir(), filepath.Dir(repo.Dir()) + "/../team/app.git"} {
		refs, err := s.Refs(t.Context(), git.Repo{URL: u})
		if err != nil || refs.Head != c {
			t.Errorf("%s: %+v, %v", u, refs, err)
		}
		if data := read(t, s, git.Repo{URL: u}, c, "a"); data != "1" {
			t.Errorf("%s: %q", u, data)
		}
	}
	for _, u := range []string{other.Dir(), "file://" + other.Dir(), srv.Dir() + "/sly.git", srv.Dir() + "/../x"} {
		if _, err := s.Refs(t.Context(), git.Repo{URL: u}); !errors.Is(err, git.ErrRefused) {
			t.Errorf("%s: %v", u, err)
		}
	}
	if _, err := s.Refs(t.Context(), git.Repo{URL: srv.Dir() + "/nowhere.git"}); !errors.Is(err, git.ErrNotFound) {
		t.Errorf("missing folder: %v", err)
	}
	if _, err := open(t, git.Options{}).Refs(t.Context(), git.Repo{URL: repo.Dir()}); !errors.Is(err, git.ErrRefused) {
		t.Errorf("without local roots: %v", err)
	}
}
