package engine

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// owners knows which applications declare an object: the index of all desired objects.
type owners struct {
	mu    sync.RWMutex
	byKey map[manifest.Key][]string
	byApp map[string][]manifest.Key
}

func newOwners() *owners {
	return &owners{byKey: map[manifest.Key][]string{}, byApp: map[string][]manifest.Key{}}
}

// set replaces what app declares, and returns the applications to which that makes a difference: those that share an object
// with it that it declares from now on, or no more. Where many share one object, they name but one, see shared; so that an
// object of a thousand applications does not make each of them wake all others.
func (o *owners) set(app string, keys []manifest.Key) (concerned []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := map[manifest.Key]bool{}
	for _, k := range o.byApp[app] {
		before[k] = true
		left := slices.DeleteFunc(o.byKey[k], func(a string) bool { return a == app })
		if len(left) == 0 {
			delete(o.byKey, k)
		} else {
			o.byKey[k] = left
		}
	}
	delete(o.byApp, app)
	if keys != nil {
		o.byApp[app] = keys
	}
	for _, k := range keys {
		if others := o.byKey[k]; !before[k] && (len(others) == 1 || len(others) > 1 && app < slices.Min(others)) {
			concerned = append(concerned, others...)
		}
		delete(before, k)
		if !slices.Contains(o.byKey[k], app) {
			o.byKey[k] = append(o.byKey[k], app)
		}
	}
	for k := range before {
		concerned = append(concerned, o.byKey[k]...)
	}
	slices.Sort(concerned)
	return slices.DeleteFunc(slices.Compact(concerned), func(a string) bool { return a == app })
}

// knows tells whether app was rendered since the start.
func (o *owners) knows(app string) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	_, known := o.byApp[app]
	return known
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

// sharing is an object that several applications declare.
type sharing struct {
	key    manifest.Key
	others []string
}

// shared are the objects of app that others declare, too, in the order of app's source.
func (o *owners) shared(app string) []sharing {
	o.mu.RLock()
	defer o.mu.RUnlock()
	var out []sharing
	for _, k := range o.byApp[app] {
		if len(o.byKey[k]) > 1 {
			others := slices.DeleteFunc(slices.Clone(o.byKey[k]), func(a string) bool { return a == app })
			slices.Sort(others)
			out = append(out, sharing{key: k, others: others})
		}
	}
	return out
}

// find is an object for which match holds and the application besides app that declares it, the first of all by name.
func (o *owners) find(app string, match func(manifest.Key) bool) (other string, found manifest.Key) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for k, apps := range o.byKey {
		if !match(k) {
			continue
		}
		for _, a := range apps {
			if a != app && (other == "" || a < other || a == other && compareKeys(k, found) < 0) {
				other, found = a, k
			}
		}
	}
	return other, found
}

// inside finds what another application declares in a namespace, or of a kind, that k is the end of.
func (e *Engine) inside(app string, k manifest.Key) (other string, found manifest.Key) {
	switch {
	case k.Group == "" && k.Kind == "Namespace":
		return e.owners.find(app, func(o manifest.Key) bool { return o.Namespace == k.Name })
	case k.Group == "apiextensions.k8s.io" && k.Kind == "CustomResourceDefinition":
		plural, group, _ := strings.Cut(k.Name, ".")
		known := map[schema.GroupKind]bool{}
		return e.owners.find(app, func(o manifest.Key) bool {
			if o.Group != group {
				return false
			}
			same, seen := known[o.GroupKind()]
			if !seen {
				r, err := e.cluster.Kind(o.GroupKind().WithVersion(""))
				same = err != nil || r.Resource == plural // on doubt it is of this kind
				known[o.GroupKind()] = same
			}
			return same
		})
	}
	return "", manifest.Key{}
}

// declare registers what the application declares from now on.
func (e *Engine) declare(st *state, app *v1alpha1.Application, set *desiredSet) {
	keys := make([]manifest.Key, 0, len(set.objects))
	for i := range set.objects {
		keys = append(keys, set.objects[i].key)
	}
	e.cluster.Want(keys)
	e.cluster.Unwant(st.wanted)
	first := !e.owners.knows(st.key)
	e.wake(e.owners.set(st.key, keys))
	if first {
		for k := range listedIn(app) { // what it declares no more may have waited for this look, see holder
			if _, still := set.byKey[k]; !still {
				e.wake(e.owners.others(st.key, k))
			}
		}
	}
	st.wanted, st.desired = keys, set
}

// undeclare takes an application that goes, or is to go, out of the index: what it shares belongs to the others from now on.
func (e *Engine) undeclare(key string) {
	e.wake(e.owners.set(key, nil))
	e.wake(e.doubts.forget(key))
}

func (e *Engine) wake(keys []string) {
	for _, key := range keys {
		e.rouse(InputDependency, key, queue.Commits)
	}
}
