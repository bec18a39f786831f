package health

import "github.com/lockstep-cd/lockstep/api/v1alpha1"

// statefulSet waits for ready replicas, then for the update of those that the partition does not hold back.
func statefulSet(f fields) v1alpha1.HealthStatus {
	if !f.observed() {
		return unobserved()
	}
	desired := f.desired()
	if f.count("status", "readyReplicas") < desired {
		return progressing("it waits for pods to become ready")
	}
	// Servers before 1.25 do not count available replicas; without minReadySeconds they equal the ready ones.
	if f.count("spec", "minReadySeconds") > 0 && f.count("status", "availableReplicas") < desired {
		return progressing("it waits for pods to become available")
	}
	if f.text("spec", "updateStrategy", "type") == "OnDelete" {
		return healthy("")
	}
	held := f.count("spec", "updateStrategy", "rollingUpdate", "partition")
	behind := f.text("status", "updateRevision") != f.text("status", "currentRevision")
	if f.count("status", "updatedReplicas") < desired-held && (behind || held > 0) {
		return progressing("the rollout waits for updated pods")
	}
	return healthy("")
}
