package health

import "github.com/lockstep-cd/lockstep/api/v1alpha1"

// customResourceDefinition is well once the API server serves it.
func customResourceDefinition(f fields) v1alpha1.HealthStatus {
	names := f.condition("NamesAccepted")
	switch {
	case f.holds("Terminating"):
		return progressing("it is being deleted")
	case names.text("status") == "False":
		return degraded("its names are not accepted: " + steady(names.text("message")))
	case f.holds("NonStructuralSchema"):
		return degraded("its schema is not structural: " + steady(f.condition("NonStructuralSchema").text("message")))
	case !f.holds("Established"):
		return progressing("the API server does not serve it yet")
	}
	return healthy("")
}
