package git_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/gitserver/gittest"
)

const password = `s3cret "p'ss$word\ %41`

func TestBasicBearerAndForced(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{TLS: true, Username: "ada@example.org", Password: password, BearerToken: "b3arer"})
	repo := srv.Create("app", map[string]string{"a": "1"})
	c := repo.Resolve("main")
	ca := srv.CA()
	withUser := strings.Replace(repo.URL(), "https://", "https://"+url.UserPassword("ada@example.org", password).String()+"@", 1)
	for name, r := range map[string]git.Repo{
		"basic":     {URL: repo.URL(), Credentials: git.Credentials{Username: "ada@example.org", Password: password, CA: ca}},
		"forced":    {URL: repo.URL(), Credentials: git.Credentials{Username: "ada@example.org", Password: password, CA: ca, ForceBasicAuth: true}},
		"bearer":    {URL: repo.URL(), Credentials: git.Credentials{BearerToken: "b3arer", CA: ca}},
		"in URL":    {URL: withUser, Credentials: git.Credentials{CA: ca}},
		"insecure":  {URL: repo.URL(), Credentials: git.Credentials{BearerToken: "b3arer", Insecure: true}},
		"localhost": {URL: strings.Replace(repo.URL(), "127.0.0.1", "LOCALHOST", 1), Credentials: git.Credentials{Username: "ada@example.org", Password: password, CA: ca}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, git.Options{})
			before := srv.Counts()
			ensure(t, s, r, c, "refs/heads/main")
			denied := srv.Counts().Denied - before.Denied
			if asked := name == "forced" || name == "bearer" || name == "insecure"; asked && denied != 0 {
				t.Errorf("%d requests without credentials", denied)
			}
			if data := read(t, s, r, c, "a"); data != "1" {
				t.Errorf("a = %q", data)
			}
		})
	}
}

// A mirror must not give a commit to somebody whom the server would not give it to.
func TestMirrorIsNoWayAroundTheServer(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{Username: "ada", Password: password})
	repo := srv.Create("app", map[string]string{"a": "1"})
	c := repo.Resolve("main")
	s := open(t, git.Options{})
	ensure(t, s, git.Repo{URL: repo.URL(), Credentials: git.Credentials{Username: "ada", Password: password}}, c, "")
	for _, r := range []git.Repo{{URL: repo.URL()}, {URL: repo.URL(), Credentials: git.Credentials{Username: "eve", Password: "x12345"}}} {
		if _, err := s.Tree(t.Context(), r, c); !errors.Is(err, git.ErrAuth) {
			t.Errorf("tree without the right: %v", err)
		}
		if _, err := s.Commit(t.Context(), r, c); !errors.Is(err, git.ErrAuth) {
			t.Errorf("commit without the right: %v", err)
		}
	}
}

func TestSSH(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{SSH: true})
	repo := srv.Create("team/app", map[string]string{"a": "1"})
	c := repo.Resolve("main")
	s := open(t, git.Options{})
	for _, u := range []string{repo.SSHURL(), strings.Replace(repo.SSHURL(), "git@", "", 1)} {
		r := git.Repo{URL: u, Credentials: git.Credentials{SSHPrivateKey: strings.ReplaceAll(srv.ClientKey(), "\n", "\r\n"), KnownHosts: srv.KnownHosts()}}
		ensure(t, s, r, c, "refs/heads/main")
		if data := read(t, s, r, c, "a"); data != "1" {
			t.Errorf("a = %q", data)
		}
	}
	next := repo.Commit(map[string]string{"a": "2"}, "2")
	r := git.Repo{URL: repo.SSHURL(), Credentials: git.Credentials{SSHPrivateKey: srv.ClientKey(), InsecureIgnoreHostKey: true}}
	ensure(t, s, r, next[:10], "")
}

func TestRedirects(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{Username: "ada", Password: password})
	repo := srv.Create("new", map[string]string{"a": "1"})
	open2 := gittest.Start(t, gitserver.Options{})
	public := open2.Create("new", map[string]string{"a": "1"})
	var mu sync.Mutex
	var seen []string
	redirect := func(to string) *httptest.Server {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			seen = append(seen, r.Header.Get("Authorization"))
			mu.Unlock()
			http.Redirect(w, r, strings.TrimSuffix(to, "/new.git")+strings.Replace(r.URL.Path, "/old.git", "/new.git", 1)+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
		}))
		t.Cleanup(web.Close)
		return web
	}
	s := open(t, git.Options{})
	if _, err := s.Refs(t.Context(), git.Repo{URL: redirect(public.URL()).URL + "/old.git"}); err != nil {
		t.Errorf("redirect of an open repository: %v", err)
	}
	// Credentials are for the server that they were configured for.
	_, err := s.Refs(t.Context(), git.Repo{
		URL: redirect(repo.URL()).URL + "/old.git", Credentials: git.Credentials{Username: "ada", Password: password},
	})
	if !errors.Is(err, git.ErrAuth) || !strings.Contains(err.Error(), "redirects to another server") {
		t.Errorf("redirect to a server that asks: %v", err)
	}
	_, err = s.Refs(t.Context(), git.Repo{
		URL: redirect(public.URL()).URL + "/old.git", Credentials: git.Credentials{BearerToken: "b3arer"},
	})
	if !errors.Is(err, git.ErrUnreachable) || !strings.Contains(err.Error(), "use the repository's present URL") {
		t.Errorf("redirect with a bearer token: %v", err)
	}
	// To a file is no redirect at all.
	_, err = s.Refs(t.Context(), git.Repo{URL: redirect("file://"+public.Dir()).URL + "/old.git"})
	if err == nil {
		t.Error("a redirect to a file was followed")
	}
}

func TestProxy(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "1"})
	base, _ := url.Parse(srv.Base())
	var mu sync.Mutex
	asked := 0
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("px:pr0xypass"))
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != want {
			w.Header().Set("Proxy-Authenticate", "Basic")
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		mu.Lock()
		asked++
		mu.Unlock()
		httputil.NewSingleHostReverseProxy(base).ServeHTTP(w, r)
	}))
	defer proxy.Close()
	address := strings.Replace(proxy.URL, "http://", "http://px:pr0xypass@", 1)
	s := open(t, git.Options{Proxy: address})
	named := "http://git.example.org/app.git"
	if refs, err := s.Refs(t.Context(), git.Repo{URL: named}); err != nil || refs.Head == "" || asked == 0 {
		t.Errorf("through the proxy: %+v, %v, asked %d times", refs, err, asked)
	}
	before := asked
	if _, err := s.Refs(t.Context(), git.Repo{URL: repo.URL(), Credentials: git.Credentials{Proxy: address, NoProxy: "127.0.0.1"}}); err != nil || asked != before {
		t.Errorf("past the proxy: %v, asked %d times more", err, asked-before)
	}
	_, err := s.Refs(t.Context(), git.Repo{URL: named, Credentials: git.Credentials{Proxy: strings.Replace(address, "pr0xypass", "wr0ngpass", 1)}})
	if !errors.Is(err, git.ErrUnreachable) || !strings.Contains(err.Error(), "proxy wants credentials") || strings.Contains(err.Error(), "wr0ngpass") {
		t.Errorf("wrong proxy password: %v", err)
	}
}

// While git runs, no argument of any process holds a secret, and afterwards no file does.
func TestSecretsAreNowhereToBeSeen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	srv := gittest.Start(t, gitserver.Options{SSH: true, Username: "ada", Password: "pa55word-canary", BearerToken: "t0ken-canary"})
	repo := srv.Create("app", map[string]string{"a": "1"})
	c := repo.Resolve("main")
	key := strings.Split(srv.ClientKey(), "\n")[2]
	secrets := []string{"pa55word-canary", "t0ken-canary", key, base64.StdEncoding.EncodeToString([]byte("ada:pa55word-canary"))}
	dir := t.TempDir()
	s := open(t, git.Options{Dir: dir})
	srv.Break(gitserver.Fault{Delay: 50 * time.Millisecond})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, r := range []git.Repo{
			{URL: repo.URL(), Credentials: git.Credentials{Username: "ada", Password: "pa55word-canary"}},
			{URL: repo.URL(), Credentials: git.Credentials{BearerToken: "t0ken-canary"}},
			{URL: strings.Replace(repo.URL(), "://", "://ada:pa55word-canary@", 1)},
			{URL: repo.SSHURL(), Credentials: git.Credentials{SSHPrivateKey: srv.ClientKey(), KnownHosts: srv.KnownHosts()}},
		} {
			if _, err := s.Ensure(t.Context(), r, git.Want{Commit: c, Ref: "refs/heads/main"}); err != nil {
				t.Errorf("%s: %v", r.URL, err)
			}
			_, err := s.Ensure(t.Context(), r, git.Want{Commit: strings.Repeat("1", 40)})
			for _, secret := range secrets {
				if err == nil || strings.Contains(err.Error(), secret) {
					t.Errorf("error: %v", err)
				}
			}
		}
	}()
	looks, gits := 0, 0
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for running := true; running; looks++ {
		select {
		case <-done:
			running = false
		case <-pace.C:
		}
		list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range list {
			line, _ := os.ReadFile(name)
			if bytes.HasPrefix(line, []byte("git\x00")) || bytes.Contains(line, []byte("/git\x00")) || bytes.Contains(line, []byte("git-remote")) {
				gits++
			}
			for _, secret := range secrets {
				if bytes.Contains(line, []byte(secret)) {
					t.Fatalf("arguments hold a secret: %q", line)
				}
			}
		}
	}
	if gits == 0 {
		t.Error("the test saw no git at all")
	}
	for _, root := range []string{dir, "/dev/shm"} {
		_ = filepath.WalkDir(root, func(name string, e os.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || root == "/dev/shm" && !strings.Contains(name, "lockstep-git-") {
				return nil //nolint:nilerr // a file that has just gone holds nothing
			}
			data, _ := os.ReadFile(name)
			for _, secret := range secrets {
				if bytes.Contains(data, []byte(secret)) {
					t.Errorf("%s holds a secret", name)
				}
			}
			return nil
		})
	}
	t.Logf("%d looks at all processes, %d git processes seen", looks, gits)
}
