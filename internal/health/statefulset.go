package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// statefulSet waits for ready replicas, then for the update of those that the partition does not hold back.
func statefulSet(f field.Map) v1alpha1.HealthStatus {
	if !f.Observed() {
		return unobserved()
	}
	desired := f.Desired()
	if f.Count("status", "readyReplicas") < desired {
		return progressing("it waits for pods to become ready")
	}
	// Servers before 1.25 do not count available replicas; without minReadySeconds they equal the ready ones.
	if f.Count("spec", "minReadySeconds") > 0 && f.Count("status", "availableReplicas") < desired {
		return progressing("it waits for pods to become available")
	}
	if f.Text("spec", "updateStrategy", "type") == "OnDelete" {
		return healthy("")
	}
	held := f.Count("spec", "updateStrategy", "rollingUpdate", "partition")
	behind := f.Text("status", "updateRevision") != f.Text("status", "currentRevision")
	if f.Count("status", "updatedReplicas") < desired-held && (behind || held > 0) {
		return progressing("the rollout waits for updated pods")
	}
	return healthy("")
}
