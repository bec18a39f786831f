package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// resourceClaim is allocated only when a pod uses it, so that one without devices is well: waiting for them would hold up
// the very pod that brings them.
func resourceClaim(f field.Map) v1alpha1.HealthStatus {
	for _, device := range f.List("status", "devices") {
		for _, condition := range device.List("conditions") {
			if condition.Text("type") == "Ready" && condition.Text("status") == "False" {
				return degraded("device " + device.Text("device") + ": " + steady.Condition(condition))
			}
		}
	}
	if f.At("status", "allocation") == nil {
		return healthy("no pod uses it yet")
	}
	return healthy("")
}
