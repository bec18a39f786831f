package engine_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/test/registry"
)

func demoChart(version string) map[string]string {
	return map[string]string{
		"Chart.yaml":        "apiVersion: v2\nname: demo\nversion: " + version + "\n",
		"values.yaml":       "who: nobody\n",
		"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {who: {{ .Values.who | quote }}, chart: {{ .Chart.Version | quote }}}\n",
	}
}

// C049: a commit that changes only the value file, and a new version of the chart, are noticed; an error in the values
// goes away with the commit that mends it.
func TestC049ChartWithValuesFromGit(t *testing.T) {
	w := newWorld(t)
	helm := registry.StartHelm(registry.Options{})
	t.Cleanup(helm.Close)
	if _, err := helm.Add(demoChart("1.0.0")); err != nil {
		t.Fatal(err)
	}
	vals := w.repo("vals", map[string]string{"env/dev.yaml": "who: one\n"})
	w.app("multi", v1alpha1.ApplicationSource{}, func(a *v1alpha1.Application) {
		a.Spec.Source = nil
		a.Spec.Sources = []v1alpha1.ApplicationSource{
			{RepoURL: helm.URL(), Chart: "demo", TargetRevision: "^1.0.0", Helm: &v1alpha1.ApplicationSourceHelm{ReleaseName: "m", ValueFiles: []string{"$vals/env/dev.yaml"}}},
			{RepoURL: vals.URL(), TargetRevision: "main", Ref: "vals"},
		}
	})
	expect := func(who, chart string) {
		t.Helper()
		w.until("who "+who+", chart "+chart, func() (string, bool) {
			data, _ := w.configMap("m")
			return data["who"] + " " + data["chart"] + " " + operation(w.get("multi")), data["who"] == who && data["chart"] == chart
		})
	}
	expect("one", "1.0.0")
	w.settled("multi", "")
	sha := w.commit(vals, map[string]string{"env/dev.yaml": "who: two\n"})
	expect("two", "1.0.0")
	if _, err := helm.Add(demoChart("1.1.0")); err != nil {
		t.Fatal(err)
	}
	expect("two", "1.1.0")
	w.until("both revisions shown", func() (string, bool) {
		got := strings.Join(w.get("multi").Status.Sync.Revisions, " ")
		return got, got == "1.1.0 "+sha
	})
	w.commit(vals, map[string]string{"env/dev.yaml": "who: [\n"})
	t.Log(w.condition("multi", v1alpha1.ConditionComparisonError, "env/dev.yaml"))
	w.commit(vals, map[string]string{"env/dev.yaml": "who: three\n"})
	expect("three", "1.1.0")
	w.settled("multi", "")
}

// A chart of an OCI registry that wants a login, which a Secret has.
func TestChartOfARegistry(t *testing.T) {
	w := newWorld(t)
	login := registry.Login{Username: "robot", Password: "right"}
	oci := registry.StartOCI(registry.Options{Username: "robot", Password: "right"})
	t.Cleanup(oci.Close)
	if _, err := oci.PushChart(t.Context(), login, "charts", demoChart("2.0.0")); err != nil {
		t.Fatal(err)
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": "oci", "labels": map[string]any{"argocd.argoproj.io/secret-type": "repository"}},
		"stringData": map[string]any{
			"url": oci.URL() + "/charts", "type": "helm", "enableOCI": "true", "insecureOCIForceHttp": "true", "username": "robot", "password": "right",
		},
	}}
	if _, err := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(w.control).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.app("oci", v1alpha1.ApplicationSource{RepoURL: oci.URL() + "/charts", Chart: "demo", TargetRevision: "2.*", Helm: &v1alpha1.ApplicationSourceHelm{
		Parameters: []v1alpha1.HelmParameter{{Name: "who", Value: "$ARGOCD_APP_NAMESPACE"}}, ReleaseName: "o",
	}})
	w.settled("oci", "2.0.0")
	if data, _ := w.configMap("o"); data["who"] != w.dest {
		t.Errorf("data %v", data)
	}
}

// An operation that names a revision syncs to it; what the spec asks for is shown as it is.
func TestOperationToARevision(t *testing.T) {
	w := newWorld(t)
	r := w.repo("rev", map[string]string{"app/a.yaml": configMap("a", "1")})
	old, err := r.Resolve("main")
	if err != nil {
		t.Fatal(err)
	}
	w.app("rev", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	w.patchApp("rev", `{"operation":{"sync":{}}}`)
	w.settled("rev", old)
	sha := w.commit(r, map[string]string{"app/a.yaml": configMap("a", "2")})
	w.until("the commit seen", func() (string, bool) {
		s := w.get("rev").Status.Sync
		return string(s.Status), s.Status == v1alpha1.SyncOutOfSync && s.Revision == sha
	})
	w.patchApp("rev", `{"operation":{"sync":{"revision":"`+sha+`"},"initiatedBy":{"username":"ann"}}}`)
	w.settled("rev", sha)
	w.patchApp("rev", `{"operation":{"sync":{"revision":"`+old[:8]+`"}}}`)
	w.until("back at the first commit", func() (string, bool) {
		data, _ := w.configMap("a")
		app := w.get("rev")
		return operation(app), data["k"] == "1" && app.Operation == nil && app.Status.Sync.Status == v1alpha1.SyncOutOfSync &&
			app.Status.OperationState.SyncResult.Revision == old
	})
	history := w.get("rev").Status.History
	if n := len(history); n != 3 || history[n-1].Revision != old || history[1].InitiatedBy.Username != "ann" {
		t.Errorf("history %+v", history)
	}
	w.patchApp("rev", `{"operation":{"sync":{"revision":"nowhere"}}}`)
	w.until("an unknown revision refused", func() (string, bool) {
		app := w.get("rev")
		return operation(app), app.Status.OperationState.Phase == v1alpha1.OperationFailed && strings.Contains(app.Status.OperationState.Message, "nowhere")
	})
}

// A rollback works while automated sync is on, and holds until the source renders to something else.
func TestRollbackPins(t *testing.T) {
	w := newWorld(t)
	r := w.repo("pin", map[string]string{"app/a.yaml": configMap("a", "1"), "other/x": "1"})
	w.app("pin", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	old := w.settled("pin", "").Status.Sync.Revision
	bad := w.commit(r, map[string]string{"app/a.yaml": configMap("a", "bad")})
	w.settled("pin", bad)
	w.patchApp("pin", `{"operation":{"sync":{"revision":"`+old+`"}}}`)
	t.Log(w.condition("pin", v1alpha1.ConditionWaitingWarning, engine.PinAnnotation))
	value := func() string { data, _ := w.configMap("a"); return data["k"] }
	if value() != "1" {
		t.Errorf("rolled back to %q", value())
	}
	// Neither a restart nor a commit elsewhere ends it.
	w.stop()
	w.start()
	elsewhere := w.commit(r, map[string]string{"other/x": "2"})
	w.patchApp("pin", `{"metadata":{"annotations":{"`+engine.RefreshAnnotation+`":"normal"}}}`)
	w.until("the other commit seen", func() (string, bool) {
		s := w.get("pin").Status.Sync
		return s.Revision, s.Revision == elsewhere && s.Status == v1alpha1.SyncOutOfSync
	})
	if value() != "1" {
		t.Errorf("the rollback did not hold: %q", value())
	}
	good := w.commit(r, map[string]string{"app/a.yaml": configMap("a", "good")})
	app := w.settled("pin", good)
	if value() != "good" {
		t.Errorf("the fix did not arrive: %q", value())
	}
	w.until("the pin gone", func() (string, bool) {
		app = w.get("pin")
		return app.Annotations[engine.PinAnnotation], app.Annotations[engine.PinAnnotation] == "" && len(app.Status.Conditions) == 0
	})
}

// An application waits for those it depends on; a circle is told with its path.
func TestDependenciesOrderApplications(t *testing.T) {
	w := newWorld(t)
	r := w.repo("dep", map[string]string{
		"base/web.yaml": strings.Replace(deployment("base", "registry.k8s.io/pause:3.9", 1), "labels: {app: base}}", "labels: {app: base}, annotations: {dev.lockstep/ready-after: 2s}}", 1),
		"top/a.yaml":    configMap("top", "1"),
	})
	after := func(names string) func(*v1alpha1.Application) {
		return func(a *v1alpha1.Application) { a.Annotations = map[string]string{engine.DependsOnAnnotation: names} }
	}
	w.app("top", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "top"}, after(w.real("base")))
	t.Log(w.condition("top", v1alpha1.ConditionWaitingWarning, w.real("base"), "does not exist"))
	w.app("base", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "base"}, func(a *v1alpha1.Application) {
		a.Labels = map[string]string{"tier": "base"}
	})
	t.Log(w.condition("top", v1alpha1.ConditionWaitingWarning, w.real("base"), "Healthy"))
	if _, there := w.configMap("top"); there {
		t.Error("top did not wait")
	}
	w.settled("top", "")
	if h := w.get("base").Status.Health.Status; h != v1alpha1.HealthHealthy {
		t.Errorf("base is %s", h)
	}
	w.app("selects", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "top"}, after("tier=base"), func(a *v1alpha1.Application) { a.Spec.Destination.Namespace = w.control })
	w.settled("selects", "")
	w.app("x", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "top"}, after(w.real("y")), manual)
	w.app("y", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "top"}, after(w.real("x")), manual)
	t.Log(w.condition("y", v1alpha1.ConditionInvalidSpecError, w.real("y")+" → "+w.real("x")+" → "+w.real("y")))
}
