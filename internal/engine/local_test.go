package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// Manifests that come with an operation are applied in place of the source's, leave no history, and are then what differs;
// with automated sync they are refused, and a broken one touches nothing.
func TestLocalManifests(t *testing.T) {
	w := newWorld(t)
	r := w.repo("l", map[string]string{"app/a.yaml": configMap("a", "git"), "app/b.yaml": configMap("b", "git")})
	w.app("l", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	sync := func(name string, manifests ...string) {
		t.Helper()
		patch, err := json.Marshal(map[string]any{"operation": map[string]any{"sync": map[string]any{"manifests": manifests, "prune": false}}})
		if err != nil {
			t.Fatal(err)
		}
		w.patchApp(name, string(patch))
	}
	ended := func(name string, phase v1alpha1.OperationPhase, says string) {
		t.Helper()
		w.until("the operation ends", func() (string, bool) {
			app := w.get(name)
			op := app.Status.OperationState
			return operation(app), app.Operation == nil && op != nil && op.Phase == phase && strings.Contains(op.Message, says)
		})
	}
	w.patchApp("l", `{"operation":{"sync":{}}}`)
	w.settled("l", "")
	sync("l", configMap("a", "local"))
	w.until("a is the local one", func() (string, bool) {
		data, _ := w.configMap("a")
		app := w.get("l")
		return operation(app), data["k"] == "local" && app.Status.Sync.Status == v1alpha1.SyncOutOfSync
	})
	if data, there := w.configMap("b"); !there || data["k"] != "git" {
		t.Errorf("b: %v %v", there, data)
	}
	w.until("the manifests left the status", func() (string, bool) {
		text, err := json.Marshal(w.get("l").Status.OperationState)
		return string(text), err == nil && !strings.Contains(string(text), `"manifests"`)
	})
	if n := len(w.get("l").Status.History); n != 1 {
		t.Errorf("%d entries of history", n)
	}
	sync("l", configMap("a", "other"), "apiVersion: v1\nkind: [ConfigMap\n")
	ended("l", v1alpha1.OperationFailed, "operation.sync.manifests[1]:2")
	if data, _ := w.configMap("a"); data["k"] != "local" {
		t.Errorf("a: %v", data)
	}
	w.app("auto", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) { a.Spec.Destination.Namespace = w.control })
	w.settled("auto", "")
	sync("auto", configMap("a", "local"))
	ended("auto", v1alpha1.OperationFailed, "refused while automated sync is on")
}
