package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// persistentVolumeClaim is decided by its phase.
func persistentVolumeClaim(f field.Map) v1alpha1.HealthStatus {
	switch phase := f.Text("status", "phase"); phase {
	case "Bound":
		return healthy("")
	case "Lost":
		return degraded("its volume is gone")
	case "Pending", "":
		return progressing("it is not bound to a volume yet")
	default:
		return unknown("it is in the unknown phase " + phase)
	}
}
