package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/plan"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// DependsOnAnnotation on an Application names those that must be Synced and Healthy before it is synced by itself: names
// separated by commas, or a label selector. A sync that a person asks for does not wait.
const DependsOnAnnotation = "lockstep.dev/depends-on"

// dependencies are the names that an application waits for, itself excepted where a selector matches it.
func (e *Engine) dependencies(app *v1alpha1.Application) ([]string, error) {
	text := strings.TrimSpace(app.Annotations[DependsOnAnnotation])
	if text == "" {
		return nil, nil
	}
	if names, ok := namesOf(text); ok {
		return names, nil
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("metadata.annotations[%s]: is neither a list of names nor a label selector: %w", DependsOnAnnotation, err)
	}
	var names []string
	e.applications.each(func(other *v1alpha1.Application) {
		if other.Name != app.Name && selector.Matches(labels.Set(other.Labels)) {
			names = append(names, other.Name)
		}
	})
	slices.Sort(names)
	return names, nil
}

// namesOf are the names that a text lists, separated by commas with or without blanks; ok is false when it can only be a label
// selector.
func namesOf(text string) (names []string, ok bool) {
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return nil, false
		}
		names = append(names, name)
	}
	return names, true
}

// circular says that an application waits for itself, and along which path.
func (e *Engine) circular(app *v1alpha1.Application) error {
	if _, err := e.dependencies(app); err != nil {
		return err
	}
	path := plan.Cycle(app.Name, func(name string) []string {
		found, _ := e.applications.get(e.applications.key(name))
		if found == nil {
			return nil
		}
		names, err := e.dependencies(found)
		if err != nil {
			return nil // said where it stands
		}
		return names
	})
	if path == nil {
		return nil
	}
	return errors.New("metadata.annotations[" + DependsOnAnnotation + "]: applications wait for each other: " + strings.Join(path, " → "))
}

// waitsForApplication begins each sentence of waitsFor.
const waitsForApplication = "waits for application "

// waitsFor says which dependency is not in step yet; empty when all are.
func (e *Engine) waitsFor(app *v1alpha1.Application) string {
	names, err := e.dependencies(app)
	if err != nil {
		return err.Error()
	}
	for _, name := range names {
		found, _ := e.applications.get(e.applications.key(name))
		switch {
		case found == nil:
			return waitsForApplication + name + ", which does not exist"
		case found.Status.Sync.Status != v1alpha1.SyncSynced:
			return waitsForApplication + name + " to be Synced"
		case found.Status.Health.Status != v1alpha1.HealthHealthy:
			return waitsForApplication + name + " to be Healthy"
		}
	}
	return ""
}

// wakeDependents looks again at those that may wait for an application whose state has changed.
func (e *Engine) wakeDependents(old, now *v1alpha1.Application) {
	if now != nil && old != nil && old.Status.Sync.Status == now.Status.Sync.Status && old.Status.Health.Status == now.Status.Health.Status {
		return
	}
	for _, key := range e.applications.waiting() {
		e.rouse(InputDependency, key, queue.Commits)
	}
}

// waiting are the applications that depend on others at all.
func (a *applications) waiting() []string {
	a.mu.RLock()
	defer a.mu.RUnlock()
	keys := make([]string, 0, len(a.depending))
	for k := range a.depending {
		keys = append(keys, k)
	}
	return keys
}
