package health

import "github.com/lockstep-cd/lockstep/api/v1alpha1"

// podDisruptionBudget is well when its controller could work it out. That it allows no disruption just now is its purpose.
func podDisruptionBudget(f fields) v1alpha1.HealthStatus {
	if !f.observed() {
		return unobserved()
	}
	allowed := f.condition("DisruptionAllowed")
	if allowed.text("status") == "False" && allowed.text("reason") != "InsufficientPods" {
		return degraded(because("the number of pods to protect can not be worked out", allowed))
	}
	return healthy("")
}
