package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"
)

// problem is an error with the status it is answered with.
type problem struct {
	status  int
	message string
}

func (p *problem) Error() string { return p.message }

// failure is the body of every answer that is an error. Argo CD's clients read these fields.
type failure struct {
	Error   string `json:"error"`
	Message string `json:"message"`
	Code    int    `json:"code"`
}

// reply is an answer that is no error and yet has another status than 200.
type reply struct {
	status int
	body   any
}

// handler translates a request into a call and returns the value that is the answer.
type handler func(http.ResponseWriter, *http.Request) (any, error)

// answer is the one place where values and errors become answers. The message of a problem is for the sender; any other
// error is ours, and only the log has its text.
func (s *Server) answer(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := h(w, r)
		if other, ok := body.(reply); ok && err == nil {
			s.write(w, other.status, other.body)
			return
		}
		if err == nil {
			s.write(w, http.StatusOK, body)
			return
		}
		var p *problem
		if !errors.As(err, &p) {
			s.opts.Log.Error("request not answered", "method", r.Method, "path", r.URL.Path, "error", err)
			p = &problem{http.StatusInternalServerError, "this went wrong on our side; the log has the reason"}
		}
		s.refuse(w, p)
	})
}

func (s *Server) refuse(w http.ResponseWriter, p *problem) {
	s.write(w, p.status, failure{Error: p.message, Message: p.message, Code: p.status})
}

func (s *Server) write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.opts.Log.Debug("answer not written", "error", err)
	}
}

// routed answers what no route takes: with the mux's own status and its Allow header, in our form.
func (s *Server) routed() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := s.mux.Handler(r)
		if pattern != "" {
			s.mux.ServeHTTP(w, r)
			return
		}
		said := statusOnly{header: w.Header(), status: http.StatusOK}
		h.ServeHTTP(&said, r)
		switch said.status {
		case http.StatusMethodNotAllowed:
			s.refuse(w, &problem{said.status, fmt.Sprintf("%s: takes %s, not %s", r.URL.Path, w.Header().Get("Allow"), r.Method)})
		default:
			s.refuse(w, &problem{said.status, fmt.Sprintf("%s: there is nothing here", r.URL.Path)})
		}
	})
}

// statusOnly takes status and header of an answer and drops its body.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }
func (s *statusOnly) Write(p []byte) (int, error) { return len(p), nil }

// recovered answers a request whose handler panics; the process goes on.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			what := recover()
			if what == nil {
				return
			}
			if what == http.ErrAbortHandler { //nolint:errorlint // the very value, as net/http has it
				panic(what)
			}
			s.opts.Log.Error("handler panicked", "path", r.URL.Path, "panic", what, "stack", string(debug.Stack()))
			s.refuse(w, &problem{http.StatusInternalServerError, "this went wrong on our side; the log has the reason"})
		}()
		next.ServeHTTP(w, r)
	})
}

// logged writes one line a request. Neither query nor body: they may hold secrets.
func (s *Server) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		seen := &statusSeen{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(seen, r)
		s.opts.Log.DebugContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path, "status", seen.status,
			"from", r.RemoteAddr, "took", time.Since(began))
	})
}

// statusSeen remembers the status that was sent.
type statusSeen struct {
	http.ResponseWriter
	status int
}

func (s *statusSeen) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (s *statusSeen) Unwrap() http.ResponseWriter { return s.ResponseWriter }
