package git_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/gitserver/gittest"
)

const content = "kind: ConfigMap\n"

func pointerOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", hex.EncodeToString(sum[:]), len(text))
}

// lfsServer is a Git server with the batch API of Git LFS beside it, on one address with one password. Files are given
// out under /store by a signed header only, as an object store does.
func lfsServer(t *testing.T, files map[string]string, href func(base, oid string) string) (*gittest.Server, *httptest.Server) {
	t.Helper()
	srv := gittest.Start(t, gitserver.Options{Username: "ada", Password: password})
	mux := http.NewServeMux()
	var base string
	mux.HandleFunc("POST /team/app.git/info/lfs/objects/batch", func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); user != "ada" || pass != password {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		var ask struct{ Objects []struct{ OID string } }
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || len(ask.Objects) != 1 {
			http.Error(w, "what?", http.StatusBadRequest)
			return
		}
		oid := ask.Objects[0].OID
		if _, ok := files[oid]; !ok {
			_, _ = fmt.Fprintf(w, `{"objects": [{"oid": %q, "error": {"code": 404, "message": "none"}}]}`, oid)
			return
		}
		_, _ = fmt.Fprintf(w, `{"objects": [{"oid": %q, "actions": {"download": {"href": %q, "header": {"X-Signed": "yes"}}}}]}`, oid, href(base, oid))
	})
	mux.HandleFunc("GET /store/{oid}", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Signed") != "yes" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprint(w, files[r.PathValue("oid")])
	})
	mux.Handle("/", srv.Server)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	base = web.URL
	return srv, web
}

func oidOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func inStore(base, oid string) string { return base + "/store/" + oid }

// C036, first half: with LFS the file is what it stands for, kept for the next time; without it the sentence says so.
func TestC036LFS(t *testing.T) {
	srv, web := lfsServer(t, map[string]string{oidOf(content): content}, inStore)
	repo := srv.Create("team/app", map[string]string{"app/cm.yaml": pointerOf(content), "logo.png": pointerOf("picture")})
	c := repo.Resolve("main")
	r := git.Repo{URL: web.URL + "/team/app", LFS: true, Credentials: git.Credentials{Username: "ada", Password: password}}
	s := open(t, git.Options{})
	if got := read(t, s, r, c, "app/cm.yaml"); got != content {
		t.Errorf("got %q", got)
	}
	web.Config.Handler = srv.Server // the LFS server is gone
	if got := read(t, s, r, c, "app/cm.yaml"); got != content {
		t.Errorf("the second time: %q", got)
	}
	r.LFS = false
	f, err := s.Tree(t.Context(), r, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadFile("app/cm.yaml"); !errors.Is(err, git.ErrRefused) || !strings.Contains(err.Error(), "app/cm.yaml: is a Git LFS pointer") {
		t.Errorf("off: %v", err)
	}
	if data, err := f.ReadFile("logo.png"); err != nil || string(data) != pointerOf("picture") {
		t.Errorf("what no rendering needs: %q, %v", data, err)
	}
}

func TestLFSFailures(t *testing.T) {
	big := pointerOf("x")
	big = strings.Replace(big, "size 1", "size 99999999999", 1)
	for name, c := range map[string]struct {
		pointer  string
		files    map[string]string
		href     func(base, oid string) string
		password string
		want     string
	}{
		"absent":    {pointerOf("x"), nil, inStore, password, "the LFS server does not have it (404)"},
		"changed":   {pointerOf("xy"), map[string]string{oidOf("xy"): "zz"}, inStore, password, "sends something else than its pointer says"},
		"longer":    {pointerOf("xy"), map[string]string{oidOf("xy"): "xyz"}, inStore, password, "sends more than it announced"},
		"too large": {big, nil, inStore, password, "more than the"},
		"inside": {
			pointerOf("xy"), map[string]string{oidOf("xy"): "xy"},
			func(string, string) string { return "http://169.254.169.254/latest" }, password, "that is not allowed",
		},
		"no URL": {pointerOf("xy"), map[string]string{oidOf("xy"): "xy"}, func(string, string) string { return "file:///etc/passwd" }, password, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			srv, web := lfsServer(t, c.files, c.href)
			repo := srv.Create("team/app", map[string]string{"a.yaml": c.pointer})
			s := open(t, git.Options{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("that is not allowed") }})
			f, err := s.Tree(t.Context(), git.Repo{URL: web.URL + "/team/app", LFS: true, Credentials: git.Credentials{Username: "ada", Password: c.password}}, repo.Resolve("main"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.ReadFile("a.yaml")
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "a.yaml") || strings.Contains(err.Error(), password) {
				t.Errorf("%v", err)
			}
		})
	}
}
