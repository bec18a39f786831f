package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// flowSchema is degraded when the priority level that it names is not there: the API server then ignores it.
func flowSchema(f field.Map) v1alpha1.HealthStatus {
	switch dangling := f.Condition("Dangling"); dangling.Text("status") {
	case "True":
		return degraded("there is no priority level " + f.Text("spec", "priorityLevelConfiguration", "name"))
	case "":
		return unobserved()
	}
	return healthy("")
}
