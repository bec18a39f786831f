package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-cd/lockstep/bench/kube"
	"github.com/lockstep-cd/lockstep/bench/workload"
	"github.com/lockstep-cd/lockstep/internal/install"
	"github.com/lockstep-cd/lockstep/test/local"
)

// cluster is a running local cluster of its own.
type cluster struct {
	*local.Cluster
	client rest.Interface
}

// startCluster starts a fresh cluster below dir. It ends with Stop, or with this process however that ends.
func startCluster(ctx context.Context, root, dir string) (*cluster, error) {
	running, err := local.StartCluster(ctx, root, dir)
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: running}
	if c.client, err = kube.Client(c.Kubeconfig); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// prepare makes what must be there before the clock starts: our definitions, the project, the destination namespaces and
// what the control plane puts into every namespace.
func (c *cluster) prepare(ctx context.Context, spec workload.Spec) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", c.Kubeconfig, err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: client: %w", c.Kubeconfig, err)
	}
	if _, err := install.All(ctx, client, install.Options{Namespace: spec.ControlNamespace}); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	for n := range spec.Namespaces {
		body, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": workload.NamespaceName(n)},
		})
		if err != nil {
			return err
		}
		if err := c.client.Post().AbsPath("/api/v1/namespaces").Body(body).Do(ctx).Error(); err != nil {
			return fmt.Errorf("namespace %s: create: %w", workload.NamespaceName(n), err)
		}
	}
	return until(ctx, pace{20 * time.Millisecond, 30 * time.Second}, func(ctx context.Context) error {
		for n := range spec.Namespaces {
			for _, own := range []string{"serviceaccounts/default", "configmaps/kube-root-ca.crt"} {
				path := "/api/v1/namespaces/" + workload.NamespaceName(n) + "/" + own
				if err := c.client.Get().AbsPath(path).Do(ctx).Error(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// pace is how often something is looked at, and for how long.
type pace struct{ every, limit time.Duration }

// until repeats do until it has no error, and gives its last error when the time is over or a process has ended.
func until(ctx context.Context, p pace, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	var last error
	for {
		err := do(ctx)
		if err == nil || errors.Is(err, local.ErrEnded) {
			return err
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", p.limit, last)
		case <-tick.C:
		}
	}
}
