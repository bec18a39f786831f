package engine_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

func TestCommitIsSyncedAndDriftPutBack(t *testing.T) {
	w := newWorld(t)
	r := w.repo("shop", map[string]string{
		"app/cm.yaml":  configMap("settings", "one"),
		"app/web.yaml": deployment("web", "registry.k8s.io/pause:3.9", 1),
	})
	w.app("shop", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	app := w.settled("shop", "")
	if len(app.Status.History) != 1 || app.Status.OperationState.Phase != v1alpha1.OperationSucceeded {
		t.Errorf("history %v, operation %s", app.Status.History, operation(app))
	}
	sha := w.commit(r, map[string]string{"app/cm.yaml": configMap("settings", "two")})
	w.settled("shop", sha)
	if data, _ := w.configMap("settings"); data["k"] != "two" {
		t.Errorf("settings %v", data)
	}

	cms := w.resource("v1", "configmaps")
	if _, err := cms.Patch(t.Context(), "settings", types.MergePatchType, []byte(`{"data":{"k":"by hand","extra":"stays"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("edit put back", func() (string, bool) {
		data, _ := w.configMap("settings")
		return data["k"], data["k"] == "two" && data["extra"] == "stays"
	})
	if err := w.resource("apps/v1", "deployments").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("deployment put back", func() (string, bool) {
		_, err := w.resource("apps/v1", "deployments").Get(t.Context(), "web", metav1.GetOptions{})
		return "missing", err == nil
	})
	app = w.settled("shop", sha)
	if len(app.Status.History) != 2 {
		t.Errorf("putting back is no deployment: %d entries of history", len(app.Status.History))
	}
}

func TestPruneAndTheEmptySource(t *testing.T) {
	w := newWorld(t)
	r := w.repo("p", map[string]string{"app/a.yaml": configMap("a", "1"), "app/b.yaml": configMap("b", "1"), "app/README.md": "x"})
	w.app("p", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("p", "")
	sha := w.commit(r, map[string]string{"app/b.yaml": gitserver.Deleted})
	w.settled("p", sha)
	if _, there := w.configMap("b"); there {
		t.Error("b left Git and is still there")
	}
	w.commit(r, map[string]string{"app/a.yaml": gitserver.Deleted})
	w.condition("p", v1alpha1.ConditionSyncError, "declares no object", "allowEmpty")
	if _, there := w.configMap("a"); !there {
		t.Fatal("an empty source deleted what was running")
	}
	w.patchApp("p", `{"operation":{"sync":{"prune":true}}}`)
	w.until("a pruned on request", func() (string, bool) {
		_, there := w.configMap("a")
		return operation(w.get("p")), !there
	})
}

func TestBrokenCommitTouchesNothing(t *testing.T) {
	w := newWorld(t)
	good := configMap("a", "1")
	r := w.repo("b", map[string]string{"app/a.yaml": good})
	w.app("b", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("b", "")
	for name, c := range map[string]struct {
		file  string
		typ   v1alpha1.ApplicationConditionType
		parts []string
	}{
		"YAML error":       {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x\ndata: {}\n", v1alpha1.ConditionComparisonError, []string{"app/x.yaml", r.URL()}},
		"unknown kind":     {"apiVersion: demo.example.com/v1\nkind: Nowhere\nmetadata: {name: there}\n", v1alpha1.ConditionSyncError, []string{"app/x.yaml:1", "Nowhere", "CustomResourceDefinition"}},
		"wrong field type": {strings.Replace(deployment("d", "x", 1), "replicas: 1", "replicas: many", 1), v1alpha1.ConditionSyncError, []string{"app/x.yaml:1", "Deployment/d", "replicas"}},
		"unknown field":    {strings.Replace(deployment("d", "x", 1), "replicas: 1", "replica: 1", 1), v1alpha1.ConditionSyncError, []string{"app/x.yaml:1", "Deployment/d", "spec.replica"}},
		"too large":        {configMap("big", strings.Repeat("x", 1600000)), v1alpha1.ConditionSyncError, []string{"app/x.yaml:1", "ConfigMap/big", "1.5 MB"}},
	} {
		w.commit(r, map[string]string{"app/x.yaml": c.file, "app/a.yaml": configMap("a", "broken commit")})
		message := w.condition("b", c.typ, c.parts...)
		t.Logf("%s: %s", name, message)
		if data, _ := w.configMap("a"); data["k"] != "1" {
			t.Errorf("%s: the rest of the commit was applied", name)
		}
		sha := w.commit(r, map[string]string{"app/x.yaml": gitserver.Deleted, "app/a.yaml": good})
		w.settled("b", sha)
	}
}
