package client_test

import (
	"testing"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
)

func TestCause(t *testing.T) {
	fine := v1alpha1.ApplicationStatus{
		Sync: v1alpha1.SyncStatus{Status: v1alpha1.SyncSynced}, Health: v1alpha1.AppHealthStatus{Status: v1alpha1.HealthHealthy},
	}
	cases := []struct {
		name   string
		change func(*v1alpha1.ApplicationStatus)
		want   string
	}{
		{"fine says nothing", func(*v1alpha1.ApplicationStatus) {}, ""},
		{"never looked at", func(s *v1alpha1.ApplicationStatus) { *s = v1alpha1.ApplicationStatus{} }, "Not looked at yet."},
		{"an error wins over a warning and over health", func(s *v1alpha1.ApplicationStatus) {
			s.Health = v1alpha1.AppHealthStatus{Status: v1alpha1.HealthDegraded, Message: "sick"}
			s.Conditions = []v1alpha1.ApplicationCondition{
				{Type: v1alpha1.ConditionOrphanedResourceWarning, Message: "orphans"},
				{Type: v1alpha1.ConditionComparisonError, Message: "values.yaml:41: bad"},
			}
		}, "values.yaml:41: bad"},
		{"a warning alone is no cause", func(s *v1alpha1.ApplicationStatus) {
			s.Conditions = []v1alpha1.ApplicationCondition{{Type: v1alpha1.ConditionOrphanedResourceWarning, Message: "orphans"}}
		}, ""},
		{"a failed sync matters while out of step", func(s *v1alpha1.ApplicationStatus) {
			s.Sync.Status = v1alpha1.SyncOutOfSync
			s.OperationState = &v1alpha1.OperationState{Phase: v1alpha1.OperationFailed, Message: "denied"}
		}, "The last sync did not work: denied"},
		{"and no longer after", func(s *v1alpha1.ApplicationStatus) {
			s.OperationState = &v1alpha1.OperationState{Phase: v1alpha1.OperationFailed, Message: "denied"}
		}, ""},
		{"differences are counted by kind", func(s *v1alpha1.ApplicationStatus) {
			s.Sync.Status = v1alpha1.SyncOutOfSync
			s.Resources = []v1alpha1.ResourceStatus{
				{Status: v1alpha1.SyncOutOfSync},
				{Status: v1alpha1.SyncOutOfSync, Health: &v1alpha1.HealthStatus{Status: v1alpha1.HealthMissing}},
				{Status: v1alpha1.SyncOutOfSync, Health: &v1alpha1.HealthStatus{Status: v1alpha1.HealthMissing}},
				{Status: v1alpha1.SyncOutOfSync, RequiresPruning: true},
				{Status: v1alpha1.SyncSynced},
			}
		}, "1 object differs, 2 objects are missing, 1 object left the source, of 5."},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			app := &v1alpha1.Application{Status: *fine.DeepCopy()}
			c.change(&app.Status)
			if got := client.Cause(app); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestInStepNeedsTheCurrentSource(t *testing.T) {
	source := v1alpha1.ApplicationSource{RepoURL: "https://git.example/shop", Path: "deploy", TargetRevision: "main"}
	app := &v1alpha1.Application{Spec: v1alpha1.ApplicationSpec{Source: &source}}
	app.Status.Sync = v1alpha1.SyncStatus{Status: v1alpha1.SyncSynced, ComparedTo: v1alpha1.ComparedTo{Source: source}}
	if !client.InStep(app) {
		t.Error("compared with its source, Synced: not in step")
	}
	app.Spec.Source = source.DeepCopy()
	app.Spec.Source.TargetRevision = "v2"
	if client.InStep(app) {
		t.Error("the status is of another revision and counts as in step")
	}
}
