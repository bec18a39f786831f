package health

import "github.com/lockstep-cd/lockstep/api/v1alpha1"

// daemonSet waits for an updated and available pod on every node it is meant for.
func daemonSet(f fields) v1alpha1.HealthStatus {
	if !f.observed() {
		return unobserved()
	}
	desired := f.count("status", "desiredNumberScheduled")
	// With OnDelete a person moves the pods; until then old ones are as meant.
	onDelete := f.text("spec", "updateStrategy", "type") == "OnDelete"
	switch {
	case !onDelete && f.count("status", "updatedNumberScheduled") < desired:
		return progressing("the rollout waits for updated pods")
	case f.count("status", "numberAvailable") < desired:
		return progressing("it waits for pods to become available")
	}
	return healthy("")
}
