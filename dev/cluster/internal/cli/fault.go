package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/faults"
	"github.com/lockstep-cd/lockstep/dev/cluster/internal/layout"
	"github.com/lockstep-cd/lockstep/dev/cluster/internal/supervise"
)

func (a *app) fault() *cobra.Command {
	cmd := &cobra.Command{Use: "fault", Short: "Make components or the API misbehave, for tests"}
	cmd.AddCommand(
		a.componentFault(supervise.Kill, "Kill a component; it stays down until 'restart' or 'clear'"),
		a.componentFault(supervise.Restart, "Start a component again (killing it first when it runs)"),
		a.componentFault(supervise.Freeze, "Stop a component from running without ending it (SIGSTOP)"),
		a.componentFault(supervise.Thaw, "Let a frozen component run on"),
		a.apiFault(), a.clearFaults(),
	)
	return cmd
}

func (a *app) componentFault(action, short string) *cobra.Command {
	f := supervise.ComponentFault{Action: action}
	cmd := &cobra.Command{
		Use:       action + " COMPONENT",
		Short:     short,
		Long:      short + ".\n\nComponents: " + strings.Join(layout.Components(), ", ") + ".",
		Args:      cobra.ExactArgs(1),
		ValidArgs: layout.Components(),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Component = args[0]
			return a.call(cmd.Context(), "POST", "/component", f, nil)
		},
	}
	if action == supervise.Kill {
		cmd.Flags().DurationVar(&f.RestartAfter, "restart-after", 0, "start it again after this time")
	}
	return cmd
}

func (a *app) apiFault() *cobra.Command {
	var f faults.Fault
	var answer string
	var last time.Duration
	cmd := &cobra.Command{
		Use:   "api --kind RESOURCE.GROUP --answer ANSWER",
		Short: "Make the API server answer badly for one resource",
		Long: `Make the API server answer badly for one resource, to everybody. Watches that are
open already go on. Answers: 429, 500, 503, 403, timeout.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Answer = faults.Answer(answer)
			if err := f.Validate(); err != nil {
				return err
			}
			if last < 0 {
				return fmt.Errorf("--for %s: want a positive duration", last)
			}
			if last > 0 {
				f.Until = time.Now().Add(last)
			}
			return a.call(cmd.Context(), "POST", "/faults", f, nil)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Resource, "kind", "", "resource, for example deployments.apps, configmaps, or * for all")
	flags.StringVar(&answer, "answer", string(faults.TooManyRequests), "what to answer")
	flags.StringSliceVar(&f.Verbs, "verb", nil, "only these verbs, for example list,watch,patch (default: all)")
	flags.DurationVar(&last, "for", 0, "how long (default: until cleared)")
	return cmd
}

func (a *app) clearFaults() *cobra.Command {
	return &cobra.Command{
		Use:   "clear",
		Short: "End all faults: start what was killed, thaw what is frozen, answer well",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.call(cmd.Context(), "DELETE", "/faults", nil, nil)
		},
	}
}
