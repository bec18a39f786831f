package engine_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/test/registry"
)

// A chart names a repository as @mine. A Secret that comes with this name wakes the application, and so does one that gives
// the name to another URL; nobody else renders for it.
func TestANameThatLeadsElsewhereWakes(t *testing.T) {
	w := newWorld(t)
	helm := func(who string) string {
		h := registry.StartHelm(registry.Options{})
		t.Cleanup(h.Close)
		files := map[string]string{
			"Chart.yaml":        "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
			"templates/cm.yaml": configMap("sub", who),
		}
		if _, err := h.Add(files); err != nil {
			t.Fatal(err)
		}
		return h.URL()
	}
	secrets := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(w.control)
	secret := func(url string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret",
			"metadata":   map[string]any{"name": "mine", "labels": map[string]any{"argocd.argoproj.io/secret-type": "repository"}},
			"stringData": map[string]any{"url": url, "type": "helm", "name": "mine"},
		}}
	}
	r := w.repo("app", map[string]string{
		"app/Chart.yaml":  "apiVersion: v2\nname: app\nversion: 1.0.0\ndependencies: [{name: sub, version: 1.0.0, repository: \"@mine\"}]\n",
		"plain/cm.yaml":   configMap("plain", "1"),
		"app/values.yaml": "{}\n",
	})
	w.app("plain", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "plain"})
	w.settled("plain", "")
	w.app("named", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.condition("named", v1alpha1.ConditionComparisonError, `no repository has the name "mine"`)
	says := func(who string) {
		t.Helper()
		w.until("the dependency of "+who, func() (string, bool) {
			data, _ := w.configMap("sub")
			return data["k"] + " " + operation(w.get("named")), data["k"] == who
		})
		w.settled("named", "")
	}
	if _, err := secrets.Create(t.Context(), secret(helm("first")), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	says("first")
	w.forgetRenders()
	if _, err := secrets.Update(t.Context(), secret(helm("second")), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	says("second")
	w.wantRendered("the name leads elsewhere", "named")
}
