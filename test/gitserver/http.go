package gitserver

import (
	"bytes"
	"compress/gzip"
	"crypto/subtle"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxBody bounds a request in memory; a push of a test or a demo is far smaller.
const maxBody = 256 << 20

// ServeHTTP answers as git http-backend does, behind authentication, counters and faults.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault.Delay > 0 {
		select {
		case <-time.After(fault.Delay):
		case <-r.Context().Done():
			return
		}
	}
	if fault.Status != 0 {
		http.Error(w, http.StatusText(fault.Status), fault.Status)
		return
	}
	if fault.Cut > 0 {
		w = &cutting{ResponseWriter: w, left: fault.Cut}
	}
	if !s.allowed(r) {
		s.count(func(c *Counts) { c.Denied++ })
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "credentials needed", http.StatusUnauthorized)
		return
	}
	s.backend(w, r)
}

func (s *Server) allowed(r *http.Request) bool {
	same := func(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
	if s.opt.BearerToken != "" && same(r.Header.Get("Authorization"), "Bearer "+s.opt.BearerToken) {
		return true
	}
	if s.opt.Password != "" {
		user, password, ok := r.BasicAuth()
		return ok && same(user, s.opt.Username) && same(password, s.opt.Password)
	}
	return s.opt.BearerToken == ""
}

// backend runs git http-backend. The body is read first: CGI needs its length, and a fetch is told from an ls-refs by it.
func (s *Server) backend(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "body: "+err.Error(), http.StatusBadRequest)
		return
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	s.observe(r, body)
	r.URL.Path = s.repositoryPath(r.URL.Path)
	if s.opt.ProtocolV0 {
		r.Header.Del("Git-Protocol")
	}
	env := []string{"GIT_PROJECT_ROOT=" + s.opt.Dir, "GIT_HTTP_EXPORT_ALL=1"}
	if s.opt.Push {
		env = append(env, "REMOTE_USER=git")
	}
	handler := cgi.Handler{
		Path: s.git, Args: []string{"http-backend"}, Dir: s.opt.Dir, Env: append(env, cleanEnv()...), Stderr: io.Discard,
	}
	handler.ServeHTTP(w, r)
}

// repositoryPath lets a URL without .git reach <name>.git, as forges do.
func (s *Server) repositoryPath(p string) string {
	for _, end := range []string{"/info/refs", "/git-upload-pack", "/git-receive-pack"} {
		name, ok := strings.CutSuffix(p, end)
		if !ok || strings.HasSuffix(name, ".git") {
			continue
		}
		if _, err := os.Stat(filepath.Join(s.opt.Dir, filepath.FromSlash(filepath.Clean("/"+name+".git")))); err == nil {
			return name + ".git" + end
		}
	}
	return p
}

func (s *Server) observe(r *http.Request, body []byte) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/info/refs"):
		s.count(func(c *Counts) { c.Discoveries++ })
	case strings.HasSuffix(r.URL.Path, "/git-receive-pack"):
		s.count(func(c *Counts) { c.Pushes++ })
	case strings.HasSuffix(r.URL.Path, "/git-upload-pack") && !bytes.Contains(plain(r, body), []byte("command=ls-refs")):
		s.count(func(c *Counts) { c.Fetches++ })
	}
}

func plain(r *http.Request, body []byte) []byte {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return body
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return body
	}
	text, _ := io.ReadAll(io.LimitReader(z, maxBody)) // only looked at: what can not be read is no ls-refs
	return text
}

// cutting breaks the connection off after some bytes.
type cutting struct {
	http.ResponseWriter
	left int64
}

func (c *cutting) Write(p []byte) (int, error) {
	if int64(len(p)) < c.left {
		c.left -= int64(len(p))
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler) // how net/http is told to break off
}

// cleanEnv keeps the machine's Git configuration away.
func cleanEnv() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}
}
