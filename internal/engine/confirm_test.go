package engine_test

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// What asks for a confirmation goes only after a person has given it, since the sync or the deletion began.
func TestPruneAndDeletionWaitForConfirmation(t *testing.T) {
	w := newWorld(t)
	asks := func(name, option string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, annotations: {argocd.argoproj.io/sync-options: %s}}\n", name, option)
	}
	r := w.repo("c", map[string]string{
		"app/a.yaml": configMap("a", "1"), "app/p.yaml": asks("p", "Prune=confirm"), "app/d.yaml": asks("d", "Delete=confirm"),
	})
	w.app("c", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		a.Finalizers = []string{engine.CascadeFinalizer}
		a.Annotations = map[string]string{engine.ApprovedAnnotation: "2020-01-01T00:00:00Z"} // of another time
	})
	w.settled("c", "")
	approve := func(at time.Time) {
		w.patchApp("c", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, engine.ApprovedAnnotation, at.UTC().Format(time.RFC3339)))
	}
	sha := w.commit(r, map[string]string{"app/p.yaml": gitserver.Deleted, "app/a.yaml": configMap("a", "2")})
	w.until("the sync waits", func() (string, bool) {
		app := w.get("c")
		data, _ := w.configMap("a")
		return operation(app), app.Status.OperationState.Phase == v1alpha1.OperationRunning && data["k"] == "2"
	})
	if _, there := w.configMap("p"); !there {
		t.Fatal("p was pruned without a confirmation")
	}
	approve(time.Now())
	w.settled("c", sha)
	if _, there := w.configMap("p"); there {
		t.Error("p is still there")
	}
	approve(time.Now().Add(-time.Hour)) // a confirmation of the second in which the deletion begins would count
	if err := w.apps().Delete(t.Context(), w.real("c"), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.condition("c", v1alpha1.ConditionDeletionError, "confirmation", "ConfigMap/"+w.dest+"/d", engine.ApprovedAnnotation)
	if _, there := w.configMap("d"); !there {
		t.Fatal("d was deleted without a confirmation")
	}
	approve(time.Now())
	w.until("application gone", func() (string, bool) {
		_, err := w.apps().Get(t.Context(), w.real("c"), metav1.GetOptions{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	if _, there := w.configMap("d"); there {
		t.Error("d is still there")
	}
}
