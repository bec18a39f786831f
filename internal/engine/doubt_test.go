package engine_test

import (
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// An object that leaves one application while another can not be rendered may have moved there: it stays until the other
// is mended, and then follows what that one declares.
func TestPruneWaitsForTheUnrendered(t *testing.T) {
	w := newWorld(t)
	r := w.repo("p", map[string]string{
		"a/moved.yaml": configMap("moved", "1"), "a/gone.yaml": configMap("gone", "1"), "a/stays.yaml": configMap("stays", "1"),
		"b/own.yaml": configMap("own", "1"),
	})
	w.app("a", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "a"})
	w.app("b", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "b"})
	w.settled("a", "")
	w.settled("b", "")
	w.commit(r, map[string]string{"a/moved.yaml": gitserver.Deleted, "a/gone.yaml": gitserver.Deleted, "b/moved.yaml": configMap("moved", "1"), "b/own.yaml": "apiVersion: v1\nkind: [ConfigMap\n"})
	w.until("a waits", func() (string, bool) {
		app := w.get("a")
		op := app.Status.OperationState
		return operation(app), op != nil && op.Phase == v1alpha1.OperationRunning && strings.Contains(op.Message, "waits for application") &&
			strings.Contains(op.Message, w.real("b")) && strings.Contains(op.Message, "moved")
	})
	for _, name := range []string{"moved", "gone"} {
		if _, there := w.configMap(name); !there {
			t.Errorf("%s was deleted", name)
		}
	}
	sha := w.commit(r, map[string]string{"b/own.yaml": configMap("own", "2")})
	w.settled("b", sha)
	w.settled("a", "")
	if _, there := w.configMap("moved"); !there {
		t.Error("moved was deleted, although b declares it")
	}
	w.until("gone pruned", func() (string, bool) { _, there := w.configMap("gone"); return "it is there", !there })
}
