package registry

import (
	"crypto/subtle"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Options of a server. The zero value is one that anybody may read, over http.
type Options struct {
	// Username and Password are asked for, when they are set.
	Username, Password string
	// TLS serves https with a certificate of its own; CA says which.
	TLS bool
}

// server counts requests, asks for credentials and can be broken.
type server struct {
	opts Options
	http *httptest.Server

	mu       sync.Mutex
	requests map[string]int
	broken   int
}

// start serves the handler.
func (s *server) start(o Options, handler http.Handler, challenge string) {
	s.opts, s.requests = o, map[string]int{}
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := s.count(r); status != 0 {
			http.Error(w, "broken on purpose", status)
			return
		}
		if !s.mayEnter(r) {
			w.Header().Set("WWW-Authenticate", challenge)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
	if o.TLS {
		s.http = httptest.NewTLSServer(outer)
		return
	}
	s.http = httptest.NewServer(outer)
}

func (s *server) count(r *http.Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[r.Method+" "+r.URL.Path]++
	return s.broken
}

func (s *server) mayEnter(r *http.Request) bool {
	if s.opts.Username == "" && s.opts.Password == "" {
		return true
	}
	user, password, _ := r.BasicAuth()
	return same(user, s.opts.Username) && same(password, s.opts.Password)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Requests is the number of requests so far for a method and path, such as "GET /index.yaml".
func (s *server) Requests(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[what]
}

// Break makes the server answer with this status; 0 heals it.
func (s *server) Break(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = status
}

// CA is the server's certificate in PEM; nil without TLS.
func (s *server) CA() []byte {
	if !s.opts.TLS {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
}

// Host is host:port.
func (s *server) Host() string {
	_, host, _ := strings.Cut(s.http.URL, "://")
	return host
}

// Close ends the server and waits for its requests.
func (s *server) Close() { s.http.Close() }
