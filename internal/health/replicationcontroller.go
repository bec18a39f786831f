package health

import "github.com/lockstep-cd/lockstep/api/v1alpha1"

// replicationController is read like the ReplicaSet that took its place.
func replicationController(f fields) v1alpha1.HealthStatus { return replicaSet(f) }
