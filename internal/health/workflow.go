package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// workflow is decided by its phase; it has no conditions that say more.
func workflow(f field.Map) v1alpha1.HealthStatus {
	switch phase := f.Text("status", "phase"); phase {
	case "Succeeded":
		return healthy("it is complete")
	case "Failed", "Error":
		message := steady.Message(f.Text("status", "message"))
		if message == "" {
			return degraded("it failed")
		}
		return degraded("it failed: " + message)
	case "":
		return progressing("it has not started yet")
	case "Pending", "Running":
		if f.Flag("spec", "suspend") {
			return suspended("it is suspended")
		}
		return progressing("it is running")
	default:
		return unknown("it is in the unknown phase " + phase)
	}
}
