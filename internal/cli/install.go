package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-cd/lockstep/internal/install"
)

type installFlags struct {
	scope
	timeout time.Duration
}

func newInstall(sh *shell) *cobra.Command {
	f := &installFlags{}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Write what a cluster needs before Lockstep can run in it",
		Long: "Writes the definitions of Application and AppProject, the namespace and the default project. It only adds: a\n" +
			"definition that is there is widened, never narrowed, and a project that is there stays as it is.",
		Example: "  lockstep install --kubeconfig ~/.kube/config",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return sh.install(cmd.Context(), f) },
	}
	f.scope.bind(cmd, sh)
	cmd.Flags().DurationVar(&f.timeout, "timeout", 30*time.Second, "how long to wait until the cluster serves the definitions")
	return cmd
}

func (sh *shell) install(ctx context.Context, f *installFlags) error {
	config, err := f.config()
	if err != nil {
		return err
	}
	config.QPS = -1 // the API server has fair limits of its own
	cluster, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	report, err := install.All(ctx, cluster, install.Options{Namespace: f.namespace, Timeout: f.timeout})
	for _, change := range report.Changes {
		fmt.Fprintf(sh.Out, "%s %s\n", change.Object, strings.ToLower(string(change.Action)))
	}
	return err
}
