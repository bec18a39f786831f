package health

import "testing"

func TestService(t *testing.T) {
	checkStates(t, "service", []state{
		{"healthy", "Healthy", ""},
		{"healthy-cluster-ip", "Healthy", ""},
		{"progressing", "Progressing", "it waits for a load-balancer address"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
