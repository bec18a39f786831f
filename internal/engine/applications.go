package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/handover"
	"github.com/lockstep-cd/lockstep/internal/spec"
)

// applications follows the Application objects of the control plane's namespace.
type applications struct {
	dynamic   dynamic.Interface
	client    dynamic.ResourceInterface
	namespace string
	changed   func(key string, old, now *v1alpha1.Application)
	// written tells of a write by Argo CD.
	written func(key string)

	mu    sync.RWMutex
	byKey map[string]*v1alpha1.Application
	bad   map[string]error
	// depending are the keys of applications that name others to wait for.
	depending map[string]bool
	// claims tell when Argo CD and we wrote the applications, and theirs is Argo CD's last write of any.
	claims map[string]handover.Claim
	theirs struct {
		at time.Time
		on string
	}
}

func newApplications(config *rest.Config, namespace string, changed func(string, *v1alpha1.Application, *v1alpha1.Application), written func(string)) (*applications, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", config.Host, err)
	}
	return &applications{
		dynamic: client, client: client.Resource(v1alpha1.Applications()).Namespace(namespace), namespace: namespace, changed: changed, written: written,
		byKey: map[string]*v1alpha1.Application{}, bad: map[string]error{}, depending: map[string]bool{}, claims: map[string]handover.Claim{},
	}, nil
}

func (a *applications) start(ctx context.Context, f *follower) error {
	return f.follow(ctx, a.client, v1alpha1.GroupVersion().WithKind(v1alpha1.ApplicationKind), a)
}

func (a *applications) key(name string) string { return a.namespace + "/" + name }

// keyOf is the key of the application that a tracking mark names: a name, or namespace_name.
func (a *applications) keyOf(instance string) string {
	if ns, name, ok := strings.Cut(instance, "_"); ok {
		return ns + "/" + name
	}
	return a.key(instance)
}

func (a *applications) get(key string) (*v1alpha1.Application, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.byKey[key], a.bad[key]
}

func (a *applications) keys() []string {
	a.mu.RLock()
	defer a.mu.RUnlock()
	keys := make([]string, 0, len(a.byKey))
	for k := range a.byKey {
		keys = append(keys, k)
	}
	return keys
}

func (a *applications) count() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.byKey)
}

func (a *applications) each(visit func(*v1alpha1.Application)) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, app := range a.byKey {
		visit(app)
	}
}

func (a *applications) inProject(name string) []string {
	var keys []string
	a.each(func(app *v1alpha1.Application) {
		if projectOf(app) == name {
			keys = append(keys, a.key(app.Name))
		}
	})
	return keys
}

func projectOf(app *v1alpha1.Application) string {
	if app.Spec.Project == "" {
		return "default"
	}
	return app.Spec.Project
}

// put takes in an Application from the watch, unless something newer is known.
func (a *applications) put(u *unstructured.Unstructured) { a.take(u, false) }

// answered takes in what a write of ours was answered. The watch may have told the application's end before, as with the
// write that removes its last finalizer: the answer must not bring it back.
func (a *applications) answered(u *unstructured.Unstructured) { a.take(u, true) }

func (a *applications) take(u *unstructured.Unstructured, known bool) {
	key := a.key(u.GetName())
	app := &v1alpha1.Application{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, app)
	if err != nil {
		// The CRD lets through what the types refuse only where somebody else's CRD is wider than ours.
		app, err = unreadable(u, err)
	}
	claim := handover.ClaimOf(u.GetManagedFields())
	app.ManagedFields = nil
	a.mu.Lock()
	old := a.byKey[key]
	if known && (old == nil || old.UID != app.UID) || old != nil && old.UID == app.UID && !later(app.ResourceVersion, old.ResourceVersion) {
		a.mu.Unlock()
		return
	}
	a.byKey[key] = app
	moved := a.claimed(key, claim)
	delete(a.depending, key)
	if app.Annotations[DependsOnAnnotation] != "" {
		a.depending[key] = true
	}
	if err != nil {
		a.bad[key] = err
	} else {
		delete(a.bad, key)
	}
	a.mu.Unlock()
	a.changed(key, old, app)
	if moved && old != nil {
		a.written(key)
	}
}

// claimed keeps when an application was written, and tells whether Argo CD did so since the last look.
func (a *applications) claimed(key string, c handover.Claim) bool {
	moved := !c.Theirs.Equal(a.claims[key].Theirs)
	a.claims[key] = c
	if c.Theirs.After(a.theirs.at) {
		a.theirs.at, a.theirs.on = c.Theirs, strings.TrimPrefix(key, a.namespace+"/")
	}
	return moved
}

// claim tells when an application was written, and when and where Argo CD last wrote any.
func (a *applications) claim(key string) (c handover.Claim, seen time.Time, on string) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.claims[key], a.theirs.at, a.theirs.on
}

// unreadable is what is left of an Application that can not be read as a whole, and why it can not.
func unreadable(u *unstructured.Unstructured, err error) (*v1alpha1.Application, error) {
	app := &v1alpha1.Application{}
	if misfit := spec.Misfit(u.Object); misfit != nil {
		err = misfit
	}
	// What can be read of the two: it may be in deletion, and it has a status already.
	parts := map[string]any{"metadata": u.Object["metadata"]}
	if status, ok := u.Object["status"]; ok && runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"status": status}, &v1alpha1.Application{}) == nil {
		parts["status"] = status
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(parts, app) != nil {
		app.Name, app.Namespace, app.UID, app.ResourceVersion = u.GetName(), u.GetNamespace(), u.GetUID(), u.GetResourceVersion()
	}
	return app, err
}

// Add implements cache.ReflectorStore.
func (a *applications) Add(obj any) error { return a.Update(obj) }

// Update implements cache.ReflectorStore.
func (a *applications) Update(obj any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		a.put(u)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (a *applications) Delete(obj any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		a.remove(a.key(u.GetName()))
	}
	return nil
}

func (a *applications) remove(key string) {
	a.mu.Lock()
	old := a.byKey[key]
	delete(a.byKey, key)
	delete(a.bad, key)
	delete(a.claims, key)
	delete(a.depending, key)
	a.mu.Unlock()
	if old != nil {
		a.changed(key, old, nil)
	}
}

// Replace implements cache.ReflectorStore.
func (a *applications) Replace(list []any, _ string) error {
	seen := map[string]bool{}
	for _, obj := range list {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			seen[a.key(u.GetName())] = true
			a.put(u)
		}
	}
	for _, key := range a.keys() {
		if !seen[key] {
			a.remove(key)
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (a *applications) Resync() error { return nil }

// wakeHash covers what of an Application decides over work: never generation, which each status write moves.
func wakeHash(app *v1alpha1.Application) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	_ = enc.Encode(app.Spec) // a hash does not fail to be written to
	_ = enc.Encode(app.Labels)
	_ = enc.Encode(app.Finalizers)
	rest := maps.Clone(app.Annotations)
	delete(rest, RefreshAnnotation) // that a request for a look was seen to is no reason for another
	delete(rest, refreshTimestampAnnotation)
	_ = enc.Encode(rest)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// later tells whether resource version a comes after b; versions are comparable numbers (Kubernetes 1.35).
func later(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX != nil || errY != nil || x > y
}
