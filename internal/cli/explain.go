package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cause"
	"github.com/lockstep-cd/lockstep/internal/client"
)

func newExplain(sh *shell) *cobra.Command {
	s, f := &scope{}, &outputFlag{}
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Say why an application is not in step or not well, and what to do",
		Long: "Follows an application down to what explains its state: a condition, a sync that failed, or, below an object that is\n" +
			"not well, its pods, their containers, claims and recent events. Each cause is one sentence with the next step and the\n" +
			"chain that leads to it. Reads only, with your rights in the cluster; the last line of a container's log may be among\n" +
			"what it shows.",
		Example: "  lockstep explain shop\n  lockstep explain team-a/shop -o json",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return sh.explain(cmd.Context(), s, f, args[0]) },
	}
	s.bind(cmd, sh)
	f.bind(cmd, formatJSON, formatYAML)
	return cmd
}

// explained is an explanation for programs.
type explained struct {
	Application string                    `json:"application"`
	Health      v1alpha1.HealthStatusCode `json:"health"`
	Sync        v1alpha1.SyncStatusCode   `json:"sync"`
	Causes      []cause.Cause             `json:"causes"`
	Unread      []string                  `json:"unread,omitempty"`
}

func (sh *shell) explain(ctx context.Context, s *scope, f *outputFlag, name string) error {
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
	why, err := apps.Explain(ctx, ref)
	if err != nil {
		return err
	}
	causes := why.Causes
	if causes == nil {
		causes = []cause.Cause{} // an empty list, not null
	}
	done, err := f.encode(sh.Out, explained{
		Application: ref.String(), Health: why.App.Status.Health.Status, Sync: why.App.Status.Sync.Status,
		Causes: causes, Unread: why.Unread,
	})
	if done || err != nil {
		return err
	}
	fmt.Fprintln(sh.Out, sh.verdict(why.App))
	for _, c := range why.Causes {
		sh.cause(c)
	}
	for _, text := range why.Unread {
		sh.note("%s; a cause may lie there", oneLine(text))
	}
	if len(causes) == 0 && why.App.Status.Health.Status != v1alpha1.HealthHealthy {
		sh.note("Nothing that was looked at says why.")
	}
	return nil
}

// cause prints one cause: the sentence, the next step, and the chain with each link below the one that it belongs to.
func (sh *shell) cause(c cause.Cause) {
	fmt.Fprintf(sh.Out, "\n%s\n", sh.paint.as(strong, oneLine(c.Sentence)))
	fmt.Fprintf(sh.Out, "%s %s\n", sh.paint.as(dim, "Next:"), oneLine(c.Next))
	for depth, link := range c.Chain {
		line := oneLine(link.Object)
		if link.Says != "" {
			line += "  " + oneLine(link.Says)
		}
		mark := ""
		if depth > 0 {
			mark = strings.Repeat("  ", depth-1) + "└ "
		}
		fmt.Fprintln(sh.Out, sh.paint.as(dim, "  "+mark+line))
	}
}
