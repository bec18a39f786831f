package health

import "github.com/lockstep-cd/lockstep/api/v1alpha1"

// persistentVolume is well in every phase but one: without a claim, with one, and after one.
func persistentVolume(f fields) v1alpha1.HealthStatus {
	switch phase := f.text("status", "phase"); phase {
	case "Available", "Bound", "Released":
		return healthy("")
	case "Failed":
		return degraded(because("it can not be reclaimed", f.at("status")))
	case "Pending", "":
		return progressing("it is not available yet")
	default:
		return unknown("it is in the unknown phase " + phase)
	}
}
