package faults_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// happening is one thing that the recorder saw.
type happening struct {
	verb string // added, changed, deleted
	kind string
	name string
	uid  types.UID
	// object as it was seen.
	object *unstructured.Unstructured
}

func (h happening) String() string { return h.verb + " " + h.kind + "/" + h.name }

// recorder sees whatever happens to the kinds of a namespace, whoever does it. It lists again after a broken watch, so
// that an object that went meanwhile is seen as deleted, and one that was made again as another.
type recorder struct {
	mu      sync.Mutex
	all     []happening
	changed chan struct{}
	kinds   []recorded
}

// recorded is one kind that is watched, and what the watch says there is.
type recorded struct {
	resource dynamic.ResourceInterface
	seen     cache.Store
}

// record begins to watch. Objects that are there already are seen as added.
func record(t *testing.T, client dynamic.Interface, namespace string, kinds map[string]schema.GroupVersionResource) *recorder {
	t.Helper()
	r := &recorder{changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for kind, gvr := range kinds {
		resource := client.Resource(gvr).Namespace(namespace)
		inform := cache.NewSharedIndexInformer(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return resource.Watch(ctx, o)
			},
		}, &unstructured.Unstructured{}, 0, nil)
		_, err := inform.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { r.note("added", kind, o) },
			UpdateFunc: func(old, now any) {
				before, after := old.(*unstructured.Unstructured), now.(*unstructured.Unstructured)
				if before.GetUID() != after.GetUID() {
					r.note("deleted", kind, before)
					r.note("added", kind, after)
					return
				}
				r.note("changed", kind, after)
			},
			DeleteFunc: func(o any) {
				if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = gone.Obj
				}
				r.note("deleted", kind, o)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		r.kinds = append(r.kinds, recorded{resource, inform.GetStore()})
		wg.Go(func() { inform.Run(ctx.Done()) })
		if !cache.WaitForCacheSync(t.Context().Done(), inform.HasSynced) {
			t.Fatal("recorder: no first list")
		}
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	return r
}

func (r *recorder) note(verb, kind string, o any) {
	u := o.(*unstructured.Unstructured)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, happening{verb: verb, kind: kind, name: u.GetName(), uid: u.GetUID(), object: u})
	close(r.changed)
	r.changed = make(chan struct{})
}

// mark is a place in the record.
func (r *recorder) mark() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// since gives what happened from a place on.
func (r *recorder) since(mark int) []happening {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all[mark:])
}

// caughtUp waits until the record knows all that the API server holds: each kind has a watch of its own, and after the
// server was away one may come back half a minute before another.
func (r *recorder) caughtUp(ctx context.Context) error {
	for _, kind := range r.kinds {
		for behind := "not listed"; behind != ""; {
			r.mu.Lock()
			changed := r.changed
			r.mu.Unlock()
			if behind = kind.behind(ctx); behind == "" {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the record did not catch up: %s: %w", behind, ctx.Err())
			case <-changed:
			case <-time.After(time.Second): // what is missing may not be an event but an answer to the list
			}
		}
	}
	return nil
}

// behind says what the watch of a kind has not told yet; empty when it has told everything.
func (k recorded) behind(ctx context.Context) string {
	list, err := k.resource.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	there := map[string]bool{}
	version := func(u *unstructured.Unstructured) string {
		return u.GetKind() + "/" + u.GetName() + " " + string(u.GetUID()) + " at " + u.GetResourceVersion()
	}
	for i := range list.Items {
		there[version(&list.Items[i])] = true
	}
	for _, o := range k.seen.List() {
		have := version(o.(*unstructured.Unstructured))
		if !there[have] {
			return have + " is no longer so"
		}
		delete(there, have)
	}
	for missing := range there {
		return missing + " is not seen"
	}
	return ""
}

// wait returns with the first thing from mark on that is looked for, or with ctx's error.
func (r *recorder) wait(ctx context.Context, mark int, found func(n int, h happening) bool) (happening, error) {
	for at := mark; ; {
		r.mu.Lock()
		news, changed := slices.Clone(r.all[at:]), r.changed
		r.mu.Unlock()
		for i, h := range news {
			if found(at-mark+i, h) {
				return h, nil
			}
		}
		at += len(news)
		select {
		case <-ctx.Done():
			return happening{}, fmt.Errorf("not seen: %w; seen: %s", ctx.Err(), r.text(mark))
		case <-changed:
		}
	}
}

func (r *recorder) text(mark int) string {
	var lines []string
	for _, h := range r.since(mark) {
		lines = append(lines, h.String())
	}
	return strings.Join(lines, ", ")
}
