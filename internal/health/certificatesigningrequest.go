package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// certificateSigningRequest is well once the certificate is there. It is also the rule of a pod's request, whose certificate
// has another name.
func certificateSigningRequest(f field.Map) v1alpha1.HealthStatus {
	for _, kind := range []string{"Denied", "Failed"} {
		if f.Holds(kind) {
			return degraded(steady.Condition(f.Condition(kind)))
		}
	}
	switch {
	case f.Text("status", "certificate") != "", f.Text("status", "certificateChain") != "":
		return healthy("")
	case f.Holds("Approved"):
		return progressing("it is approved and waits for its signer")
	}
	return progressing("it waits for its approval or its signer")
}
