package engine

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/repository"
)

// Access reads once what the loop follows: projects and the Secrets of repositories. It is for previews.
type Access struct {
	config    *rest.Config
	client    dynamic.Interface
	namespace string
}

// NewAccess makes one for the namespace that applications live in.
func NewAccess(config *rest.Config, namespace string) (*Access, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", config.Host, err)
	}
	return &Access{config: config, client: client, namespace: namespace}, nil
}

// Capabilities are what charts see of the cluster.
func (a *Access) Capabilities() (job.Capabilities, error) {
	c, err := cluster.New(cluster.Options{REST: a.config, Read: readByDefault, OnChange: func(cluster.Change) {}})
	if err != nil {
		return job.Capabilities{}, err
	}
	version, apis, err := c.Capabilities()
	return job.Capabilities{KubeVersion: version, APIVersions: apis}, err
}

// Rules are those of a project.
func (a *Access) Rules(ctx context.Context, name string) (project.Rules, error) {
	u, err := a.client.Resource(v1alpha1.AppProjects()).Namespace(a.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return project.Rules{}, fmt.Errorf("project %s: does not exist in namespace %s", name, a.namespace)
	}
	if err != nil {
		return project.Rules{}, fmt.Errorf("project %s: %w", name, err)
	}
	p := &v1alpha1.AppProject{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
		return project.Rules{}, fmt.Errorf("project %s: %w", name, err)
	}
	return project.Of(p), nil
}

// Repositories fills set with the credentials, hosts and authorities of the namespace. A caller who may not read Secrets
// gets an error that apierrors.IsForbidden knows, and a set that serves public repositories.
func (a *Access) Repositories(ctx context.Context, set *repository.Set) error {
	selector := repository.TypeLabel + " in (" + repository.TypeRepository + "," + repository.TypeTemplate + ")"
	list, err := a.core("secrets").List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return fmt.Errorf("secrets of repositories: %w", err)
	}
	for i := range list.Items {
		s := &corev1.Secret{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, s); err != nil {
			return fmt.Errorf("secret %s: is not readable", list.Items[i].GetName()) // the cause would quote the data
		}
		if entry, ok := repository.FromSecret(s); ok {
			set.Put(s.Name, &entry)
		}
	}
	hosts, err := a.configMap(ctx, "argocd-ssh-known-hosts-cm")
	if err != nil {
		return err
	}
	set.KnownHosts(hosts["ssh_known_hosts"])
	keys, err := a.configMap(ctx, "argocd-gpg-keys-cm")
	if err != nil {
		return err
	}
	set.SigningKeys(keys)
	authorities, err := a.configMap(ctx, "argocd-tls-certs-cm")
	set.Authorities(maps.Clone(authorities))
	return err
}

// configMap is the data of a ConfigMap; one that is not there has none.
func (a *Access) configMap(ctx context.Context, name string) (map[string]string, error) {
	u, err := a.core("configmaps").Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("config map %s: %w", name, err)
	}
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	return data, err
}

func (a *Access) core(resource string) dynamic.ResourceInterface {
	return a.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(a.namespace)
}
