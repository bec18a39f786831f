// Package app is the product: it wires the parts together, starts them in order and stops them in reverse. Commands and
// tests start the same thing. It decides nothing itself.
//
// It reads no flags and no environment, and is imported by commands only.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/internal/lease"
	"github.com/lockstep-cd/lockstep/internal/render/pool"
	"github.com/lockstep-cd/lockstep/internal/server"
)

// App is one process of Lockstep. It is started once.
type App struct {
	opts    Options
	log     *slog.Logger
	client  dynamic.Interface
	metrics *prometheus.Registry
	counted *engine.Metrics
	secrets *webhookSecrets
	lease   *lease.Lease
	server  *server.Server

	// workers and data are there from Start on.
	workers *pool.Pool
	data    *data
	// engine is there while this process holds the lease and the first lists are in.
	engine   atomic.Pointer[engine.Engine]
	stopping atomic.Bool

	stop    context.CancelFunc
	running sync.WaitGroup
	done    chan struct{}
	err     error // of the work; read after done
}

// New checks the options and makes the parts; nothing is asked, written or started.
func New(o Options) (*App, error) {
	o, err := o.completed()
	if err != nil {
		return nil, err
	}
	o.REST = rest.CopyConfig(o.REST)
	// The API server's own fairness decides; a limit on our side would only hide how busy it is.
	o.REST.QPS, o.REST.UserAgent = -1, "lockstep/"+o.Version
	// Custom resources know no other: asking for more would only cost a negotiation.
	o.REST.ContentType = "application/json"
	a := &App{opts: o, log: o.Log.With("component", "app"), metrics: prometheus.NewRegistry(), done: make(chan struct{})}
	a.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo(o.Version))
	a.counted = engine.NewMetrics(a.metrics)
	if a.client, err = dynamic.NewForConfig(o.REST); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.REST.Host, err)
	}
	if a.lease, err = lease.New(lease.Options{
		REST: o.REST, Namespace: o.Namespace, Name: "lockstep", Identity: o.Lease.Identity, Duration: o.Lease.Duration,
		Log: o.Log.With("component", "lease"),
	}); err != nil {
		return nil, err
	}
	a.secrets = &webhookSecrets{client: a.client, namespace: o.Namespace}
	a.server = server.New(server.Options{
		Listen: o.Listen, Pusher: a.pusher, Secrets: a.secrets.get, Ready: a.Ready, Checks: a.checks, Metrics: a.metrics,
		Version: o.Version, Log: o.Log.With("component", "server"),
	})
	return a, nil
}

// Start starts the parts, in an order that has its reasons:
//
//  1. a worker, which shows that there is a sandbox to render in;
//  2. the data directory, which keeps a second process out before others can see this one;
//  3. the HTTP server, so that a process that waits for the cluster or for the lease can say so;
//  4. a look whether the cluster knows our kinds, the one mistake that waiting does not mend;
//  5. the lease and then the engine, in the background: nothing is written before the lease is held.
//
// When it returns an error nothing runs any more. Otherwise Stop must be called. ctx bounds the start, not the running.
func (a *App) Start(ctx context.Context) error {
	var err error
	if a.workers, err = pool.New(ctx, pool.Options{AllowUnsandboxed: a.opts.Work.AllowUnsandboxed, Log: a.opts.Log.With("component", "render")}); err != nil {
		return err
	}
	if a.data, err = openData(a.opts); err != nil {
		a.workers.Close()
		return err
	}
	if err := a.server.Start(ctx); err != nil {
		return errors.Join(err, a.release())
	}
	a.log.Info("serving", "address", a.server.Addr(), "namespace", a.opts.Namespace, "version", a.opts.Version)
	if err := a.installed(ctx); err != nil && !errors.Is(err, errAway) {
		return errors.Join(err, a.server.Stop(ctx), a.release())
	}
	// The work outlives the start; it ends with Stop.
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stop = stop
	a.running.Go(func() {
		defer close(a.done)
		a.err = a.work(working)
	})
	return nil
}

// Addr is where the HTTP server listens, after Start.
func (a *App) Addr() string { return a.server.Addr() }

// Done is closed when the process no longer does its work: after Stop, and when the lease is lost or a part has failed.
// Stop returns the reason.
func (a *App) Done() <-chan struct{} { return a.done }

// Stop stops the parts in reverse: the engine ends the requests under way and writes nothing more, the lease is given
// back, the HTTP server ends, the data directory is free. It returns why the work had ended before, if it had. When ctx
// ends first, it returns at once with an error that says so: then the process should end. It must follow a Start that
// succeeded.
func (a *App) Stop(ctx context.Context) error {
	a.stopping.Store(true)
	a.stop()
	select {
	case <-a.done:
	case <-ctx.Done():
		// The lock of the data directory is not given back: what is cut off may still use it until the process ends.
		return errors.Join(errors.New("stopping took too long; what was under way is cut off"), a.server.Stop(ctx))
	}
	a.running.Wait()
	err := errors.Join(a.err, a.server.Stop(ctx), a.release())
	a.log.Info("stopped")
	return err
}

// Run serves until ctx ends, the lease is lost or a part fails, and stops within the time of the options. It returns nil
// when it ended because ctx did.
func (a *App) Run(ctx context.Context) error {
	if err := a.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // interrupted while it started
		}
		return err
	}
	select {
	case <-ctx.Done():
		a.log.Info("stopping", "within", a.opts.StopWithin)
	case <-a.done:
	case <-a.server.Done():
	}
	// ctx has ended, or does not know of the reason: the stop has its own bound.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.opts.StopWithin)
	defer cancel()
	return a.Stop(bounded)
}

// release ends the workers and gives the data directory free.
func (a *App) release() error {
	a.workers.Close()
	return a.data.close()
}

func buildInfo(version string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "lockstep_build_info", Help: "The version that runs; the value is always 1.", ConstLabels: prometheus.Labels{"version": version},
	})
	g.Set(1)
	return g
}
