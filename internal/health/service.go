package health

import "github.com/lockstep-cd/lockstep/api/v1alpha1"

// service is well at once, but for a load balancer that has no address yet.
func service(f fields) v1alpha1.HealthStatus {
	if f.text("spec", "type") == "LoadBalancer" && len(f.list("status", "loadBalancer", "ingress")) == 0 {
		return progressing("it waits for a load-balancer address")
	}
	return healthy("")
}
