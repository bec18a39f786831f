// Package server owns what Lockstep answers over HTTP: webhooks, health, readiness, metrics. Handlers translate; what is
// done is decided by the services behind the small interfaces here.
//
// It holds no client of a cluster and knows no flags.
package server

import (
	"context"
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

// Check is one part of the process and what is wrong with it; nil when nothing is.
type Check struct {
	// Name of the part, such as cluster.
	Name string
	// State in a few words, for a part that is well.
	State string
	Err   error
}

// API is what answers below /api/v1/.
type API interface {
	http.Handler
	// Close ends the streams under way, so that they keep no stop waiting.
	Close()
}

// Options of a server. All but Listen, API and Version are required.
type Options struct {
	// Listen is host:port; port 0 takes a free one.
	Listen string
	// Pusher gets the push events; nil while this process stands by.
	Pusher func() Pusher
	// Secrets are what senders of webhooks must show; none takes unsigned events.
	Secrets func(context.Context) (webhook.Secrets, error)
	// Ready says why the process is not ready; nil when it is.
	Ready func() error
	// Checks looks at every part, for /healthz?full=true.
	Checks func(context.Context) []Check
	// Metrics are served on /metrics.
	Metrics prometheus.Gatherer
	// API answers below /api/v1/; nil leaves it out. Its streams end with Close.
	API API
	// Version is told on /api/version.
	Version string
	// Log gets one line a request, at debug level, and what went wrong on our side.
	Log *slog.Logger
}

// Server answers HTTP.
type Server struct {
	opts Options
	mux  *http.ServeMux
	http *http.Server
	addr net.Addr
	done chan struct{}
	err  error
}

// New makes a server; nothing listens before Start.
func New(o Options) *Server {
	s := &Server{opts: o, mux: http.NewServeMux(), done: make(chan struct{})}
	s.mux.Handle("POST /api/webhook", s.answer(s.webhook))
	s.mux.Handle("GET /api/version", s.answer(s.version))
	s.mux.Handle("GET /healthz", s.answer(s.healthz))
	s.mux.Handle("GET /readyz", s.answer(s.readyz))
	s.mux.Handle("GET /metrics", promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelError),
	}))
	if o.API != nil {
		s.mux.Handle("/api/v1/", o.API)
	}
	s.http = &http.Server{
		// The log is outermost, so that it sees the status that was sent at last; then panics, which become an answer; then
		// requests that no route takes, which the mux would answer in plain text.
		Handler:           s.logged(s.recovered(s.routed())),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug), // mostly what clients do
	}
	if o.API != nil {
		s.http.RegisterOnShutdown(o.API.Close)
	}
	return s
}

// Start listens and serves until Stop.
func (s *Server) Start(ctx context.Context) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", s.opts.Listen)
	if err != nil {
		// The system's own reason; the net package would repeat the address.
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = op.Err
		}
		return fmt.Errorf("--listen %s: %w", s.opts.Listen, err)
	}
	s.addr = l.Addr()
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.err = fmt.Errorf("http server: %w", err)
		}
	}()
	return nil
}

// Addr is where the server listens, after Start.
func (s *Server) Addr() string { return s.addr.String() }

// Done is closed when the server has ended, by Stop or by an error that Stop returns.
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop lets requests under way end until ctx does, then cuts them off.
func (s *Server) Stop(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("http server: requests were cut off: %w", err), s.http.Close())
	}
	<-s.done
	return errors.Join(err, s.err)
}
