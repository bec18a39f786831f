package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// daemonSet waits for an updated and available pod on every node it is meant for.
func daemonSet(f field.Map) v1alpha1.HealthStatus {
	if !f.Observed() {
		return unobserved()
	}
	desired := f.Count("status", "desiredNumberScheduled")
	// With OnDelete a person moves the pods; until then old ones are as meant.
	onDelete := f.Text("spec", "updateStrategy", "type") == "OnDelete"
	switch {
	case !onDelete && f.Count("status", "updatedNumberScheduled") < desired:
		return progressing("the rollout waits for updated pods")
	case f.Count("status", "numberAvailable") < desired:
		return progressing("it waits for pods to become available")
	}
	return healthy("")
}
