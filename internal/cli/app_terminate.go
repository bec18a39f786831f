package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/internal/client"
)

func newAppTerminate(sh *shell, s *scope) *cobra.Command {
	return &cobra.Command{
		Use:     "terminate NAME",
		Aliases: []string{"terminate-op"},
		Short:   "End the running operation of an application; nothing is undone",
		Example: "  lockstep app terminate shop",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return sh.appTerminate(cmd.Context(), s, args[0]) },
	}
}

func (sh *shell) appTerminate(ctx context.Context, s *scope, name string) error {
	ref, err := client.ParseRef(name, s.namespace)
	if err != nil {
		return err
	}
	apps, err := s.applications()
	if err != nil {
		return err
	}
	if err := apps.Terminate(ctx, ref); err != nil {
		return err
	}
	sh.note("%s: the operation was asked to end.", ref)
	return nil
}
