package workload

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// Status is a final status of application i as large as a real one after its first automatic sync: every object with
// sync and health, the comparison, one history entry, the finished operation with its results, and the summary.
func (s Spec) Status(i int, at time.Time) (v1alpha1.ApplicationStatus, error) {
	now := metav1.NewTime(at.UTC().Truncate(time.Second))
	source := s.Source(i)
	resources, results, err := s.outcomes(i)
	if err != nil {
		return v1alpha1.ApplicationStatus{}, err
	}
	automatic := v1alpha1.OperationInitiator{Automated: true}
	return v1alpha1.ApplicationStatus{
		Resources: resources,
		Sync: v1alpha1.SyncStatus{
			Status: v1alpha1.SyncSynced, Revision: s.Revision,
			ComparedTo: v1alpha1.ComparedTo{Source: source, Destination: s.Destination(i)},
		},
		Health: v1alpha1.AppHealthStatus{Status: v1alpha1.HealthHealthy, LastTransitionTime: &now},
		History: []v1alpha1.RevisionHistory{{
			Revision: s.Revision, DeployStartedAt: &now, DeployedAt: now, Source: source, InitiatedBy: automatic,
		}},
		OperationState: &v1alpha1.OperationState{
			Operation: v1alpha1.Operation{
				Sync:        &v1alpha1.SyncOperation{Revision: s.Revision, Prune: true},
				InitiatedBy: automatic,
				Retry:       v1alpha1.RetryStrategy{Limit: 5},
			},
			Phase:      v1alpha1.OperationSucceeded,
			Message:    "all objects of the application were applied",
			SyncResult: &v1alpha1.SyncOperationResult{Resources: results, Revision: s.Revision, Source: source},
			StartedAt:  now, FinishedAt: &now,
		},
		ReconciledAt: &now,
		SourceType:   v1alpha1.SourceTypeDirectory,
		Summary:      s.summary(i),
	}, nil
}

func (s Spec) outcomes(i int) ([]v1alpha1.ResourceStatus, []*v1alpha1.ResourceResult, error) {
	var resources []v1alpha1.ResourceStatus
	var results []*v1alpha1.ResourceResult
	for _, name := range s.Kinds {
		k, err := KindOf(name)
		if err != nil {
			return nil, nil, err
		}
		r := v1alpha1.ResourceStatus{
			Group: k.Group, Version: k.Version, Kind: k.Kind, Namespace: s.Namespace(i), Name: s.Name(i), Status: v1alpha1.SyncSynced,
		}
		if k.HasHealth {
			r.Health = &v1alpha1.HealthStatus{Status: v1alpha1.HealthHealthy}
		}
		resources = append(resources, r)
		results = append(results, &v1alpha1.ResourceResult{
			Group: k.Group, Version: k.Version, Kind: k.Kind, Namespace: r.Namespace, Name: r.Name,
			Status: v1alpha1.ResultSynced, Message: k.Resource + "/" + r.Name + " created",
			HookPhase: v1alpha1.OperationRunning, SyncPhase: "Sync",
		})
	}
	return resources, results, nil
}

func (s Spec) summary(i int) v1alpha1.ApplicationSummary {
	var sum v1alpha1.ApplicationSummary
	for _, name := range s.Kinds {
		switch name {
		case "deployment":
			sum.Images = []string{image(FirstVersion)}
		case "ingress":
			sum.ExternalURLs = []string{"http://" + host(s.Name(i)) + "/"}
		}
	}
	return sum
}
