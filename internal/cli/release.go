package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/client/direct"
	"github.com/lockstep-cd/lockstep/internal/engine"
)

func newRelease(sh *shell) *cobra.Command {
	f := &handoverFlags{}
	cmd := &cobra.Command{
		Use:   "release NAME... | -l SELECTOR | --project PROJECT",
		Short: "Give applications and their objects back to Argo CD",
		Long: "Marks an application as Argo CD's (label lockstep.dev/manager=argocd), waits until Lockstep has let go of it, gives the\n" +
			"ownership of every object's fields to Argo CD (field manager argocd-controller), and takes away the annotation that\n" +
			"keeps Argo CD away. Objects that Argo CD applies on the client's side get back the annotation\n" +
			"kubectl.kubernetes.io/last-applied-configuration, by which it finds what left the source. No object is changed\n" +
			"otherwise. Lockstep does not touch the application again before `lockstep adopt`.\n\n" +
			"It can be run again at any time: what is released already is left as it is, and one that was cut off goes on; in between\n" +
			"neither of the two keeps the application. It needs the right to patch the objects. Exit codes: 0 all are released, 5\n" +
			"Lockstep did not let go in time, 6 there is none.",
		Example: "  lockstep release shop -n argocd\n  lockstep release -n argocd --selector lockstep.dev/manager=lockstep",
		RunE: func(cmd *cobra.Command, args []string) error {
			return sh.release(cmd, f, args)
		},
	}
	f.bind(cmd, sh)
	return cmd
}

func (sh *shell) release(cmd *cobra.Command, f *handoverFlags, args []string) error {
	config, err := f.config()
	if err != nil {
		return err
	}
	config.QPS = -1 // the API server has fair limits of its own
	back, err := engine.NewHandback(config)
	if err != nil {
		return err
	}
	return sh.handOver(cmd, f, args, func(ctx context.Context, c *direct.Client, ref client.Ref) (string, error) {
		given := 0
		moved, err := c.Release(ctx, ref, client.HandoverOptions{DryRun: f.dryRun, GiveBack: func(ctx context.Context, app *v1alpha1.Application) error {
			keys, err := back.Give(ctx, app)
			given = len(keys)
			return err
		}})
		switch {
		case err != nil:
			return "", err
		case !moved:
			return "is Argo CD's already", nil
		case !f.dryRun:
			return fmt.Sprintf("released; objects given back: %d", given), nil
		}
		app, err := c.Get(ctx, ref)
		if err != nil {
			return "", err
		}
		keys, err := back.Owned(ctx, app)
		return fmt.Sprintf("would be released; objects to give back: %d", len(keys)), err
	})
}
