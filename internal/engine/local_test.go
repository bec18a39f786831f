package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// request asks for an operation.
func (w *world) request(name string, op v1alpha1.Operation) {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"operation": op})
	if err != nil {
		w.t.Fatal(err)
	}
	w.patchApp(name, string(body))
}

// Local manifests are applied with the application's mark and under its project's rules; they are no deployment, are not kept,
// and never carry the values of a Secret.
func TestLocalManifests(t *testing.T) {
	w := newWorld(t)
	secret := func(value string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {pw: %s}\n", value)
	}
	r := w.repo("l", map[string]string{"app/a.yaml": configMap("a", "1"), "app/b.yaml": configMap("b", "1"), "app/s.yaml": secret("git")})
	w.app("l", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	w.request("l", v1alpha1.Operation{Sync: &v1alpha1.SyncOperation{}})
	w.settled("l", "")
	before := w.live("v1", "secrets", "s").GetResourceVersion()
	local := []string{configMap("a", "local"), configMap("c", "local"), secret("CANARY")}
	w.request("l", v1alpha1.Operation{Sync: &v1alpha1.SyncOperation{Manifests: local}})
	app := w.ends("l", v1alpha1.OperationSucceeded)
	w.until("applied", func() (string, bool) {
		app = w.get("l")
		a, _ := w.configMap("a")
		c, _ := w.configMap("c")
		return fmt.Sprint(a, c, operation(app), app.Status.Sync.Status), a["k"] == "local" && c["k"] == "local" && app.Status.Sync.Status == v1alpha1.SyncOutOfSync
	})
	if _, there := w.configMap("b"); !there {
		t.Error("b was pruned without having been asked for")
	}
	if mark := w.live("v1", "configmaps", "c").GetAnnotations()["argocd.argoproj.io/tracking-id"]; !strings.HasPrefix(mark, w.real("l")+":") {
		t.Errorf("c is marked %q", mark)
	}
	if after := w.live("v1", "secrets", "s").GetResourceVersion(); after != before {
		t.Error("the Secret was written")
	}
	whole, err := json.Marshal(app)
	if err != nil || strings.Contains(string(whole), "CANARY") {
		t.Errorf("the value of the Secret is in the Application: %v", err)
	}
	if state := app.Status.OperationState; len(app.Status.History) != 1 || state.SyncResult.Revision != "" || len(state.Operation.Sync.Manifests) != 0 {
		t.Errorf("history %v, result of revision %q, %d manifests kept", app.Status.History, state.SyncResult.Revision, len(state.Operation.Sync.Manifests))
	}
	w.request("l", v1alpha1.Operation{Sync: &v1alpha1.SyncOperation{Manifests: []string{local[0], local[2]}, Prune: true}})
	w.until("b and c pruned on request", func() (string, bool) {
		_, b := w.configMap("b")
		_, c := w.configMap("c")
		return operation(w.get("l")), !b && !c
	})
	if after := w.live("v1", "secrets", "s").GetResourceVersion(); after != before {
		t.Error("the Secret was written or pruned")
	}
	w.request("l", v1alpha1.Operation{Sync: &v1alpha1.SyncOperation{Manifests: []string{configMap("a", "other"), "apiVersion: v1\nkind: [ConfigMap\n"}}})
	w.ends("l", v1alpha1.OperationFailed, "operation.sync.manifests[1]:2")
	if a, _ := w.configMap("a"); a["k"] != "local" {
		t.Errorf("one of two manifests is broken, and a is %v", a)
	}
	// A project that does not permit a kind, or demands signatures, holds for them, too.
	w.project("tight", map[string]any{"namespaceResourceBlacklist": []any{map[string]any{"group": "", "kind": "ConfigMap"}}})
	w.patchApp("l", `{"spec":{"project":"tight"}}`)
	w.request("l", v1alpha1.Operation{Sync: &v1alpha1.SyncOperation{Manifests: []string{configMap("d", "1")}}})
	w.ends("l", v1alpha1.OperationFailed, "operation.sync.manifests[0]:1", "ConfigMap", "nothing was applied")
	w.project("signed", map[string]any{"signatureKeys": []any{map[string]any{"keyID": "4AEE18F83AFDEB23"}}})
	w.patchApp("l", `{"spec":{"project":"signed"}}`)
	w.request("l", v1alpha1.Operation{Sync: &v1alpha1.SyncOperation{Manifests: []string{configMap("d", "1")}}})
	w.ends("l", v1alpha1.OperationFailed, "signed", "demands signed commits, and local manifests are none")
	if _, there := w.configMap("d"); there {
		t.Error("d was applied")
	}
	w.patchApp("l", `{"spec":{"project":"default"}}`)
	// Automated sync takes Git's side as soon as it is switched on.
	w.patchApp("l", `{"spec":{"syncPolicy":{"automated":{}}}}`)
	w.settled("l", "")
	if a, _ := w.configMap("a"); a["k"] != "1" {
		t.Errorf("a is %v", a)
	}
}

// project makes an AppProject that permits every source and destination, with more in its spec.
func (w *world) project(name string, more map[string]any) {
	w.t.Helper()
	spec := map[string]any{
		"sourceRepos": []any{"*"}, "destinations": []any{map[string]any{"server": "*", "namespace": "*"}},
		"clusterResourceWhitelist": []any{map[string]any{"group": "*", "kind": "*"}},
	}
	maps.Copy(spec, more)
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": "AppProject", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
	projects := w.client.Resource(v1alpha1.GroupVersion().WithResource("appprojects")).Namespace(w.control)
	if _, err := projects.Create(w.t.Context(), u, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
