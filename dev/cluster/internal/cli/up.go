package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/supervise"
)

// supervisorLog is the log of a supervisor without a terminal, in the cluster's directory.
const supervisorLog = "supervisor.log"

type upFlags struct {
	nodes      int
	foreground bool
	detached   bool
	keep       bool
	parent     int
}

func (a *app) up() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster and wait until it is ready",
		Long: `Start a cluster and wait until it is ready.

Without --foreground the cluster stays until 'down'. With it, this process is the
cluster's supervisor: it prints one line when the cluster is ready,
    ready kubeconfig=PATH server=URL took=DURATION
and the cluster ends with it, with SIGINT or SIGTERM, or with its parent process.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.foreground {
				return a.upForeground(cmd.Context(), f)
			}
			return a.upDetached(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.nodes, "nodes", 3, "number of nodes")
	flags.BoolVar(&f.foreground, "foreground", false, "stay, and end the cluster with this process or its parent")
	flags.BoolVar(&f.keep, "keep", false, "keep the data when the cluster ends, and use what an earlier one with --keep left")
	flags.IntVar(&f.parent, "parent-pid", 0, "with --foreground, the process whose end ends the cluster (default: the parent)")
	flags.BoolVar(&f.detached, "detached", false, "do not end with the parent")
	_ = flags.MarkHidden("detached")
	return cmd
}

func (a *app) upForeground(ctx context.Context, f upFlags) error {
	dir, err := a.directory()
	if err != nil {
		return err
	}
	if !f.detached {
		parent := f.parent
		if parent == 0 {
			parent = os.Getppid()
		}
		var cancel context.CancelFunc
		ctx, cancel = supervise.WithParent(ctx, parent)
		defer cancel()
	}
	s, err := supervise.New(supervise.Options{
		Name: a.name, Dir: dir, Nodes: f.nodes, Keep: f.keep,
		Log: slog.New(slog.NewTextHandler(a.err, nil)).With("component", "supervisor"),
	})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	select {
	case err := <-done:
		return err
	case <-s.Ready():
	}
	printed := a.printf("ready kubeconfig=%s server=%s took=%s\n", s.Kubeconfig(), s.Server(), s.Took().Round(time.Millisecond))
	return errors.Join(printed, <-done)
}

// upDetached starts a supervisor of its own session and waits for it.
func (a *app) upDetached(ctx context.Context, f upFlags) error {
	dir, err := a.directory()
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("cluster %s: directory: %w", a.name, err)
	}
	var st supervise.Status
	if err := supervise.Call(ctx, dir, "GET", "/status", nil, &st); err == nil {
		return a.printf("cluster %s runs already\nkubeconfig: %s\nserver:     %s\n", a.name, st.Kubeconfig, st.Server)
	}
	began := time.Now()
	cmd, err := a.startSupervisor(dir, f)
	if err != nil {
		return err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-exited:
			return fmt.Errorf("cluster %s: did not start (%w):\n%s", a.name, errOr(err, "ended"), lastLines(filepath.Join(dir, supervisorLog)))
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-exited
			return ctx.Err()
		case <-tick.C:
		}
		st = supervise.Status{}
		if err := supervise.Call(ctx, dir, "GET", "/status", nil, &st); err == nil && st.Ready && st.PID == cmd.Process.Pid {
			return a.printf("cluster %s is ready after %s\nkubeconfig: %s\nserver:     %s\n",
				a.name, time.Since(began).Round(100*time.Millisecond), st.Kubeconfig, st.Server)
		}
	}
}

func (a *app) startSupervisor(dir string, f upFlags) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("own executable: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cluster %s: directory: %w", a.name, err)
	}
	log, err := os.OpenFile(filepath.Join(dir, supervisorLog), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: log: %w", a.name, err)
	}
	defer func() { _ = log.Close() }()
	args := []string{"up", "--foreground", "--detached", "--name", a.name, "--dir", dir, "--nodes", strconv.Itoa(f.nodes)}
	if f.keep {
		args = append(args, "--keep")
	}
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("supervisor: start: %w", err)
	}
	return cmd, nil
}

func errOr(err error, text string) error {
	if err == nil {
		return errors.New(text)
	}
	return err
}

// lastLines is the end of a file, for an error message.
func lastLines(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-10):], []byte("\n")))
}
