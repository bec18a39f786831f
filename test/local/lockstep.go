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
	"strings"
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
	// Flags are added to those of lockstep serve.
	Flags []string
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
	// Began is when the process was started.
	Began time.Time
}

// StartLockstep starts lockstep serve and waits until it says that it is ready. Stop ends it.
func StartLockstep(ctx context.Context, o LockstepOptions) (*Lockstep, error) {
	data := filepath.Join(o.Dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, fmt.Errorf("lockstep serve: directory: %w", err)
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := []string{
		"serve", "--kubeconfig", o.Kubeconfig, "--namespace", o.Namespace, "--data-dir", data,
		"--listen", address, "--allow-loopback",
	}
	l := &Lockstep{Base: "http://" + address, Log: filepath.Join(o.Dir, "lockstep.log"), Began: time.Now()}
	if l.Process, err = Start("lockstep serve", exec.Command(o.Binary, append(args, o.Flags...)...), l.Log); err != nil {
		return nil, err
	}
	if err := l.ready(ctx); err != nil {
		_ = l.Stop() // err says more
		return nil, err
	}
	return l, nil
}

// Stop ends Lockstep.
func (l *Lockstep) Stop() error { return l.Process.Stop(stopWithin) }

func (l *Lockstep) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if _, err := l.Get(ctx, "/readyz"); err == nil {
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

// Get asks for a path; an answer other than 2xx is an error with the text.
func (l *Lockstep) Get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.Base+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	return send(req)
}

// Push is a push to a branch as a forge announces it.
type Push struct {
	Repository, Branch, Before, After string
	// Modified are the paths of the files that the push changed; they may be left out.
	Modified []string
}

// Announce tells Lockstep of a push, as GitHub does.
func (l *Lockstep) Announce(ctx context.Context, p Push) error {
	event := map[string]any{
		"ref": "refs/heads/" + p.Branch, "before": p.Before, "after": p.After,
		"repository": map[string]any{
			"clone_url": p.Repository, "html_url": strings.TrimSuffix(p.Repository, ".git"), "default_branch": p.Branch,
		},
		"commits": []any{map[string]any{"id": p.After, "added": []string{}, "removed": []string{}, "modified": p.Modified}},
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
	_, err = send(req)
	return err
}

// answerWithin is how long an answer may take.
const answerWithin = 10 * time.Second

func send(req *http.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(req.Context(), answerWithin)
	defer cancel()
	res, err := http.DefaultClient.Do(req.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: body: %w", req.URL, err)
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s: answers %d: %.500s", req.URL, res.StatusCode, bytes.TrimSpace(body))
	}
	return body, nil
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
