package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// replicaSet waits for available replicas; pods that can not be created are a failure.
func replicaSet(f field.Map) v1alpha1.HealthStatus {
	if !f.Observed() {
		return unobserved()
	}
	if f.Holds("ReplicaFailure") {
		return degraded(because("pods can not be created", f.Condition("ReplicaFailure")))
	}
	if f.Count("status", "availableReplicas") < f.Desired() {
		return progressing("it waits for pods to become available")
	}
	return healthy("")
}
