package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// podDisruptionBudget is well when its controller could work it out. That it allows no disruption just now is its purpose.
func podDisruptionBudget(f field.Map) v1alpha1.HealthStatus {
	if !f.Observed() {
		return unobserved()
	}
	allowed := f.Condition("DisruptionAllowed")
	if allowed.Text("status") == "False" && allowed.Text("reason") != "InsufficientPods" {
		return degraded(because("the number of pods to protect can not be worked out", allowed))
	}
	return healthy("")
}
