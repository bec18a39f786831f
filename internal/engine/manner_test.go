package engine_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

func optioned(options, text string) string {
	return strings.Replace(text, "metadata: {", "metadata: {annotations: {argocd.argoproj.io/sync-options: \""+options+"\"}, ", 1)
}

// Replace=true puts the object in the place of the live one: what a hand added goes with the next commit, what belongs to
// the cluster stays; the object is in step afterwards, without churn, and a field that leaves Git is gone.
func TestReplace(t *testing.T) {
	w := newWorld(t)
	text := func(data string) string {
		return optioned("Replace=true", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {"+data+"}\n")
	}
	r := w.repo("r", map[string]string{"app/a.yaml": text("k: one, other: x")})
	w.app("r", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("r", "")
	patch := `{"metadata":{"finalizers":["example.com/keep"]},"data":{"foreign":"by hand"}}`
	maps := w.resource("v1", "configmaps")
	if _, err := maps.Patch(t.Context(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "hand"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = maps.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	w.settled("r", w.commit(r, map[string]string{"app/a.yaml": text("k: two, other: x")}))
	live, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(live.Object, "data")
	if fmt.Sprint(data) != "map[k:two other:x]" || len(live.GetFinalizers()) != 1 {
		t.Errorf("data %v, finalizers %v", data, live.GetFinalizers())
	}
	w.refresh("r", "hard")
	if now, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || now.GetResourceVersion() != live.GetResourceVersion() {
		t.Errorf("written again without need: %v", err)
	}
	w.settled("r", w.commit(r, map[string]string{"app/a.yaml": text("k: two")}))
	if data, _ := w.configMap("a"); data["other"] != "" {
		t.Errorf("data %v", data)
	}
}

// Force=true makes anew what can not be changed; without it the refusal names the object and the field.
func TestForce(t *testing.T) {
	w := newWorld(t)
	run := func(options, command string) string {
		return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: j, annotations: {argocd.argoproj.io/sync-options: %q}}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: "registry.k8s.io/pause:3.9", command: [%s]}]}
`, options, command)
	}
	uid := func() types.UID {
		t.Helper()
		j, err := w.resource("batch/v1", "jobs").Get(t.Context(), "j", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return j.GetUID()
	}
	r := w.repo("f", map[string]string{"app/j.yaml": run("", "one")})
	w.app("f", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		a.Spec.SyncPolicy.Retry = &v1alpha1.RetryStrategy{Limit: 0}
	})
	w.settled("f", "")
	first := uid()
	w.commit(r, map[string]string{"app/j.yaml": run("", "two")})
	w.until("a refusal", func() (string, bool) {
		op := w.get("f").Status.OperationState
		return op.Message, op.Phase == v1alpha1.OperationFailed && strings.Contains(op.Message, "Job/j") && strings.Contains(op.Message, "immutable")
	})
	if uid() != first {
		t.Fatal("the Job was made anew without being asked for")
	}
	w.settled("f", w.commit(r, map[string]string{"app/j.yaml": run("Force=true", "three")}))
	second := uid()
	if second == first {
		t.Error("the Job is still the first")
	}
	w.settled("f", w.commit(r, map[string]string{"app/j.yaml": run("Replace=true,Force=true", "four")}))
	if uid() == second {
		t.Error("the Job is still the second")
	}
}

// The strategy's force makes no claim anew: its data would go.
func TestForceKeepsClaims(t *testing.T) {
	w := newWorld(t)
	claim := func(size, mode string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {accessModes: [%s], resources: {requests: {storage: %s}}}\n", mode, size)
	}
	r := w.repo("c", map[string]string{"app/c.yaml": claim("1Gi", "ReadWriteOnce")})
	w.app("c", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	sync := `{"operation":{"sync":{"syncStrategy":{"apply":{"force":true}}}}}`
	w.patchApp("c", sync)
	w.settled("c", "")
	before, err := w.resource("v1", "persistentvolumeclaims").Get(t.Context(), "c", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.commit(r, map[string]string{"app/c.yaml": claim("1Gi", "ReadWriteMany")})
	w.patchApp("c", sync)
	w.until("a refusal", func() (string, bool) {
		op := w.get("c").Status.OperationState
		return operation(w.get("c")), op.Phase == v1alpha1.OperationFailed
	})
	now, err := w.resource("v1", "persistentvolumeclaims").Get(t.Context(), "c", metav1.GetOptions{})
	if err != nil || now.GetUID() != before.GetUID() {
		t.Errorf("the claim was made anew: %v", err)
	}
}

// Validate=false drops unknown fields, and says which; without it they are an error and nothing is applied.
func TestValidateFalse(t *testing.T) {
	w := newWorld(t)
	typo := strings.Replace(deployment("web", "registry.k8s.io/pause:3.9", 1), "{name: c,", "{name: c, imagepullpolicy: Always,", 1)
	typo = strings.Replace(typo, "spec:\n  replicas", "spec:\n  extra: {deep: 1}\n  replicas", 1)
	r := w.repo("v", map[string]string{"app/web.yaml": typo})
	w.app("v", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.until("a refusal", func() (string, bool) {
		op := w.get("v").Status.OperationState
		return operation(w.get("v")), op != nil && op.Phase == v1alpha1.OperationFailed && strings.Contains(op.Message, "app/web.yaml:1: Deployment/web: spec.extra: is no field of this kind; spec.template.spec.containers[name=\"c\"].imagepullpolicy: is no field of this kind; nothing was applied")
	})
	w.settled("v", w.commit(r, map[string]string{"app/web.yaml": optioned("Validate=false", typo)}))
	w.condition("v", v1alpha1.ConditionRenderWarning, "app/web.yaml", "Deployment/web", "spec.extra")
	w.condition("v", v1alpha1.ConditionRenderWarning, `containers[name="c"].imagepullpolicy`)
	w.refresh("v", "hard")
	if s := w.get("v").Status.Sync.Status; s != v1alpha1.SyncSynced {
		t.Errorf("then it is %s", s)
	}
}

// SkipDryRunOnMissingResource=true lets a kind come into being in the middle of the sync, by an operator that the sync
// itself has started.
func TestSkipDryRunOnMissingResource(t *testing.T) {
	w := newWorld(t)
	group := w.dest + ".example.com" // of this test alone
	gadget := "apiVersion: " + group + "/v1\nkind: Gadget\nmetadata: {annotations: {argocd.argoproj.io/sync-wave: \"1\", argocd.argoproj.io/sync-options: SkipDryRunOnMissingResource=true}, name: g}\n"
	r := w.repo("s", map[string]string{"app/a.yaml": configMap("a", "1"), "app/g.yaml": gadget})
	w.app("s", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.until("the first wave", func() (string, bool) {
		_, there := w.configMap("a")
		app := w.get("s")
		return operation(app), there && app.Status.OperationState != nil && strings.Contains(app.Status.OperationState.Message, "Gadget")
	})
	if _, err := w.client.Resource(definitions()).Create(t.Context(), gadgets(group), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	app := w.settled("s", "")
	if app.Status.OperationState.RetryCount != 0 {
		t.Errorf("%d retries", app.Status.OperationState.RetryCount)
	}
}

// Objects whose name the API server makes up, and those of kinds that can only be made, are made once by each whole sync;
// they make no drift, count as no duplicates and are never pruned.
func TestMadeObjects(t *testing.T) {
	w := newWorld(t)
	made := "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: gen-}\ndata: {n: \"%d\"}\n"
	r := w.repo("m", map[string]string{
		"app/a.yaml": configMap("a", "1"),
		"app/b.yaml": fmt.Sprintf(made, 1) + "---\n" + fmt.Sprintf(made, 2),
		"app/c.yaml": "apiVersion: authentication.k8s.io/v1\nkind: TokenReview\nspec: {token: none}\n---\n" +
			"apiVersion: authorization.k8s.io/v1\nkind: LocalSubjectAccessReview\nspec: {user: ada, resourceAttributes: {namespace: " + w.dest + ", verb: get, resource: pods}}\n---\n" +
			"apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\nspec: {resourceAttributes: {verb: get, resource: pods}}\n---\n" +
			"apiVersion: authorization.k8s.io/v1\nkind: SubjectAccessReview\nmetadata: {annotations: {argocd.argoproj.io/sync-wave: \"-1\"}}\nspec: {user: ada, resourceAttributes: {verb: get, resource: pods}}\n",
	})
	count := func() int {
		t.Helper()
		list, err := w.resource("v1", "configmaps").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, u := range list.Items {
			if strings.HasPrefix(u.GetName(), "gen-") {
				n++
			}
		}
		return n
	}
	w.app("m", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	app := w.settled("m", "")
	if n := count(); n != 2 || len(app.Status.Conditions) > 0 {
		t.Fatalf("%d made, conditions %v", n, app.Status.Conditions)
	}
	w.refresh("m", "hard")
	w.stop()
	w.start()
	w.refresh("m", "hard")
	if n := count(); n != 2 {
		t.Errorf("%d made after looks without a change and a restart", n)
	}
	w.settled("m", w.commit(r, map[string]string{"app/a.yaml": configMap("a", "2")}))
	if n := count(); n != 4 {
		t.Errorf("%d made after the second sync", n)
	}
}

// An option that is not known is told by its place and has no effect; the sync goes on.
func TestUnknownSyncOption(t *testing.T) {
	w := newWorld(t)
	r := w.repo("u", map[string]string{"app/a.yaml": optioned("Prune=maybe", configMap("a", "1"))})
	w.app("u", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		a.Spec.SyncPolicy.SyncOptions = v1alpha1.SyncOptions{"CreateNamespace=true", "createnamespace=true"}
	})
	w.settled("u", "")
	w.condition("u", v1alpha1.ConditionUnsupportedWarning, "spec.syncPolicy.syncOptions[1]", `"createnamespace=true"`)
	w.condition("u", v1alpha1.ConditionUnsupportedWarning, "ConfigMap/"+w.dest+"/a", `"Prune=maybe"`)
}
