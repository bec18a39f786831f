package health

import "github.com/lockstep-cd/lockstep/api/v1alpha1"

// replicaSet waits for available replicas; pods that can not be created are a failure.
func replicaSet(f fields) v1alpha1.HealthStatus {
	if !f.observed() {
		return unobserved()
	}
	if f.holds("ReplicaFailure") {
		return degraded(because("pods can not be created", f.condition("ReplicaFailure")))
	}
	if f.count("status", "availableReplicas") < f.desired() {
		return progressing("it waits for pods to become available")
	}
	return healthy("")
}
