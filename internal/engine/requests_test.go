package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
)

// A request that makes no sense ends at once with one sentence, changes nothing and is not taken for a failed sync.
func TestMalformedRequests(t *testing.T) {
	w := newWorld(t)
	r := w.repo("m", map[string]string{"app/a.yaml": configMap("a", "1")})
	w.app("m", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("m", "")
	for request, sentence := range map[string]string{
		`{"initiatedBy":{"username":"eve"}}`:                                           "operation.sync: is missing",
		`{"sync":{"revision":"a","revisions":["b"]}}`:                                  "revision and revisions exclude each other",
		`{"sync":{"revisions":["a","b"]}}`:                                             "operation.sync.revisions: there are 2 for 1 sources",
		`{"sync":{},"retry":{"limit":-2}}`:                                             "operation.retry.limit: -2",
		`{"sync":{},"retry":{"limit":1,"backoff":{"duration":"soon"}}}`:                `operation.retry.backoff.duration: "soon"`,
		`{"sync":{"resources":[{"kind":"ConfigMap","name":""}]}}`:                      "operation.sync.resources[0]",
		`{"sync":{"manifests":["kind: ConfigMap"]}}`:                                   "refused while automated sync is on",
		`{"sync":{"resources":[{"kind":"ConfigMap","name":"b"}]}}`:                     "ConfigMap/b: neither declared",
		`{"sync":{"dryRun":true,"manifests":["kind: ConfigMap"]}}`:                     "operation.sync.manifests[0]",
		`{"sync":{"source":{"repoURL":"x"},"sources":[{"repoURL":"x","path":"app"}]}}`: "source and sources exclude each other",
	} {
		w.patchApp("m", `{"operation":`+request+`}`)
		app := (*v1alpha1.Application)(nil)
		w.until(sentence, func() (string, bool) {
			app = w.get("m")
			phase := app.Status.OperationState.Phase
			return operation(app), app.Operation == nil && strings.Contains(app.Status.OperationState.Message, sentence) &&
				(phase == v1alpha1.OperationError || phase == v1alpha1.OperationFailed)
		})
		if len(app.Status.History) != 1 {
			t.Errorf("%s: %d deployments", request, len(app.Status.History))
		}
	}
	// Drift is still put back, a commit is still synced.
	if err := w.resource("v1", "configmaps").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("a put back", func() (string, bool) { _, ok := w.configMap("a"); return operation(w.get("m")), ok })
	w.settled("m", w.commit(r, map[string]string{"app/a.yaml": configMap("a", "2")}))
}

// A request that comes while another operation runs waits for its end, is told of, and is never lost, also when the process
// is another one by then.
func TestARequestWaitsForTheRunningOperation(t *testing.T) {
	w := newWorld(t)
	r := w.repo("w", map[string]string{"app/web.yaml": deployment("web", neverReady, 1), "app/late.yaml": late("1"), "app/a.yaml": configMap("a", "1")})
	w.app("w", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	w.patchApp("w", `{"operation":{"initiatedBy":{"username":"adam"},"sync":{}}}`)
	w.stands("w", "wave 0")
	w.patchApp("w", `{"operation":{"initiatedBy":{"username":"eve"},"info":[{"name":"why","value":"urgent"}],"sync":{"resources":[{"kind":"ConfigMap","name":"a"}]}}}`)
	w.condition("w", v1alpha1.ConditionWaitingWarning, "another operation is in progress", "eve")
	w.restart(true, nil)
	if app := w.stands("w", "wave 0"); app.Operation == nil || app.Status.OperationState.Operation.InitiatedBy.Username != "adam" {
		t.Fatalf("request %v, running that of %s", app.Operation, app.Status.OperationState.Operation.InitiatedBy.Username)
	}
	w.terminate("w")
	app := w.ends("w", v1alpha1.OperationSucceeded)
	if app.Operation != nil || app.Status.OperationState.Operation.InitiatedBy.Username != "eve" || infoOf(app, "why") != "urgent" {
		t.Errorf("request %v, ran %+v", app.Operation, app.Status.OperationState.Operation)
	}
	if len(app.Status.History) != 0 {
		t.Errorf("a sync of one object is in the history: %v", app.Status.History)
	}
}

// A dry run changes nothing, waits for nothing and leaves what is known of the last sync.
func TestDryRun(t *testing.T) {
	w := newWorld(t)
	r := w.repo("d", map[string]string{"app/web.yaml": deployment("web", wellImage, 1), "app/late.yaml": late("1")})
	first, err := r.Resolve("HEAD")
	if err != nil {
		t.Fatal(err)
	}
	w.app("d", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("d", "")
	sha := w.commit(r, map[string]string{
		"app/late.yaml": late("2"), "app/job.yaml": job("never", "argocd.argoproj.io/hook: PreSync", ""),
		"app/web.yaml": deployment("web", wellImage, 2),
	})
	w.settled("d", sha)
	jobBefore := w.live("batch/v1", "jobs", "never").GetUID()
	w.patchApp("d", `{"operation":{"sync":{"dryRun":true,"prune":true,"revision":"`+first+`"}}}`)
	app := w.ends("d", v1alpha1.OperationSucceeded, "dry run")
	results := fmt.Sprint(app.Status.OperationState.SyncResult.Resources[0].Message)
	if len(app.Status.History) != 2 || !strings.Contains(results, "would be") {
		t.Errorf("%d deployments, first result %s", len(app.Status.History), results)
	}
	if data, _ := w.configMap("late"); data["k"] != "2" {
		t.Errorf("late is %v", data)
	}
	w.refresh("d", "hard")
	if app = w.get("d"); len(app.Status.History) != 2 || app.Status.OperationState.Operation.InitiatedBy.Automated {
		t.Errorf("a sync followed the dry run: %s", operation(app))
	}
	if now := w.live("batch/v1", "jobs", "never").GetUID(); now != jobBefore {
		t.Error("the hook ran")
	}
	// A dry run that fails is no failed sync.
	w.patchApp("d", `{"operation":{"sync":{"dryRun":true,"revision":"nowhere"}}}`)
	w.ends("d", v1alpha1.OperationFailed, "nowhere")
	w.edit("late", "by hand")
	w.until("drift put back", func() (string, bool) {
		data, _ := w.configMap("late")
		return operation(w.get("d")), data["k"] == "2"
	})
}

func (w *world) edit(name, value string) {
	w.t.Helper()
	_, err := w.resource("v1", "configmaps").Patch(w.t.Context(), name, types.MergePatchType, []byte(fmt.Sprintf(`{"data":{"k":%q}}`, value)), metav1.PatchOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

// What waits for its next try waits as long in the next process; the request to end it is heard meanwhile.
func TestRetrySurvivesARestart(t *testing.T) {
	w := newWorld(t)
	r := w.repo("r", map[string]string{
		"app/job.yaml": job("broken", `argocd.argoproj.io/hook: PreSync`, `dev.lockstep/fail: JobFailed`), "app/a.yaml": configMap("a", "1"),
	})
	w.app("r", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		a.Spec.SyncPolicy.Retry = &v1alpha1.RetryStrategy{Limit: -1, Backoff: &v1alpha1.Backoff{Duration: "1h", MaxDuration: "2h"}}
	})
	before := w.stands("r", "retry 1 follows at").Status.OperationState
	if before.FinishedAt == nil {
		t.Fatal("when the attempt ended is not told")
	}
	for range 2 {
		w.restart(true, nil)
		w.refresh("r", "normal")
	}
	after := w.stands("r", "retry 1 follows at").Status.OperationState
	if after.RetryCount != 1 || after.Message != before.Message || !after.FinishedAt.Equal(before.FinishedAt) {
		t.Errorf("before: %d retries, %s; after: %d, %s", before.RetryCount, before.Message, after.RetryCount, after.Message)
	}
	w.terminate("r")
	w.ends("r", v1alpha1.OperationFailed, "terminated")
	w.refresh("r", "normal")
	if app := w.get("r"); app.Status.OperationState.Phase != v1alpha1.OperationFailed {
		t.Errorf("after its end: %s", operation(app))
	}
}

// retry.refresh takes what the source says at the time of the retry; without it the retry is the same again.
func TestRetryRefresh(t *testing.T) {
	w := newWorld(t)
	broken := job("broken", `argocd.argoproj.io/hook: PreSync`, `dev.lockstep/fail: JobFailed`)
	for _, refresh := range []bool{true, false} {
		name := fmt.Sprint("r", refresh)
		r := w.repo(name, map[string]string{"app/job.yaml": broken, "app/a.yaml": configMap(name, "1")})
		w.app(name, v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
			a.Annotations = map[string]string{engine.SupersedeAnnotation: "never"}
			a.Spec.SyncPolicy.Retry = &v1alpha1.RetryStrategy{Limit: 2, Refresh: refresh, Backoff: &v1alpha1.Backoff{Duration: "3s"}}
		})
		w.stands(name, "retry 1 follows at")
		sha := w.commit(r, map[string]string{"app/job.yaml": job("broken", `argocd.argoproj.io/hook: PreSync`, ""), "app/a.yaml": configMap(name, "2")})
		app := w.settled(name, sha)
		state := app.Status.OperationState
		if refresh != (state.RetryCount > 0) {
			t.Errorf("refresh %v: ended after %d retries: %s", refresh, state.RetryCount, operation(app))
		}
	}
}

// Putting back pauses as long in the next process, whatever was lost, and nothing is written while it is quiet.
func TestHealsSurviveARestart(t *testing.T) {
	w := newWorld(t)
	r := w.repo("h", map[string]string{"app/a.yaml": configMap("a", "1")})
	w.app("h", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("h", "")
	healed := func(times int64) time.Time {
		t.Helper()
		w.until(fmt.Sprintf("put back %d times", times), func() (string, bool) {
			app := w.get("h")
			data, _ := w.configMap("a")
			n := app.Status.OperationState.Operation.Sync.SelfHealAttemptsCount
			return fmt.Sprint(n, operation(app), data), n == times && data["k"] == "1" && app.Status.Sync.Status == v1alpha1.SyncSynced
		})
		return w.get("h").Status.OperationState.FinishedAt.Time
	}
	w.edit("a", "x")
	healed(1)
	w.edit("a", "x")
	second := healed(2)
	w.edit("a", "x")
	for range 2 {
		w.restart(true, nil)
		w.refresh("h", "normal")
	}
	healed(3)
	app := w.get("h")
	// By the operations' own clock, in whole seconds: on a busy machine the restarts alone may take longer than the pause.
	if pause := app.Status.OperationState.StartedAt.Sub(second); pause < 5*time.Second {
		t.Errorf("put back for the third time after %s, want 6 s, whatever process does it", pause)
	}
	w.refresh("h", "hard")
	if now := w.get("h").Status.OperationState; !now.StartedAt.Equal(&app.Status.OperationState.StartedAt) {
		t.Error("an operation began without a reason")
	}
	// A sync to something else begins anew.
	w.settled("h", w.commit(r, map[string]string{"app/a.yaml": configMap("a", "2")}))
	w.edit("a", "x")
	w.until("put back once", func() (string, bool) {
		app := w.get("h")
		n := app.Status.OperationState.Operation.Sync.SelfHealAttemptsCount
		return fmt.Sprint(n), n == 1
	})
}

// A sync that failed is not tried again by itself, in the same process or the next; it is when what kept it from succeeding
// has changed.
func TestAFailedSyncIsNotTriedAgain(t *testing.T) {
	w := newWorld(t)
	r := w.repo("f", map[string]string{"app/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: " + w.dest + "-new}\n"})
	w.app("f", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		a.Spec.Destination.Namespace = w.dest + "-new"
		a.Spec.SyncPolicy.Retry = &v1alpha1.RetryStrategy{}
	})
	started := w.ends("f", v1alpha1.OperationFailed, "namespace").Status.OperationState.StartedAt
	w.restart(true, nil)
	w.refresh("f", "hard")
	if app := w.get("f"); !app.Status.OperationState.StartedAt.Equal(&started) {
		t.Errorf("tried again: %s", operation(app))
	}
	w.patchApp("f", `{"spec":{"syncPolicy":{"syncOptions":["CreateNamespace=true"]}}}`)
	w.settled("f", "")
	namespaces := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	t.Cleanup(func() {
		if err := namespaces.Delete(t.Context(), w.dest+"-new", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Log(err)
		}
	})
}
