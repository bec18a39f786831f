package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
)

// stuck is a source whose first wave never becomes healthy.
func stuck(version int) map[string]string {
	web := strings.Replace(deployment("web", "registry.k8s.io/pause:3.9", 1), "metadata: {labels: {app: web}}",
		fmt.Sprintf(`metadata: {labels: {app: web}, annotations: {dev.lockstep/fail: NeverReady, v: "%d"}}`, version), 1)
	return map[string]string{"app/web.yaml": web, "app/a.yaml": waved("a", fmt.Sprint(version))}
}

func waved(name, value string) string {
	return strings.Replace(configMap(name, value), "metadata: {", `metadata: {annotations: {argocd.argoproj.io/sync-wave: "1"}, `, 1)
}

func noted(app *v1alpha1.Application, name string) string {
	if app.Status.OperationState == nil {
		return ""
	}
	for _, info := range app.Status.OperationState.Operation.Info {
		if info.Name == name {
			return info.Value
		}
	}
	return ""
}

// A sync that waits for health gives way to a newer commit at once; after three in a row the next runs to its end.
func TestSupersede(t *testing.T) {
	w := newWorld(t)
	r := w.repo("s", stuck(0))
	w.app("s", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	under := func(sha, before string) {
		t.Helper()
		w.until("a sync to "+sha, func() (string, bool) {
			app := w.get("s")
			op := app.Status.OperationState
			return operation(app) + " " + noted(app, "lockstep.dev/superseded"), op != nil && op.Phase == v1alpha1.OperationRunning &&
				op.Operation.Sync.Revision == sha && strings.Contains(op.Message, "waiting") && noted(app, "lockstep.dev/superseded") == before
		})
	}
	sha, err := r.Resolve("main")
	if err != nil {
		t.Fatal(err)
	}
	under(sha, "")
	for n, before := range []string{"1", "2", "3"} {
		sha = w.commit(r, stuck(n+1))
		under(sha, before)
	}
	fixed := w.commit(r, map[string]string{"app/web.yaml": deployment("web", "registry.k8s.io/pause:3.9", 1), "app/a.yaml": waved("a", "fixed")})
	w.until("the commit is seen", func() (string, bool) {
		s := w.get("s").Status.Sync
		return s.Revision, s.Revision == fixed
	})
	under(sha, "3") // it runs to its end, which here is a person's
	w.patchApp("s", `{"status":{"operationState":{"phase":"Terminating"}}}`)
	w.settled("s", fixed)
}

// A sync with a running hook gives way when the hook has ended, so nothing of the older commit is applied; with never it
// runs to its end.
func TestSupersedeAfterTheHook(t *testing.T) {
	for how, want := range map[string][]string{"": {"0", "2"}, "never": {"0", "1", "2"}} {
		t.Run("how="+how, func(t *testing.T) {
			w := newWorld(t)
			source := func(n int) map[string]string {
				return map[string]string{
					"app/h.yaml": job("h", "argocd.argoproj.io/hook: PreSync", "dev.lockstep/run-for: 2s"), "app/a.yaml": configMap("a", fmt.Sprint(n)),
				}
			}
			r := w.repo("s", source(0))
			seen := w.follow("v1", "configmaps", func(ev watch.Event, u *unstructured.Unstructured) string {
				if u.GetName() != "a" || ev.Type == watch.Deleted {
					return ""
				}
				v, _, _ := unstructured.NestedString(u.Object, "data", "k")
				return v
			})
			w.app("s", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
				if how != "" {
					a.Annotations = map[string]string{engine.SupersedeAnnotation: how}
				}
			})
			w.settled("s", "")
			first := w.commit(r, source(1))
			w.until("the hook runs", func() (string, bool) {
				app := w.get("s")
				op := app.Status.OperationState
				return operation(app), op.Phase == v1alpha1.OperationRunning && op.Operation.Sync.Revision == first && strings.Contains(op.Message, "end of hook")
			})
			w.settled("s", w.commit(r, source(2)))
			var values []string
			w.until("the last value was seen", func() (string, bool) {
				values = slices.Compact(seen())
				return fmt.Sprint(values), slices.Contains(values, "2")
			})
			if !slices.Equal(values, want) {
				t.Errorf("a was %v, want %v", values, want)
			}
		})
	}
}

// A hook past its deadline fails and is taken away; a deadline that is none is told, and nothing is applied.
func TestHookDeadline(t *testing.T) {
	w := newWorld(t)
	hanging := func(deadline string) string {
		return job("h", "argocd.argoproj.io/hook: PreSync, lockstep.dev/hook-deadline: "+deadline, "dev.lockstep/fail: ContainerCreating")
	}
	r := w.repo("h", map[string]string{"app/h.yaml": hanging("1s"), "app/a.yaml": configMap("a", "1")})
	w.app("h", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		a.Spec.SyncPolicy.Retry = &v1alpha1.RetryStrategy{Limit: 0}
	})
	w.until("the hook fails", func() (string, bool) {
		app := w.get("h")
		op := app.Status.OperationState
		return operation(app), op != nil && op.Phase == v1alpha1.OperationFailed && strings.Contains(op.Message, "did not end within its deadline of 1s")
	})
	w.until("the hook is gone", func() (string, bool) {
		_, err := w.resource("batch/v1", "jobs").Get(t.Context(), "h", metav1.GetOptions{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	if _, there := w.configMap("a"); there {
		t.Error("a was applied although the hook before it failed")
	}
	w.commit(r, map[string]string{"app/h.yaml": hanging("soon")})
	w.until("the deadline is refused", func() (string, bool) {
		app := w.get("h")
		return operation(app), strings.Contains(app.Status.OperationState.Message, `lockstep.dev/hook-deadline: "soon" is no duration`)
	})
}

// A sync that waits for long says since when.
func TestWaitNote(t *testing.T) {
	w := newWorld(t)
	w.stop()
	w.tune = func(o *engine.Options) { o.WaitNote = time.Second }
	w.start()
	r := w.repo("s", stuck(0))
	w.app("s", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.until("since when", func() (string, bool) {
		app := w.get("s")
		return operation(app), strings.Contains(operation(app), "under way since "+time.Now().UTC().Format("2006-"))
	})
}

// follow collects what note makes of each event of a resource; the function it gives tells what was collected so far.
func (w *world) follow(apiVersion, plural string, note func(watch.Event, *unstructured.Unstructured) string) func() []string {
	w.t.Helper()
	events, err := w.resource(apiVersion, plural).Watch(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var mu sync.Mutex
	var seen []string
	go func() {
		for ev := range events.ResultChan() {
			if u, ok := ev.Object.(*unstructured.Unstructured); ok {
				if text := note(ev, u); text != "" {
					mu.Lock()
					seen = append(seen, text)
					mu.Unlock()
				}
			}
		}
	}()
	w.t.Cleanup(events.Stop)
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}
