package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/client/direct"
)

// defaultNamespace is where applications live unless somebody says otherwise.
const defaultNamespace = "lockstep"

// connection is the way to a cluster.
type connection struct {
	kubeconfig string
	context    string
}

func (c *connection) bind(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&c.kubeconfig, "kubeconfig", "", "file with the way to the cluster (default $KUBECONFIG, then ~/.kube/config)")
	cmd.PersistentFlags().StringVar(&c.context, "context", "", "context of the kubeconfig (default its current one)")
}

// config reads the kubeconfig.
func (c *connection) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, ofKind(errUsage, "no kubeconfig: name one by --kubeconfig or KUBECONFIG")
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.UserAgent = "lockstep-cli"
	return config, nil
}

// scope is a connection and the namespace that names without one are in.
type scope struct {
	connection
	namespace string
}

func (s *scope) bind(cmd *cobra.Command, sh *shell) {
	s.connection.bind(cmd)
	namespace := sh.Getenv("LOCKSTEP_NAMESPACE")
	if namespace == "" {
		namespace = defaultNamespace
	}
	cmd.PersistentFlags().StringVarP(&s.namespace, "namespace", "n", namespace, "namespace of the applications; LOCKSTEP_NAMESPACE sets the default")
}

// applications connects.
func (s *scope) applications() (client.Applications, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	return direct.New(config)
}

// refs reads names.
func (s *scope) refs(names []string) ([]client.Ref, error) {
	refs := make([]client.Ref, 0, len(names))
	for _, name := range names {
		ref, err := client.ParseRef(name, s.namespace)
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// limit bounds ctx by a --timeout; 0 does not. The cause of the end is errTimeout.
func limit(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, ofKind(errTimeout, "not within %s", timeout))
}
