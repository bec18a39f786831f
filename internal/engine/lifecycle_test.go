package engine_test

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

func TestDeletionTakesWhatTheApplicationOwns(t *testing.T) {
	w := newWorld(t)
	r := w.repo("d", map[string]string{
		"app/a.yaml":    configMap("a", "1"),
		"app/keep.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: keep, annotations: {argocd.argoproj.io/sync-options: Delete=false}}\n",
	})
	w.app("d", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		a.Finalizers = []string{engine.CascadeFinalizer}
	})
	w.settled("d", "")
	if err := w.apps().Delete(t.Context(), w.real("d"), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("application gone", func() (string, bool) {
		_, err := w.apps().Get(t.Context(), w.real("d"), metav1.GetOptions{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	if _, there := w.configMap("a"); there {
		t.Error("a is still there")
	}
	if _, there := w.configMap("keep"); !there {
		t.Error("keep is gone")
	}
}

// An application whose kinds are not served, or not any more, can be deleted all the same.
func TestDeletionWithAKindThatIsNotServed(t *testing.T) {
	w := newWorld(t)
	r := w.repo("d", map[string]string{
		"app/a.yaml": configMap("a", "1"),
		"app/b.yaml": "apiVersion: nowhere.example.com/v1\nkind: Gadget\nmetadata: {name: g}\n",
	})
	w.app("d", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		a.Finalizers = []string{engine.CascadeFinalizer}
	})
	w.until("Gadget in the status", func() (string, bool) {
		resources := w.get("d").Status.Resources
		return fmt.Sprint(resources), len(resources) == 2
	})
	if err := w.apps().Delete(t.Context(), w.real("d"), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("application gone", func() (string, bool) {
		_, err := w.apps().Get(t.Context(), w.real("d"), metav1.GetOptions{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

func TestDeletionWithoutFinalizerLeavesEverything(t *testing.T) {
	w := newWorld(t)
	r := w.repo("d", map[string]string{"app/a.yaml": configMap("a", "1")})
	w.app("d", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("d", "")
	if err := w.apps().Delete(t.Context(), w.real("d"), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.app("other", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	w.until("other looked at", func() (string, bool) { s := w.get("other").Status.Sync.Status; return string(s), s != "" })
	if _, there := w.configMap("a"); !there {
		t.Error("a is gone")
	}
}

// C020: a definition and an object of its kind in one commit need one sync and no annotation.
func TestC020DefinitionAndObjectInOneSync(t *testing.T) {
	w := newWorld(t)
	group := w.dest + ".example.com" // of this test alone
	r := w.repo("crd", map[string]string{
		"app/a.yaml": "apiVersion: " + group + "/v1\nkind: Gadget\nmetadata: {name: g}\nspec: {num: 1}\n",
		"app/z.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.` + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`,
	})
	w.app("crd", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	app := w.settled("crd", "")
	if len(app.Status.History) != 1 || app.Status.OperationState.RetryCount != 0 {
		t.Errorf("%d syncs, %d retries", len(app.Status.History), app.Status.OperationState.RetryCount)
	}
	t.Cleanup(func() {
		_ = w.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
			Delete(t.Context(), "gadgets."+group, metav1.DeleteOptions{})
	})
}

func TestWavesWaitForHealth(t *testing.T) {
	w := newWorld(t)
	r := w.repo("waves", map[string]string{
		"app/web.yaml": deployment("web", "registry.k8s.io/pause:3.9", 1),
		"app/cm.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: late, annotations: {argocd.argoproj.io/sync-wave: \"1\"}}\n",
	})
	w.app("waves", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("waves", "")
	late, err := w.resource("v1", "configmaps").Get(t.Context(), "late", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	web, err := w.resource("apps/v1", "deployments").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(web.Object, "status", "conditions")
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["type"] == "Available" && m["lastTransitionTime"].(string) > late.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z") {
			t.Errorf("late was made at %s, before web was available at %s", late.GetCreationTimestamp(), m["lastTransitionTime"])
		}
	}
}

// A restart, with and without its data, writes nothing: what is in step is known or found out.
func TestRestartWritesNothing(t *testing.T) {
	w := newWorld(t)
	r := w.repo("r", map[string]string{"app/a.yaml": configMap("a", "1"), "app/web.yaml": deployment("web", "registry.k8s.io/pause:3.9", 1)})
	w.app("r", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("r", "")
	for _, lose := range []bool{false, true} {
		before := w.get("r").ResourceVersion
		cm, err := w.resource("v1", "configmaps").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.stop()
		if lose {
			w.data = t.TempDir()
		}
		w.start()
		w.until("everything looked at", func() (string, bool) {
			if err := w.engine.Settled(); err != nil {
				return err.Error(), false
			}
			return "", true
		})
		if after := w.get("r").ResourceVersion; after != before {
			t.Errorf("data lost %v: the application was written: %s → %s", lose, before, after)
		}
		again, err := w.resource("v1", "configmaps").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if again.GetResourceVersion() != cm.GetResourceVersion() {
			t.Errorf("data lost %v: the object was written", lose)
		}
	}
	// And drift is still put back.
	if err := w.resource("v1", "configmaps").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("a put back", func() (string, bool) { _, ok := w.configMap("a"); return "missing", ok })
}

func TestAppOfApps(t *testing.T) {
	w := newWorld(t)
	r := w.repo("fleet", map[string]string{"one/cm.yaml": configMap("one", "1"), "two/cm.yaml": configMap("two", "1")})
	child := func(name string) string {
		return fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %[6]s, finalizers: [%[5]s]}
spec:
  project: default
  source: {repoURL: %[2]q, path: %[1]s}
  destination: {server: %[3]q, namespace: %[4]s}
  syncPolicy: {automated: {prune: true, selfHeal: true}}
`, name, r.URL(), engine.InClusterServer, w.dest, engine.CascadeFinalizer, w.real(name))
	}
	parent := w.repo("parent", map[string]string{"apps/one.yaml": child("one"), "apps/two.yaml": child("two")})
	w.app("all", v1alpha1.ApplicationSource{RepoURL: parent.URL(), Path: "apps"}, func(a *v1alpha1.Application) {
		a.Spec.Destination.Namespace = w.control
	})
	w.settled("one", "")
	w.settled("two", "")
	app := w.settled("all", "")
	if !app.Status.Summary.IsAppOfApps {
		t.Error("not seen as an app of apps")
	}
	w.commit(parent, map[string]string{"apps/two.yaml": gitserver.Deleted})
	w.until("two and what it owned gone", func() (string, bool) {
		_, err := w.apps().Get(t.Context(), w.real("two"), metav1.GetOptions{})
		_, there := w.configMap("two")
		return fmt.Sprint(err, there), apierrors.IsNotFound(err) && !there
	})
	w.settled("one", "")
}
