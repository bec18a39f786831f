// Package outside owns what the demo and the try-out do with a running Lockstep: they watch its applications, push to its
// repositories and change the cluster by hand.
//
// Only programs below dev import it. It imports the client, test/gitserver and test/local.
package outside

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
)

// Board holds the newest form of every application of a namespace.
type Board struct {
	mu      sync.Mutex
	apps    map[string]*v1alpha1.Application
	changed chan struct{}
}

// NewBoard makes an empty board; Follow fills it.
func NewBoard() *Board {
	return &Board{apps: map[string]*v1alpha1.Application{}, changed: make(chan struct{})}
}

// Follow watches the applications of namespace until ctx ends.
func (b *Board) Follow(ctx context.Context, w client.Watcher, namespace string) error {
	return w.Watch(ctx, client.Query{Namespace: namespace}, func(e client.Event) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e.Kind {
		case client.Present:
			b.apps[e.App.Name] = e.App
		case client.Deleted:
			delete(b.apps, e.App.Name)
		case client.Listed:
		}
		close(b.changed)
		b.changed = make(chan struct{})
		return nil
	})
}

// Now lists the applications by name, and a channel that is closed at the next change.
func (b *Board) Now() ([]*v1alpha1.Application, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]*v1alpha1.Application, 0, len(b.apps))
	for _, app := range b.apps {
		list = append(list, app)
	}
	slices.SortFunc(list, func(a, b *v1alpha1.Application) int { return strings.Compare(a.Name, b.Name) })
	return list, b.changed
}

// Get is one application, nil when there is none of the name.
func (b *Board) Get(name string) *v1alpha1.Application {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.apps[name]
}

// Wait returns when found answers true for the applications, or with ctx's error.
func (b *Board) Wait(ctx context.Context, found func([]*v1alpha1.Application) bool) error {
	for {
		list, changed := b.Now()
		if found(list) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Fine tells that an application is Synced with what its spec asks for, Healthy, and complains about nothing.
func Fine(app *v1alpha1.Application) bool {
	return app != nil && client.InStep(app) && app.Status.Health.Status == v1alpha1.HealthHealthy && Problem(app) == ""
}

// Problem is the message of the first error condition of an application; empty when there is none.
func Problem(app *v1alpha1.Application) string {
	if app == nil {
		return ""
	}
	for _, c := range app.Status.Conditions {
		if strings.HasSuffix(string(c.Type), "Error") {
			return c.Message
		}
	}
	return ""
}
