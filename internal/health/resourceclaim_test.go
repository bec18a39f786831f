package health

import "testing"

func TestResourceClaim(t *testing.T) {
	checkStates(t, "resourceclaim", []state{
		{"healthy", "Healthy", ""},
		{"healthy-unused", "Healthy", "no pod uses it yet"},
		{"failed", "Degraded", "device gpu-0: Ready is False: Broken"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: example.com/hold"},
	})
}
