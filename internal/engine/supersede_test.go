package engine_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
)

const (
	wellImage  = "registry.k8s.io/pause:3.9"
	neverReady = "registry.k8s.io/pause:fail-ready"
)

// late is a ConfigMap of the wave after a deployment.
func late(value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: late, annotations: {argocd.argoproj.io/sync-wave: \"1\"}}\ndata: {k: %q}\n", value)
}

// stands waits until the operation runs and its message holds every part.
func (w *world) stands(name string, parts ...string) *v1alpha1.Application {
	w.t.Helper()
	var app *v1alpha1.Application
	w.until(name+" stands at "+strings.Join(parts, ", "), func() (string, bool) {
		app = w.get(name)
		ok := app.Status.OperationState != nil && app.Status.OperationState.Phase == v1alpha1.OperationRunning
		for _, p := range parts {
			ok = ok && strings.Contains(app.Status.OperationState.Message, p)
		}
		return fmt.Sprint(operation(app), app.Status.Conditions), ok
	})
	return app
}

// ends waits until the operation has ended in phase, with every part in its message.
func (w *world) ends(name string, phase v1alpha1.OperationPhase, parts ...string) *v1alpha1.Application {
	w.t.Helper()
	var app *v1alpha1.Application
	w.until(fmt.Sprintf("%s ends as %s", name, phase), func() (string, bool) {
		app = w.get(name)
		ok := app.Status.OperationState != nil && app.Status.OperationState.Phase == phase
		for _, p := range parts {
			ok = ok && strings.Contains(app.Status.OperationState.Message, p)
		}
		return fmt.Sprint(operation(app), app.Status.Conditions), ok
	})
	return app
}

func infoOf(app *v1alpha1.Application, name string) string {
	for _, i := range app.Status.OperationState.Operation.Info {
		if i.Name == name {
			return i.Value
		}
	}
	return ""
}

func (w *world) terminate(name string) {
	w.t.Helper()
	w.patchApp(name, `{"status":{"operationState":{"phase":"Terminating"}}}`)
}

// events are the messages of the Events of a reason about the application.
func (w *world) events(name, reason string) []string {
	w.t.Helper()
	list, err := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(w.control).
		List(w.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + w.real(name) + ",reason=" + reason})
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		text, _, _ := unstructured.NestedString(e.Object, "message")
		out = append(out, text)
	}
	return out
}

// A newer commit takes the place of a sync that waits for health; three in a row do, the next runs to its end. All of it
// stands in the custom resource: the process that counts is another one each time.
func TestNewerCommitsSupersedeASyncThatWaits(t *testing.T) {
	w := newWorld(t)
	files := func(n int, image string) map[string]string {
		return map[string]string{"app/web.yaml": deployment("web", image, 1), "app/late.yaml": late(fmt.Sprint(n))}
	}
	r := w.repo("s", files(0, neverReady))
	w.app("s", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	app := w.stands("s", "wave 0")
	for n := 1; n <= 3; n++ {
		before := app.Status.OperationState.SyncResult.Revision
		sha := w.commit(r, files(n, neverReady))
		w.until(fmt.Sprintf("sync %d superseded", n), func() (string, bool) {
			app = w.stands("s", "wave 0")
			return operation(app), app.Status.OperationState.SyncResult.Revision == sha
		})
		if got := infoOf(app, "lockstep.dev/superseded"); got != fmt.Sprint(n) {
			t.Errorf("commit %d: superseded %q times", n, got)
		}
		if got := infoOf(app, "lockstep.dev/supersedes"); got != before[:7] {
			t.Errorf("commit %d: supersedes %q, want %s", n, got, before[:7])
		}
		w.restart(n == 2, nil)
	}
	last := app.Status.OperationState.SyncResult.Revision
	sha := w.commit(r, files(4, wellImage))
	w.until("the newest commit is seen", func() (string, bool) {
		app = w.get("s")
		return app.Status.Sync.Revision, app.Status.Sync.Revision == sha
	})
	if app = w.stands("s", "wave 0"); app.Status.OperationState.SyncResult.Revision != last {
		t.Error("the fourth sync was superseded, too")
	}
	if _, there := w.configMap("late"); there {
		t.Error("the second wave was applied although the first never became healthy")
	}
	w.until("events", func() (string, bool) {
		list := w.events("s", "OperationSuperseded")
		return fmt.Sprint(list), len(list) == 3 && strings.Contains(list[0], "superseded by")
	})
	w.terminate("s")
	if app = w.settled("s", sha); len(app.Status.History) != 1 {
		t.Errorf("%d deployments", len(app.Status.History))
	}
}

// A commit that renders to the same, or does not render at all, leaves a sync alone; a sync of what a person named is never
// superseded.
func TestWhatDoesNotSupersede(t *testing.T) {
	w := newWorld(t)
	r := w.repo("n", map[string]string{"app/web.yaml": deployment("web", neverReady, 1), "app/late.yaml": late("1")})
	first, err := r.Resolve("HEAD")
	if err != nil {
		t.Fatal(err)
	}
	w.app("n", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	started := w.stands("n", "wave 0").Status.OperationState.StartedAt
	same := func(what string) {
		t.Helper()
		app := w.stands("n", "wave 0")
		if s := app.Status.OperationState; !s.StartedAt.Equal(&started) || s.SyncResult.Revision != first {
			t.Errorf("%s: started at %s with %s, want %s with %s", what, s.StartedAt, s.SyncResult.Revision, started, first)
		}
	}
	sha := w.commit(r, map[string]string{"README.md": "x"})
	w.refresh("n", "normal")
	if got := w.get("n").Status.Sync.Revision; got != sha {
		t.Errorf("compared with %s", got)
	}
	same("a commit elsewhere")
	w.commit(r, map[string]string{"app/bad.yaml": "kind: [\n"})
	w.condition("n", v1alpha1.ConditionComparisonError, "bad.yaml")
	same("a commit that does not render")
	w.terminate("n")
	w.ends("n", v1alpha1.OperationFailed, "terminated")

	w.patchApp("n", `{"operation":{"initiatedBy":{"username":"eve"},"sync":{"revision":"`+first+`"}}}`)
	app := w.stands("n", "wave 0")
	started = app.Status.OperationState.StartedAt
	sha = w.commit(r, map[string]string{"app/bad.yaml": configMap("more", "1")})
	w.until("the newest commit is seen", func() (string, bool) {
		app = w.get("n")
		return app.Status.Sync.Revision, app.Status.Sync.Revision == sha
	})
	same("a person's sync")
	if _, there := w.configMap("more"); there {
		t.Error("the newer commit was applied")
	}
}

// A running hook is seen to its end before the sync gives way, unless the application says at-once; with never it runs on.
func TestSupersedeWithARunningHook(t *testing.T) {
	w := newWorld(t)
	hook := func(runs string) string {
		return job("migrate", `argocd.argoproj.io/hook: PreSync`, `dev.lockstep/run-for: "`+runs+`"`)
	}
	jobOf := func() (string, string) {
		u, err := w.resource("batch/v1", "jobs").Get(t.Context(), "migrate", metav1.GetOptions{})
		if err != nil {
			return "", ""
		}
		done, _, _ := unstructured.NestedString(u.Object, "status", "completionTime")
		return string(u.GetUID()), done
	}
	for _, mode := range []string{"", "at-once", "never"} {
		t.Run("mode "+mode, func(t *testing.T) {
			w := *w
			w.t = t
			name := "h" + strings.ReplaceAll(mode, "-", "")
			runs := map[string]string{"": "4s", "at-once": "1h", "never": "4s"}[mode]
			r := w.repo(name, map[string]string{"app/job.yaml": hook(runs), "app/cm.yaml": configMap("cm-"+name, "1")})
			first, err := r.Resolve("HEAD")
			if err != nil {
				t.Fatal(err)
			}
			w.app(name, v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
				a.Annotations = map[string]string{engine.SupersedeAnnotation: mode}
			})
			w.stands(name, "end of hook")
			uid, _ := jobOf()
			sha := w.commit(r, map[string]string{"app/cm.yaml": configMap("cm-"+name, "2"), "app/job.yaml": hook("1s")})
			if mode == "" {
				w.condition(name, v1alpha1.ConditionWaitingWarning, sha[:7], "migrate")
				if now, done := jobOf(); now != uid || done != "" {
					t.Errorf("the running hook was touched: %s, then %s %s", uid, now, done)
				}
			}
			app := w.settled(name, sha)
			var deployed []string
			for _, h := range app.Status.History {
				deployed = append(deployed, h.Revision)
			}
			want := []string{sha}
			if mode == "never" {
				want = []string{first, sha}
			}
			if fmt.Sprint(deployed) != fmt.Sprint(want) {
				t.Errorf("deployed %v, want %v", deployed, want)
			}
		})
	}
	w.app("odd", v1alpha1.ApplicationSource{RepoURL: w.repo("odd", map[string]string{"app/a.yaml": configMap("odd", "1")}).URL(), Path: "app"},
		func(a *v1alpha1.Application) {
			a.Annotations = map[string]string{engine.SupersedeAnnotation: "sometimes"}
		})
	w.condition("odd", v1alpha1.ConditionInvalidSpecError, engine.SupersedeAnnotation, `"sometimes"`)
}

// A person's sync to whatever the source says is superseded by the same person's sync to what it says now.
func TestSupersededSyncOfAPerson(t *testing.T) {
	w := newWorld(t)
	r := w.repo("p", map[string]string{"app/web.yaml": deployment("web", neverReady, 1), "app/late.yaml": late("1")})
	w.app("p", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	w.patchApp("p", `{"operation":{"initiatedBy":{"username":"eve"},"info":[{"name":"reason","value":"release"}],"sync":{}}}`)
	w.stands("p", "wave 0")
	sha := w.commit(r, map[string]string{"app/web.yaml": deployment("web", wellImage, 1)})
	app := w.settled("p", sha)
	op := app.Status.OperationState.Operation
	if op.InitiatedBy.Username != "eve" || infoOf(app, "reason") != "release" || infoOf(app, "lockstep.dev/superseded") != "1" {
		t.Errorf("operation %+v", op)
	}
	if len(app.Status.History) != 1 || app.Status.History[0].Revision != sha || app.Status.History[0].InitiatedBy.Username != "eve" {
		t.Errorf("history %+v", app.Status.History)
	}
}
