package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
)

// A hook past its deadline fails and is taken away; a deadline that is none is told, and nothing is applied.
func TestHookDeadline(t *testing.T) {
	w := newWorld(t)
	hanging := func(deadline string) string {
		return job("h", "argocd.argoproj.io/hook: PreSync, lockstep.dev/hook-deadline: "+deadline, "dev.lockstep/fail: ContainerCreating")
	}
	r := w.repo("h", map[string]string{"app/h.yaml": hanging("1s"), "app/a.yaml": configMap("a", "1")})
	w.app("h", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		a.Spec.SyncPolicy.Retry = &v1alpha1.RetryStrategy{Limit: 0}
	})
	w.until("the hook fails", func() (string, bool) {
		app := w.get("h")
		op := app.Status.OperationState
		return operation(app), op != nil && op.Phase == v1alpha1.OperationFailed && strings.Contains(op.Message, "did not end within its deadline of 1s")
	})
	w.until("the hook is gone", func() (string, bool) {
		_, err := w.resource("batch/v1", "jobs").Get(t.Context(), "h", metav1.GetOptions{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	if _, there := w.configMap("a"); there {
		t.Error("a was applied although the hook before it failed")
	}
	w.commit(r, map[string]string{"app/h.yaml": hanging("soon")})
	w.until("the deadline is refused", func() (string, bool) {
		app := w.get("h")
		return operation(app), strings.Contains(app.Status.OperationState.Message, `lockstep.dev/hook-deadline: "soon" is no duration`)
	})
}

// A hook without a deadline goes when the sync is ended by hand, also by a process that did not make it.
func TestTerminateDeletesTheRunningHook(t *testing.T) {
	w := newWorld(t)
	r := w.repo("t", map[string]string{"app/job.yaml": job("endless", "argocd.argoproj.io/hook: PreSync", `dev.lockstep/run-for: "1h"`), "app/a.yaml": configMap("a", "1")})
	w.app("t", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.stands("t", "end of hook")
	w.restart(true, nil)
	w.stands("t", "end of hook")
	w.terminate("t")
	w.ends("t", v1alpha1.OperationFailed, "terminated")
	w.until("the hook is gone", func() (string, bool) {
		_, err := w.resource("batch/v1", "jobs").Get(t.Context(), "endless", metav1.GetOptions{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	if _, there := w.configMap("a"); there {
		t.Error("the application was applied before its hook ended")
	}
}

// A sync that waits for long says since when.
func TestWaitNote(t *testing.T) {
	w := newWorld(t)
	w.restart(false, func(o *engine.Options) { o.WaitNote = time.Second })
	r := w.repo("s", map[string]string{"app/web.yaml": deployment("web", neverReady, 1), "app/late.yaml": late("1")})
	w.app("s", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.stands("s", "waiting for", "under way since "+time.Now().UTC().Format("2006-"))
}
