package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/layout"
	"github.com/lockstep-cd/lockstep/dev/cluster/internal/supervise"
)

// downLimit bounds the wait for a supervisor that was asked to end.
const downLimit = 30 * time.Second

func (a *app) down() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End a cluster; its data goes unless it was started with --keep",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var st supervise.Status
			err := a.call(cmd.Context(), "GET", "/status", nil, &st)
			if errors.Is(err, supervise.ErrNotRunning) {
				return a.printf("cluster %s is not running\n", a.name)
			}
			if err != nil {
				return err
			}
			if err := a.call(cmd.Context(), "POST", "/stop", nil, nil); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), downLimit)
			defer cancel()
			if err := supervise.WaitForExit(ctx, st.PID); err != nil {
				return fmt.Errorf("cluster %s: supervisor %d still runs: %w", a.name, st.PID, err)
			}
			return a.printf("cluster %s is down\n", a.name)
		},
	}
}

func (a *app) status() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show a cluster's processes, memory and faults",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var st supervise.Status
			if err := a.call(cmd.Context(), "GET", "/status", nil, &st); err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(a.out)
				enc.SetIndent("", "  ")
				return enc.Encode(st)
			}
			return a.printStatus(st)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) printStatus(st supervise.Status) error {
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	state := "starting"
	if st.Ready {
		state = "ready"
	}
	fmt.Fprintf(w, "cluster\t%s (%s)\nserver\t%s\nkubeconfig\t%s\nnodes\t%d\nmemory\t%d MiB\n\nCOMPONENT\tSTATE\tPID\tSTARTS\tMEMORY\n",
		st.Name, state, st.Server, st.Kubeconfig, st.Nodes, st.PSSKiB/1024)
	fmt.Fprintf(w, "supervisor\trunning\t%d\t1\t\n", st.PID)
	for _, c := range st.Components {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d MiB\n", c.Name, c.State, c.PID, c.Starts, c.PSSKiB/1024)
	}
	for _, f := range st.Faults {
		until := "until cleared"
		if !f.Until.IsZero() {
			until = "until " + f.Until.Format(time.TimeOnly)
		}
		fmt.Fprintf(w, "fault\t%s answers %s %s %v\n", f.Resource, f.Answer, until, f.Verbs)
	}
	return w.Flush()
}

func (a *app) kubeconfig() *cobra.Command {
	var print bool
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the administrator's kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, err := a.kubeconfigPath()
			if err != nil {
				return err
			}
			if !print {
				return a.printf("%s\n", path)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("cluster %s: kubeconfig: %w", a.name, err)
			}
			_, err = a.out.Write(data)
			return err
		},
	}
	cmd.Flags().BoolVar(&print, "print", false, "print the content instead of the path")
	return cmd
}

func (a *app) kubeconfigPath() (string, error) {
	dir, err := a.directory()
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(filepath.Join(dir, layout.Kubeconfig))
	if err != nil {
		return "", fmt.Errorf("cluster %s: kubeconfig: %w", a.name, err)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("cluster %s: %w (no kubeconfig in %s)", a.name, supervise.ErrNotRunning, dir)
	}
	return path, nil
}
