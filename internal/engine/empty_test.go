package engine_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/settings"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// C025: a source that becomes empty deletes nothing by itself, also when one live object only carries a copied mark; what a
// person asks for then takes the five and leaves the copy.
func TestC025EmptyRenderingDeletesNothing(t *testing.T) {
	files := map[string]string{"app/README.md": "hello", "void/README.md": "nothing here"}
	gone := map[string]string{}
	for i := range 5 {
		name := fmt.Sprintf("cm%d", i)
		files["app/"+name+".yaml"], gone["app/"+name+".yaml"] = configMap(name, "1"), gitserver.Deleted
	}
	for name, empty := range map[string]func(*world, *gitserver.Repo){
		"files removed":       func(w *world, r *gitserver.Repo) { w.commit(r, gone) },
		"another path":        func(w *world, _ *gitserver.Repo) { w.patchApp("e", `{"spec":{"source":{"path":"void"}}}`) },
		"label, path changed": func(w *world, _ *gitserver.Repo) { w.patchApp("e", `{"spec":{"source":{"path":"void"}}}`) },
		"path missing":        func(w *world, _ *gitserver.Repo) { w.patchApp("e", `{"spec":{"source":{"path":"nowhere"}}}`) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if name == "label, path changed" {
				w.setting(map[string]string{"application.resourceTrackingMethod": string(settings.MethodLabel)})
			}
			r := w.repo("e", files)
			w.app("e", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
			w.settled("e", "")
			first := w.live("v1", "configmaps", "cm0")
			copied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "copy"}}}
			copied.SetAnnotations(first.GetAnnotations())
			copied.SetLabels(first.GetLabels())
			if _, err := w.resource("v1", "configmaps").Create(t.Context(), copied, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			deletes := w.deletions("v1", "configmaps")
			empty(w, r)
			if name == "path missing" {
				t.Log(w.condition("e", v1alpha1.ConditionComparisonError, "nowhere"))
			} else {
				t.Log(w.condition("e", v1alpha1.ConditionSyncError, "allowEmpty", "sync by hand"))
			}
			w.listen("e")
			if d := deletes(); len(d) != 0 {
				t.Fatalf("deleted: %v", d)
			}
			if name == "path missing" {
				return
			}
			w.patchApp("e", `{"operation":{"sync":{"prune":true}}}`)
			w.until("the five pruned", func() (string, bool) {
				left := w.names("v1", "configmaps")
				return fmt.Sprint(left), len(left) == 1 && left[0] == "copy"
			})
		})
	}
}

// listen looks at the application five times by force, then lets five seconds go by.
func (w *world) listen(name string) {
	w.t.Helper()
	for range 5 {
		w.refresh(name, "hard")
	}
	timer := time.NewTimer(5 * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.t.Context().Done():
	}
}

// deletions watches what is deleted from now on; the function returned tells the names.
func (w *world) deletions(apiVersion, plural string) func() []string {
	w.t.Helper()
	events, err := w.resource(apiVersion, plural).Watch(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(events.Stop)
	var names []string
	return func() []string {
		for {
			select {
			case ev := <-events.ResultChan():
				if u, ok := ev.Object.(*unstructured.Unstructured); ok && (ev.Type == "DELETED" || u.GetDeletionTimestamp() != nil) {
					names = append(names, u.GetName())
				}
			default:
				return names
			}
		}
	}
}

// names are those of the objects that were not made by the cluster itself.
func (w *world) names(apiVersion, plural string) []string {
	w.t.Helper()
	list, err := w.resource(apiVersion, plural).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, o := range list.Items {
		if o.GetName() != "kube-root-ca.crt" {
			out = append(out, o.GetName())
		}
	}
	return out
}
