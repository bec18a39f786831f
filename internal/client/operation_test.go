package client_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
)

func TestStage(t *testing.T) {
	early := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	mark := client.Mark{ID: "ours", Before: early}
	ours := mark.With(v1alpha1.Operation{Sync: &v1alpha1.SyncOperation{}})
	other := client.Mark{ID: "other"}.With(v1alpha1.Operation{})
	state := func(op v1alpha1.Operation, phase v1alpha1.OperationPhase, started time.Time) *v1alpha1.OperationState {
		return &v1alpha1.OperationState{Operation: op, Phase: phase, StartedAt: metav1.NewTime(started)}
	}
	later := early.Add(time.Minute)
	cases := []struct {
		name  string
		asked *v1alpha1.Operation
		state *v1alpha1.OperationState
		want  client.Stage
	}{
		{"asked, the last one is done", &ours, state(other, v1alpha1.OperationSucceeded, early), client.Waiting},
		{"taken up, the status is not written", nil, state(other, v1alpha1.OperationSucceeded, early), client.Waiting},
		{"running", nil, state(ours, v1alpha1.OperationRunning, later), client.Running},
		{"running, and the request stays until the end", &ours, state(ours, v1alpha1.OperationRunning, later), client.Running},
		{"done, and the request is still there", &ours, state(ours, v1alpha1.OperationSucceeded, later), client.Running},
		{"done", nil, state(ours, v1alpha1.OperationSucceeded, later), client.Ended},
		{"done badly", nil, state(ours, v1alpha1.OperationFailed, later), client.Ended},
		{"done, and the next one is asked for", &other, state(ours, v1alpha1.OperationSucceeded, later), client.Ended},
		{"overwritten before it was taken up", &other, state(other, v1alpha1.OperationSucceeded, early), client.Replaced},
		{"another one ran since", nil, state(other, v1alpha1.OperationSucceeded, later), client.Replaced},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			app := &v1alpha1.Application{Operation: c.asked}
			app.Status.OperationState = c.state
			if got := mark.Stage(app); got != c.want {
				t.Errorf("stage %d, want %d", got, c.want)
			}
		})
	}
}

func TestMarkLeavesTheRequestAlone(t *testing.T) {
	op := v1alpha1.Operation{Info: make([]*v1alpha1.Info, 0, 4)}
	a, b := client.Mark{ID: "a"}.With(op), client.Mark{ID: "b"}.With(op)
	if a.Info[0].Value != "a" || b.Info[0].Value != "b" || len(op.Info) != 0 {
		t.Errorf("marks share the request's memory: %v %v", *a.Info[0], *b.Info[0])
	}
}

func TestBusy(t *testing.T) {
	app := &v1alpha1.Application{}
	if why, busy := client.Busy(app); busy {
		t.Errorf("a new application is busy: %s", why)
	}
	app.Status.OperationState = &v1alpha1.OperationState{
		Phase: v1alpha1.OperationRunning, Operation: v1alpha1.Operation{InitiatedBy: v1alpha1.OperationInitiator{Username: "ada"}},
	}
	if why, busy := client.Busy(app); !busy || !strings.Contains(why, "ada") {
		t.Errorf("running: busy %v, %q does not say who", busy, why)
	}
	app.Status.OperationState.Phase = v1alpha1.OperationSucceeded
	if why, busy := client.Busy(app); busy {
		t.Errorf("done: busy: %s", why)
	}
	app.Operation = &v1alpha1.Operation{InitiatedBy: v1alpha1.OperationInitiator{Automated: true}}
	if why, busy := client.Busy(app); !busy || !strings.Contains(why, "automated") {
		t.Errorf("asked for: busy %v: %q", busy, why)
	}
}

func TestParseRef(t *testing.T) {
	for text, want := range map[string]client.Ref{
		"shop":        {Namespace: "home", Name: "shop"},
		"team-a/shop": {Namespace: "team-a", Name: "shop"},
	} {
		if got, err := client.ParseRef(text, "home"); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "/", "a/", "/b", "a/b/c"} {
		if got, err := client.ParseRef(text, "home"); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}
