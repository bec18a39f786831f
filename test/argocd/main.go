// Command argocd runs the parts of a real Argo CD that adoption is tested against: its application controller, its
// repo-server, and a Redis in memory. Each is a process of its own; the first argument says which, the rest are Argo CD's
// own flags.
//
// It is a module of its own: Argo CD is compiled with the Kubernetes it was made for, and Lockstep with its own.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	reposerver "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{Use: "argocd", SilenceUsage: true}
	app, repo := controller.NewCommand(), reposerver.NewCommand()
	app.Use, repo.Use = "controller", "repo-server"
	root.AddCommand(app, repo, newRedis())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := root.ExecuteContext(ctx); err != nil {
		os.Exit(1)
	}
}

// newRedis serves what Argo CD keeps in Redis, on the address given, until it is stopped.
func newRedis() *cobra.Command {
	return &cobra.Command{
		Use: "redis ADDRESS", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			server := miniredis.NewMiniRedis()
			if err := server.StartAddr(args[0]); err != nil {
				return fmt.Errorf("redis: %w", err)
			}
			defer server.Close()
			// Its clock stands still unless somebody moves it, and nothing would ever expire.
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for {
				select {
				case <-cmd.Context().Done():
					return nil
				case <-tick.C:
					server.FastForward(time.Second)
				}
			}
		},
	}
}
