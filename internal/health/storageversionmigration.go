package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// storageVersionMigration is well once all objects are written in the new version.
func storageVersionMigration(f field.Map) v1alpha1.HealthStatus {
	switch {
	case f.Holds("Failed"):
		return degraded(steady.Condition(f.Condition("Failed")))
	case f.Holds("Succeeded"):
		return healthy("it is complete")
	case f.Holds("Running"):
		return progressing("it is running")
	}
	return progressing("it has not started yet")
}
