package health

import "github.com/lockstep-cd/lockstep/api/v1alpha1"

// namespace is well unless it is on its way out.
func namespace(f fields) v1alpha1.HealthStatus {
	if f.text("status", "phase") == "Terminating" {
		return progressing("it is being deleted")
	}
	return healthy("")
}
