package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
)

func newAppHistory(sh *shell, s *scope) *cobra.Command {
	f := &outputFlag{}
	cmd := &cobra.Command{
		Use:     "history NAME",
		Short:   "Show what was deployed, newest last",
		Example: "  lockstep app history shop",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return sh.appHistory(cmd.Context(), s, f, args[0]) },
	}
	f.bind(cmd, formatWide, formatJSON, formatYAML, formatName)
	return cmd
}

func (sh *shell) appHistory(ctx context.Context, s *scope, f *outputFlag, name string) error {
	if err := f.check(); err != nil {
		return err
	}
	ref, err := client.ParseRef(name, s.namespace)
	if err != nil {
		return err
	}
	apps, err := s.applications()
	if err != nil {
		return err
	}
	app, err := apps.Get(ctx, ref)
	if err != nil {
		return err
	}
	history := app.Status.History
	if history == nil {
		history = []v1alpha1.RevisionHistory{} // an empty list, not null
	}
	if done, err := f.encode(sh.Out, history); done {
		return err
	}
	switch {
	case f.format == formatName:
		for _, h := range history {
			fmt.Fprintln(sh.Out, h.ID)
		}
	case len(history) == 0:
		sh.note("%s was not deployed yet.", ref)
	default:
		sh.historyTable(history, f.format == formatWide)
	}
	return nil
}

// historyTable prints deployments; wide shows whole revisions and the source.
func (sh *shell) historyTable(history []v1alpha1.RevisionHistory, wide bool) {
	head := []string{"ID", "DEPLOYED", "TOOK", "REVISION", "BY"}
	if wide {
		head = append(head, "SOURCE")
	}
	t := sh.newTable(head...)
	rows := make([][]cell, len(history))
	for i, h := range history {
		took := ""
		if h.DeployStartedAt != nil {
			took = h.DeployedAt.Sub(h.DeployStartedAt.Time).String()
		}
		revision := revisionText(h.Revision, h.Revisions)
		if wide && len(h.Revisions) == 0 {
			revision = h.Revision
		}
		rows[i] = []cell{
			text(fmt.Sprint(h.ID)), text(h.DeployedAt.UTC().Format(time.RFC3339)), text(took),
			text(revision), text(initiator(h.InitiatedBy)),
		}
		if wide {
			of := &v1alpha1.Application{Spec: v1alpha1.ApplicationSpec{Source: &h.Source, Sources: h.Sources}}
			rows[i] = append(rows[i], text(sourceText(of)))
		}
	}
	t.print(rows)
}
