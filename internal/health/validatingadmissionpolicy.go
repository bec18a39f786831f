package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// validatingAdmissionPolicy is degraded when the API server finds that an expression does not fit the types it is about.
func validatingAdmissionPolicy(f field.Map) v1alpha1.HealthStatus {
	if !f.Observed() {
		return unobserved()
	}
	for _, warning := range f.List("status", "typeChecking", "expressionWarnings") {
		return degraded(warning.Text("fieldRef") + ": " + steady.Message(warning.Text("warning")))
	}
	return healthy("")
}
