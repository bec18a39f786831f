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
}

// StartCluster starts a cluster whose files lie in dir and waits until it is ready. Stop ends it.
func StartCluster(ctx context.Context, root, name, dir string) (*Cluster, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(root, "dev", "devcluster"), "up", "--foreground",
		"--name", name, "--dir", dir, "--parent-pid", fmt.Sprint(os.Getpid()))
	log := filepath.Join(dir, "supervisor.log")
	f, err := logFile(log, cmd)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = in
	p, err := start("local cluster", cmd)
	_ = in.Close() // the child has its own
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	c := &Cluster{Process: p}
	ready := make(chan []string, 1)
	go readReady(out, ready)
	select {
	case fields, ok := <-ready:
		if !ok {
			<-p.exited
			return nil, p.ended(log)
		}
		c.take(fields)
		return c, nil
	case <-time.After(readyWithin):
		err = fmt.Errorf("local cluster: not ready within %s; see %s", readyWithin, log)
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.Stop()
	return nil, err
}

// Stop ends the cluster.
func (c *Cluster) Stop() { c.Process.Stop(stopWithin) }

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
