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
)

// What could not be made again is not deleted: the refusal of the change, and of the trial, is told.
func TestForceKeepsWhatCouldNotBeMade(t *testing.T) {
	w := newWorld(t)
	run := func(command, volume string) string {
		return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: j, annotations: {argocd.argoproj.io/sync-options: "Force=true"}}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: "registry.k8s.io/pause:3.9", command: [%s], volumeMounts: [{name: %s, mountPath: /v}]}], volumes: [{name: v, emptyDir: {}}]}
`, command, volume)
	}
	r := w.repo("k", map[string]string{"app/j.yaml": run("one", "v")})
	w.app("k", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	w.operated("k", `{}`, v1alpha1.OperationSucceeded)
	jobs := w.resource("batch/v1", "jobs")
	before, err := jobs.Get(t.Context(), "j", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.commit(r, map[string]string{"app/j.yaml": run("two", "nowhere")})
	op := w.operated("k", `{}`, v1alpha1.OperationFailed)
	for _, part := range []string{"Job/j", "was not deleted to be made anew", "volumeMounts[0].name"} {
		if !strings.Contains(op.Message, part) {
			t.Errorf("%q misses %q", op.Message, part)
		}
	}
	now, err := jobs.Get(t.Context(), "j", metav1.GetOptions{})
	if err != nil || now.GetUID() != before.GetUID() || now.GetDeletionTimestamp() != nil {
		t.Errorf("the Job was deleted: %v", err)
	}
}

// Replace=true with RespectIgnoreDifferences=true leaves what is ignored to those who set it.
func TestReplaceRespectsIgnored(t *testing.T) {
	w := newWorld(t)
	web := func(image string) string { return optioned("Replace=true", labelled(image, 2)) }
	r := w.repo("ri", map[string]string{"app/web.yaml": web(oldImage)})
	w.app("ri", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, ignoring(true, replicasRule()))
	w.settled("ri", "")
	w.scale("web", "kubectl", 3)
	w.settled("ri", w.commit(r, map[string]string{"app/web.yaml": web(newImage)}))
	live := w.live("apps/v1", "deployments", "web")
	if n := replicas(live); n != 3 {
		t.Errorf("%d replicas", n)
	}
	for _, f := range live.GetManagedFields() {
		if strings.HasSuffix(f.Manager, "-replace") {
			t.Errorf("%s still owns fields", f.Manager)
		}
	}
}

// A replacement that a process did not live to take over is taken over with the next change: no field stays behind.
func TestReplaceCutShort(t *testing.T) {
	w := newWorld(t)
	text := func(data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {" + data + "}\n"
	}
	r := w.repo("cut", map[string]string{"app/a.yaml": text("k: one")})
	w.app("cut", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("cut", "")
	w.stop()
	maps := w.resource("v1", "configmaps")
	if _, err := maps.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data":{"other":"x"}}`), metav1.PatchOptions{FieldManager: "lockstep-replace"}); err != nil {
		t.Fatal(err)
	}
	w.commit(r, map[string]string{"app/a.yaml": text("k: one, other: x")})
	w.start()
	w.settled("cut", w.commit(r, map[string]string{"app/b.yaml": configMap("b", "1")}))
	w.settled("cut", w.commit(r, map[string]string{"app/a.yaml": text("k: two")}))
	if data, _ := w.configMap("a"); fmt.Sprint(data) != "map[k:two]" {
		t.Errorf("data %v", data)
	}
}

// A question to the API server can be a hook, and options of hooks count: unknown fields are dropped and named.
func TestHooksOfEveryKind(t *testing.T) {
	w := newWorld(t)
	r := w.repo("h", map[string]string{
		"app/a.yaml":   configMap("a", "1"),
		"app/ask.yaml": "apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\nmetadata: {annotations: {argocd.argoproj.io/hook: PreSync}}\nspec: {resourceAttributes: {verb: get, resource: pods}}\n",
		"app/job.yaml": optionedHook("Validate=false", job("run", `argocd.argoproj.io/hook: PreSync`, "")),
	})
	w.app("h", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	op := w.operated("h", `{}`, v1alpha1.OperationSucceeded)
	asked := 0
	for _, res := range op.SyncResult.Resources {
		if res.Kind == "SelfSubjectAccessReview" && res.HookPhase == v1alpha1.OperationSucceeded {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times: %+v", asked, op.SyncResult.Resources)
	}
	w.condition("h", v1alpha1.ConditionRenderWarning, "app/job.yaml", "Job/run", "spec.extra")

	w.commit(r, map[string]string{"app/a.yaml": configMap("a", "2"), "app/job.yaml": optionedHook("Validate=true", job("run", `argocd.argoproj.io/hook: PreSync`, ""))})
	op = w.operated("h", `{}`, v1alpha1.OperationFailed)
	if !strings.Contains(op.Message, "app/job.yaml") || !strings.Contains(op.Message, "spec.extra: is no field of this kind; nothing was applied") {
		t.Errorf("then: %s", op.Message)
	}
}

// optionedHook adds sync options to a hook, and a field that no Job has.
func optionedHook(options, text string) string {
	text = strings.Replace(text, "argocd.argoproj.io/hook: PreSync", "argocd.argoproj.io/hook: PreSync, argocd.argoproj.io/sync-options: \""+options+"\"", 1)
	return strings.Replace(text, "spec:", "spec:\n  extra: 1", 1)
}

// With Validate=false faults that no dropping mends are named by object and path, before anything is applied.
func TestValidateFalseNamesOtherFaults(t *testing.T) {
	w := newWorld(t)
	double := strings.Replace(deployment("web", "registry.k8s.io/pause:3.9", 1), "{name: c,", "{name: c, env: [{name: A, value: one}, {name: A, value: two}],", 1)
	r := w.repo("vd", map[string]string{"app/a.yaml": configMap("a", "1"), "app/web.yaml": optioned("Validate=false", double)})
	w.app("vd", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	expect := func(parts ...string) {
		t.Helper()
		op := w.operated("vd", `{}`, v1alpha1.OperationFailed)
		for _, part := range append(parts, "app/web.yaml", "Deployment/web", "nothing was applied") {
			if !strings.Contains(op.Message, part) {
				t.Errorf("%q misses %q", op.Message, part)
			}
		}
	}
	expect("env", "A")
	wrong := strings.Replace(deployment("web", "registry.k8s.io/pause:3.9", 1), "replicas: 1", "replicas: many", 1)
	w.commit(r, map[string]string{"app/web.yaml": optioned("Validate=false", wrong)})
	expect("spec.replicas")
	if _, there := w.configMap("a"); there {
		t.Error("another object was applied")
	}
}

// SkipDryRunOnMissingResource=true of an operation counts, and opens no way around the project: what a kind turns out to be is
// held against its rules when it is served.
func TestSkipDryRunObeysTheProject(t *testing.T) {
	w := newWorld(t)
	group := w.dest + ".example.org"
	r := w.repo("sp", map[string]string{"app/g.yaml": "apiVersion: " + group + "/v1\nkind: Gadget\nmetadata: {name: g}\n"})
	narrow := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": "AppProject", "metadata": map[string]any{"name": "narrow"},
		"spec": map[string]any{"sourceRepos": []any{"*"}, "destinations": []any{map[string]any{"server": "*", "namespace": "*"}}},
	}}
	projects := w.client.Resource(v1alpha1.GroupVersion().WithResource("appprojects")).Namespace(w.control)
	if _, err := projects.Create(t.Context(), narrow, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.app("sp", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		byHand(a)
		a.Spec.Project = "narrow"
	})
	w.operated("sp", `{}`, v1alpha1.OperationFailed)
	w.patchApp("sp", `{"operation":{"sync":{"syncOptions":["SkipDryRunOnMissingResource=true"]}}}`)
	w.until("waiting for the kind", func() (string, bool) {
		op := w.get("sp").Status.OperationState
		return operation(w.get("sp")), op != nil && op.Phase == v1alpha1.OperationRunning && strings.Contains(op.Message, "waiting for a kind")
	})
	definition := gadgets(group)
	if err := unstructured.SetNestedField(definition.Object, "Cluster", "spec", "scope"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.Resource(definitions()).Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("a refusal", func() (string, bool) {
		app := w.get("sp")
		return operation(app), app.Status.OperationState.Phase == v1alpha1.OperationFailed && strings.Contains(app.Status.OperationState.Message, "Gadget")
	})
	list, err := w.client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gadgets"}).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%d gadgets, %v", len(list.Items), err)
	}
}
