package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/client/direct"
)

func newAdopt(sh *shell) *cobra.Command {
	f := &handoverFlags{}
	var quiet time.Duration
	cmd := &cobra.Command{
		Use:   "adopt NAME... | -l SELECTOR | --project PROJECT",
		Short: "Hand applications over from Argo CD to Lockstep",
		Long: "Tells Argo CD to leave an application (annotation argocd.argoproj.io/skip-reconcile), waits until a sync that is under\n" +
			"way has ended and Argo CD writes the application no more, and marks it as Lockstep's (label\n" +
			"lockstep.dev/manager=lockstep), for `lockstep serve --applications lockstep.dev/manager=lockstep`. Objects are not\n" +
			"touched: the first sync takes them over, in place. An application that was paused stays paused, by the annotation\n" +
			"lockstep.dev/skip-reconcile.\n\n" +
			"It can be run again at any time: what is adopted already is left as it is, and a hand-over that was cut off goes on.\n" +
			"An application of an ApplicationSet is refused unless spec.preservedFields keeps the marks. `lockstep release` is the\n" +
			"way back. Exit codes: 0 all are adopted, 5 an application did not come to rest in time, 6 there is none, 7 refused.",
		Example: "  lockstep adopt shop -n argocd\n  lockstep adopt -n argocd --selector team=a --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			return sh.handOver(cmd, f, args, func(ctx context.Context, c *direct.Client, ref client.Ref) (string, error) {
				moved, err := c.Adopt(ctx, ref, client.HandoverOptions{DryRun: f.dryRun, Quiet: quiet})
				switch {
				case err != nil:
					return "", err
				case !moved:
					return "is Lockstep's already", nil
				case f.dryRun:
					return "would be adopted", nil
				}
				return "adopted", nil
			})
		},
	}
	f.bind(cmd, sh)
	cmd.Flags().DurationVar(&quiet, "quiet", 5*time.Second, "how long Argo CD must not have written the application")
	return cmd
}
