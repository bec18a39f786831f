package local

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// readyWithin is how long the local cluster may take to answer; it needs seconds on two idle cores.
	readyWithin = 3 * time.Minute
	stopWithin  = 30 * time.Second
)

// Cluster is a running local cluster.
type Cluster struct {
	*Process
	// Kubeconfig of its administrator, and Server, the address of its API.
	Kubeconfig, Server string

	root, id, dir string
}

// StartCluster starts a cluster whose files lie in dir and waits until it is ready. Its name is that of dir. Stop ends it.
func StartCluster(ctx context.Context, root, dir string) (*Cluster, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("local cluster: directory: %w", err)
	}
	c := &Cluster{root: root, id: filepath.Base(dir), dir: dir}
	cmd := c.command(context.WithoutCancel(ctx), "up", "--foreground", "--parent-pid", fmt.Sprint(os.Getpid()))
	log := filepath.Join(dir, "supervisor.log")
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("local cluster: output: %w", err)
	}
	cmd.Stdout = in
	c.Process, err = Start("local cluster", cmd, log)
	_ = in.Close() // the child has its own
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	ready := make(chan []string, 1)
	go readReady(out, ready)
	select {
	case fields, ok := <-ready:
		if !ok {
			return nil, c.Ended()
		}
		c.take(fields)
		return c, nil
	case <-time.After(readyWithin):
		err = fmt.Errorf("local cluster: not ready within %s; see %s", readyWithin, log)
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = c.Stop() // err says more
	return nil, err
}

// Stop ends the cluster.
func (c *Cluster) Stop() error { return c.Process.Stop(stopWithin) }

// Run does something with the running cluster, such as fault or expose, and gives what the command printed.
func (c *Cluster) Run(ctx context.Context, args ...string) (string, error) {
	out, err := c.command(ctx, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("devcluster %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

func (c *Cluster) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, script(c.root), append(args, "--name", c.id, "--dir", c.dir)...)
}

// readReady reads the supervisor's output to its end and sends the fields of the line
// ready kubeconfig=PATH server=URL took=DURATION.
func readReady(from io.ReadCloser, ready chan<- []string) {
	defer func() { _ = from.Close() }()
	defer close(ready)
	sent := false
	for lines := bufio.NewScanner(from); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); !sent && len(fields) > 1 && fields[0] == "ready" {
			ready <- fields[1:]
			sent = true
		}
	}
}

func (c *Cluster) take(fields []string) {
	for _, field := range fields {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "kubeconfig":
			c.Kubeconfig = value
		case "server":
			c.Server = value
		}
	}
}
