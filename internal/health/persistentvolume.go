package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// persistentVolume is well in every phase but one: without a claim, with one, and after one.
func persistentVolume(f field.Map) v1alpha1.HealthStatus {
	switch phase := f.Text("status", "phase"); phase {
	case "Available", "Bound", "Released":
		return healthy("")
	case "Failed":
		return degraded(because("it can not be reclaimed", f.At("status")))
	case "Pending", "":
		return progressing("it is not available yet")
	default:
		return unknown("it is in the unknown phase " + phase)
	}
}
