package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// serviceCIDR is well once addresses are given out of it.
func serviceCIDR(f field.Map) v1alpha1.HealthStatus {
	ready := f.Condition("Ready")
	switch {
	case ready == nil:
		return unobserved()
	case ready.Text("status") != "True":
		return progressing(steady.Condition(ready))
	}
	return healthy("")
}
