package engine_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/internal/settings"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

const instanceLabel = settings.DefaultInstanceLabel

// setting writes argocd-cm, which takes effect while the engine runs.
func (w *world) setting(data map[string]string) {
	w.t.Helper()
	maps := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(w.control)
	values := map[string]any{}
	for k, v := range data {
		values[k] = v
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": settings.ConfigMap}, "data": values,
	}}
	if _, err := maps.Apply(w.t.Context(), settings.ConfigMap, u, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
		w.t.Fatal(err)
	}
}

// marked waits until the object carries exactly these marks; empty stands for none.
func (w *world) marked(apiVersion, plural, name, annotation, label, installation string) {
	w.t.Helper()
	w.until(name+" marked", func() (string, bool) {
		u := w.live(apiVersion, plural, name)
		a, l := u.GetAnnotations(), u.GetLabels()
		return fmt.Sprint(a, l), a[engine.TrackingAnnotation] == annotation && l[instanceLabel] == label && a[engine.InstallationAnnotation] == installation
	})
}

// Changing how objects are marked, while everything runs, marks them anew and does nothing else: no pod starts again,
// nothing is deleted or made twice.
func TestTrackingMethodsLive(t *testing.T) {
	w := newWorld(t)
	r := w.repo("track", map[string]string{
		"app/a.yaml":   configMap("a", "1"),
		"app/web.yaml": deployment("web", "registry.k8s.io/pause:3.9", 1),
		"app/old.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old, annotations: {argocd.argoproj.io/sync-options: Prune=false}}\n",
	})
	w.app("track", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("track", "")
	pod := func() types.UID {
		list, err := w.resource("v1", "pods").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		return list.Items[0].GetUID()
	}
	app, before, deployed := w.real("track"), pod(), w.live("apps/v1", "deployments", "web").GetUID()
	idOf := func(kind, name string) string { return app + ":" + kind + ":" + w.dest + "/" + name }
	for _, step := range []struct {
		data                            map[string]string
		annotated, labelled, installing bool
	}{
		{map[string]string{"application.resourceTrackingMethod": "annotation+label"}, true, true, false},
		{map[string]string{"application.resourceTrackingMethod": "label"}, false, true, false},
		{map[string]string{"application.resourceTrackingMethod": "nonsense", "installationID": "one"}, true, false, true},
		{nil, true, false, false},
	} {
		w.setting(step.data)
		when := func(yes bool, text string) string {
			if yes {
				return text
			}
			return ""
		}
		for _, o := range []struct{ api, plural, kind, name string }{{"v1", "configmaps", "/ConfigMap", "a"}, {"apps/v1", "deployments", "apps/Deployment", "web"}} {
			w.marked(o.api, o.plural, o.name, when(step.annotated, idOf(o.kind, o.name)), when(step.labelled, app), when(step.installing, "one"))
		}
		w.settled("track", "")
	}
	if got := pod(); got != before {
		t.Errorf("the pod was replaced: %s → %s", before, got)
	}
	if got := w.live("apps/v1", "deployments", "web").GetUID(); got != deployed {
		t.Errorf("the deployment was replaced: %s → %s", deployed, got)
	}
	if !strings.Contains(w.log.String(), "nonsense") {
		t.Error("the log does not name the bad setting")
	}
	// What is pruned is known after all that.
	sha := w.commit(r, map[string]string{"app/a.yaml": gitserver.Deleted})
	w.settled("track", sha)
	w.until("a pruned", func() (string, bool) { _, there := w.configMap("a"); return "", !there })
}

// C025, with label tracking: a copied label proves nothing, and neither does the label of an object of which the record is
// lost. What is recorded is pruned.
func TestC025LabelsNeedARecord(t *testing.T) {
	w := newWorld(t)
	w.setting(map[string]string{"application.resourceTrackingMethod": "label"})
	r := w.repo("label", map[string]string{"app/a.yaml": configMap("a", "1"), "app/b.yaml": configMap("b", "1"), "app/c.yaml": configMap("c", "1")})
	w.app("label", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("label", "")
	w.marked("v1", "configmaps", "a", "", w.real("label"), "")
	// The copy of a label.
	hand := w.live("v1", "configmaps", "a")
	copied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "copy"}}}
	copied.SetLabels(hand.GetLabels())
	if _, err := w.resource("v1", "configmaps").Create(t.Context(), copied, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Log(w.condition("label", v1alpha1.ConditionOrphanedResourceWarning, "ConfigMap/"+w.dest+"/copy", "no record"))
	sha := w.commit(r, map[string]string{"app/a.yaml": gitserver.Deleted})
	w.settled("label", sha)
	if _, there := w.configMap("a"); there {
		t.Error("a was not pruned")
	}
	// The loss of the record while b leaves Git.
	w.stop()
	w.data = t.TempDir()
	sha = w.commit(r, map[string]string{"app/b.yaml": gitserver.Deleted})
	w.start()
	w.condition("label", v1alpha1.ConditionOrphanedResourceWarning, "ConfigMap/"+w.dest+"/b", "ConfigMap/"+w.dest+"/copy", "no record")
	w.settled("label", sha)
	// What is still declared is known again, and pruned when it goes.
	sha = w.commit(r, map[string]string{"app/c.yaml": gitserver.Deleted, "app/d.yaml": configMap("d", "1")})
	w.settled("label", sha)
	if _, there := w.configMap("c"); there {
		t.Error("c was not pruned")
	}
	for _, name := range []string{"b", "copy"} {
		if _, there := w.configMap(name); !there {
			t.Errorf("%s is gone", name)
		}
	}
}

// Objects of another installation are nobody's here, whatever their tracking id says.
func TestObjectsOfAnotherInstallationStay(t *testing.T) {
	w := newWorld(t)
	w.setting(map[string]string{"installationID": "one"})
	r := w.repo("inst", map[string]string{"app/a.yaml": configMap("a", "1"), "app/b.yaml": configMap("b", "1")})
	w.app("inst", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("inst", "")
	other := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "other", "annotations": map[string]any{
		engine.TrackingAnnotation: w.real("inst") + ":/ConfigMap:" + w.dest + "/other", engine.InstallationAnnotation: "two",
	}}}}
	if _, err := w.resource("v1", "configmaps").Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	sha := w.commit(r, map[string]string{"app/a.yaml": gitserver.Deleted})
	w.settled("inst", sha)
	w.until("a pruned", func() (string, bool) { _, there := w.configMap("a"); return "", !there })
	if _, there := w.configMap("other"); !there {
		t.Error("the other installation's object was pruned")
	}
}
