package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// service is well at once, but for a load balancer that has no address yet.
func service(f field.Map) v1alpha1.HealthStatus {
	if f.Text("spec", "type") == "LoadBalancer" && len(f.List("status", "loadBalancer", "ingress")) == 0 {
		return progressing("it waits for a load-balancer address")
	}
	return healthy("")
}
