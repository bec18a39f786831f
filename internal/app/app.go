// Package app is the product: it wires the parts together, starts them in order and stops them in reverse. Commands and
// tests start the same thing. It decides nothing itself.
package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/chart"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/lease"
	"github.com/lockstep-cd/lockstep/internal/record"
	"github.com/lockstep-cd/lockstep/internal/repository"
	"github.com/lockstep-cd/lockstep/internal/server"
)

// stopTimeout bounds the whole of a graceful stop.
const stopTimeout = 20 * time.Second

// App is one process of Lockstep.
type App struct {
	opts    Options
	git     *git.Store
	charts  *chart.Store
	records *record.Store
	key     []byte
	client  dynamic.Interface
	metrics *prometheus.Registry
	counted *engine.Metrics
	lease   *lease.Lease
	server  *server.Server
	secret  *webhookSecret
	engine  atomic.Pointer[engine.Engine]
}

// New checks the options and opens the data directory; nothing runs before Run.
func New(o Options) (*App, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	o.REST = rest.CopyConfig(o.REST)
	// The API server's own fairness decides; a limit on our side would only hide how busy it is (issue 4, point 5).
	o.REST.QPS, o.REST.UserAgent = -1, "lockstep/"+o.Version
	a := &App{opts: o, metrics: prometheus.NewRegistry()}
	a.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a.counted = engine.NewMetrics(a.metrics)
	if a.client, err = dynamic.NewForConfig(o.REST); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.REST.Host, err)
	}
	if a.lease, err = lease.New(lease.Options{
		REST: o.REST, Namespace: o.Namespace, Name: "lockstep", Identity: o.Identity, Duration: o.LeaseDuration,
		Log: o.Log.With("component", "lease"),
	}); err != nil {
		return nil, err
	}
	a.secret = &webhookSecret{client: a.client, namespace: o.Namespace}
	a.server = server.New(server.Options{
		Listen: o.Listen, Pusher: a.pusher, Secret: a.secret.get, Ready: a.Ready, Metrics: a.metrics, Version: o.Version,
		Log: o.Log.With("component", "server"),
	})
	return a, a.open()
}

// open takes the data directory; git's lock in it keeps every other process out.
func (a *App) open() error {
	dir := a.opts.DataDir
	err := os.MkdirAll(dir, 0o700)
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	if a.git, err = git.Open(git.Options{
		Dir: filepath.Join(dir, "git"), LocalRoots: a.opts.Sources.LocalRoots, Log: a.opts.Log.With("component", "git"),
	}); err != nil {
		return fmt.Errorf("--data-dir %s: %w", dir, err)
	}
	charts := chart.Options{Dir: filepath.Join(dir, "charts"), Log: a.opts.Log.With("component", "chart"), APIServers: []string{a.opts.REST.Host}}
	if a.opts.Sources.AllowLoopback {
		charts.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	if a.charts, err = chart.Open(charts); err == nil {
		a.records, err = record.Open(filepath.Join(dir, "proofs"))
	}
	if err == nil {
		a.key, err = hashKey(filepath.Join(dir, "key"))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("--data-dir %s: %w", dir, err), a.git.Close())
	}
	return nil
}

// hashKey reads the key of the hashes of desired objects, or makes one. With another key nothing is recognised and
// everything is compared once.
func hashKey(file string) ([]byte, error) {
	key, err := os.ReadFile(file)
	if err == nil && len(key) == 32 {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key = make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	return key, os.WriteFile(file, key, 0o600)
}

// Run serves until ctx ends, the lease is lost or a part fails. The HTTP server comes first, so that a process that stands
// by can say so; the engine last, when the lease is held.
func (a *App) Run(ctx context.Context) error {
	if err := a.server.Start(); err != nil {
		return errors.Join(err, a.git.Close())
	}
	a.opts.Log.Info("serving", "address", a.server.Addr(), "namespace", a.opts.Namespace, "version", a.opts.Version)
	err := a.installed(ctx)
	if err == nil {
		err = a.lease.Hold(ctx, a.work)
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return errors.Join(err, a.server.Stop(stop), a.git.Close())
}

// work is what the holder of the lease does.
func (a *App) work(ctx context.Context) error {
	e, err := engine.New(engine.Options{
		REST: a.opts.REST, Namespace: a.opts.Namespace, Records: a.records, Key: a.key, Workers: a.opts.Work.Workers,
		Repositories: repository.NewSet(), Sources: &engine.Sources{Git: a.git, Charts: a.charts},
		PollInterval: a.opts.Sources.PollInterval, Metrics: a.counted, Log: a.opts.Log.With("component", "engine"),
	})
	if err != nil {
		return err
	}
	defer e.Stop()
	if err := e.Start(ctx); err != nil {
		return ignoreEnd(ctx, err)
	}
	collector := e.Collector()
	if err := a.metrics.Register(collector); err != nil {
		return err
	}
	defer a.metrics.Unregister(collector)
	a.engine.Store(e)
	defer a.engine.Store(nil)
	<-ctx.Done()
	return nil
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// installed checks that the cluster knows our kinds.
func (a *App) installed(ctx context.Context) error {
	for _, r := range []schema.GroupVersionResource{v1alpha1.Applications(), v1alpha1.AppProjects()} {
		_, err := a.client.Resource(r).Namespace(a.opts.Namespace).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("cluster %s: does not know %s; run `lockstep install` first", a.opts.REST.Host, r.GroupResource())
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return fmt.Errorf("cluster %s: may not list %s: %w", a.opts.REST.Host, r.GroupResource(), err)
		case err != nil:
			a.opts.Log.Warn("cluster does not answer yet", "error", err) // the lease waits for it
		}
	}
	return nil
}

// Addr is where the HTTP server listens.
func (a *App) Addr() string { return a.server.Addr() }

// Ready says why the process does not do its work; nil when it does.
func (a *App) Ready() error {
	if !a.lease.Held() {
		return errors.New("standing by: another process holds the lease")
	}
	e := a.engine.Load()
	if e == nil {
		return errors.New("starting: the first lists of applications are being read")
	}
	return e.Settled()
}

func (a *App) pusher() server.Pusher {
	if e := a.engine.Load(); e != nil {
		return e
	}
	return nil
}
