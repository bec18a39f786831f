package engine

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// Notes that decide are ours alone: a request can not bring them.
func TestRequestsBringNoNotes(t *testing.T) {
	op := v1alpha1.Operation{Info: []*v1alpha1.Info{
		{Name: "why", Value: "urgent"}, nil, {Name: installInfo, Value: "true"}, {Name: supersededNote, Value: "3"}, {Name: "lockstep.dev/request", Value: "id"},
	}}
	got := withoutNotes(op)
	if len(got.Info) != 2 || got.Info[0].Name != "why" || got.Info[1].Name != "lockstep.dev/request" || len(op.Info) != 5 {
		t.Errorf("got %+v of %+v", got.Info, op.Info)
	}
}

func TestLastAttempt(t *testing.T) {
	note := func(name, value string) []*v1alpha1.Info { return []*v1alpha1.Info{{Name: name, Value: value}} }
	cases := map[string]struct {
		phase v1alpha1.OperationPhase
		info  []*v1alpha1.Info
		want  attempt
		known bool
	}{
		"of Argo CD":               {v1alpha1.OperationFailed, nil, attempt{}, false},
		"failed":                   {v1alpha1.OperationFailed, note(renderingNote, "g m"), attempt{"g", "m", true}, true},
		"error":                    {v1alpha1.OperationError, note(renderingNote, "g m"), attempt{"g", "m", true}, true},
		"succeeded":                {v1alpha1.OperationSucceeded, note(renderingNote, "g m"), attempt{"g", "m", false}, true},
		"broken note":              {v1alpha1.OperationFailed, note(renderingNote, "g"), attempt{}, false},
		"kept by a dry run":        {v1alpha1.OperationFailed, append(note(renderingNote, "x y"), note(attemptedNote, "g m ended")...), attempt{"g", "m", false}, true},
		"a failure that was kept":  {v1alpha1.OperationSucceeded, note(attemptedNote, "g m failed"), attempt{"g", "m", true}, true},
		"kept, in a broken manner": {v1alpha1.OperationSucceeded, append(note(renderingNote, "x y"), note(attemptedNote, "g")...), attempt{"x", "y", false}, true},
	}
	for name, c := range cases {
		app := applicationForTest()
		app.Status.OperationState = &v1alpha1.OperationState{Phase: c.phase, Operation: v1alpha1.Operation{Info: c.info}}
		if got, known := lastAttempt(app); got != c.want || known != c.known {
			t.Errorf("%s: %+v, %v", name, got, known)
		}
	}
	if _, known := lastAttempt(applicationForTest()); known {
		t.Error("an application without an operation has tried something")
	}
}

// What is taken up again is what was written down, a waiting retry included.
func TestTakeUp(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	app := applicationForTest()
	app.Spec.Source = &v1alpha1.ApplicationSource{RepoURL: "https://x/y", Path: "p"}
	l := &look{app: app, rendering: &rendering{digest: "d", revisions: []string{"abc"}}}
	r := newRunning(v1alpha1.Operation{Retry: v1alpha1.RetryStrategy{Limit: 5, Backoff: &v1alpha1.Backoff{Duration: "10s"}}}, now)
	r.aimed(l)
	r.retries, r.notYet = 2, now.Add(20*time.Second)
	text, err := json.Marshal(r.resting(l, "waits"))
	if err != nil {
		t.Fatal(err)
	}
	last := &v1alpha1.OperationState{}
	if err := json.Unmarshal(text, last); err != nil {
		t.Fatal(err)
	}
	if !last.FinishedAt.Time.Equal(now) {
		t.Errorf("the attempt ended at %s", last.FinishedAt)
	}
	again := takeUp(last)
	if !again.notYet.Equal(r.notYet) || again.goal != l.goal() || cmp.Diff(again.revisions, r.revisions) != "" || cmp.Diff(again.sources, r.sources) != "" || again.retries != 2 {
		t.Errorf("took up %+v", again)
	}
	last.FinishedAt = nil
	if again := takeUp(last); !again.notYet.IsZero() {
		t.Errorf("waits until %s", again.notYet)
	}
}

// What was asked for while a status was written is another request and stays.
func TestOnlySeen(t *testing.T) {
	seen := applicationForTest()
	seen.Operation = &v1alpha1.Operation{Sync: &v1alpha1.SyncOperation{Prune: true}}
	seen.Annotations = map[string]string{RefreshAnnotation: "normal", refreshTimestampAnnotation: "1"}
	live := func(prune bool, at string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"operation": map[string]any{"sync": map[string]any{"prune": prune}}}}
		u.SetAnnotations(map[string]string{RefreshAnnotation: "normal", refreshTimestampAnnotation: at})
		u.SetResourceVersion("7")
		return u
	}
	gone := live(true, "1")
	gone.SetAnnotations(nil)
	delete(gone.Object, "operation")
	cases := map[string]struct {
		live *unstructured.Unstructured
		want string
	}{
		"the same":          {live(true, "1"), `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":null},"resourceVersion":"7"},"operation":null}`},
		"another operation": {live(false, "1"), `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":null},"resourceVersion":"7"}}`},
		"another refresh":   {live(true, "2"), `{"metadata":{"annotations":{},"resourceVersion":"7"},"operation":null}`},
		"both gone":         {gone, `{"metadata":{"annotations":{},"resourceVersion":"7"}}`},
	}
	for name, c := range cases {
		fields := map[string]any{"operation": nil, "metadata": map[string]any{"annotations": map[string]any{RefreshAnnotation: nil}}}
		onlySeen(fields, seen, c.live)
		if got, err := json.Marshal(fields); err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}
