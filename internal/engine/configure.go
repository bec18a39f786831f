package engine

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/health"
	"github.com/lockstep-cd/lockstep/internal/health/custom"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/queue"
	"github.com/lockstep-cd/lockstep/internal/settings"
)

// configuration is what the settings of argocd-cm say about live objects: how they are marked, and when they are well.
type configuration struct {
	marks  marks
	health custom.Rules
}

// configured makes a configuration from the data of argocd-cm, nil where there is none, for applications named without the
// namespace home. What can not be used is told, and what holds without it stands.
func configured(data map[string]string, home string) (*configuration, []error) {
	data, bad := settings.Customizations(data)
	s, errs := settings.Read(data)
	bad = append(bad, errs...)
	rules, errs := custom.Of(data)
	for _, err := range errs {
		bad = append(bad, fmt.Errorf("%s: %w", settings.ConfigMap, err))
	}
	return &configuration{marks: marks{Tracking: s.Tracking, home: home}, health: rules}, bad
}

// same tells whether objects are read alike by both.
func (c *configuration) same(other *configuration) bool {
	return c.marks == other.marks && c.health.Digest == other.health.Digest
}

// readByDefault reads an object as it is without settings.
func readByDefault(u *unstructured.Unstructured) cluster.Live { return (&configuration{}).live(u) }

// marks are those in force.
func (e *Engine) marks() marks { return e.configuration.Load().marks }

// rules are what counts as well.
func (e *Engine) rules() health.Rules { return e.configuration.Load().health.Rules }

// configure takes over the settings of argocd-cm; nil stands for no ConfigMap.
func (e *Engine) configure(data map[string]string) {
	now, bad := configured(data, e.opts.Namespace)
	for _, err := range bad {
		e.log.Warn("setting not usable", "error", err)
	}
	if e.hears(InputSettings) {
		e.reconfigure(now)
	}
}

// reconfigure reads live objects by now from now on. Where that is otherwise than before, everything is read again and every
// application looked at: what is declared gets its new mark, nothing else happens.
func (e *Engine) reconfigure(now *configuration) {
	if e.configuration.Swap(now).same(now) {
		return
	}
	e.cluster.Reread()
	for _, key := range e.applications.keys() {
		e.rouse(InputSettings, key, queue.Commits)
	}
}

// getter reads one object of a kind and namespace.
type getter interface {
	Get(ctx context.Context, name string, o metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error)
}

// configurationNow is what the ConfigMap that from reads asks for now. What can not be used of it is not told.
func configurationNow(ctx context.Context, from getter, home string) (*configuration, error) {
	var data map[string]string
	switch cm, err := from.Get(ctx, settings.ConfigMap, metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("ConfigMap %s: %w", settings.ConfigMap, err)
	default:
		if data, _, err = unstructured.NestedStringMap(cm.Object, "data"); err != nil {
			return nil, fmt.Errorf("ConfigMap %s: %w", settings.ConfigMap, err)
		}
	}
	c, _ := configured(data, home)
	return c, nil
}

// inNamespace reads the objects of one resource in a namespace.
type inNamespace struct {
	cluster   *cluster.Cluster
	resource  cluster.Resource
	namespace string
}

// Get reads one by its name.
func (r inNamespace) Get(ctx context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	return r.cluster.Get(ctx, r.resource, manifest.Key{Group: r.resource.Group, Kind: r.resource.Kind, Namespace: r.namespace, Name: name})
}
