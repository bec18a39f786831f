// Package cli is the command line of devcluster: it parses, makes one call and prints.
// Results go to stdout, everything else to stderr.
package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/layout"
	"github.com/lockstep-cd/lockstep/dev/cluster/internal/supervise"
)

// app carries what all commands share.
type app struct {
	out, err io.Writer
	name     string
	dir      string
}

// New makes the root command, writing to out and err.
func New(out, err io.Writer) *cobra.Command {
	a := &app{out: out, err: err}
	root := &cobra.Command{
		Use:           "devcluster",
		Short:         "A real Kubernetes on one machine, without containers",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if !clusterName.MatchString(a.name) {
				return fmt.Errorf("name %q: want lower-case letters, digits and dashes", a.name)
			}
			return nil
		},
	}
	root.SetOut(out)
	root.SetErr(err)
	flags := root.PersistentFlags()
	flags.StringVar(&a.name, "name", "default", "name of the cluster")
	flags.StringVar(&a.dir, "dir", "", "directory of the cluster (default: by name, below the user's cache)")
	root.AddCommand(a.up(), a.down(), a.status(), a.kubeconfig(), a.expose(), a.fault())
	return root
}

var clusterName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$`)

// directory is where the cluster lives.
func (a *app) directory() (string, error) {
	if a.dir != "" {
		return a.dir, nil
	}
	return layout.DefaultDir(a.name)
}

// call sends one request to the cluster's supervisor.
func (a *app) call(ctx context.Context, method, path string, in, out any) error {
	dir, err := a.directory()
	if err != nil {
		return err
	}
	if err := supervise.Call(ctx, dir, method, path, in, out); err != nil {
		return fmt.Errorf("cluster %s: %w", a.name, err)
	}
	return nil
}

func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.out, format, args...)
	return err
}
