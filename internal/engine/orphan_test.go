package engine_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
