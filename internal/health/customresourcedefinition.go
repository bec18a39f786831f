package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// customResourceDefinition is well once the API server serves it.
func customResourceDefinition(f field.Map) v1alpha1.HealthStatus {
	names := f.Condition("NamesAccepted")
	switch {
	case f.Holds("Terminating"):
		return progressing("it is being deleted")
	case names.Text("status") == "False":
		return degraded("its names are not accepted: " + steady.Message(names.Text("message")))
	case f.Holds("NonStructuralSchema"):
		return degraded("its schema is not structural: " + steady.Message(f.Condition("NonStructuralSchema").Text("message")))
	case !f.Holds("Established"):
		return progressing("the API server does not serve it yet")
	}
	return healthy("")
}
