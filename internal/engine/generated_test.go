package engine_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
)

// C003: a password that a chart makes up stays the same while the commit does, through refreshes and restarts.
func TestC003GeneratedPasswordStays(t *testing.T) {
	w := newWorld(t)
	r := w.repo("gen", map[string]string{
		"chart/Chart.yaml": "apiVersion: v2\nname: gen\nversion: 0.1.0\n",
		"chart/templates/secret.yaml": `{{- $old := (lookup "v1" "Secret" .Release.Namespace "gen").data | default dict }}
apiVersion: v1
kind: Secret
metadata: {name: gen}
data:
  pw: {{ $old.pw | default (randAlphaNum 16 | b64enc) | quote }}
stringData:
  token: {{ randAlphaNum 8 | quote }}
  fixed: {{ .Values.fixed | quote }}
`,
		"chart/values.yaml": "fixed: one\n",
	})
	w.app("gen", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "chart"})
	w.settled("gen", "")
	t.Log(w.condition("gen", v1alpha1.ConditionRenderWarning, "Secret", "data.pw"))
	data := func() map[string]any {
		u, err := w.resource("v1", "secrets").Get(t.Context(), "gen", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		d, _ := u.Object["data"].(map[string]any)
		return d
	}
	before := data()
	same := func(when string) {
		t.Helper()
		if now := data(); now["pw"] != before["pw"] || now["token"] != before["token"] || now["pw"] == nil {
			t.Errorf("%s: the made-up values changed", when)
		}
	}
	refresh := func() {
		w.patchApp("gen", `{"metadata":{"annotations":{"`+engine.RefreshAnnotation+`":"hard"}}}`)
		w.until("refreshed", func() (string, bool) {
			return "annotation still there", w.get("gen").Annotations[engine.RefreshAnnotation] == ""
		})
		w.settled("gen", "")
	}
	for range 5 {
		refresh()
		same("hard refresh")
	}
	w.stop()
	w.data = t.TempDir()
	w.start()
	refresh()
	same("restart without data")
	sha := w.commit(r, map[string]string{"chart/values.yaml": "fixed: two\n"})
	w.settled("gen", sha)
	same("another commit")
	if data()["fixed"] == before["fixed"] {
		t.Error("what Git says did not arrive")
	}
	if n := len(w.get("gen").Status.History); n != 2 {
		t.Errorf("%d deployments", n)
	}
}
