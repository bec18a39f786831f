package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// ingress is well once its controller has given it an address.
func ingress(f field.Map) v1alpha1.HealthStatus {
	if len(f.List("status", "loadBalancer", "ingress")) == 0 {
		return progressing("it waits for an address from its ingress controller")
	}
	return healthy("")
}
