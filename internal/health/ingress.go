package health

import "github.com/lockstep-cd/lockstep/api/v1alpha1"

// ingress is well once its controller has given it an address.
func ingress(f fields) v1alpha1.HealthStatus {
	if len(f.list("status", "loadBalancer", "ingress")) == 0 {
		return progressing("it waits for an address from its ingress controller")
	}
	return healthy("")
}
