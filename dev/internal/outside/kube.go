package outside

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-cd/lockstep/internal/client/direct"
)

// Kube speaks to the cluster as its administrator: the hand that changes things, and the eye that checks.
type Kube struct {
	dynamic.Interface
	// Apps reads and watches applications.
	Apps   *direct.Client
	config *rest.Config
}

// Mapper knows the kinds that the cluster serves now.
func (k *Kube) Mapper() (meta.RESTMapper, error) {
	c, err := discovery.NewDiscoveryClientForConfig(k.config)
	if err != nil {
		return nil, err
	}
	groups, err := restmapper.GetAPIGroupResources(c)
	if err != nil {
		return nil, err
	}
	return restmapper.NewDiscoveryRESTMapper(groups), nil
}

// Connect makes a client for the cluster of a kubeconfig.
func Connect(kubeconfig string) (*Kube, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.QPS = -1
	config.UserAgent = "lockstep-dev"
	config.WarningHandler = rest.NoWarnings{} // such as that Argo CD's finalizers have short names
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	apps, err := direct.New(rest.CopyConfig(config))
	if err != nil {
		return nil, err
	}
	return &Kube{Interface: d, Apps: apps, config: config}, nil
}

// Create makes an object of the resource in its namespace.
func (k *Kube) Create(ctx context.Context, gvr schema.GroupVersionResource, o *unstructured.Unstructured) error {
	_, err := k.Resource(gvr).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{FieldManager: "lockstep-dev"})
	return err
}

// Deployments is the resource of Deployments.
func Deployments() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}

// lookEvery is how often something is looked at that announces nothing.
const lookEvery = 25 * time.Millisecond

// Until looks again and again until found answers true or an error, or ctx ends.
func Until(ctx context.Context, found func(context.Context) (bool, error)) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if ok, err := found(ctx); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
