package supervise

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/layout"
)

// api is the supervisor's own view of the API server, for the start only.
type api struct {
	client *kubernetes.Clientset
	config *rest.Config
	nodes  int
}

func (s *Supervisor) newAPI() (*api, error) {
	config, err := clientcmd.BuildConfigFromFlags("", layout.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: kubeconfig: %w", s.opts.Name, err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: client: %w", s.opts.Name, err)
	}
	return &api{client: client, config: config, nodes: s.opts.Nodes}, nil
}

func (a *api) close() {
	if t, ok := a.client.RESTClient().(*rest.RESTClient); ok {
		t.Client.CloseIdleConnections()
	}
}

// healthy reports whether the API server calls itself ready.
func (a *api) healthy(ctx context.Context) error {
	return a.client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// usable reports whether pods can run: nodes are ready, the controller manager has
// made the default service account and the CA's ConfigMap that every pod mounts.
func (a *api) usable(ctx context.Context) error {
	list, err := a.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	ready := 0
	for _, n := range list.Items {
		if nodeReady(&n) {
			ready++
		}
	}
	// A kept cluster may have fewer nodes: somebody deleted some.
	if ready < len(list.Items) || ready == 0 {
		return fmt.Errorf("%d of %d nodes ready", ready, a.nodes)
	}
	if _, err := a.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return err
	}
	_, err = a.client.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	return err
}

func nodeReady(n *corev1.Node) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeNotReady {
			return false
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
