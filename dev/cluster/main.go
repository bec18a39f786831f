// Command devcluster runs a real Kubernetes on one machine without containers: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler and nodes simulated by KWOK,
// each a process of this one binary. See README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/cli"
	"github.com/lockstep-cd/lockstep/dev/cluster/internal/component"
	"github.com/lockstep-cd/lockstep/dev/cluster/internal/supervise"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	// Components parse their own flags and handle signals themselves.
	if len(args) > 1 && args[0] == "component" {
		return runComponent(args[1], args[2:])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.New(os.Stdout, os.Stderr).ExecuteContext(ctx)
}

func runComponent(name string, args []string) error {
	params, err := component.Parse(args)
	if err != nil {
		return err
	}
	supervise.WatchParent(context.Background(), os.Getppid(), func() { os.Exit(1) })
	return component.Run(name, params)
}
