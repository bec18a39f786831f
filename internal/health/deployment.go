package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// deployment follows the rollout: all replicas updated, no old ones left, all available. Each step is behind it for good
// until the next rollout, so that the sentence does not go back and forth.
func deployment(f field.Map) v1alpha1.HealthStatus {
	if f.Flag("spec", "paused") {
		return suspended("it is paused")
	}
	if !f.Observed() {
		return unobserved()
	}
	if f.Condition("Progressing").Text("reason") == "ProgressDeadlineExceeded" {
		return degraded("the rollout exceeded its progress deadline")
	}
	updated := f.Count("status", "updatedReplicas")
	switch {
	case updated < f.Desired() && f.Holds("ReplicaFailure"):
		return progressing(because("pods can not be created", f.Condition("ReplicaFailure")))
	case updated < f.Desired():
		return progressing("the rollout waits for updated pods")
	case f.Count("status", "replicas") > updated:
		return progressing("the rollout waits for old pods to stop")
	case f.Count("status", "availableReplicas") < updated:
		return progressing("the rollout waits for pods to become available")
	}
	return healthy("")
}

// because adds the reason of a condition. Its message is left out where controllers put counters and names in it.
func because(sentence string, condition field.Map) string {
	if reason := condition.Text("reason"); reason != "" {
		return sentence + " (" + reason + ")"
	}
	return sentence
}
