package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// What wakes an application, all of it (the inputs have their names in wakeups.go):
//   - its custom resource: spec, the annotations and labels that matter, operation, deletion (onApplication);
//   - its project (onProject);
//   - an application that it depends on (wakeDependents);
//   - a Secret with credentials for one of its repositories (secrets.go);
//   - a repository whose refs lead somewhere else (onRepository);
//   - a live object that it declares or owns (onLive);
//   - a timer: retry, heal backoff, a kind that could not be listed (queue.AddAfter).

func (e *Engine) onApplication(key string, old, now *v1alpha1.Application) {
	e.wakeDependents(old, now)
	switch {
	case now == nil:
		e.rouse(InputApplication, key, queue.People)
	case old == nil:
		e.rouse(InputApplication, key, queue.Commits)
	case now.Operation != nil, now.DeletionTimestamp != nil && old.DeletionTimestamp == nil:
		e.rouse(InputApplication, key, queue.People)
	case terminating(now) && !terminating(old), wakeHash(old) != wakeHash(now),
		now.Annotations[RefreshAnnotation] != "" && refreshOf(now) != refreshOf(old):
		e.rouse(InputApplication, key, queue.People)
	}
}

func terminating(app *v1alpha1.Application) bool {
	return app.Status.OperationState != nil && app.Status.OperationState.Phase == v1alpha1.OperationTerminating
}

func (e *Engine) onProject(name string) {
	for _, key := range e.applications.inProject(name) {
		e.rouse(InputProject, key, queue.Commits)
	}
}

func (e *Engine) onRepository(keys []string) {
	e.doubts.pend(keys)
	for _, key := range keys {
		e.rouse(InputRepository, key, queue.Commits)
	}
}

// onCredentials asks at once for every repository that did not answer: what was wrong may be right now.
func (e *Engine) onCredentials() {
	e.repos.credentialsAt(time.Now())
	if e.hears(InputSecret) {
		e.repos.retry()
	}
}

func (e *Engine) onLive(c cluster.Change) {
	e.hooksSeen.note(c.Now)
	for _, key := range e.owners.of(c.Key) {
		e.rouse(InputLive, key, queue.Drift)
	}
	for _, owner := range []string{c.Old.Owner, c.Now.Owner} {
		if owner != "" {
			e.rouse(InputLive, e.applications.keyOf(owner), queue.Drift)
		}
	}
}

// owners knows which applications declare an object.
type owners struct {
	mu    sync.RWMutex
	byKey map[manifest.Key][]string
	byApp map[string][]manifest.Key
}

func newOwners() *owners {
	return &owners{byKey: map[manifest.Key][]string{}, byApp: map[string][]manifest.Key{}}
}

// set replaces what app declares.
func (o *owners) set(app string, keys []manifest.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.byApp[app] {
		left := slices.DeleteFunc(o.byKey[k], func(a string) bool { return a == app })
		if len(left) == 0 {
			delete(o.byKey, k)
		} else {
			o.byKey[k] = left
		}
	}
	if keys == nil {
		delete(o.byApp, app)
		return
	}
	o.byApp[app] = keys
	for _, k := range keys {
		if !slices.Contains(o.byKey[k], app) {
			o.byKey[k] = append(o.byKey[k], app)
		}
	}
}

// of returns the applications that declare k.
func (o *owners) of(k manifest.Key) []string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return slices.Clone(o.byKey[k])
}

// others returns the applications besides app that declare k.
func (o *owners) others(app string, k manifest.Key) []string {
	return slices.DeleteFunc(o.of(k), func(a string) bool { return a == app })
}
