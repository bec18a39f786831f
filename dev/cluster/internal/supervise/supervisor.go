// Package supervise owns the life of one local cluster: its directory, its processes,
// the egress proxy and the control socket through which other commands reach it. It
// knows the components as processes with parameters (package component runs in them).
package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/egress"
	"github.com/lockstep-cd/lockstep/dev/cluster/internal/layout"
)

// Options describe a cluster to start.
type Options struct {
	// Name is shown to users and names the context in the kubeconfig.
	Name string
	// Dir is the cluster's directory; it is made when missing.
	Dir string
	// Nodes is the number of nodes, 1 to layout.MaxNodes.
	Nodes int
	// Keep keeps the data: of an earlier cluster in Dir at the start, of this one at the end.
	Keep bool
	// Log receives the supervisor's own log.
	Log *slog.Logger
}

// Supervisor runs a cluster. Make it with New, then Run.
type Supervisor struct {
	opts    Options
	port    int
	spawner *spawner
	procs   map[string]*process
	logs    []io.Closer
	lock    *os.File
	ready   chan struct{}
	began   time.Time
	took    time.Duration

	// faultMu orders changes of the file of API faults.
	faultMu sync.Mutex
	wg      sync.WaitGroup
}

// New prepares a cluster's directory and leaves the process in it. A directory that
// another supervisor uses, or that holds something else, is an error.
func New(opts Options) (*Supervisor, error) {
	if opts.Nodes < 1 || opts.Nodes > layout.MaxNodes {
		return nil, fmt.Errorf("cluster %s: %d nodes, want 1 to %d", opts.Name, opts.Nodes, layout.MaxNodes)
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: directory: %w", opts.Name, err)
	}
	opts.Dir = dir
	s := &Supervisor{opts: opts, procs: map[string]*process{}, ready: make(chan struct{}), began: time.Now()}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	return s, nil
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (s *Supervisor) Kubeconfig() string { return filepath.Join(s.opts.Dir, layout.Kubeconfig) }

// Server is the URL of the API server.
func (s *Supervisor) Server() string { return fmt.Sprintf("https://127.0.0.1:%d", s.port) }

// Ready is closed when the cluster is usable; Took says how long it took.
func (s *Supervisor) Ready() <-chan struct{} { return s.ready }

// Took is the time from New to ready.
func (s *Supervisor) Took() time.Duration { return s.took }

// Run starts the cluster, serves it until ctx ends, and takes it down again: when Run
// returns, no process is left. It returns early, with the error, when the cluster does
// not become ready.
func (s *Supervisor) Run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() { err = errors.Join(err, s.cleanUp()) }()
	control, err := s.serveControl(ctx, cancel)
	if err != nil {
		return err
	}
	defer control()
	stopEgress, err := s.serveEgress()
	if err != nil {
		return err
	}
	defer stopEgress()
	s.spawner = newSpawner()
	defer close(s.spawner.jobs)
	defer s.stopAll()
	if err := s.startAll(ctx); err != nil {
		// A stop that comes while the cluster starts is no failure.
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	s.took = time.Since(s.began)
	close(s.ready)
	<-ctx.Done()
	return nil
}

// startAll starts the components in the order in which they need each other, and
// waits until the cluster is usable.
func (s *Supervisor) startAll(ctx context.Context) error {
	for _, name := range layout.Components() {
		log, err := os.OpenFile(filepath.Join(layout.Logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("%s: log: %w", name, err)
		}
		s.logs = append(s.logs, log)
		s.procs[name] = s.newProcess(name, log)
	}
	for _, name := range []string{layout.Etcd, layout.APIServer} {
		if err := s.procs[name].start(); err != nil {
			return err
		}
	}
	api, err := s.newAPI()
	if err != nil {
		return err
	}
	defer api.close()
	if err := s.until(ctx, "API server ready", api.healthy); err != nil {
		return err
	}
	for _, name := range []string{layout.Controller, layout.Scheduler, layout.Nodes} {
		if err := s.procs[name].start(); err != nil {
			return err
		}
	}
	return s.until(ctx, "nodes and service accounts ready", api.usable)
}

// until polls a check; it gives up when a component dies or after startLimit.
func (s *Supervisor) until(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			s.opts.Log.Info("cluster start", "step", what, "after", time.Since(s.began).Round(time.Millisecond))
			return nil
		}
		if dead := s.dead(); dead != "" {
			return fmt.Errorf("cluster %s: %s ended before: %s; its log: %s", s.opts.Name, dead, what,
				filepath.Join(s.opts.Dir, layout.Logs, dead+".log"))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cluster %s: waiting for: %s: %w (last: %w)", s.opts.Name, what, ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// startLimit is generous: the first start on a busy machine reads a large binary.
const startLimit = 3 * time.Minute

func (s *Supervisor) dead() string {
	for _, name := range layout.Components() {
		p := s.procs[name]
		p.mu.Lock()
		dead := p.wanted && p.cmd != nil && !p.running()
		p.mu.Unlock()
		if dead {
			return name
		}
	}
	return ""
}

// stopAll ends all components, last started first. Only etcd has something to put in
// order; the others may be killed at any time, as on a real machine.
func (s *Supervisor) stopAll() {
	// Restarts that were promised for later end with Run's context.
	s.wg.Wait()
	names := layout.Components()
	for i := len(names) - 1; i >= 0; i-- {
		p := s.procs[names[i]]
		if p == nil {
			continue
		}
		grace := time.Duration(0)
		if names[i] == layout.Etcd && s.opts.Keep {
			grace = 3 * time.Second
		}
		if err := p.finish(grace); err != nil {
			s.opts.Log.Error("component did not stop", "component", names[i], "error", err)
		}
	}
	for _, l := range s.logs {
		_ = l.Close()
	}
}

func (s *Supervisor) serveEgress() (stop func(), err error) {
	if err := removeSocket(layout.EgressSock); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", layout.EgressSock)
	if err != nil {
		return nil, fmt.Errorf("egress: listen: %w", err)
	}
	// The proxy outlives the components, so it has a context of its own.
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := egress.New(route, s.opts.Log).Serve(ctx, listener); err != nil {
			s.opts.Log.Error("egress proxy ended", "error", err)
		}
	}()
	return func() { cancel(); <-done }, nil
}

// route maps the cluster's invented addresses to this machine (see layout).
func route(host netip.Addr, port string) (network, address string, err error) {
	nodes := netip.MustParsePrefix(layout.NodeNet + ".0/24")
	switch {
	case host.String() == layout.HostIP, host.IsLoopback():
		return "tcp", net.JoinHostPort("127.0.0.1", port), nil
	case nodes.Contains(host) && port == fmt.Sprint(layout.KubeletPort):
		return "unix", layout.KubeletSock, nil
	}
	return "", "", errors.New("no route: nothing listens at addresses of simulated pods and nodes; use 'devcluster expose' for a local process")
}

func removeSocket(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: remove: %w", path, err)
	}
	return nil
}
