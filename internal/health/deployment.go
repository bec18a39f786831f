package health

import "github.com/lockstep-cd/lockstep/api/v1alpha1"

// deployment follows the rollout: all replicas updated, no old ones left, all available. Each step is behind it for good
// until the next rollout, so that the sentence does not go back and forth.
func deployment(f fields) v1alpha1.HealthStatus {
	if f.flag("spec", "paused") {
		return suspended("it is paused")
	}
	if !f.observed() {
		return unobserved()
	}
	if f.condition("Progressing").text("reason") == "ProgressDeadlineExceeded" {
		return degraded("the rollout exceeded its progress deadline")
	}
	updated := f.count("status", "updatedReplicas")
	switch {
	case updated < f.desired() && f.holds("ReplicaFailure"):
		return progressing(because("pods can not be created", f.condition("ReplicaFailure")))
	case updated < f.desired():
		return progressing("the rollout waits for updated pods")
	case f.count("status", "replicas") > updated:
		return progressing("the rollout waits for old pods to stop")
	case f.count("status", "availableReplicas") < updated:
		return progressing("the rollout waits for pods to become available")
	}
	return healthy("")
}

// because adds the reason of a condition. Its message is left out where controllers put counters and names in it.
func because(sentence string, condition fields) string {
	if reason := condition.text("reason"); reason != "" {
		return sentence + " (" + reason + ")"
	}
	return sentence
}
