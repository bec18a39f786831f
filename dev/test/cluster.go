package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// readyWithin is how long a local cluster may take to answer; it needs seconds on two idle cores.
const readyWithin = 3 * time.Minute

// withCluster starts a local cluster that this process owns, calls use with its kubeconfig and stops it again. The
// cluster's supervisor goes down with this process, however that ends.
func (r *runner) withCluster(ctx context.Context, use func(kubeconfig string) error) (err error) {
	dir, err := os.MkdirTemp("", "lockstep-test-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	owned, stop := context.WithCancel(ctx)
	cmd := r.command(owned, command{
		args: []string{"dev/devcluster", "up", "--foreground", "--name", fmt.Sprintf("test-%d", os.Getpid()), "--dir", dir},
	})
	r.say("start the local cluster: %s", strings.Join(cmd.Args, " "))
	cmd.Stdout = nil
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		stop()
		return err
	}
	if err := cmd.Start(); err != nil {
		stop()
		return fmt.Errorf("dev/devcluster: %w", err)
	}
	ready := make(chan string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		readReady(stdout, ready)
	}()
	defer func() {
		stop()
		<-done // the pipe must be read out before Wait closes it
		if waitErr := cmd.Wait(); waitErr != nil && err == nil && !errors.Is(waitErr, context.Canceled) {
			r.say("the local cluster ended: %v", waitErr)
		}
	}()
	select {
	case kubeconfig, ok := <-ready:
		if !ok {
			return errors.New("local cluster: ended before it was ready")
		}
		r.say("the local cluster is ready: %s", kubeconfig)
		return use(kubeconfig)
	case <-time.After(readyWithin):
		return fmt.Errorf("local cluster: not ready within %s", readyWithin)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readReady reads all of the supervisor's output, copies it, and sends the kubeconfig of its ready line:
// ready kubeconfig=PATH server=URL. It closes ready at the end.
func readReady(from io.Reader, ready chan<- string) {
	defer close(ready)
	sent := false
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "ready" || sent {
			fmt.Println(lines.Text())
			continue
		}
		for _, field := range fields[1:] {
			if path, ok := strings.CutPrefix(field, "kubeconfig="); ok {
				ready <- path
				sent = true
			}
		}
	}
}
