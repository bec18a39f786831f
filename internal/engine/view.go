package engine

import (
	"maps"
	"slices"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// What faces read of a running engine. Everything returned is shared: nobody may change it.

// Namespace is the namespace that applications and projects live in.
func (e *Engine) Namespace() string { return e.opts.Namespace }

// Applications are all that are known, in no order.
func (e *Engine) Applications() []*v1alpha1.Application {
	e.applications.mu.RLock()
	defer e.applications.mu.RUnlock()
	return slices.Collect(maps.Values(e.applications.byKey))
}

// Application is the one of that name; nil when there is none.
func (e *Engine) Application(name string) *v1alpha1.Application {
	app, _ := e.applications.get(e.applications.key(name))
	return app
}

// Projects are all that are known, in no order.
func (e *Engine) Projects() []*v1alpha1.AppProject {
	e.projects.mu.RLock()
	defer e.projects.mu.RUnlock()
	return slices.Collect(maps.Values(e.projects.byName))
}

// Project is the one of that name; nil when there is none.
func (e *Engine) Project(name string) *v1alpha1.AppProject {
	e.projects.mu.RLock()
	defer e.projects.mu.RUnlock()
	return e.projects.byName[name]
}
