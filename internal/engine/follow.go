package engine

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-cd/lockstep/internal/cluster"
)

// lister is what of a client a reflector needs.
type lister interface {
	List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// selected lists and watches with selectors.
type selected struct {
	dynamic.ResourceInterface
	by metav1.ListOptions
}

// List lists the selected objects.
func (s selected) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	o.LabelSelector, o.FieldSelector = s.by.LabelSelector, s.by.FieldSelector
	return s.ResourceInterface.List(ctx, o)
}

// Watch watches the selected objects.
func (s selected) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.LabelSelector, o.FieldSelector = s.by.LabelSelector, s.by.FieldSelector
	return s.ResourceInterface.Watch(ctx, o)
}

// follower follows objects of the control plane's namespace.
type follower struct {
	wg  sync.WaitGroup
	dog cluster.Watchdog
}

// follow runs a reflector for one resource into store and waits for the first list.
func (f *follower) follow(ctx context.Context, client lister, gvk schema.GroupVersionKind, store cache.ReflectorStore) error {
	first := &firstList{ReflectorStore: store, done: make(chan struct{})}
	var mu sync.Mutex
	var last error
	note := func(err error) {
		mu.Lock()
		last = err
		mu.Unlock()
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := client.List(ctx, o)
			note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			events, err := client.Watch(ctx, o)
			note(err)
			if err != nil {
				return nil, err
			}
			return f.dog.Guard(events, gvk.Kind), nil
		},
	}
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(gvk)
	r := cache.NewReflectorWithOptions(lw, example, first, cache.ReflectorOptions{Name: gvk.Kind, Backoff: cluster.Retries()})
	f.wg.Go(func() { r.RunWithContext(ctx) })
	select {
	case <-first.done:
		return nil
	case <-ctx.Done():
		mu.Lock()
		defer mu.Unlock()
		if last != nil {
			return fmt.Errorf("%s objects can't be listed: %w", gvk.Kind, last)
		}
		return ctx.Err()
	}
}

type firstList struct {
	cache.ReflectorStore
	once sync.Once
	done chan struct{}
}

// Replace passes the list on and reports that the first one is in.
func (f *firstList) Replace(list []any, version string) error {
	err := f.ReflectorStore.Replace(list, version)
	f.once.Do(func() { close(f.done) })
	return err
}
