package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// namespace is well unless it is on its way out.
func namespace(f field.Map) v1alpha1.HealthStatus {
	if f.Text("status", "phase") == "Terminating" {
		return progressing("it is being deleted")
	}
	return healthy("")
}
