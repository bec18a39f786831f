package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

func (w *world) delete(name string) {
	w.t.Helper()
	if err := w.apps().Delete(w.t.Context(), w.real(name), metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) gone(name string) {
	w.t.Helper()
	w.until("application "+name+" gone", func() (string, bool) {
		u, err := w.apps().Get(w.t.Context(), w.real(name), metav1.GetOptions{})
		if err == nil {
			status, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "operationState", "message")
			return fmt.Sprint(u.GetFinalizers(), status), false
		}
		return err.Error(), apierrors.IsNotFound(err)
	})
}

func cascading(a *v1alpha1.Application) { a.Finalizers = []string{engine.CascadeFinalizer} }

// Hooks of a deletion bring their finalizers along, run before and after the objects go, once each, also over a restart.
func TestDeletionHooks(t *testing.T) {
	w := newWorld(t)
	r := w.repo("d", map[string]string{
		"app/a.yaml":      configMap("a", "1"),
		"app/before.yaml": job("before", "argocd.argoproj.io/hook: PreDelete", "dev.lockstep/run-for: 2s"),
		"app/after.yaml":  job("after", `helm.sh/hook: post-delete`, ""),
	})
	w.app("d", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, cascading)
	app := w.settled("d", "")
	for _, f := range []string{"pre-delete-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io"} {
		if !slices.Contains(app.Finalizers, f) {
			t.Errorf("finalizers %v lack %s", app.Finalizers, f)
		}
	}
	jobs := w.resource("batch/v1", "jobs")
	if list, err := jobs.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Fatalf("hooks of a deletion ran in a sync: %v", err)
	}
	made := w.follow("batch/v1", "jobs", func(ev watch.Event, u *unstructured.Unstructured) string {
		if ev.Type == watch.Added {
			return u.GetName()
		}
		return ""
	})
	w.delete("d")
	w.until("before runs", func() (string, bool) {
		_, err := jobs.Get(t.Context(), "before", metav1.GetOptions{})
		return fmt.Sprint(err), err == nil
	})
	if _, there := w.configMap("a"); !there {
		t.Error("a was deleted before the hook has ended")
	}
	w.stop()
	w.start()
	w.gone("d")
	if _, there := w.configMap("a"); there {
		t.Error("a is still there")
	}
	before, err := jobs.Get(t.Context(), "before", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	after, err := jobs.Get(t.Context(), "after", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	done, _, _ := unstructured.NestedString(before.Object, "status", "completionTime")
	if done == "" || after.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z") < done {
		t.Errorf("before ended at %q, after was made at %s", done, after.GetCreationTimestamp())
	}
	w.until("both hooks were seen", func() (string, bool) { return fmt.Sprint(made()), len(made()) >= 2 })
	if got := made(); !slices.Equal(got, []string{"before", "after"}) {
		t.Errorf("made %v", got)
	}
}

// A hook that fails keeps everything, says so and what to do, and is run again after a commit.
func TestDeletionHookFails(t *testing.T) {
	w := newWorld(t)
	r := w.repo("d", map[string]string{
		"app/a.yaml":      configMap("a", "1"),
		"app/before.yaml": job("before", "argocd.argoproj.io/hook: PreDelete", "dev.lockstep/fail: JobFailed"),
	})
	w.app("d", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, cascading)
	w.settled("d", "")
	w.delete("d")
	w.condition("d", v1alpha1.ConditionDeletionError, "Job.batch/"+w.dest+"/before", engine.OrphanAnnotation)
	if _, there := w.configMap("a"); !there {
		t.Error("a was deleted")
	}
	w.commit(r, map[string]string{"app/before.yaml": job("before", "argocd.argoproj.io/hook: PreDelete", "")})
	w.patchApp("d", `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}}`)
	w.gone("d")
	if _, there := w.configMap("a"); there {
		t.Error("a is still there")
	}
}

// What the hooks need can be gone for good: then the annotation lets the application go, and its objects stay.
func TestOrphan(t *testing.T) {
	for name, spoil := range map[string]func(w *world, r *gitserver.Repo) string{
		"broken source": func(w *world, r *gitserver.Repo) string {
			w.commit(r, map[string]string{"app/a.yaml": "apiVersion: v1\nkind: [ConfigMap\n"})
			w.condition("d", v1alpha1.ConditionComparisonError, "a.yaml")
			return "a.yaml"
		},
		"missing project": func(w *world, _ *gitserver.Repo) string {
			w.patchApp("d", `{"spec":{"project":"nowhere"}}`)
			return "project nowhere does not exist"
		},
		"unknown cluster": func(w *world, _ *gitserver.Repo) string {
			w.patchApp("d", `{"spec":{"destination":{"server":"https://far.example.com"}}}`)
			return "https://far.example.com is not known"
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			w := newWorld(t)
			r := w.repo("d", map[string]string{
				"app/a.yaml": configMap("a", "1"), "app/before.yaml": job("before", "argocd.argoproj.io/hook: PreDelete", ""),
			})
			w.app("d", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, cascading)
			w.settled("d", "")
			says := spoil(w, r)
			w.delete("d")
			w.condition("d", v1alpha1.ConditionDeletionError, says, engine.OrphanAnnotation)
			w.patchApp("d", `{"metadata":{"annotations":{"`+engine.OrphanAnnotation+`":"true"}}}`)
			w.gone("d")
			if _, there := w.configMap("a"); !there {
				t.Error("a was deleted")
			}
		})
	}
}
