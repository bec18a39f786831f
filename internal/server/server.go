// Package server owns what Lockstep answers over HTTP: webhooks, health, readiness, metrics. Handlers translate; what is
// done is decided by the services behind the small interfaces here.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/lockstep-cd/lockstep/internal/webhook"
)

// Pusher takes in push events; it answers how many sources of applications an event concerns.
type Pusher interface {
	Push(webhook.Event) int
}

// Options of a server.
type Options struct {
	// Listen is host:port; port 0 takes a free one.
	Listen string
	// Pusher gets the push events; nil while this process stands by.
	Pusher func() Pusher
	// Secret is the shared secret of webhooks; empty takes unsigned events.
	Secret func(context.Context) (string, error)
	// Ready says why the process is not ready; nil when it is.
	Ready func() error
	// Metrics are served on /metrics.
	Metrics prometheus.Gatherer
	Version string
	Log     *slog.Logger
}

// Server answers HTTP.
type Server struct {
	opts Options
	http *http.Server
	addr net.Addr
	done chan struct{}
}

// New makes a server; nothing listens before Start.
func New(o Options) *Server {
	s := &Server{opts: o, done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/webhook", s.answer(s.webhook))
	mux.HandleFunc("GET /healthz", s.answer(s.healthz))
	mux.HandleFunc("GET /readyz", s.answer(s.readyz))
	mux.HandleFunc("GET /api/version", s.answer(s.version))
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{}))
	s.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return s
}

// Start listens and serves until Stop.
func (s *Server) Start() error {
	l, err := net.Listen("tcp", s.opts.Listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", s.opts.Listen, err)
	}
	s.addr = l.Addr()
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.opts.Log.Error("http server ended", "error", err)
		}
	}()
	return nil
}

// Addr is where the server listens, after Start.
func (s *Server) Addr() string { return s.addr.String() }

// Stop lets requests under way end until ctx does.
func (s *Server) Stop(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	<-s.done
	return err
}

// problem is an error with the status it is answered with.
type problem struct {
	status  int
	message string
}

func (p *problem) Error() string { return p.message }

// answer is the one place where errors become answers.
func (s *Server) answer(h func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := h(r)
		status := http.StatusOK
		if err != nil {
			status = http.StatusInternalServerError
			var p *problem
			if errors.As(err, &p) {
				status = p.status
			}
			body = map[string]any{"error": err.Error(), "code": status, "message": err.Error()}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			s.opts.Log.Debug("answer not written", "path", r.URL.Path, "error", err)
		}
	}
}

func (s *Server) webhook(r *http.Request) (any, error) {
	body, err := webhook.Read(r.Body, 0)
	if err != nil {
		return nil, refused(err)
	}
	secret, err := s.opts.Secret(r.Context())
	if err != nil {
		return nil, &problem{http.StatusServiceUnavailable, "the webhook secret can't be read now; send the event again"}
	}
	event, err := webhook.Parse(r.Header, body, secret)
	if err != nil {
		return nil, refused(err)
	}
	if event.Ignored != "" {
		return map[string]any{"ignored": event.Ignored}, nil
	}
	pusher := s.opts.Pusher()
	if pusher == nil {
		return nil, &problem{http.StatusServiceUnavailable, "this process stands by; the active one takes events"}
	}
	return map[string]any{"applications": pusher.Push(event)}, nil
}

func refused(err error) error {
	var e *webhook.Error
	if errors.As(err, &e) {
		return &problem{e.Status, e.Reason}
	}
	return err
}

func (s *Server) healthz(*http.Request) (any, error) { return map[string]any{"status": "ok"}, nil }

func (s *Server) readyz(*http.Request) (any, error) {
	if err := s.opts.Ready(); err != nil {
		return nil, &problem{http.StatusServiceUnavailable, err.Error()}
	}
	return map[string]any{"status": "ready"}, nil
}

func (s *Server) version(*http.Request) (any, error) {
	return map[string]any{"Version": s.opts.Version}, nil
}
