package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// notYAML is a file that breaks a directory.
const notYAML = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [\n"

func annotated(name, annotations string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {" + annotations + "}}\n"
}

// history are the ends and beginnings of a kind's objects from now on, in order, up to the last one named.
func (w *world) history(apiVersion, plural string) func(last string) []string {
	w.t.Helper()
	events, err := w.resource(apiVersion, plural).Watch(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(events.Stop)
	return func(last string) []string {
		var out []string
		for {
			select {
			case ev := <-events.ResultChan():
				u, ok := ev.Object.(*unstructured.Unstructured)
				if !ok || ev.Type == "MODIFIED" {
					continue
				}
				out = append(out, string(ev.Type)+" "+u.GetName())
				if out[len(out)-1] == last {
					return out
				}
			case <-time.After(patience):
				w.t.Fatalf("%s never came: %v", last, out)
			}
		}
	}
}

// A cascade goes in the reverse order of waves and waits for each; prune options do not count; hooks of syncs go, too.
func TestCascadeInReverseWaves(t *testing.T) {
	w := newWorld(t)
	wave := func(n int, more string) string {
		return fmt.Sprintf(`argocd.argoproj.io/sync-wave: "%d"%s`, n, more)
	}
	r := w.repo("waves", map[string]string{
		"app/one.yaml":   annotated("one", wave(-1, "")),
		"app/two.yaml":   annotated("two", wave(0, ", argocd.argoproj.io/sync-options: Prune=false")),
		"app/three.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: three, finalizers: [example.com/hold], annotations: {" + wave(3, "") + "}}\n",
		"app/hook.yaml":  annotated("hook", "argocd.argoproj.io/hook: PreSync"),
		"app/keep.yaml":  annotated("keep", wave(7, ", helm.sh/resource-policy: keep")),
	})
	w.app("waves", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, cascading)
	w.settled("waves", "")
	if _, there := w.configMap("hook"); !there {
		t.Fatal("the hook did not run")
	}
	history := w.history("v1", "configmaps")
	w.delete("waves")
	t.Log(w.condition("waves", v1alpha1.ConditionWaitingWarning, "ConfigMap/"+w.dest+"/three", "example.com/hold"))
	for _, name := range []string{"one", "two"} {
		if _, there := w.configMap(name); !there {
			t.Errorf("%s went before three", name)
		}
	}
	if _, err := w.resource("v1", "configmaps").Patch(t.Context(), "three", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.gone("waves")
	got := strings.Join(history("DELETED one"), " ")
	if i, j, k := strings.Index(got, "DELETED three"), strings.Index(got, "DELETED two"), strings.Index(got, "DELETED one"); i < 0 || j < i || k < j {
		t.Errorf("order: %s", got)
	}
	if left := w.names("v1", "configmaps"); !slices.Equal(left, []string{"keep"}) {
		t.Errorf("left: %v", left)
	}
}

// The hooks of a deletion come with their finalizers, run in order and once, over a restart without data, and go as their
// policies say.
func TestDeletionHooksInOrderAndOnce(t *testing.T) {
	w := newWorld(t)
	run := `dev.lockstep/run-for: "2s"`
	r := w.repo("bye", map[string]string{
		"app/a.yaml":    configMap("a", "1"),
		"app/pre.yaml":  job("pre", `argocd.argoproj.io/hook: PreDelete, argocd.argoproj.io/hook-delete-policy: HookSucceeded`, run),
		"app/helm.yaml": job("helm", `helm.sh/hook: "pre-delete", helm.sh/hook-weight: "-1"`, ""),
		"app/post.yaml": job("post", `helm.sh/hook: "post-delete", helm.sh/hook-delete-policy: "hook-succeeded,before-hook-creation"`, run),
	})
	w.app("bye", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, cascading)
	app := w.settled("bye", "")
	want := []string{engine.CascadeFinalizer, engine.PreDeleteFinalizer, engine.PreDeleteFinalizer + "/cleanup", engine.PostDeleteFinalizer, engine.PostDeleteFinalizer + "/cleanup"}
	if !slices.Equal(app.Finalizers, want) || len(app.Status.Conditions) != 0 {
		t.Errorf("finalizers %v, conditions %v", app.Finalizers, app.Status.Conditions)
	}
	if jobs := w.names("batch/v1", "jobs"); len(jobs) != 0 {
		t.Errorf("a sync ran %v", jobs)
	}
	history := w.history("batch/v1", "jobs")
	restart := func() {
		w.stop()
		w.data = t.TempDir()
		w.start()
	}
	w.delete("bye")
	w.until("pre runs", func() (string, bool) { return "", slices.Contains(w.names("batch/v1", "jobs"), "pre") })
	restart()
	if _, there := w.configMap("a"); !there {
		t.Error("a went before the hooks of PreDelete had ended")
	}
	w.until("post runs", func() (string, bool) { return "", slices.Contains(w.names("batch/v1", "jobs"), "post") })
	if _, there := w.configMap("a"); there {
		t.Error("a is there while the hooks of PostDelete run")
	}
	restart()
	w.gone("bye")
	got := history("DELETED post")
	if made := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.HasPrefix(s, "ADDED") }); !slices.Equal(made, []string{"ADDED helm", "ADDED pre", "ADDED post"}) {
		t.Errorf("hooks: %v", got)
	}
	if left := w.names("batch/v1", "jobs"); !slices.Equal(left, []string{"helm"}) {
		t.Errorf("left: %v", left)
	}
}

// Finalizers of hooks leave with the hooks.
func TestDeletionHooksLeaveGit(t *testing.T) {
	w := newWorld(t)
	r := w.repo("bye", map[string]string{"app/a.yaml": configMap("a", "1"), "app/post.yaml": job("post", `argocd.argoproj.io/hook: PostDelete`, "")})
	w.app("bye", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	w.until("finalizers", func() (string, bool) { f := w.get("bye").Finalizers; return fmt.Sprint(f), len(f) == 2 })
	w.commit(r, map[string]string{"app/post.yaml": gitserver.Deleted})
	w.until("no finalizers", func() (string, bool) { f := w.get("bye").Finalizers; return fmt.Sprint(f), len(f) == 0 })
}

// A hook that fails stops the deletion with one sentence, is not run again by itself, and runs again when Git has changed
// or somebody asks.
func TestDeletionHookThatFails(t *testing.T) {
	w := newWorld(t)
	failing := job("check", `argocd.argoproj.io/hook: PreDelete`, `dev.lockstep/fail: JobFailed`)
	r := w.repo("bye", map[string]string{"app/a.yaml": configMap("a", "1"), "app/check.yaml": failing})
	w.app("bye", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, cascading)
	w.settled("bye", "")
	w.delete("bye")
	t.Log(w.condition("bye", v1alpha1.ConditionDeletionError, "hook Job.batch/"+w.dest+"/check failed", engine.RefreshAnnotation, engine.OrphanAnnotation))
	uid := func() types.UID { return w.live("batch/v1", "jobs", "check").GetUID() }
	first := uid()
	w.stop()
	w.data = t.TempDir()
	w.start()
	w.until("looked at", func() (string, bool) { return "", w.engine.Settled() == nil })
	if uid() != first {
		t.Error("the hook ran again by itself")
	}
	w.refresh("bye", "normal")
	w.until("the hook runs again", func() (string, bool) {
		u, err := w.resource("batch/v1", "jobs").Get(t.Context(), "check", metav1.GetOptions{})
		return fmt.Sprint(err), err == nil && u.GetUID() != first
	})
	w.condition("bye", v1alpha1.ConditionDeletionError, "check failed")
	if _, there := w.configMap("a"); !there {
		t.Error("a went although its hook failed")
	}
	w.commit(r, map[string]string{"app/check.yaml": strings.Replace(failing, "fail: JobFailed", "run-for: 1s", 1)})
	w.gone("bye")
	if _, there := w.configMap("a"); there {
		t.Error("a is still there")
	}
}

// What the project does not permit any more is left behind; an owner that lives keeps what it controls, a dead one does not.
func TestDeletionKeepsWhatIsNotPermitted(t *testing.T) {
	w := newWorld(t)
	r := w.repo("bye", map[string]string{"app/a.yaml": configMap("a", "1"), "app/b.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: b}\n"})
	project := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.AppProjectKind,
		"metadata": map[string]any{"name": "narrow", "namespace": w.control},
		"spec":     map[string]any{"sourceRepos": []any{"*"}, "destinations": []any{map[string]any{"server": "*", "namespace": "*"}}},
	}}
	projects := w.client.Resource(v1alpha1.AppProjects()).Namespace(w.control)
	if _, err := projects.Create(t.Context(), project, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.app("bye", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, cascading, func(a *v1alpha1.Application) { a.Spec.Project = "narrow" })
	w.settled("bye", "")
	if _, err := projects.Patch(t.Context(), "narrow", types.MergePatchType, []byte(`{"spec":{"namespaceResourceBlacklist":[{"group":"","kind":"ServiceAccount"}]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the project noticed", func() (string, bool) {
		s := w.get("bye").Status
		return fmt.Sprint(s.Sync.Status, s.Conditions), s.Sync.Status != v1alpha1.SyncSynced || len(s.Conditions) > 0
	})
	w.delete("bye")
	w.gone("bye")
	if _, err := w.resource("v1", "serviceaccounts").Get(t.Context(), "b", metav1.GetOptions{}); err != nil {
		t.Errorf("b: %v", err)
	}
	if _, there := w.configMap("a"); there {
		t.Error("a is still there")
	}
}

// Objects that a living controller made are not pruned, and the result says so.
func TestPruneSparesWhatIsControlled(t *testing.T) {
	w := newWorld(t)
	r := w.repo("ctl", map[string]string{"app/owner.yaml": configMap("owner", "1"), "app/a.yaml": configMap("a", "1"), "app/b.yaml": configMap("b", "1")})
	w.app("ctl", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	w.patchApp("ctl", `{"operation":{"sync":{}}}`)
	w.settled("ctl", "")
	owner := w.live("v1", "configmaps", "owner").GetUID()
	claim := func(name string, uid types.UID) {
		patch := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q,"controller":true,"blockOwnerDeletion":false}]}}`, uid)
		if _, err := w.resource("v1", "configmaps").Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	claim("a", owner)
	w.commit(r, map[string]string{"app/a.yaml": gitserver.Deleted, "app/b.yaml": gitserver.Deleted})
	w.until("extras seen", func() (string, bool) {
		s := w.get("ctl").Status
		return fmt.Sprint(s.Resources), s.Sync.Status == v1alpha1.SyncOutOfSync && len(s.Resources) == 3
	})
	w.patchApp("ctl", `{"operation":{"sync":{"prune":true}}}`)
	w.until("b pruned", func() (string, bool) { _, there := w.configMap("b"); return operation(w.get("ctl")), !there })
	w.until("the sync ended", func() (string, bool) {
		s := w.get("ctl").Status.OperationState
		return operation(w.get("ctl")), s.Phase == v1alpha1.OperationSucceeded
	})
	if _, there := w.configMap("a"); !there {
		t.Fatal("a was pruned although its controller lives")
	}
	res := w.get("ctl").Status.OperationState.SyncResult.Resources
	if !slices.ContainsFunc(res, func(x *v1alpha1.ResourceResult) bool {
		return x.Name == "a" && x.Status == v1alpha1.ResultPruneSkipped && strings.Contains(x.Message, "ConfigMap/owner controls it")
	}) {
		t.Errorf("a's reason is not told: %+v", res)
	}
}
