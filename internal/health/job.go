package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// job is decided by the conditions that hold; one that is there but False, as after a Job was resumed, says nothing.
func job(f field.Map) v1alpha1.HealthStatus {
	switch {
	case f.Holds("Failed"):
		return degraded(jobFailure(f.Condition("Failed").Text("reason")))
	case f.Holds("Complete"):
		return healthy("it is complete")
	case f.Holds("Suspended"), f.Flag("spec", "suspend"):
		return suspended("it is suspended")
	case f.Holds("FailureTarget"):
		return progressing("it has failed and waits for its pods to stop")
	case f.Holds("SuccessCriteriaMet"):
		return progressing("it has succeeded and waits for its pods to stop")
	}
	return progressing("it is running")
}

// jobFailure says in words why a Job failed.
func jobFailure(reason string) string {
	switch reason {
	case "BackoffLimitExceeded":
		return "its pods failed more often than its backoff limit allows"
	case "DeadlineExceeded":
		return "it ran longer than its deadline allows"
	case "PodFailurePolicy":
		return "a pod failed in a way that its failure policy does not retry"
	case "MaxFailedIndexesExceeded", "FailedIndexes":
		return "some of its indexes failed (" + reason + ")"
	case "":
		return "it failed"
	}
	return "it failed (" + reason + ")"
}
