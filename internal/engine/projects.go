package engine

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/project"
)

// projects follows the AppProjects of the control plane's namespace.
type projects struct {
	client  dynamic.ResourceInterface
	changed func(name string)

	mu     sync.RWMutex
	byName map[string]*v1alpha1.AppProject
}

func newProjects(config *rest.Config, namespace string, changed func(string)) (*projects, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", config.Host, err)
	}
	return &projects{
		client: client.Resource(v1alpha1.AppProjects()).Namespace(namespace), changed: changed,
		byName: map[string]*v1alpha1.AppProject{},
	}, nil
}

func (p *projects) start(ctx context.Context, f *follower) error {
	return f.follow(ctx, p.client, v1alpha1.GroupVersion().WithKind(v1alpha1.AppProjectKind), p)
}

// rules of a project, and whether it exists.
func (p *projects) rules(name string) (project.Rules, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	found, ok := p.byName[name]
	if !ok {
		return project.Rules{}, false
	}
	return project.Of(found), true
}

// Add implements cache.ReflectorStore.
func (p *projects) Add(obj any) error { return p.Update(obj) }

// Update implements cache.ReflectorStore.
func (p *projects) Update(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	found := &v1alpha1.AppProject{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, found); err != nil {
		return fmt.Errorf("project %s: %w", u.GetName(), err)
	}
	p.mu.Lock()
	old := p.byName[found.Name]
	p.byName[found.Name] = found
	p.mu.Unlock()
	if old == nil || old.Generation != found.Generation || old.UID != found.UID {
		p.changed(found.Name)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (p *projects) Delete(obj any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		p.mu.Lock()
		delete(p.byName, u.GetName())
		p.mu.Unlock()
		p.changed(u.GetName())
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (p *projects) Replace(list []any, _ string) error {
	seen := map[string]bool{}
	for _, obj := range list {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			seen[u.GetName()] = true
		}
		if err := p.Update(obj); err != nil {
			return err
		}
	}
	p.mu.Lock()
	var gone []string
	for name := range p.byName {
		if !seen[name] {
			gone = append(gone, name)
			delete(p.byName, name)
		}
	}
	p.mu.Unlock()
	for _, name := range gone {
		p.changed(name)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (p *projects) Resync() error { return nil }
