package direct_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/client/direct"
	"github.com/lockstep-cd/lockstep/internal/install"
	"github.com/lockstep-cd/lockstep/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m)) }

// setup installs the kinds and returns a client and a way to write applications past it.
func setup(t *testing.T, c *env.Kube, namespace string) (*direct.Client, dynamic.ResourceInterface) {
	t.Helper()
	dyn, err := dynamic.NewForConfig(c.REST())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.CRDs(t.Context(), dyn, install.Options{}); err != nil {
		t.Fatal(err)
	}
	apps, err := direct.New(c.REST())
	if err != nil {
		t.Fatal(err)
	}
	return apps, dyn.Resource(v1alpha1.Applications()).Namespace(namespace)
}

func create(t *testing.T, api dynamic.ResourceInterface, name, project string) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.ApplicationKind,
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"project": project, "destination": map[string]any{"name": "in-cluster"},
			"source": map[string]any{"repoURL": "https://git.example/shop", "path": "."},
		},
	}}
	if _, err := api.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, api dynamic.ResourceInterface, name string) {
	t.Helper()
	if err := api.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// watch sends what a Watch shows, in words, until the test ends.
func watch(t *testing.T, apps client.Watcher, q client.Query) <-chan string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	events, done := make(chan string, 100), make(chan error, 1)
	go func() {
		done <- apps.Watch(ctx, q, func(e client.Event) error {
			switch e.Kind {
			case client.Listed:
				events <- "listed"
			case client.Present:
				events <- "present " + e.App.Name
			case client.Deleted:
				events <- "deleted " + e.App.Name
			}
			return nil
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the watch ended by itself: %v", err)
		}
	})
	return events
}

func expect(t *testing.T, events <-chan string, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-events:
			if got != w {
				t.Fatalf("event %q, want %q", got, w)
			}
		case <-time.After(time.Minute):
			t.Fatalf("no event within a minute, want %q", w)
		}
	}
}

func TestWatch(t *testing.T) {
	c := env.Cluster(t)
	namespace := env.Namespace(t, c)
	apps, api := setup(t, c, namespace)
	create(t, api, "a", "default")
	events := watch(t, apps, client.Query{Namespace: namespace, Projects: []string{"default"}})
	expect(t, events, "present a", "listed")
	create(t, api, "foreign", "customs") // of another project: no event
	create(t, api, "b", "default")
	remove(t, api, "a")
	expect(t, events, "present b", "deleted a")
}

func TestWatchOfOneName(t *testing.T) {
	c := env.Cluster(t)
	namespace := env.Namespace(t, c)
	apps, api := setup(t, c, namespace)
	events := watch(t, apps, client.Query{Namespace: namespace, Name: "b"})
	expect(t, events, "listed")
	create(t, api, "a", "default")
	create(t, api, "b", "default")
	expect(t, events, "present b")
}

func TestWatchEndsWithTheVisitor(t *testing.T) {
	c := env.Cluster(t)
	namespace := env.Namespace(t, c)
	apps, _ := setup(t, c, namespace)
	own := errors.New("enough")
	for _, test := range []struct{ give, want error }{{client.ErrStop, nil}, {own, own}, {fmt.Errorf("a: %w", client.ErrStop), nil}} {
		err := apps.Watch(t.Context(), client.Query{Namespace: namespace}, func(client.Event) error { return test.give })
		if !errors.Is(err, test.want) {
			t.Errorf("visitor returned %v, Watch %v", test.give, err)
		}
	}
}

func TestWatchOutlivesTheAPIServer(t *testing.T) {
	c := env.NewCluster(t)
	apps, api := setup(t, c, "default")
	create(t, api, "a", "default")
	events := watch(t, apps, client.Query{Namespace: "default"})
	expect(t, events, "present a", "listed")
	c.Fault(t, "restart", "kube-apiserver")
	awaitAnswer(t, apps)
	remove(t, api, "a")
	create(t, api, "b", "default")
	expect(t, events, "deleted a", "present b")
}

// awaitAnswer waits until the API server serves applications again.
func awaitAnswer(t *testing.T, apps client.Reader) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.After(time.Minute); ; {
		_, err := apps.List(t.Context(), client.Query{})
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("the API server does not answer: %v", err)
		}
	}
}

func TestManyApplicationsAreListedInPages(t *testing.T) {
	c := env.Cluster(t)
	namespace := env.Namespace(t, c)
	apps, api := setup(t, c, namespace)
	const n = 501 // one more than a page
	for i := range n {
		create(t, api, fmt.Sprintf("app-%03d", i), "default")
	}
	list, err := apps.List(t.Context(), client.Query{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != n || list[n-1].Name != "app-500" || list[0].Kind != v1alpha1.ApplicationKind {
		t.Errorf("%d applications, the last is %s, the kind is %q", len(list), list[len(list)-1].Name, list[0].Kind)
	}
}

func TestStartIsRefusedToTheSecondOfTwo(t *testing.T) {
	c := env.Cluster(t)
	namespace := env.Namespace(t, c)
	apps, api := setup(t, c, namespace)
	create(t, api, "shop", "default")
	ref := client.Ref{Namespace: namespace, Name: "shop"}
	const callers = 8
	results := make(chan error, callers)
	for range callers {
		go func() {
			_, err := apps.Start(t.Context(), ref, v1alpha1.Operation{Sync: &v1alpha1.SyncOperation{}})
			results <- err
		}()
	}
	started := 0
	for range callers {
		switch err := <-results; {
		case err == nil:
			started++
		case !errors.Is(err, client.ErrInProgress):
			t.Errorf("refused with %v", err)
		}
	}
	if started != 1 {
		t.Errorf("%d of %d callers started an operation", started, callers)
	}
}
