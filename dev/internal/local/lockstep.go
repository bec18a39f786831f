package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// lookEvery is how often something is looked at that announces nothing.
const lookEvery = 25 * time.Millisecond

// LockstepOptions say how Lockstep is run.
type LockstepOptions struct {
	// Binary is the path of lockstep.
	Binary string
	// Kubeconfig leads to the cluster.
	Kubeconfig string
	// Namespace the applications live in.
	Namespace string
	// Dir takes its data directory and its log.
	Dir string
}

// Install runs lockstep install and returns what it printed.
func Install(ctx context.Context, o LockstepOptions) (string, error) {
	out, err := exec.CommandContext(ctx, o.Binary, "install", "--kubeconfig", o.Kubeconfig, "--namespace", o.Namespace).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("lockstep install: %w:\n%s", err, bytes.TrimSpace(out))
	}
	return string(out), nil
}

// Lockstep is a running lockstep serve.
type Lockstep struct {
	*Process
	// Base is the address of its HTTP server, such as http://127.0.0.1:1234.
	Base string
	// Log is the file it writes to.
	Log string
}

// StartLockstep starts lockstep serve and waits until it says that it is ready. Stop ends it.
func StartLockstep(ctx context.Context, o LockstepOptions) (*Lockstep, error) {
	data := filepath.Join(o.Dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(o.Binary, "serve", "--kubeconfig", o.Kubeconfig, "--namespace", o.Namespace, "--data-dir", data,
		"--listen", address, "--allow-loopback")
	l := &Lockstep{Base: "http://" + address, Log: filepath.Join(o.Dir, "lockstep.log")}
	f, err := logFile(l.Log, cmd)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd.Stdout = f
	if l.Process, err = start("lockstep serve", cmd); err != nil {
		return nil, err
	}
	if err := l.ready(ctx); err != nil {
		l.Stop()
		return nil, err
	}
	return l, nil
}

// Stop ends Lockstep.
func (l *Lockstep) Stop() { l.Process.Stop(stopWithin) }

// Ended is the error for an end that nobody asked for.
func (l *Lockstep) Ended() error { return l.ended(l.Log) }

func (l *Lockstep) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if status, _, err := l.get(ctx, "/readyz"); err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-l.Exited():
			return l.Ended()
		case <-ctx.Done():
			return fmt.Errorf("lockstep serve: not ready within %s; see %s", readyWithin, l.Log)
		case <-tick.C:
		}
	}
}

func (l *Lockstep) get(ctx context.Context, path string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.Base+path, nil)
	if err != nil {
		return 0, "", err
	}
	return send(req)
}

// Announce tells Lockstep of a push, as a forge does.
func (l *Lockstep) Announce(ctx context.Context, repository, branch, before, after string) error {
	event := map[string]any{
		"ref": "refs/heads/" + branch, "before": before, "after": after,
		"repository": map[string]any{"clone_url": repository, "html_url": repository, "default_branch": branch},
	}
	body, err := json.Marshal(event)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.Base+"/api/webhook", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", "push")
	status, answer, err := send(req)
	if err != nil {
		return err
	}
	if status >= http.StatusBadRequest {
		return fmt.Errorf("%s: answers %d: %s", req.URL, status, answer)
	}
	return nil
}

func send(req *http.Request) (int, string, error) {
	client := &http.Client{Timeout: 10 * time.Second}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return res.StatusCode, string(bytes.TrimSpace(body)), err
}

// freeAddress is an address of this machine that nobody listens at now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}
