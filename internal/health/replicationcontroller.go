package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// replicationController is read like the ReplicaSet that took its place.
func replicationController(f field.Map) v1alpha1.HealthStatus { return replicaSet(f) }
