package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// apiService is well when the server behind it answers. Its message names addresses and times, so the reason has to do.
func apiService(f field.Map) v1alpha1.HealthStatus {
	available := f.Condition("Available")
	switch {
	case available == nil:
		return progressing("it has not been looked at yet")
	case available.Text("status") == "True":
		return healthy("")
	}
	return progressing(because("the server behind it is not available", available))
}
