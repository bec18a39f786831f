package supervise

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/faults"
	"github.com/lockstep-cd/lockstep/dev/cluster/internal/layout"
)

// ComponentStatus is the state of one process.
type ComponentStatus struct {
	Name string `json:"name"`
	// State is running, frozen, stopped or failed with the reason.
	State string `json:"state"`
	PID   int    `json:"pid,omitempty"`
	// Starts counts how often it was started.
	Starts int `json:"starts"`
	// PSSKiB is its share of memory in KiB, where the system tells.
	PSSKiB int64 `json:"pssKiB,omitempty"`
}

// Status is the state of a cluster.
type Status struct {
	State
	Ready      bool              `json:"ready"`
	Kubeconfig string            `json:"kubeconfig"`
	Components []ComponentStatus `json:"components"`
	// Faults are the faults that the API server has now.
	Faults []faults.Fault `json:"faults"`
	// PSSKiB is the memory of all processes together with the supervisor's.
	PSSKiB int64 `json:"pssKiB,omitempty"`
}

// Actions that ComponentFault names.
const (
	Kill    = "kill"
	Restart = "restart"
	Freeze  = "freeze"
	Thaw    = "thaw"
)

// ComponentFault is a fault of a whole process.
type ComponentFault struct {
	Component string `json:"component"`
	Action    string `json:"action"`
	// RestartAfter starts a killed component again after that time; zero does not.
	RestartAfter time.Duration `json:"restartAfter,omitempty"`
}

// serveControl answers other commands until ctx ends; stop asks the cluster to end.
func (s *Supervisor) serveControl(ctx context.Context, stop func()) (func(), error) {
	if err := removeSocket(layout.ControlSock); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", layout.ControlSock)
	if err != nil {
		return nil, fmt.Errorf("control: listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.status(), nil) })
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, struct{}{}, nil)
		stop()
	})
	mux.HandleFunc("POST /component", handle(func(f ComponentFault) error { return s.componentFault(ctx, f) }))
	mux.HandleFunc("POST /faults", handle(s.addFault))
	mux.HandleFunc("DELETE /faults", func(w http.ResponseWriter, _ *http.Request) { reply(w, struct{}{}, s.clearFaults()) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.opts.Log.Error("control socket ended", "error", err)
		}
	}()
	return func() { _ = server.Close(); <-done }, nil
}

func handle[T any](f func(T) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in T
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			reply(w, nil, fmt.Errorf("request: %w", err))
			return
		}
		reply(w, struct{}{}, f(in))
	}
}

func reply(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

func (s *Supervisor) status() Status {
	st := Status{
		State:      State{Name: s.opts.Name, PID: os.Getpid(), Port: s.port, Nodes: s.opts.Nodes, Server: s.Server()},
		Kubeconfig: s.Kubeconfig(),
		PSSKiB:     pss(os.Getpid()),
	}
	if s.notReady() != nil {
		return st
	}
	st.Ready = true
	for _, name := range layout.Components() {
		c := s.procs[name].state()
		c.PSSKiB = pss(c.PID)
		st.PSSKiB += c.PSSKiB
		st.Components = append(st.Components, c)
	}
	st.Faults, _ = faults.Read(layout.FaultsFile)
	return st
}

// notReady is an error until the table of processes is complete.
func (s *Supervisor) notReady() error {
	select {
	case <-s.ready:
		return nil
	default:
		return errors.New("fault: the cluster is not ready yet")
	}
}

func (s *Supervisor) componentFault(ctx context.Context, f ComponentFault) error {
	if err := s.notReady(); err != nil {
		return err
	}
	p := s.procs[f.Component]
	if p == nil {
		return fmt.Errorf("component %q: unknown, want one of %s", f.Component, strings.Join(layout.Components(), ", "))
	}
	s.opts.Log.Info("component fault", "fault", f.Action, "target", f.Component)
	switch f.Action {
	case Kill:
		if err := p.stop(0); err != nil {
			return err
		}
		if f.RestartAfter > 0 {
			s.wg.Go(func() { s.restartLater(ctx, p, f.RestartAfter) })
		}
		return nil
	case Restart:
		if err := p.stop(0); err != nil {
			return err
		}
		return p.start()
	case Freeze:
		return p.freeze(true)
	case Thaw:
		return p.freeze(false)
	}
	return fmt.Errorf("fault %q: unknown, want %s, %s, %s or %s", f.Action, Kill, Restart, Freeze, Thaw)
}

func (s *Supervisor) restartLater(ctx context.Context, p *process, after time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(after):
		if err := p.start(); err != nil {
			s.opts.Log.Error("component did not start again", "target", p.name, "error", err)
		}
	}
}

// addFault adds a fault of the API server; one for the same resource is replaced.
func (s *Supervisor) addFault(f faults.Fault) error {
	if err := f.Validate(); err != nil {
		return err
	}
	s.faultMu.Lock()
	defer s.faultMu.Unlock()
	list, err := faults.Read(layout.FaultsFile)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(o faults.Fault) bool {
		return o.Resource == f.Resource || !o.Until.IsZero() && time.Now().After(o.Until)
	})
	return faults.Write(layout.FaultsFile, append(list, f))
}

// clearFaults ends all faults: of the API server, and thaws and starts what is frozen
// or killed.
func (s *Supervisor) clearFaults() error {
	if err := s.notReady(); err != nil {
		return err
	}
	s.faultMu.Lock()
	err := removeSocket(layout.FaultsFile)
	s.faultMu.Unlock()
	for _, name := range layout.Components() {
		p := s.procs[name]
		if p.state().State == "frozen" {
			err = errors.Join(err, p.freeze(false))
		}
		err = errors.Join(err, p.start())
	}
	return err
}

// ErrNotRunning is the answer when no supervisor listens in a cluster's directory.
var ErrNotRunning = errors.New("no such cluster is running")

// Call sends a request to the supervisor of the cluster in dir and decodes its answer
// into out, unless that is nil. It changes the process's working directory to dir:
// socket paths are short only from there.
func Call(ctx context.Context, dir, method, path string, in, out any) error {
	if err := os.Chdir(dir); err != nil {
		return fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("control: encode: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", layout.ControlSock)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://devcluster"+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("control: request: %w", err)
	}
	resp, err := client.Do(req)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return ErrNotRunning
	}
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		return errors.New(strings.TrimSpace(string(text)))
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("control: decode: %w", err)
	}
	return nil
}
