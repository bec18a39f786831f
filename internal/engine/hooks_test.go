package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

func job(name, annotations, podAnnotations string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, annotations: {%s}}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {%s}}
    spec: {restartPolicy: Never, containers: [{name: c, image: "registry.k8s.io/pause:3.9", command: [sleep, "10"]}]}
`, name, annotations, podAnnotations)
}

// C022: hooks that help others live until the whole sync has ended, in order of their weights; then they go.
func TestC022HelperHooksOutliveTheirPhase(t *testing.T) {
	w := newWorld(t)
	hook := func(weight int) string {
		return fmt.Sprintf(`helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "%d", helm.sh/hook-delete-policy: hook-succeeded`, weight)
	}
	own := func(wave int) string {
		return fmt.Sprintf(`argocd.argoproj.io/hook: PreSync, argocd.argoproj.io/sync-wave: "%d", argocd.argoproj.io/hook-delete-policy: HookSucceeded`, wave)
	}
	for name, at := range map[string]func(int) string{"helm": hook, "own": own} {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			dir := name
			events, err := w.resource("batch/v1", "jobs").Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer events.Stop()
			r := w.repo(name, map[string]string{
				dir + "/sa.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: mig-" + name + ", annotations: {" + at(-5) + "}}\n",
				dir + "/role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: mig-" + name + ", annotations: {" + at(-4) + "}}\n" +
					"rules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]\n",
				dir + "/job.yaml":  strings.Replace(job("mig-"+name, at(-3), ""), "restartPolicy", "serviceAccountName: mig-"+name+", restartPolicy", 1),
				dir + "/main.yaml": deployment("main-"+name, "registry.k8s.io/pause:3.9", 1),
			})
			w.app(name, v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: dir})
			w.settled(name, "")
			finished := jobFinished(t, events, "mig-"+name)
			main, err := w.resource("apps/v1", "deployments").Get(t.Context(), "main-"+name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if main.GetCreationTimestamp().Time.Before(finished) {
				t.Errorf("main was made at %s, the job ended at %s", main.GetCreationTimestamp(), finished)
			}
			w.until("hooks gone", func() (string, bool) {
				_, job := w.resource("batch/v1", "jobs").Get(t.Context(), "mig-"+name, metav1.GetOptions{})
				_, sa := w.resource("v1", "serviceaccounts").Get(t.Context(), "mig-"+name, metav1.GetOptions{})
				return fmt.Sprint(job, sa), apierrors.IsNotFound(job) && apierrors.IsNotFound(sa)
			})
		})
	}
}

// jobFinished reads the watch until the job has a completion time, and checks that its helper was there all along.
func jobFinished(t *testing.T, events watch.Interface, name string) time.Time {
	t.Helper()
	for {
		select {
		case ev := <-events.ResultChan():
			u, ok := ev.Object.(*unstructured.Unstructured)
			if !ok || u.GetName() != name {
				continue
			}
			if text, found, _ := unstructured.NestedString(u.Object, "status", "completionTime"); found {
				at, err := time.Parse(time.RFC3339, text)
				if err != nil {
					t.Fatal(err)
				}
				return at
			}
		case <-time.After(patience):
			t.Fatal("the job never ended")
		}
	}
}

// A hook runs once in a sync, whatever is killed in the middle; the next sync runs it again.
func TestHookRunsOncePerSync(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{
		"app/job.yaml": job("once", `argocd.argoproj.io/hook: PreSync`, `dev.lockstep/run-for: "3s"`),
		"app/cm.yaml":  configMap("a", "1"),
	}
	r := w.repo("once", files)
	uids := map[string]bool{}
	events, err := w.resource("batch/v1", "jobs").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	w.app("once", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.until("the hook runs", func() (string, bool) {
		_, err := w.resource("batch/v1", "jobs").Get(t.Context(), "once", metav1.GetOptions{})
		return fmt.Sprint(err), err == nil
	})
	if _, there := w.configMap("a"); there {
		t.Error("the application was applied before its PreSync hook ended")
	}
	w.stop()
	w.data = t.TempDir()
	w.start()
	w.settled("once", "")
	sha := w.commit(r, map[string]string{"app/cm.yaml": configMap("a", "2")})
	w.settled("once", sha)
	// Events come in order: what was made before the marker is seen before it.
	marker := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "marker"},
		"spec": map[string]any{"suspend": true, "template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "registry.k8s.io/pause:3.9"}},
		}}},
	}}
	if _, err := w.resource("batch/v1", "jobs").Create(t.Context(), marker, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for ev := range events.ResultChan() {
		u, ok := ev.Object.(*unstructured.Unstructured)
		if ok && u.GetName() == "marker" {
			break
		}
		if ok {
			uids[string(u.GetUID())] = true
		}
	}
	if len(uids) != 2 {
		t.Errorf("%d jobs in two syncs", len(uids))
	}
}

// A hook that fails stops the sync before anything is applied, runs the hooks of SyncFail, and says which hook it was.
func TestFailedHookStopsTheSync(t *testing.T) {
	w := newWorld(t)
	r := w.repo("fail", map[string]string{
		"app/job.yaml":  job("broken", `argocd.argoproj.io/hook: PreSync`, `dev.lockstep/fail: JobFailed`),
		"app/fail.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: told, annotations: {argocd.argoproj.io/hook: SyncFail}}\n",
		"app/cm.yaml":   configMap("a", "1"),
	})
	w.app("fail", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		a.Spec.SyncPolicy.Retry = &v1alpha1.RetryStrategy{Limit: 0}
	})
	t.Log(w.condition("fail", v1alpha1.ConditionSyncError, "hook Job.batch/"+w.dest+"/broken failed"))
	if _, there := w.configMap("a"); there {
		t.Error("the application was applied after its PreSync hook failed")
	}
	if _, there := w.configMap("told"); !there {
		t.Error("the SyncFail hook did not run")
	}
}

// PostSync hooks run after everything is healthy; a generated name is one per sync.
func TestPostSyncAndGeneratedNames(t *testing.T) {
	w := newWorld(t)
	post := strings.Replace(job("x", `argocd.argoproj.io/hook: PostSync`, ""), "name: x", "generateName: smoke-", 1)
	r := w.repo("post", map[string]string{"app/job.yaml": post, "app/web.yaml": deployment("web", "registry.k8s.io/pause:3.9", 1)})
	w.app("post", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	app := w.settled("post", "")
	names := func() []string {
		list, err := w.resource("batch/v1", "jobs").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, j := range list.Items {
			out = append(out, j.GetName())
		}
		return out
	}
	w.until("smoke ran", func() (string, bool) {
		app = w.get("post")
		return operation(app), app.Status.OperationState.Phase == v1alpha1.OperationSucceeded
	})
	if got := names(); len(got) != 1 || !strings.HasPrefix(got[0], "smoke-"+app.Status.Sync.Revision[:7]+"-postsync-") {
		t.Errorf("jobs %v", got)
	}
}
